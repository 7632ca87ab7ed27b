#include "service/evidence.h"
#include "service/faults.h"
#include "service/log.h"
#include "service/stages.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
    REFUSED_TRIES = 5, /* a statement that the database refuses (a deadlock, say) is tried again */
    REFUSED_WAIT_MS = 200,
    STOPPING_LIMIT_MS = 10000, /* how long a stopping prover waits for a lost database */
    ABSENT_DELAY_MS = 5000,    /* until a partition whose file is not here may be claimed again */
};

static const struct db_statement complete = {"complete", "liujjxSSZL", "b"};
static const struct db_statement fail_ = {"fail", "liuttbbSSZL", "t"};
static const struct db_statement release_ = {"release", "liuti", "b"};
static const struct db_statement *const statements[] = {&complete, &fail_, &release_,
                                                        &evidence_workers, &evidence_activity};
const struct stage_statements record_statements = {statements,
                                                   sizeof statements / sizeof *statements};

#define TIMING_PARAMS(columns)                                                                     \
    db_int2_array((columns)->steps, (columns)->n),                                                 \
        db_int2_array((columns)->workers, (columns)->n),                                           \
        db_time_array((columns)->started_us, (columns)->n),                                        \
        db_int8_array((columns)->durations_us, (columns)->n)

static void log_task(const struct task *task, const char *message) {
    log_info(message, log_number("job", task->job), log_number("partition", task->partition),
             log_number("attempt", task->attempt), log_text("circuit", task->circuit->name));
}

/* The answer to a statement may have been lost with the connection: then it was refused because it
 * was recorded already, which is as good. */
static void log_refused(const struct task *task) {
    log_warn(task->is_repeated ? "the result was recorded before the connection was lost, or its "
                                 "lease was taken away"
                               : "the lease was taken away: the result is refused",
             log_text("code", error_name(ERR_LOST_LEASE)), log_number("job", task->job),
             log_number("partition", task->partition), log_number("attempt", task->attempt));
}

/* --- what the database is told --- */

static enum err send_proof(struct db *db, struct task *task, const struct timing_columns *timing,
                           struct error *error) {
    uint8_t compressed[PROOF_COMPRESSED_BYTES];
    bool is_bls = task->proof.curve == CURVE_BLS12_381;
    char *proof = proof_to_json(&task->proof);
    char *publics = publics_to_json(task->publics, task->circuit->vkey->n_public);
    struct db_result *rows = NULL;
    enum err rc;
    if (!proof || !publics) TRY(error_set(error, ERR_HOST_MEMORY, "out of memory"));
    if (is_bls) TRY(proof_compress(&task->proof, compressed, error));
    TRY(db_run(db, &complete,
               DB_PARAMS(db_int(task->job), db_int(task->partition), db_uuid(&task->lease.token),
                         db_text(proof), db_text(publics),
                         db_bytes(is_bls ? compressed : NULL, sizeof compressed),
                         TIMING_PARAMS(timing)),
               &rows, error));
    task->is_timed = db_get_bool(rows, 0, 0);
    if (task->is_timed)
        log_task(task, "partition proved");
    else
        log_refused(task);
fail:
    db_free(rows);
    free(publics);
    free(proof);
    return rc;
}

static void log_failure(const struct task *task, const char *now) {
    if (strcmp(now, "stale") == 0) {
        log_refused(task);
        return;
    }
    log_warn("partition failed", log_number("job", task->job),
             log_number("partition", task->partition), log_number("attempt", task->attempt),
             log_text("circuit", task->circuit->name),
             log_text("code", error_name(task->error.code)), log_text("error", task->error.text),
             log_text("now", now));
}

/* The table of errors decides: wrong input and wrong circuits fail at once; what a host or a device
 * cannot is tried again and spends nothing. */
static enum err send_failure(struct db *db, struct task *task, const struct timing_columns *timing,
                             struct error *error) {
    enum error_class class = error_class(task->error.code);
    bool spends = class != ERROR_CLASS_HOST && class != ERROR_CLASS_DEVICE;
    struct db_result *rows = NULL;
    enum err rc;
    TRY(db_run(db, &fail_,
               DB_PARAMS(db_int(task->job), db_int(task->partition), db_uuid(&task->lease.token),
                         db_text(error_name(task->error.code)), db_text(task->error.text),
                         db_int(error_retryable(task->error.code)), db_int(spends),
                         TIMING_PARAMS(timing)),
               &rows, error));
    task->is_timed = strcmp(db_get_text(rows, 0, 0), "stale") != 0;
    log_failure(task, db_get_text(rows, 0, 0));
fail:
    db_free(rows);
    return rc;
}

