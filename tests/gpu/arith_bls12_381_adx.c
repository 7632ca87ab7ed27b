#ifdef __x86_64__
#define CURVE_NAME bls12_381
#define CURVE_ID   CURVE_BLS12_381
#define CURVE_ISA  adx
#define ARITH_FILE "gpu/cpu/bls12_381.inc"
#include "tests/gpu/arith.inc"
#endif
