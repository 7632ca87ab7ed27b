/* When each step of a partition ran.
 *
 * Stages measure with CLOCK_MONOTONIC; what is recorded is wall-clock time, derived from it with one
 * offset, so that a clock that is set meanwhile cannot reorder the steps of a partition.
 */
#ifndef PROVERQ_TIMING_H
#define PROVERQ_TIMING_H

#include "service/prover/steps.h"

#include <stddef.h>
#include <stdint.h>

enum { TIMING_MAX = 48 /* more than there are steps */ };

struct timing_span {
    enum step step;
    int16_t worker;   /* which thread, see pipeline.h */
    int64_t start_ns; /* CLOCK_MONOTONIC */
    int64_t duration_ns;
};

struct timing {
    size_t n;
    struct timing_span spans[TIMING_MAX];
};

/* The same as the columns of proverq.timing want them. */
struct timing_columns {
    size_t n;
    int16_t steps[TIMING_MAX], workers[TIMING_MAX];
    int64_t started_us[TIMING_MAX]; /* since 1970-01-01 UTC */
    int64_t durations_us[TIMING_MAX];
};

/* Adds the step that ran from `start_ns` until `end_ns`. More than TIMING_MAX are dropped. */
void timing_add(struct timing *timing, enum step step, int16_t worker, int64_t start_ns,
                int64_t end_ns);

/* A step begins, or ends: returns the moment. In the build for tests it may be made longer by a
 * sleep behind its beginning or before its end (step_sleeps_first). */
int64_t timing_start(enum step step);
int64_t timing_stop(enum step step);

/* Adds the step that ran from `start_ns` until now; returns now, where the next one starts. */
int64_t timing_end(struct timing *timing, enum step step, int16_t worker, int64_t start_ns);

/* CLOCK_REALTIME minus CLOCK_MONOTONIC, in nanoseconds: the same at every call, so that recorded
 * times keep their order to the microsecond, until the wall clock has moved by a millisecond. */
int64_t timing_wall_offset(void);

/* Microseconds since 1970-01-01 UTC. Times are rounded, not durations, so that spans which meet
 * still do. */
int64_t timing_to_us(int64_t ns, int64_t wall_offset_ns);

void timing_to_columns(const struct timing *timing, int64_t wall_offset_ns,
                       struct timing_columns *out);

/* Logs a step as a line: SYNTH_TIMING before the device, GPU_TIMING on it and of its workers,
 * FIN_TIMING after. `job` is negative for a worker without one. */
void timing_log_span(const struct timing_span *span, int64_t job, int32_t partition,
                     int32_t attempt);

/* The same for each of them. */
void timing_log(const struct timing *timing, int64_t job, int32_t partition, int32_t attempt);

#endif
