/* The leases that this process holds, for the heartbeat.
 *
 * A stage says how long the work that it begins may take. The heartbeat renews leases only while no
 * work is past its deadline; otherwise the process aborts, because a lease that is renewed for work
 * that hangs would keep the partition from everybody for ever.
 */
#ifndef PROVERQ_LEASES_H
#define PROVERQ_LEASES_H

#include "service/common/uuid.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No deadline: it waits in a queue (for somebody who has one), or for the database. */
#define LEASE_NO_DEADLINE INT64_MAX

/* What became of a lease, as proverq_private.lost_leases says it.
 * X(id, name, meaning for people) */
#define LEASE_FATE_TABLE(X)                                                                        \
    X(LEASE_VALID, "valid", "the lease is valid")                                                  \
    X(LEASE_CANCELLED, "cancelled", "the job was cancelled")                                       \
    X(LEASE_FAILED, "failed", "another partition of the job has failed")                           \
    X(LEASE_GONE, "gone", "the job is not there any more")                                         \
    X(LEASE_TAKEN, "taken", "the lease was taken away")

enum lease_fate {
#define X(id, name, meaning) id,
    LEASE_FATE_TABLE(X)
#undef X
        LEASE_FATE_COUNT
};

const char *lease_fate_meaning(enum lease_fate fate);

/* LEASE_TAKEN for a name that is not known. */
enum lease_fate lease_fate_by_name(const char *name);

struct lease {
    struct lease *next, *previous; /* the registry's */
    struct uuid token;
    int64_t job;
    int32_t partition;
    _Atomic(int64_t) deadline_ns;  /* CLOCK_MONOTONIC */
    _Atomic(const char *) work;    /* for people */
    atomic_bool is_recorded;       /* its outcome is on its way to the database, which ends it */
    _Atomic(enum lease_fate) fate; /* what the database says of it */
    bool is_watched;               /* then: */
    int watch_fd;
};

static inline bool lease_is_lost(struct lease *lease) {
    return atomic_load(&lease->fate) != LEASE_VALID;
}

struct leases; /* the registry; any thread may call */

MUST_USE enum err leases_open(struct leases **out, struct error *error);
void leases_close(struct leases *leases); /* it must be empty */

/* `lease` stays at its place until it is removed. */
void leases_add(struct leases *leases, struct lease *lease);
void leases_remove(struct leases *leases, struct lease *lease);

/* The work that is done under the lease from now on, and how long it may take (LEASE_NO_DEADLINE:
 * any time). `work` is a constant word for people: the name of the task's step (step.h) or, where the
 * deadline is not that of one step, another word. */
void lease_limit(struct lease *lease, const char *work, int64_t limit_ns);

/* The outcome is known: from now on the lease is renewed until it is removed, but not looked for,
 * because the recording of its outcome ends it. */
void lease_record(struct lease *lease);

/* A descriptor that becomes readable when the lease is lost or leases_wake is called; -1 when there
 * is none to be had. It is closed by lease_unwatch, which may be called in each case. */
int lease_watch(struct leases *leases, struct lease *lease);
void lease_unwatch(struct leases *leases, struct lease *lease);

/* Wakes all who watch. */
void leases_wake(struct leases *leases);

/* Copies at most `max` leases, those that may be lost without our doing or, with `all`, every one;
 * returns how many. */
size_t leases_list(struct leases *leases, bool all, int64_t *jobs, int64_t *partitions,
                   struct uuid *tokens, size_t max);

/* The lease with this token is lost, unless it has ended meanwhile or its outcome is known: then,
 * and when it was lost before, false. *out gets its job, partition and work. */
struct lease_loss {
    int64_t job;
    int32_t partition;
    const char *work;
};
bool leases_lose(struct leases *leases, const struct uuid *token, enum lease_fate fate,
                 struct lease_loss *out);

/* Whether any work is past its deadline at `now_ns`; *out says which. */
struct lease_overdue {
    int64_t job;
    int32_t partition;
    const char *work;
    int64_t late_ns;
};
bool leases_overdue(struct leases *leases, int64_t now_ns, struct lease_overdue *out);

#endif
