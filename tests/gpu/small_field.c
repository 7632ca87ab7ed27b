#include "tests/gpu/small_field.h"

#define CURVE_NAME bn254
#define CURVE_ID   CURVE_BN254
#define CURVE_ISA  portable
#include "gpu/cpu/curve_start.inc"

#include "gpu/cpu/bn254.inc"

static struct fr small_root; /* of order 2^6 */
#undef FR_TWO_ADICITY
#define FR_TWO_ADICITY SMALL_TWO_ADICITY
#define fr_root        small_root

#include "gpu/cpu/scalars.inc"

#include "gpu/cpu/ntt.inc"
#include "gpu/cpu/quotient.inc"

#undef fr_root

enum err small_field_quotient(const struct matrix *matrix, const struct scalar *witness,
                              struct scalar *h, struct error *error) {
    int64_t matvec_ns, ntt_ns;
    small_root = fr_root;
    for (unsigned i = SMALL_TWO_ADICITY; i < curve_infos[CURVE_ID].two_adicity; i++)
        fr_sqr(&small_root, &small_root);
    return table_quotient(NULL, matrix, witness, h, &matvec_ns, &ntt_ns, error);
}
