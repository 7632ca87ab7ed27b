/* What the supervisor has to tell the database: the leases of a prover that it reaped go back, a
 * device is in quarantine or is not any more. A thread of its own does it, so that a database that
 * is away does not hold up restarts and signals.
 */
#ifndef PROVERQ_RESCUER_H
#define PROVERQ_RESCUER_H

#include "service/options.h"
#include "service/uuid.h"

struct rescuer; /* any thread may call */

/* ERR_CONNECTION or ERR_SCHEMA when the database cannot be used. */
MUST_USE enum err rescuer_check(const struct options *options, struct error *error);

/* `options` must outlive it. Signals must be blocked. */
MUST_USE enum err rescuer_open(const struct options *options, struct rescuer **out,
                               struct error *error);

/* What has not been done yet is tried once more. NULL may be closed. */
void rescuer_close(struct rescuer *rescuer);

/* Beyond some dozens that wait, leases expire by themselves. */
void rescuer_rescue(struct rescuer *rescuer, const struct uuid *instance);

/* `reason` NULL: the device is in no quarantine. */
void rescuer_quarantine(struct rescuer *rescuer, const char *device, unsigned faults,
                        const char *reason);

#endif
