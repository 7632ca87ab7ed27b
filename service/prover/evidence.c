#include "service/prover/evidence.h"
#include "gpu/monotonic.h"
#include "service/common/log.h"

#include <stdlib.h>

/* Intervals that one statement writes. */
enum { ACTIVITY_BATCH = 1024 };

const struct db_statement evidence_workers = {"record_workers", "iLLLSSZL", "v"};
const struct db_statement evidence_activity = {"record_activity", "iSZLLz", "v"};

void evidence_init(struct evidence *evidence, struct pipeline *pipeline) {
    *evidence =
        (struct evidence){.pipeline = pipeline, .due_ns = monotonic_ns() + EVIDENCE_EVERY_NS};
}

void evidence_destroy(struct evidence *evidence) {
    free(evidence->intervals);
}

/* --- the workers' rows --- */

struct worker_columns {
    int64_t jobs[TIMELINE_BATCH], partitions[TIMELINE_BATCH], attempts[TIMELINE_BATCH];
    int16_t steps[TIMELINE_BATCH], workers[TIMELINE_BATCH];
    int64_t started_us[TIMELINE_BATCH], durations_us[TIMELINE_BATCH];
};

static void to_columns(const struct timeline_row *rows, size_t n, struct worker_columns *out) {
    int64_t offset = timing_wall_offset();
    for (size_t i = 0; i < n; i++) {
        const struct timing_span *span = &rows[i].span;
        int64_t start = timing_to_us(span->start_ns, offset);
        out->jobs[i] = rows[i].job;
        out->partitions[i] = rows[i].partition;
        out->attempts[i] = rows[i].attempt;
        out->steps[i] = (int16_t)span->step;
        out->workers[i] = span->worker;
        out->started_us[i] = start;
        out->durations_us[i] = timing_to_us(span->start_ns + span->duration_ns, offset) - start;
    }
}

static enum err record_batch(struct pipeline *pipeline, const struct timeline_row *rows, size_t n,
                             struct error *error) {
    struct worker_columns columns;
    enum err rc;
    to_columns(rows, n, &columns);
    TRY(db_run(pipeline->record_db, &evidence_workers,
               DB_PARAMS(db_int(pipeline->prover_id), db_int8_array(columns.jobs, n),
                         db_int8_array(columns.partitions, n), db_int8_array(columns.attempts, n),
                         db_int2_array(columns.steps, n), db_int2_array(columns.workers, n),
                         db_time_array(columns.started_us, n),
                         db_int8_array(columns.durations_us, n)),
               NULL, error));
    for (size_t i = 0; pipeline->options->log_timing && i < n; i++)
        timing_log_span(&rows[i].span, rows[i].job, rows[i].partition, rows[i].attempt);
fail:
    return rc;
}

static enum err record_workers(struct pipeline *pipeline, struct error *error) {
    struct timeline_row rows[TIMELINE_BATCH];
    size_t n;
    enum err rc = ERR_NONE;
    do {
        n = timeline_log_copy(&pipeline->timelines, rows, TIMELINE_BATCH);
        if (n > 0) TRY(record_batch(pipeline, rows, n, error));
        size_t lost = timeline_log_drop(&pipeline->timelines, n);
        if (lost > 0)
            log_warn("timing rows were dropped while the database was away",
                     log_number("rows", (int64_t)lost));
    } while (n == TIMELINE_BATCH);
fail:
    return rc;
}

/* --- the device's intervals --- */

static enum err record_intervals(struct evidence *evidence, size_t n, struct error *error) {
    int16_t kinds[ACTIVITY_BATCH] = {0}; /* the end is recorded even if there is no interval */
    int64_t started_us[ACTIVITY_BATCH] = {0}, durations_us[ACTIVITY_BATCH] = {0};
    int64_t busy_ns[ACTIVITY_BATCH] = {0};
    int64_t offset = timing_wall_offset();
    const struct activity_interval *at = evidence->intervals + evidence->done;
    bool is_end = evidence->done + n == evidence->n;
    enum err rc;
    for (size_t i = 0; i < n; i++) {
        kinds[i] = (int16_t)at[i].kind;
        started_us[i] = timing_to_us(at[i].start_ns, offset);
        durations_us[i] = timing_to_us(at[i].end_ns, offset) - started_us[i];
        busy_ns[i] = at[i].busy_ns;
    }
    TRY(db_run(evidence->pipeline->record_db, &evidence_activity,
               DB_PARAMS(db_int(evidence->pipeline->prover_id), db_int2_array(kinds, n),
                         db_time_array(started_us, n), db_int8_array(durations_us, n),
                         db_int8_array(busy_ns, n),
                         is_end ? db_int(timing_to_us(evidence->until_ns, offset)) : db_null()),
               NULL, error));
    evidence->done += n;
fail:
    return rc;
}

static enum err record_activity(struct evidence *evidence, bool is_last, struct error *error) {
    enum err rc;
    if (!evidence->intervals)
        TRY(device_activity_drain(evidence->pipeline->device, is_last, &evidence->intervals,
                                  &evidence->n, &evidence->until_ns, error));
    do {
        size_t left = evidence->n - evidence->done;
        TRY(record_intervals(evidence, left < ACTIVITY_BATCH ? left : ACTIVITY_BATCH, error));
    } while (evidence->done < evidence->n);
    free(evidence->intervals);
    evidence->intervals = NULL;
    evidence->n = evidence->done = 0;
    size_t lost = device_activity_dropped(evidence->pipeline->device);
    if (lost > 0)
        log_warn("records of the device were dropped while the database was away",
                 log_number("records", (int64_t)lost));
fail:
    return rc;
}

enum err evidence_record(struct evidence *evidence, bool is_last, struct error *error) {
    enum err rc = ERR_NONE;
    if (!is_last && monotonic_ns() < evidence->due_ns) return ERR_NONE;
    evidence->due_ns = monotonic_ns() + EVIDENCE_EVERY_NS;
    TRY(record_workers(evidence->pipeline, error));
    TRY(record_activity(evidence, false, error));
    if (is_last) TRY(record_activity(evidence, true, error));
fail:
    return rc;
}
