/* The leases that this process holds, for the heartbeat.
 *
 * A stage says with lease_step how long the step that it begins may take. The heartbeat renews
 * leases only while no step is past its deadline; a process with one that is aborts, because a
 * lease that is renewed for work that hangs would keep the partition from everybody for ever.
 */
#ifndef PROVERQ_LEASES_H
#define PROVERQ_LEASES_H

#include "service/uuid.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No deadline: it waits in a queue (for somebody who has one), or for the database. */
#define LEASE_NO_DEADLINE INT64_MAX

struct lease {
    struct lease *next, *previous; /* the registry's */
    struct uuid token;
    int64_t job;
    int32_t partition;
    _Atomic(int64_t) deadline_ns; /* CLOCK_MONOTONIC */
    _Atomic(const char *) step;   /* for people */
    atomic_bool is_lost;          /* the database says that it is not ours any more */
};

struct leases; /* the registry; any thread may call */

MUST_USE enum err leases_open(struct leases **out, struct error *error);
void leases_close(struct leases *leases); /* it must be empty */

/* `lease` stays at its place until it is removed. */
void leases_add(struct leases *leases, struct lease *lease);
void leases_remove(struct leases *leases, struct lease *lease);

/* The step in hand, a constant word, and how long it may take from now (LEASE_NO_DEADLINE: as long
 * as it likes). */
void lease_step(struct lease *lease, const char *step, int64_t limit_ns);

/* Copies at most `max` tokens; returns how many there are. */
size_t leases_tokens(struct leases *leases, struct uuid *out, size_t max);

/* Marks as lost those of the n `asked` tokens that are not among the m `held` ones; returns how many. */
size_t leases_mark_lost(struct leases *leases, const struct uuid *asked, size_t n,
                        const struct uuid *held, size_t m);

/* Whether a step is past its deadline at `now_ns`; says which in *out. */
struct lease_overdue {
    int64_t job;
    int32_t partition;
    const char *step;
    int64_t late_ns;
};
bool leases_overdue(struct leases *leases, int64_t now_ns, struct lease_overdue *out);

#endif
