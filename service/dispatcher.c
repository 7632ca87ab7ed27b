#include "service/faults.h"
#include "service/log.h"
#include "service/stages.h"
#include "service/synthesis.h"

#include <poll.h>
#include <stdlib.h>

enum {
    CLAIMABLE_MAX = 4096,
    POLL_FIRST_MS = 20,       /* after work has run out, the next may be close */
    WAKE_DUE_MS = 1000,       /* the shortest backoff is of that order */
    RESCUE_EXPIRED_MS = 5000, /* leases last some times as long */
    REFUSED_WAIT_MS = 1000,   /* after the database refused a statement */
    BEGINNING_LIMIT_MS = 30000,
};

static const struct db_statement claim = {"claim", "iLii", "liiulbxtt"};
static const struct db_statement prover_idle = {"prover_idle", "ib", ""};
static const struct db_statement wake_due = {"wake_due", "", "i"};
static const struct db_statement rescue_expired = {"rescue_expired", "", "i"};
static const struct db_statement *const statements[] = {&claim, &prover_idle, &wake_due,
                                                        &rescue_expired};
const struct stage_statements dispatcher_statements = {statements,
                                                       sizeof statements / sizeof *statements};

struct dispatcher {
    struct pipeline *pipeline;
    struct db *db;
    uint64_t claims;  /* tasks made so far */
    bool is_idle;     /* as published */
    uint32_t poll_ms; /* the next wait for work */
    int64_t started_ns;
    int64_t woke_ns, rescued_ns; /* when that was done last */
};

/* --- from rows to tasks --- */

static struct task *make_task(struct dispatcher *self, struct claim_rows *rows, int row) {
    struct task *task = calloc(1, sizeof *task);
    if (!task) return NULL;
    const struct db_result *result = rows->rows;
    task->order = self->claims++;
    task->job = db_get_int(result, row, 0);
    task->partition = (int32_t)db_get_int(result, row, 1);
    task->attempt = (int32_t)db_get_int(result, row, 2);
    task->lease.token = db_get_uuid(result, row, 3);
    task->lease.job = task->job;
    task->lease.partition = task->partition;
    task->circuit = keyring_find(self->pipeline->keyring, db_get_int(result, row, 4));
    if (!db_is_null(result, row, 6))
        task->witness = db_get_bytes(result, row, 6, &task->witness_bytes);
    if (!db_is_null(result, row, 7)) task->path = db_get_text(result, row, 7);
    if (!db_is_null(result, row, 8)) task->inputs = db_get_text(result, row, 8);
    task->claim = rows;
    atomic_fetch_add(&rows->users, 1);
    return task;
}

static enum err prepare_task(struct dispatcher *self, struct task *task, struct error *error) {
    struct pipeline *pipeline = self->pipeline;
    if (task->circuit->state == HELD_BAD) {
        *error = task->circuit->error;
        return error_prefix(error, "circuit %s version %d", task->circuit->name,
                            task->circuit->version);
    }
    keyring_take_loading(pipeline->keyring, task->circuit, &task->timing);
    return buffers_take(pipeline->buffers, witness_buffer_bytes(task->circuit->zkey), &task->buffer,
                        error);
}

/* Returns when its step "claim" ended: there the next task's begins. */
static int64_t dispatch(struct dispatcher *self, struct task *task, int64_t claim_ns) {
    struct pipeline *pipeline = self->pipeline;
    struct error error;
    pipeline_begin(pipeline, task);
    enum err rc = prepare_task(self, task, &error);
    int64_t end = timing_end(&task->timing, STEP_CLAIM, WORKER_DISPATCHER, claim_ns);
    if (rc != ERR_NONE) {
        pipeline_give_up(pipeline, task, &error);
    } else {
        task->queued_ns = end;
        queue_push(&pipeline->synthesis, task);
    }
    return end;
}

/* How many partitions may be claimed now. Those whose witness is being computed come on top of those
 * that wait for the device, as many as can be computed at once. */
static int room(struct pipeline *pipeline) {
    int computing = atomic_load(&pipeline->computing);
    if (computing > pipeline->synthesis_threads) computing = pipeline->synthesis_threads;
    int least = TASKS_AHEAD + computing - atomic_load(&pipeline->ahead);
    int buffers = (int)buffers_free_count(pipeline->buffers);
    int in_hand = TASKS_MAX - atomic_load(&pipeline->in_hand);
    if (buffers < least) least = buffers;
    return in_hand < least ? in_hand : least;
}

/* Claims at most `most` partitions and sends them on; *n gets how many there were. */
static enum err claim_some(struct dispatcher *self, int most, int *n, struct error *error) {
    struct pipeline *pipeline = self->pipeline;
    int64_t ids[CLAIMABLE_MAX], at = timing_now();
    size_t circuits = keyring_claimable(pipeline->keyring, ids, CLAIMABLE_MAX);
    struct claim_rows *rows = NULL;
    enum err rc = ERR_NONE;
    *n = 0;
    if (circuits == 0) return ERR_NONE;
    rows = calloc(1, sizeof *rows);
    if (!rows) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    atomic_store(&rows->users, 1);
    fault_sleep("claim");
    TRY(db_run(self->db, &claim,
               DB_PARAMS(db_int(pipeline->prover_id), db_int8_array(ids, circuits),
                         db_int(pipeline->options->lease_ms), db_int(most)),
               &rows->rows, error));
    *n = db_rows(rows->rows);
    for (int row = 0; row < *n; row++) {
        struct task *task = make_task(self, rows, row);
        if (task)
            at = dispatch(self, task, at);
        else
            log_error("out of memory: a claimed partition is left until its lease expires");
    }
fail:
    claim_rows_release(rows);
    return rc;
}

