/* What the supervisor has to tell the database: the leases of a prover that it reaped go back, a
 * device is in quarantine or is not any more. A thread of its own does it, so that a database that
 * is away does not hold up restarts and signals.
 */
#ifndef PROVERQ_SUPERVISOR_DB_H
#define PROVERQ_SUPERVISOR_DB_H

#include "service/common/options.h"
#include "service/common/uuid.h"

struct supervisor_db; /* any thread may call */

/* ERR_CONNECTION or ERR_SCHEMA when the database cannot be used. */
MUST_USE enum err supervisor_db_check(const struct options *options, struct error *error);

/* `options` must outlive it. Signals must be blocked. */
MUST_USE enum err supervisor_db_open(const struct options *options, struct supervisor_db **out,
                                     struct error *error);

/* What has not been done yet is tried once more. NULL may be closed. */
void supervisor_db_close(struct supervisor_db *db);

/* Beyond some dozens that wait, leases expire by themselves. */
void supervisor_db_rescue(struct supervisor_db *db, const struct uuid *instance);

/* `reason` NULL: the device is in no quarantine. */
void supervisor_db_quarantine(struct supervisor_db *db, const char *device, unsigned faults,
                              const char *reason);

#endif
