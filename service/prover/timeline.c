#include "service/prover/timeline.h"
#include "gpu/monotonic.h"

#include <string.h>

/* --- the log --- */

void timeline_log_init(struct timeline_log *log) {
    pthread_mutex_init(&log->mutex, NULL);
    log->n = log->dropped = 0;
}

void timeline_log_destroy(struct timeline_log *log) {
    pthread_mutex_destroy(&log->mutex);
}

void timeline_log_add(struct timeline_log *log, const struct timeline_row *row) {
    pthread_mutex_lock(&log->mutex);
    if (log->n < TIMELINE_LOG_MAX)
        log->rows[log->n++] = *row;
    else
        log->dropped++;
    pthread_mutex_unlock(&log->mutex);
}

size_t timeline_log_copy(struct timeline_log *log, struct timeline_row *out, size_t max) {
    pthread_mutex_lock(&log->mutex);
    size_t n = log->n < max ? log->n : max;
    memcpy(out, log->rows, n * sizeof *out);
    pthread_mutex_unlock(&log->mutex);
    return n;
}

size_t timeline_log_drop(struct timeline_log *log, size_t n) {
    pthread_mutex_lock(&log->mutex);
    size_t dropped = log->dropped;
    log->dropped = 0;
    log->n -= n;
    memmove(log->rows, log->rows + n, log->n * sizeof *log->rows);
    pthread_mutex_unlock(&log->mutex);
    return dropped;
}

void timeline_log_keep(struct timeline_log *log, const struct timing *timing, int64_t job,
                       int32_t partition, int32_t attempt) {
    for (size_t i = 0; i < timing->n; i++)
        if (step_is_workers(timing->spans[i].step))
            timeline_log_add(log, &(struct timeline_row){.span = timing->spans[i],
                                                         .job = job,
                                                         .partition = partition,
                                                         .attempt = attempt});
}

/* --- a worker's --- */

void timeline_begin(struct timeline *timeline, struct timeline_log *log, int16_t worker,
                    enum step step) {
    *timeline = (struct timeline){.log = log, .worker = worker, .step = step, .job = -1};
    timeline->since_ns = monotonic_ns();
}

static void close_step(struct timeline *timeline, int64_t end_ns) {
    struct timeline_row row = {
        .span = {timeline->step, timeline->worker, timeline->since_ns, end_ns - timeline->since_ns},
        .job = timeline->job,
        .partition = timeline->partition,
        .attempt = timeline->attempt};
    if (timeline->timing)
        timing_add(timeline->timing, row.span.step, row.span.worker, row.span.start_ns, end_ns);
    else
        timeline_log_add(timeline->log, &row);
    timeline->since_ns = end_ns;
}

int64_t timeline_next(struct timeline *timeline, enum step step) {
    int64_t now = timing_stop(timeline->step);
    close_step(timeline, now);
    timeline->step = step;
    (void)timing_start(step); /* it began when the one before ended */
    return now;
}

void timeline_next_at(struct timeline *timeline, enum step step, int64_t at_ns) {
    close_step(timeline, at_ns > timeline->since_ns ? at_ns : timeline->since_ns);
    timeline->step = step;
}

void timeline_take(struct timeline *timeline, int64_t job, int32_t partition, int32_t attempt,
                   struct timing *timing) {
    timeline->job = job;
    timeline->partition = partition;
    timeline->attempt = attempt;
    timeline->timing = timing;
}

void timeline_end(struct timeline *timeline) {
    close_step(timeline, monotonic_ns());
}
