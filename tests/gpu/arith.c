#include "tests/gpu/arith.h"

#include "gpu/cpu/cpu_curve.h"

extern const struct arith arith_bn254_portable, arith_bls12_381_portable;
#ifdef __x86_64__
extern const struct arith arith_bn254_adx, arith_bls12_381_adx;
#endif

const struct arith *const *arith_tables(void) {
    static const struct arith *tables[5];
    int n = 0;
    tables[n++] = &arith_bn254_portable;
    tables[n++] = &arith_bls12_381_portable;
#ifdef __x86_64__
    if (cpu_curve_isa(CURVE_BN254, "adx")) {
        tables[n++] = &arith_bn254_adx;
        tables[n++] = &arith_bls12_381_adx;
    }
#endif
    tables[n] = NULL;
    return tables;
}
