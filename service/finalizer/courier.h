/* The courier: the thread of a finalizer that delivers webhooks, with a connection and an HTTP
 * client of its own, so that no endpoint holds up a job.
 *
 * It claims deliveries that are due, under a lease, keeps many under way at once, and records what
 * came of them, several in one transaction. Which endpoint gets how many, when the next attempt is
 * due and when an endpoint rests or is disabled, the database decides (sql/functions/
 * claim_deliveries.sql and record_deliveries.sql).
 */
#ifndef PROVERQ_COURIER_H
#define PROVERQ_COURIER_H

#include "service/common/options.h"

struct courier; /* used by the thread that started it */

/* Starts the thread. When it cannot go on it calls `on_end` once, from the thread, after which
 * courier_stop gives the error. Signals are left to other threads. */
MUST_USE enum err courier_start(const struct options *options, void (*on_end)(void),
                                struct courier **out, struct error *error);

/* There may be something to deliver: it looks before its next poll. NULL is fine. */
void courier_wake(struct courier *courier);

/* Begins nothing new, ends what is under way, and frees it. ERR_NONE, or what had ended it before.
 * NULL is fine. */
MUST_USE enum err courier_stop(struct courier *courier, struct error *error);

#endif
