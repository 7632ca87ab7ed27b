/* A development key: the whole trusted setup by one party that knows, and then wipes, the secrets.
 *
 * Whoever ran it could have kept them, so such a key proves nothing to anybody else; it is marked
 * INSECURE in its section 10 and its name. For tests and benchmarks of any size. The key is
 * snarkjs-compatible in every section.
 */
#ifndef PROVERQ_SETUP_H
#define PROVERQ_SETUP_H

#include "gpu/error.h"
#include "gpu/r1cs.h"

/* Writes the key of `r1cs` to `path` (whole or not at all). Uses all cores. */
MUST_USE enum err setup_write(const struct r1cs *r1cs, const char *path, struct error *error);

#endif
