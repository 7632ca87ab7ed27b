/* The life of a GPU worker, tiled: every microsecond is in exactly one step. One reading of the
 * clock closes a step and opens the next, so there is nothing between them and nothing left over.
 *
 * Steps that a worker spends on a partition are recorded with it (in the partition's transaction);
 * the others go to a log, which the record stage writes down in batches: time without a partition,
 * the handing over (the partition is somebody else's by then), and the steps of partitions whose
 * results were refused or given back.
 */
#ifndef PROVERQ_TIMELINE_H
#define PROVERQ_TIMELINE_H

#include "service/prover/timing.h"

#include <pthread.h>

enum {
    TIMELINE_LOG_MAX = 4096, /* a row a worker and cut, and some for each proof: minutes of them */
    TIMELINE_BATCH = 256,    /* rows that one statement writes */
};

/* A step lasts no longer in one row while nothing happens, so that rows come while it lasts. */
#define TIMELINE_CUT_NS INT64_C(5000000000)

struct timeline_row {
    struct timing_span span;
    int64_t job; /* -1: without one */
    int32_t partition, attempt;
};

/* Rows to be recorded: workers append, the record stage takes. */
struct timeline_log {
    pthread_mutex_t mutex;
    size_t n, dropped; /* those dropped for lack of room since the last take */
    struct timeline_row rows[TIMELINE_LOG_MAX];
};

void timeline_log_init(struct timeline_log *log);
void timeline_log_destroy(struct timeline_log *log);

void timeline_log_add(struct timeline_log *log, const struct timeline_row *row);

/* Copies the oldest rows, at most `max`; they stay until timeline_log_drop. One thread takes. */
size_t timeline_log_copy(struct timeline_log *log, struct timeline_row *out, size_t max);
/* Drops the n oldest rows: they are recorded. Returns how many were lost for lack of room. */
size_t timeline_log_drop(struct timeline_log *log, size_t n);

/* One worker's. */
struct timeline {
    struct timeline_log *log;
    int16_t worker;
    enum step step;   /* in hand */
    int64_t since_ns; /* when it began */
    /* timeline_take's */
    int64_t job;
    int32_t partition, attempt;
    struct timing *timing;
};

/* The worker begins with `step`, for no partition. */
void timeline_begin(struct timeline *timeline, struct timeline_log *log, int16_t worker,
                    enum step step);

/* The step in hand ends and `step` begins, at one moment, which is returned; the sleeps of the build
 * for tests are here, as in timing_start and timing_stop. */
int64_t timeline_next(struct timeline *timeline, enum step step);

/* The same, but at `at_ns`, a reading of the clock after the step in hand began; one that is not is
 * put there. */
void timeline_next_at(struct timeline *timeline, enum step step, int64_t at_ns);

/* The step in hand is for this partition (job -1: for none). Its row, and those of the steps that
 * follow, go to `timing` (NULL: to the log). */
void timeline_take(struct timeline *timeline, int64_t job, int32_t partition, int32_t attempt,
                   struct timing *timing);

/* The worker ends: closes the step in hand. */
void timeline_end(struct timeline *timeline);

/* Appends the workers' steps among an attempt's spans to the log: the attempt itself will not be
 * recorded. */
void timeline_log_keep(struct timeline_log *log, const struct timing *timing, int64_t job,
                       int32_t partition, int32_t attempt);

#endif
