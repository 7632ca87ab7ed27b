#include "service/prover/timing.h"

#include "gpu/monotonic.h"
#include "service/common/faults.h"
#include "service/common/log.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static int64_t wall_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void timing_add(struct timing *timing, enum step step, int16_t worker, int64_t start_ns,
                int64_t end_ns) {
    if (timing->n == TIMING_MAX) return;
    timing->spans[timing->n++] = (struct timing_span){step, worker, start_ns, end_ns - start_ns};
}

int64_t timing_start(enum step step) {
    int64_t now = monotonic_ns();
    if (step_sleeps_first(step)) fault_sleep(step_name(step));
    return now;
}

int64_t timing_stop(enum step step) {
    if (!step_sleeps_first(step)) fault_sleep(step_name(step));
    return monotonic_ns();
}

int64_t timing_end(struct timing *timing, enum step step, int16_t worker, int64_t start_ns) {
    int64_t now = timing_stop(step);
    timing_add(timing, step, worker, start_ns, now);
    return now;
}

/* The clocks are read one after the other: of three tries, the one least disturbed in between. */
static int64_t measure_offset(void) {
    int64_t best = 0, best_width = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        int64_t before = monotonic_ns();
        int64_t wall = wall_ns();
        int64_t width = monotonic_ns() - before;
        if (width >= best_width) continue;
        best_width = width;
        best = wall - (before + width / 2);
    }
    return best;
}

int64_t timing_wall_offset(void) {
    static _Atomic(int64_t) kept = INT64_MIN;
    int64_t now = measure_offset(), before = atomic_load(&kept);
    if (before != INT64_MIN && llabs(now - before) < 1000000) return before;
    atomic_store(&kept, now);
    return now;
}

int64_t timing_to_us(int64_t ns, int64_t wall_offset_ns) {
    return (ns + wall_offset_ns) / 1000;
}

void timing_to_columns(const struct timing *timing, int64_t wall_offset_ns,
                       struct timing_columns *out) {
    out->n = timing->n;
    for (size_t i = 0; i < timing->n; i++) {
        const struct timing_span *span = &timing->spans[i];
        int64_t end = timing_to_us(span->start_ns + span->duration_ns, wall_offset_ns);
        out->steps[i] = (int16_t)span->step;
        out->workers[i] = span->worker;
        out->started_us[i] = timing_to_us(span->start_ns, wall_offset_ns);
        out->durations_us[i] = end - out->started_us[i];
    }
}

static const char *line_of(enum step step) {
    if (step <= STEP_QUEUE_WAIT) return "SYNTH_TIMING";
    return step < STEP_FINISH_WAIT ? "GPU_TIMING" : "FIN_TIMING";
}

void timing_log_span(const struct timing_span *span, int64_t job, int32_t partition,
                     int32_t attempt) {
    int64_t start = timing_to_us(span->start_ns, timing_wall_offset());
    const char *line = line_of(span->step), *step = step_name(span->step);
    if (job < 0)
        log_info(line, log_text("step", step), log_number("worker", span->worker),
                 log_number("start_us", start), log_number("us", span->duration_ns / 1000));
    else
        log_info(line, log_number("job", job), log_number("partition", partition),
                 log_number("attempt", attempt), log_text("step", step),
                 log_number("worker", span->worker), log_number("start_us", start),
                 log_number("us", span->duration_ns / 1000));
}

void timing_log(const struct timing *timing, int64_t job, int32_t partition, int32_t attempt) {
    for (size_t i = 0; i < timing->n; i++)
        timing_log_span(&timing->spans[i], job, partition, attempt);
}
