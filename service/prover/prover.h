/* One prover process: one device, its keys, and the stages between a claim and a recorded proof.
 *
 *     dispatcher -> synthesis -> gpu workers -> verify -> record         (service/prover/pipeline.h)
 *     heartbeat: renews the leases of all of them
 *
 * After the first signal to stop (stop.h) nothing more is claimed, what has not reached the device is
 * released, the rest is finished and recorded, and prover_run returns. The second one ends the
 * process at once; its leases expire.
 */
#ifndef PROVERQ_SERVICE_PROVER_H
#define PROVERQ_SERVICE_PROVER_H

#include "gpu/error.h"
#include "service/common/options.h"

/* Runs until a signal asks it to stop (ERR_NONE) or it cannot go on. Takes the process's signals;
 * logging must be set up. */
MUST_USE enum err prover_run(const struct options *options, struct error *error);

#endif
