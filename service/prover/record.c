#include "gpu/monotonic.h"
#include "service/common/log.h"
#include "service/prover/evidence.h"
#include "service/prover/stages.h"
#include "service/prover/step.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
    REFUSED_TRIES = 5, /* a statement that the database refuses (a deadlock, say) is tried again */
    REFUSED_WAIT_MS = 200,
    STOPPING_LIMIT_MS = 10000, /* how long a stopping prover waits for a lost database */
    ABSENT_DELAY_MS = 5000,    /* until a partition whose file is not here may be claimed again */
    BATCH = 64,                /* proofs in one transaction */
};

static const struct db_statement complete = {"complete", "LIUJJXISSZL", "i"};
static const struct db_statement fail_ = {"fail", "liuttbbSSZL", "t"};
static const struct db_statement release_ = {"release", "liuti", "b"};
static const struct db_statement *const statements[] = {&complete, &fail_, &release_,
                                                        &evidence_workers, &evidence_activity};
const struct stage_statements record_statements = {statements,
                                                   sizeof statements / sizeof *statements};

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

static void log_proof(const struct task *task) {
    if (task->is_timed)
        log_task(task, "partition proved");
    else
        log_refused(task);
}

/* Proofs as the columns of complete. */
struct batch {
    size_t n, timed;
    int64_t jobs[BATCH];
    int32_t partitions[BATCH], first_steps[BATCH];
    struct uuid tokens[BATCH];
    struct db_item proofs[BATCH], publics[BATCH], compressed[BATCH];
    uint8_t bytes[BATCH][PROOF_COMPRESSED_BYTES];
    int16_t steps[BATCH * TIMING_MAX], workers[BATCH * TIMING_MAX];
    int64_t started_us[BATCH * TIMING_MAX], durations_us[BATCH * TIMING_MAX];
};

static void batch_add_timing(struct batch *batch, const struct task *task) {
    struct timing_columns columns;
    timing_to_columns(&task->timing, timing_wall_offset(), &columns);
    batch->first_steps[batch->n] = (int32_t)batch->timed + 1;
    for (size_t i = 0; i < columns.n; i++, batch->timed++) {
        batch->steps[batch->timed] = columns.steps[i];
        batch->workers[batch->timed] = columns.workers[i];
        batch->started_us[batch->timed] = columns.started_us[i];
        batch->durations_us[batch->timed] = columns.durations_us[i];
    }
}

/* What it allocates is freed by batch_free. */
static enum err batch_add(struct batch *batch, const struct task *task, struct error *error) {
    size_t i = batch->n;
    char *proof = proof_to_json(&task->proof);
    char *publics = publics_to_json(task->publics, task->circuit->vkey->n_public);
    enum err rc = ERR_NONE;
    batch_add_timing(batch, task);
    batch->n++;
    batch->jobs[i] = task->job;
    batch->partitions[i] = task->partition;
    batch->tokens[i] = task->lease.token;
    batch->proofs[i] = (struct db_item){proof, proof ? strlen(proof) : 0};
    batch->publics[i] = (struct db_item){publics, publics ? strlen(publics) : 0};
    batch->compressed[i] = (struct db_item){NULL, 0};
    if (!proof || !publics) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    if (task->proof.curve == CURVE_BLS12_381) {
        TRY(proof_compress(&task->proof, batch->bytes[i], error));
        batch->compressed[i] = (struct db_item){batch->bytes[i], sizeof batch->bytes[i]};
    }
fail:
    return rc;
}

static void batch_free(struct batch *batch) {
    for (size_t i = 0; i < batch->n; i++) {
        free((void *)batch->proofs[i].data);
        free((void *)batch->publics[i].data);
    }
}

