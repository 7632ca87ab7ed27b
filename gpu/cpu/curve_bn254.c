/* BN254: its arithmetic, what is built on it, and its table. */
#define CURVE_NAME bn254
#define CURVE_ID   CURVE_BN254

#include "gpu/cpu/curve_start.inc"

#include "gpu/cpu/bn254.inc"

#include "gpu/cpu/bn254_pairing.inc"
#include "gpu/cpu/r1cs_check.inc"
#include "gpu/cpu/setup.inc"
#include "gpu/cpu/subgroup.inc"

#include "gpu/cpu/table.inc"
