/* Checks a proving key once: what a prover that uses it may rely on.
 *
 * Every point has coordinates below q, is on its curve and in the subgroup of order r;
 * e(beta1, G2) = e(G1, beta2), and the same for delta. These are the invariants of the ceremony
 * that can be seen in the key alone (Bowe, Gabizon, Miers, "Scalable Multi-party Computation for
 * zk-SNARK Parameters", 2017).
 */
#ifndef PROVERQ_KEYCHECK_H
#define PROVERQ_KEYCHECK_H

#include "gpu/error.h"
#include "gpu/zkey.h"

/* ERR_KEY, naming the section and index of the first bad point or the pairing that fails.
 * *forgeable is set when gamma2 = delta2 (no phase 2: anyone can forge proofs); that alone is not
 * an error here. Uses all cores. */
MUST_USE enum err keycheck(const struct zkey *zkey, bool *forgeable, struct error *error);

#endif