static enum err send_release(struct db *db, const struct task *task, struct error *error) {
    int delay = task->error.code == ERR_ABSENT ? ABSENT_DELAY_MS : 0;
    struct db_result *rows = NULL;
    enum err rc;
    TRY(db_run(db, &release_,
               DB_PARAMS(db_int(task->job), db_int(task->partition), db_uuid(&task->lease.token),
                         db_text(task->error.text), db_int(delay)),
               &rows, error));
    if (db_get_bool(rows, 0, 0))
        log_info("partition given back", log_number("job", task->job),
                 log_number("partition", task->partition), log_text("reason", task->error.text));
    else
        log_refused(task);
fail:
    db_free(rows);
    return rc;
}

static enum err send_outcome(struct db *db, struct task *task, const struct timing_columns *timing,
                             struct error *error) {
    switch (task->outcome) {
    case OUTCOME_PROOF:
        return send_proof(db, task, timing, error);
    case OUTCOME_FAILURE:
        return send_failure(db, task, timing, error);
    case OUTCOME_DROP:
        log_info("partition dropped", log_number("job", task->job),
                 log_number("partition", task->partition), log_number("attempt", task->attempt),
                 log_text("reason", task->error.text));
        return ERR_NONE;
    case OUTCOME_RELEASE:
        break;
    }
    return send_release(db, task, error);
}

/* --- until it is told --- */

/* Results are kept in hand while the database is away; a prover that stops waits a little only. */
static enum err reconnect(struct pipeline *pipeline, struct error *error) {
    enum err rc = ERR_CONNECTION;
    if (!atomic_load(&pipeline->stopping))
        rc = db_reconnect(pipeline->record_db, pipeline->stop_fd, error);
    if (rc == ERR_CONNECTION && atomic_load(&pipeline->stopping))
        rc = db_reconnect_within(pipeline->record_db, -1, STOPPING_LIMIT_MS, error);
    if (rc == ERR_SCHEMA) pipeline_fault(pipeline, error);
    return rc;
}

static void record(struct pipeline *pipeline, struct task *task) {
    struct timing_columns timing;
    struct error error;
    int refusals = 0;
    enum err rc;
    fault_sleep("record");
    timing_end(&task->timing, STEP_RECORD, WORKER_RECORD, task->queued_ns);
    timing_to_columns(&task->timing, timing_wall_offset(), &timing);
    while ((rc = send_outcome(pipeline->record_db, task, &timing, &error)) != ERR_NONE) {
        if (rc == ERR_CONNECTION) {
            task->is_repeated = true;
            if (reconnect(pipeline, &error) != ERR_NONE) break;
            continue;
        }
        if (++refusals == REFUSED_TRIES) break;
        (void)poll(NULL, 0, REFUSED_WAIT_MS);
    }
    if (rc != ERR_NONE)
        log_error("a result could not be recorded; the partition is proved again when its lease "
                  "expires",
                  log_number("job", task->job), log_number("partition", task->partition),
                  log_text("error", error.text));
    else if (pipeline->options->log_timing)
        timing_log(&task->timing, task->job, task->partition, task->attempt);
    if (!task->is_timed)
        timeline_log_keep(&pipeline->timelines, &task->timing, task->job, task->partition,
                          task->attempt);
}

/* Evidence that cannot be recorded now is kept; results wait for the database, this does not. */
static void record_evidence(struct evidence *evidence, bool is_last) {
    struct pipeline *pipeline = evidence->pipeline;
    struct error error;
    enum err rc = evidence_record(evidence, is_last, &error);
    if (rc == ERR_CONNECTION && reconnect(pipeline, &error) == ERR_NONE)
        rc = evidence_record(evidence, is_last, &error);
    if (rc != ERR_NONE)
        log_warn("the workers' and the device's times cannot be recorded now",
                 log_text("error", error.text));
}

void *record_main(void *arg) {
    struct pipeline *pipeline = ((struct stage_thread *)arg)->pipeline;
    struct evidence evidence;
    evidence_init(&evidence, pipeline);
    for (;;) {
        struct task *task;
        bool has_come = queue_pop_within(&pipeline->record, EVIDENCE_EVERY_NS, &task);
        if (has_come && !task) break;
        if (has_come) {
            record(pipeline, task);
            pipeline_end(pipeline, task);
        }
        record_evidence(&evidence, false);
    }
    record_evidence(&evidence, true);
    evidence_destroy(&evidence);
    return NULL;
}
