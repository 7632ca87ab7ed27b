/* Brings a database to a version, while programs are at work in it.
 *
 * Only one migrates at a time, whoever comes second waits for an advisory lock (without a snapshot,
 * for which a concurrent index build would wait in turn). A lock on a table is waited for only
 * briefly, since all who come later queue behind whoever waits; what did not get it is rolled back
 * and tried again until `lock_wait_ms` are over, and who is in the way is said.
 */
#ifndef PROVERQ_SCHEMA_RUN_H
#define PROVERQ_SCHEMA_RUN_H

#include "service/schema/plan.h"

#include <stdint.h>

/* Prints the files that it applied, a line each, to standard output, and waiting to standard error.
 * A failure leaves what was committed before: everything, up to a migration that stands alone. */
MUST_USE enum err migrate_run(struct db *db, const struct migrations *all, int target,
                              uint32_t lock_wait_ms, struct error *error);

#endif
