#include "gpu/activity.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* How long a record may take to come; grown by those that take longer. */
static const int64_t SETTLE_NS = INT64_C(2000000000);

struct record {
    int64_t start_ns, end_ns;
};

struct records {
    struct record *item;
    size_t n, room;
};

struct activity {
    pthread_mutex_t mutex;
    struct records pending[ACTIVITY_KIND_COUNT];
    int64_t slowest_ns; /* from the start of a record until it came */
    size_t dropped;
};

enum err activity_open(struct activity **out, struct error *error) {
    *out = calloc(1, sizeof **out);
    if (!*out) return error_set(error, ERR_HOST_MEMORY, "no memory to note the device's activity");
    pthread_mutex_init(&(*out)->mutex, NULL);
    return ERR_NONE;
}

void activity_close(struct activity *activity) {
    if (!activity) return;
    for (int kind = 0; kind < ACTIVITY_KIND_COUNT; kind++)
        free(activity->pending[kind].item);
    pthread_mutex_destroy(&activity->mutex);
    free(activity);
}

/* --- records --- */

static bool make_room(struct records *records) {
    if (records->n < records->room) return true;
    size_t room = records->room ? 2 * records->room : 256;
    if (room > ACTIVITY_PENDING_MAX) return false;
    struct record *grown = realloc(records->item, room * sizeof *grown);
    if (!grown) return false;
    records->item = grown;
    records->room = room;
    return true;
}

void activity_add(struct activity *activity, enum activity_kind kind, int64_t start_ns,
                  int64_t end_ns, int64_t now_ns) {
    struct records *records = &activity->pending[kind];
    if (end_ns <= start_ns) return;
    pthread_mutex_lock(&activity->mutex);
    if (now_ns - start_ns > activity->slowest_ns) activity->slowest_ns = now_ns - start_ns;
    if (make_room(records))
        records->item[records->n++] = (struct record){start_ns, end_ns};
    else
        activity->dropped++;
    pthread_mutex_unlock(&activity->mutex);
}

int64_t activity_settled(struct activity *activity, int64_t now_ns) {
    pthread_mutex_lock(&activity->mutex);
    int64_t slowest = activity->slowest_ns;
    pthread_mutex_unlock(&activity->mutex);
    return now_ns - (slowest < SETTLE_NS / 2 ? SETTLE_NS : 2 * slowest);
}

size_t activity_dropped(struct activity *activity) {
    pthread_mutex_lock(&activity->mutex);
    size_t dropped = activity->dropped;
    activity->dropped = 0;
    pthread_mutex_unlock(&activity->mutex);
    return dropped;
}

/* --- from records to intervals --- */

static int by_start(const void *a, const void *b) {
    const struct record *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Adds [start, end), which begins no earlier than those before it. */
static void merge(struct activity_interval *intervals, size_t *n, size_t first,
                  enum activity_kind kind, int64_t start, int64_t end) {
    struct activity_interval *last = *n > first ? &intervals[*n - 1] : NULL;
    if (!last || start - last->end_ns >= ACTIVITY_TOLERANCE_NS) {
        intervals[(*n)++] = (struct activity_interval){kind, start, end, end - start};
        return;
    }
    int64_t covered = start > last->end_ns ? start : last->end_ns;
    if (end <= covered) return;
    last->busy_ns += end - covered;
    last->end_ns = end;
}

/* What of the records is after until_ns stays. */
static void reduce_kind(struct records *records, enum activity_kind kind, int64_t until_ns,
                        struct activity_interval *out, size_t *n) {
    size_t first = *n, kept = 0;
    if (records->n == 0) return;
    qsort(records->item, records->n, sizeof *records->item, by_start);
    for (size_t i = 0; i < records->n; i++) {
        struct record record = records->item[i];
        int64_t end = record.end_ns < until_ns ? record.end_ns : until_ns;
        if (record.start_ns < until_ns) merge(out, n, first, kind, record.start_ns, end);
        if (record.end_ns <= until_ns) continue;
        if (record.start_ns < until_ns) record.start_ns = until_ns;
        records->item[kept++] = record;
    }
    records->n = kept;
}

enum err activity_reduce(struct activity *activity, int64_t until_ns,
                         struct activity_interval **out, size_t *n, struct error *error) {
    enum err rc = ERR_NONE;
    size_t most = 0;
    *out = NULL;
    *n = 0;
    pthread_mutex_lock(&activity->mutex);
    for (int kind = 0; kind < ACTIVITY_KIND_COUNT; kind++)
        most += activity->pending[kind].n;
    if (most == 0) goto fail;
    *out = malloc(most * sizeof **out);
    if (!*out) TRY(error_set(error, ERR_HOST_MEMORY, "no memory for %zu device records", most));
    for (int kind = 0; kind < ACTIVITY_KIND_COUNT; kind++)
        reduce_kind(&activity->pending[kind], (enum activity_kind)kind, until_ns, *out, n);
    if (*n == 0) {
        free(*out);
        *out = NULL;
    }
fail:
    pthread_mutex_unlock(&activity->mutex);
    return rc;
}
