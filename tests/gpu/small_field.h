/* BN254's quotient as if its scalar field had no root of unity of order above 2^6: the code for
 * domains as large as the field allows, at a size that a test can check. */
#ifndef TESTS_SMALL_FIELD_H
#define TESTS_SMALL_FIELD_H

#include "gpu/cpu/matrix.h"

enum { SMALL_TWO_ADICITY = 6 };

MUST_USE enum err small_field_quotient(const struct matrix *matrix, const struct scalar *witness,
                                       struct scalar *h, struct error *error);

#endif
