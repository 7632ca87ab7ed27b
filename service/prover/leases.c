#include "service/prover/leases.h"
#include "gpu/monotonic.h"
#include "service/prover/timing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct leases {
    pthread_mutex_t mutex;
    struct lease *first;
};

static const struct {
    const char *name, *meaning;
} fates[] = {
#define X(id, name, meaning) {name, meaning},
    LEASE_FATE_TABLE(X)
#undef X
};

const char *lease_fate_meaning(enum lease_fate fate) {
    return fates[fate].meaning;
}

enum lease_fate lease_fate_by_name(const char *name) {
    for (size_t i = 0; i < LEASE_FATE_COUNT; i++)
        if (strcmp(fates[i].name, name) == 0) return (enum lease_fate)i;
    return LEASE_TAKEN;
}

enum err leases_open(struct leases **out, struct error *error) {
    struct leases *leases = calloc(1, sizeof *leases);
    if (!leases) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    pthread_mutex_init(&leases->mutex, NULL);
    *out = leases;
    return ERR_NONE;
}

void leases_close(struct leases *leases) {
    if (!leases) return;
    pthread_mutex_destroy(&leases->mutex);
    free(leases);
}

void leases_add(struct leases *leases, struct lease *lease) {
    pthread_mutex_lock(&leases->mutex);
    lease->previous = NULL;
    lease->next = leases->first;
    if (lease->next) lease->next->previous = lease;
    leases->first = lease;
    pthread_mutex_unlock(&leases->mutex);
}

void leases_remove(struct leases *leases, struct lease *lease) {
    pthread_mutex_lock(&leases->mutex);
    if (lease->previous)
        lease->previous->next = lease->next;
    else
        leases->first = lease->next;
    if (lease->next) lease->next->previous = lease->previous;
    pthread_mutex_unlock(&leases->mutex);
}

void lease_limit(struct lease *lease, const char *work, int64_t limit_ns) {
    bool is_bounded = limit_ns != LEASE_NO_DEADLINE;
    atomic_store(&lease->deadline_ns, LEASE_NO_DEADLINE); /* never the old one with the new work */
    atomic_store(&lease->work, work);
    if (is_bounded) atomic_store(&lease->deadline_ns, monotonic_ns() + limit_ns);
}

static bool may_be_lost(struct lease *lease) {
    return !lease_is_lost(lease) && !atomic_load(&lease->is_recorded);
}

size_t leases_list(struct leases *leases, bool all, int64_t *jobs, int64_t *partitions,
                   struct uuid *tokens, size_t max) {
    size_t n = 0;
    pthread_mutex_lock(&leases->mutex);
    for (struct lease *lease = leases->first; lease && n < max; lease = lease->next) {
        if (!all && !may_be_lost(lease)) continue;
        jobs[n] = lease->job;
        partitions[n] = lease->partition;
        tokens[n++] = lease->token;
    }
    pthread_mutex_unlock(&leases->mutex);
    return n;
}

static void wake_watcher(const struct lease *lease) {
    if (lease->is_watched) (void)eventfd_write(lease->watch_fd, 1);
}

/* An outcome is marked as known before the database hears of it. So a lease that the database did
 * not know, and that is not marked now, was not ended by us. */
bool leases_lose(struct leases *leases, const struct uuid *token, enum lease_fate fate,
                 struct lease_loss *out) {
    bool is_lost = false;
    pthread_mutex_lock(&leases->mutex);
    for (struct lease *lease = leases->first; lease && !is_lost; lease = lease->next) {
        if (!uuid_equal(&lease->token, token) || !may_be_lost(lease)) continue;
        is_lost = true;
        *out = (struct lease_loss){lease->job, lease->partition, atomic_load(&lease->work)};
        atomic_store(&lease->fate, fate);
        wake_watcher(lease);
    }
    pthread_mutex_unlock(&leases->mutex);
    return is_lost;
}

void lease_record(struct lease *lease) {
    atomic_store(&lease->is_recorded, true);
}

int lease_watch(struct leases *leases, struct lease *lease) {
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_lock(&leases->mutex);
    lease->is_watched = fd >= 0;
    lease->watch_fd = fd;
    if (lease_is_lost(lease)) wake_watcher(lease);
    pthread_mutex_unlock(&leases->mutex);
    return fd;
}

void lease_unwatch(struct leases *leases, struct lease *lease) {
    pthread_mutex_lock(&leases->mutex);
    if (lease->is_watched) (void)close(lease->watch_fd);
    lease->is_watched = false;
    pthread_mutex_unlock(&leases->mutex);
}

void leases_wake(struct leases *leases) {
    pthread_mutex_lock(&leases->mutex);
    for (struct lease *lease = leases->first; lease; lease = lease->next)
        wake_watcher(lease);
    pthread_mutex_unlock(&leases->mutex);
}

bool leases_overdue(struct leases *leases, int64_t now_ns, struct lease_overdue *out) {
    bool found = false;
    pthread_mutex_lock(&leases->mutex);
    for (struct lease *lease = leases->first; lease && !found; lease = lease->next) {
        int64_t deadline = atomic_load(&lease->deadline_ns);
        found = deadline < now_ns;
        if (found)
            *out = (struct lease_overdue){lease->job, lease->partition, atomic_load(&lease->work),
                                          now_ns - deadline};
    }
    pthread_mutex_unlock(&leases->mutex);
    return found;
}
