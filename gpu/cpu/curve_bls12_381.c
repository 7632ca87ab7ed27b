/* BLS12-381: its arithmetic, what is built on it, and its table. */
#define CURVE_NAME bls12_381
#define CURVE_ID   CURVE_BLS12_381

#include "gpu/cpu/curve_start.inc"

#include "gpu/cpu/bls12_381.inc"

#include "gpu/cpu/bls12_381_pairing.inc"
#include "gpu/cpu/r1cs_check.inc"
#include "gpu/cpu/setup.inc"
#include "gpu/cpu/subgroup.inc"

#include "gpu/cpu/table.inc"
