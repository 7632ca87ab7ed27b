/* `proverq circuit ...`: registering circuits in the database.
 *
 * Each takes the parsed command line and prints its result to standard output.
 */
#ifndef PROVERQ_CIRCUIT_H
#define PROVERQ_CIRCUIT_H

#include "gpu/error.h"
#include "service/common/options.h"

/* circuit add NAME KEY.zkey [--r1cs FILE]: checks the key (keycheck.h; ERR_KEY also for a forgeable
 * one) and that the constraints belong to it, stores both by their hashes, and makes them the
 * newest version of NAME. The same artefacts again are the same version. */
MUST_USE enum err circuit_add(const struct options *options, struct error *error);

/* circuit list: a line for each version that is not removed, newest first. */
MUST_USE enum err circuit_list(const struct options *options, struct error *error);

/* circuit show NAME: everything known of its newest version. */
MUST_USE enum err circuit_show(const struct options *options, struct error *error);

/* circuit rm NAME: no new job can use its newest version; jobs that pinned it go on. */
MUST_USE enum err circuit_rm(const struct options *options, struct error *error);

#endif
