#include "service/leases.h"
#include "service/timing.h"

#include <pthread.h>
#include <stdlib.h>

struct leases {
    pthread_mutex_t mutex;
    struct lease *first;
};

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

void lease_step(struct lease *lease, const char *step, int64_t limit_ns) {
    bool is_bounded = limit_ns != LEASE_NO_DEADLINE;
    atomic_store(&lease->deadline_ns, LEASE_NO_DEADLINE); /* never the old one with the new step */
    atomic_store(&lease->step, step);
    if (is_bounded) atomic_store(&lease->deadline_ns, timing_now() + limit_ns);
}

size_t leases_tokens(struct leases *leases, struct uuid *out, size_t max) {
    size_t n = 0;
    pthread_mutex_lock(&leases->mutex);
    for (struct lease *lease = leases->first; lease; lease = lease->next, n++)
        if (n < max) out[n] = lease->token;
    pthread_mutex_unlock(&leases->mutex);
    return n;
}

static bool contains(const struct uuid *tokens, size_t n, const struct uuid *token) {
    for (size_t i = 0; i < n; i++)
        if (uuid_equal(&tokens[i], token)) return true;
    return false;
}

size_t leases_mark_lost(struct leases *leases, const struct uuid *asked, size_t n,
                        const struct uuid *held, size_t m) {
    size_t lost = 0;
    pthread_mutex_lock(&leases->mutex);
    for (struct lease *lease = leases->first; lease; lease = lease->next)
        if (contains(asked, n, &lease->token) && !contains(held, m, &lease->token) &&
            !atomic_exchange(&lease->is_lost, true))
            lost++;
    pthread_mutex_unlock(&leases->mutex);
    return lost;
}

bool leases_overdue(struct leases *leases, int64_t now_ns, struct lease_overdue *out) {
    bool found = false;
    pthread_mutex_lock(&leases->mutex);
    for (struct lease *lease = leases->first; lease && !found; lease = lease->next) {
        int64_t deadline = atomic_load(&lease->deadline_ns);
        found = deadline < now_ns;
        if (found)
            *out = (struct lease_overdue){lease->job, lease->partition, atomic_load(&lease->step),
                                          now_ns - deadline};
    }
    pthread_mutex_unlock(&leases->mutex);
    return found;
}
