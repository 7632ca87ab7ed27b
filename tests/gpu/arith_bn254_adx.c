#ifdef __x86_64__
#define CURVE_NAME bn254
#define CURVE_ID   CURVE_BN254
#define CURVE_ISA  adx
#define ARITH_FILE "gpu/cpu/bn254.inc"
#include "tests/gpu/arith.inc"
#endif