/* --- waiting --- */

/* Waits while there is no room before the device; the database is not asked meanwhile. */
static void wait_for_room(struct dispatcher *self, int ms) {
    struct pollfd fd = {self->pipeline->dispatcher_wake, POLLIN, 0};
    (void)poll(&fd, 1, ms);
    wake_clear(self->pipeline->dispatcher_wake);
}

static enum err publish_idle(struct dispatcher *self, bool is_idle, struct error *error) {
    enum err rc;
    TRY(db_run(self->db, &prover_idle,
               DB_PARAMS(db_int(self->pipeline->prover_id), db_int(is_idle)), NULL, error));
    self->is_idle = is_idle;
fail:
    return rc;
}

/* Nothing was found by a scan after "idle" was committed: whatever comes now notifies us. The poll
 * is the net for notifications that are lost, by a pooler for example. */
static enum err wait_for_work(struct dispatcher *self, struct error *error) {
    struct pipeline *pipeline = self->pipeline;
    enum db_wake wake;
    enum err rc;
    wake_up(pipeline->loader_wake); /* the work may be for a circuit that we do not hold */
    TRY(db_wait(pipeline->listen_db, pipeline->dispatcher_wake, (int)self->poll_ms, &wake, error));
    wake_clear(pipeline->dispatcher_wake);
    if (wake == DB_WAKE_TIMEOUT) {
        uint32_t most = pipeline->options->poll_ms;
        self->poll_ms = self->poll_ms * 2 < most ? self->poll_ms * 2 : most;
    }
fail:
    return rc;
}

static bool is_due(int64_t *last_ns, int every_ms) {
    int64_t now = timing_now();
    if (now - *last_ns < (int64_t)every_ms * 1000000) return false;
    *last_ns = now;
    return true;
}

static enum err keep_house(struct dispatcher *self, struct error *error) {
    enum err rc = ERR_NONE;
    if (is_due(&self->woke_ns, WAKE_DUE_MS))
        TRY(db_run(self->db, &wake_due, DB_NO_PARAMS, NULL, error));
    if (is_due(&self->rescued_ns, RESCUE_EXPIRED_MS))
        TRY(db_run(self->db, &rescue_expired, DB_NO_PARAMS, NULL, error));
fail:
    return rc;
}

/* --- the stage --- */

/* A prover begins with the circuits that have work already, so that its claims are in order from
 * the first one on; but work does not wait long for keys that others need. */
static bool is_beginning(const struct dispatcher *self) {
    return !atomic_load(&self->pipeline->loaded) &&
           timing_now() - self->started_ns < (int64_t)BEGINNING_LIMIT_MS * 1000000;
}

static enum err step(struct dispatcher *self, struct error *error) {
    int most = room(self->pipeline), n;
    enum err rc;
    TRY(keep_house(self, error));
    if (most <= 0 || is_beginning(self)) {
        wait_for_room(self, WAKE_DUE_MS);
        return ERR_NONE;
    }
    TRY(claim_some(self, most, &n, error));
    if (n > 0) {
        self->poll_ms = POLL_FIRST_MS;
        if (self->is_idle) TRY(publish_idle(self, false, error));
    } else if (!self->is_idle) {
        TRY(publish_idle(self, true, error)); /* and scan again */
    } else {
        TRY(wait_for_work(self, error));
    }
fail:
    return rc;
}

static void recover(struct dispatcher *self, enum err rc, struct error *error) {
    struct pipeline *pipeline = self->pipeline;
    log_warn("partitions cannot be claimed now", log_text("error", error->text));
    if (rc == ERR_CONNECTION && !db_is_connected(self->db))
        rc = db_reconnect(self->db, pipeline->stop_fd, error);
    if (rc != ERR_SCHEMA && !db_is_connected(pipeline->listen_db))
        rc = db_reconnect(pipeline->listen_db, pipeline->stop_fd, error);
    if (rc == ERR_SCHEMA) pipeline_fault(pipeline, error);
    if (rc != ERR_NONE) wait_for_room(self, REFUSED_WAIT_MS);
    self->is_idle = false; /* it may not be what the row says */
    self->poll_ms = POLL_FIRST_MS;
}

void *dispatcher_main(void *arg) {
    struct pipeline *pipeline = ((struct stage_thread *)arg)->pipeline;
    struct dispatcher self = {.pipeline = pipeline,
                              .db = pipeline->dispatcher_db,
                              .poll_ms = POLL_FIRST_MS,
                              .started_ns = timing_now()};
    struct error error;
    while (!atomic_load(&pipeline->stopping)) {
        enum err rc = step(&self, &error);
        if (rc != ERR_NONE && !atomic_load(&pipeline->stopping)) recover(&self, rc, &error);
    }
    queue_close(&pipeline->synthesis);
    return NULL;
}
