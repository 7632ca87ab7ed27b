#include "gpu/cpu/cpu_curve.h"

#include <stdlib.h>
#include <string.h>

/* Tables of the curve files, one per instruction set (Makefile: CURVE_ISA). */
extern const struct cpu_curve cpu_curve_bn254_portable, cpu_curve_bls12_381_portable;
#ifdef __x86_64__
#include <cpuid.h>
extern const struct cpu_curve cpu_curve_bn254_adx, cpu_curve_bls12_381_adx;

/* MULX (BMI2) and ADCX/ADOX; none needs state that the operating system would have to save. */
static bool has_adx(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    return (b & bit_BMI2) && (b & bit_ADX);
}
#endif

const struct cpu_curve *cpu_curve_isa(enum curve_id id, const char *isa) {
    static const struct cpu_curve *const portable[CURVE_COUNT] = {
        [CURVE_BN254] = &cpu_curve_bn254_portable,
        [CURVE_BLS12_381] = &cpu_curve_bls12_381_portable,
    };
    if (strcmp(isa, "portable") == 0) return portable[id];
#ifdef __x86_64__
    static const struct cpu_curve *const adx[CURVE_COUNT] = {
        [CURVE_BN254] = &cpu_curve_bn254_adx,
        [CURVE_BLS12_381] = &cpu_curve_bls12_381_adx,
    };
    if (strcmp(isa, "adx") == 0 && has_adx()) return adx[id];
#endif
    return NULL;
}

const struct cpu_curve *cpu_curve(enum curve_id id) {
    const struct cpu_curve *adx = cpu_curve_isa(id, "adx");
    return adx ? adx : cpu_curve_isa(id, "portable");
}

void setup_key_free(struct setup_key *key) {
    free(key->ic);
    free(key->coefficients);
    free(key->a);
    free(key->b1);
    free(key->b2);
    free(key->c);
    free(key->h);
    memset(key, 0, sizeof *key);
}