/* At most BATCH proofs in one transaction: all are told, or none. */
static enum err send_proofs(struct db *db, struct task **tasks, int n, struct error *error) {
    struct batch batch;
    struct db_result *rows = NULL;
    enum err rc = ERR_NONE;
    batch.n = batch.timed = 0;
    for (int i = 0; i < n; i++)
        TRY(batch_add(&batch, tasks[i], error));
    TRY(db_run(
        db, &complete,
        DB_PARAMS(
            db_int8_array(batch.jobs, batch.n), db_int4_array(batch.partitions, batch.n),
            db_uuid_array(batch.tokens, batch.n), db_item_array(batch.proofs, batch.n),
            db_item_array(batch.publics, batch.n), db_item_array(batch.compressed, batch.n),
            db_int4_array(batch.first_steps, batch.n), db_int2_array(batch.steps, batch.timed),
            db_int2_array(batch.workers, batch.timed), db_time_array(batch.started_us, batch.timed),
            db_int8_array(batch.durations_us, batch.timed)),
        &rows, error));
    for (int row = 0; row < db_rows(rows); row++) {
        int64_t i = db_get_int(rows, row, 0);
        if (i >= 1 && i <= n) tasks[i - 1]->is_timed = true;
    }
    for (int i = 0; i < n; i++)
        log_proof(tasks[i]);
fail:
    db_free(rows);
    batch_free(&batch);
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
static enum err send_failure(struct db *db, struct task *task, struct error *error) {
    enum error_class class = error_class(task->error.code);
    bool spends = class != ERROR_CLASS_HOST && class != ERROR_CLASS_DEVICE;
    struct timing_columns timing;
    struct db_result *rows = NULL;
    enum err rc;
    timing_to_columns(&task->timing, timing_wall_offset(), &timing);
    TRY(db_run(db, &fail_,
               DB_PARAMS(db_int(task->job), db_int(task->partition), db_uuid(&task->lease.token),
                         db_text(error_name(task->error.code)), db_text(task->error.text),
                         db_int(error_retryable(task->error.code)), db_int(spends),
                         db_int2_array(timing.steps, timing.n),
                         db_int2_array(timing.workers, timing.n),
                         db_time_array(timing.started_us, timing.n),
                         db_int8_array(timing.durations_us, timing.n)),
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

static enum err send_outcome(struct db *db, struct task *task, struct error *error) {
    switch (task->outcome) {
    case OUTCOME_PROOF:
        return send_proofs(db, &task, 1, error);
    case OUTCOME_FAILURE:
        return send_failure(db, task, error);
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

/* How much longer a stopping prover waits for the database, for all results together; 0 while it does
 * not stop. */
static int64_t stopping_left_ms(struct pipeline *pipeline) {
    int64_t stopped_ns = atomic_load(&pipeline->stopped_ns);
    int64_t left_ms = STOPPING_LIMIT_MS - (monotonic_ns() - stopped_ns) / 1000000;
    return stopped_ns && left_ms > 0 ? left_ms : 0;
}

/* Results are kept in hand while the database is away; a prover that stops waits a little only. */
static enum err reconnect(struct pipeline *pipeline, struct error *error) {
    enum err rc = ERR_CONNECTION; /* `error` has the last reason already */
    if (!atomic_load(&pipeline->stopping))
        rc = db_reconnect(pipeline->record_db, pipeline->stop_fd, error);
    int64_t left_ms = stopping_left_ms(pipeline);
    if (rc == ERR_CONNECTION && left_ms > 0)
        rc = db_reconnect_within(pipeline->record_db, -1, (uint32_t)left_ms, error);
    if (rc == ERR_SCHEMA) pipeline_fault(pipeline, error);
    return rc;
}

static void log_recorded(struct pipeline *pipeline, const struct task *task) {
    if (pipeline->options->log_timing)
        timing_log(&task->timing, task->job, task->partition, task->attempt);
    if (!task->is_timed)
        timeline_log_keep(&pipeline->timelines, &task->timing, task->job, task->partition,
                          task->attempt);
}

static void record_one(struct pipeline *pipeline, struct task *task) {
    struct error error;
    int refusals = 0;
    enum err rc;
    while ((rc = send_outcome(pipeline->record_db, task, &error)) != ERR_NONE) {
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
    log_recorded(pipeline, task);
}

/* Whether all are told. If not, nothing is known of any of them, or one was refused: then each is
 * told by itself, so that the others do not suffer. */
static bool record_proofs(struct pipeline *pipeline, struct task **tasks, int n) {
    struct error error;
    enum err rc = send_proofs(pipeline->record_db, tasks, n, &error);
    for (int i = 0; i < n; i++) {
        if (rc == ERR_CONNECTION) tasks[i]->is_repeated = true;
        if (rc == ERR_NONE) log_recorded(pipeline, tasks[i]);
    }
    if (rc != ERR_NONE)
        log_warn("results are recorded one by one", log_number("results", n),
                 log_text("error", error.text));
    return rc == ERR_NONE;
}

/* Brings the proofs to the front; gives how many there are. */
static int proofs_first(struct task **tasks, int n) {
    int proofs = 0;
    for (int i = 0; i < n; i++) {
        struct task *task = tasks[i];
        if (task->outcome != OUTCOME_PROOF) continue;
        tasks[i] = tasks[proofs];
        tasks[proofs++] = task;
    }
    return proofs;
}

/* What has come together is recorded together: one commit for the proofs. */
static void record(struct pipeline *pipeline, struct task **tasks, int n) {
    int proofs = proofs_first(tasks, n), told = 0;
    step_end_all(tasks, n, WORKER_RECORD);
    if (proofs > 1 && record_proofs(pipeline, tasks, proofs)) told = proofs;
    for (int i = told; i < n; i++)
        record_one(pipeline, tasks[i]);
    for (int i = 0; i < n; i++)
        pipeline_end(pipeline, tasks[i]);
}

/* Waits for a task and takes those that wait behind it; 0: nothing came in time. *is_over: nothing
 * will come any more. */
static int take(struct queue *queue, struct task *tasks[BATCH], bool *is_over) {
    int n = 0;
    *is_over = false;
    while (n < BATCH && queue_pop_within(queue, n ? 0 : EVIDENCE_EVERY_NS, &tasks[n])) {
        if (!tasks[n]) {
            *is_over = n == 0;
            break;
        }
        n++;
    }
    return n;
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
        struct task *tasks[BATCH];
        bool is_over;
        int n = take(&pipeline->record, tasks, &is_over);
        if (is_over) break;
        if (n > 0) record(pipeline, tasks, n);
        record_evidence(&evidence, false);
    }
    record_evidence(&evidence, true);
    evidence_destroy(&evidence);
    return NULL;
}
