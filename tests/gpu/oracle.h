/* A slow Groth16 prover and point arithmetic in GMP: affine formulas, double-and-add, polynomials by
 * naive transforms. It shares nothing with the library but the types and the zkey's bytes. For
 * circuits of a few dozen constraints.
 */
#ifndef PROVERQ_TESTS_ORACLE_H
#define PROVERQ_TESTS_ORACLE_H

#include "gpu/proof.h"
#include "gpu/r1cs.h"
#include "gpu/zkey.h"

#include <gmp.h>

/* The proof of `witness` with these blinding factors: the matrices from `r1cs`, the points from
 * `zkey`. */
void oracle_prove(const struct zkey *zkey, const struct r1cs *r1cs, const struct scalar *witness,
                  const struct scalar *r, const struct scalar *s, struct proof *out);

/* k times p, for any p on the curve (also outside the subgroup) and any k >= 0. */
void oracle_g1_mul(enum curve_id curve, const struct g1_point *p, const mpz_t k,
                   struct g1_point *out);
void oracle_g2_mul(enum curve_id curve, const struct g2_point *p, const mpz_t k,
                   struct g2_point *out);

/* Random points on the curve and its twist, in general outside the subgroups of order r. */
void oracle_g1_random(enum curve_id curve, gmp_randstate_t random, struct g1_point *out);
void oracle_g2_random(enum curve_id curve, gmp_randstate_t random, struct g2_point *out);

#endif
