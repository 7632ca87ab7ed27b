/* The janitor: the thread of a finalizer that keeps the queue in order, with a connection of its own,
 * so that nothing of it holds up a job.
 *
 * Every second it makes partitions ready whose backoff is over, and takes expired leases away: nobody
 * else does either, so without a finalizer both wait. Every hour it makes the coming days' timing
 * tables; every minute it deletes what is older than proverq.retention says, a batch at a time with a
 * pause after each, until nothing is left (sql/functions/prune.sql). Any number may run: one of them
 * deletes.
 */
#ifndef PROVERQ_JANITOR_H
#define PROVERQ_JANITOR_H

#include "service/common/options.h"

struct janitor; /* used by the thread that started it */

/* Starts the thread. When it cannot go on it calls `on_end` once, from the thread, after which
 * janitor_stop gives the error. Signals are left to other threads. */
MUST_USE enum err janitor_start(const struct options *options, void (*on_end)(void),
                                struct janitor **out, struct error *error);

/* Ends it after the statement in hand, and frees it. ERR_NONE, or what had ended it before. NULL is
 * fine. */
MUST_USE enum err janitor_stop(struct janitor *janitor, struct error *error);

#endif
