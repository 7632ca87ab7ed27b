/* Groth16 verification: e(A, B) = e(alpha, beta) * e(IC(publics), gamma) * e(C, delta).
 *
 * Groth, "On the Size of Pairing-based Non-interactive Arguments", 2016, section 3.2.
 */
#ifndef PROVERQ_VERIFY_H
#define PROVERQ_VERIFY_H

#include "gpu/proof.h"
#include "gpu/vkey.h"

/* ERR_NONE only for a valid proof. ERR_INVALID_PROOF: a point off the curve, outside the subgroup
 * or at infinity where none may be, or the equation fails. ERR_INPUT: wrong number of public
 * values, or one >= r. ERR_MISMATCH: another curve. ERR_KEY: gamma = delta (forgeable), or a key
 * point that is not in its group. */
MUST_USE enum err verify(const struct vkey *vkey, const struct scalar *publics, size_t n_publics,
                         const struct proof *proof, struct error *error);

/* For who made the proof: the same, but a key with gamma = delta is taken. It tells a right proof from
 * a wrong one; to anybody else a proof under such a key says nothing. */
MUST_USE enum err verify_own(const struct vkey *vkey, const struct scalar *publics,
                             size_t n_publics, const struct proof *proof, struct error *error);

#endif
