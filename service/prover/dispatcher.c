#include "gpu/monotonic.h"
#include "service/common/faults.h"
#include "service/common/log.h"
#include "service/prover/claims.h"
#include "service/prover/racing.h"
#include "service/prover/stages.h"
#include "service/prover/step.h"
#include "service/prover/synthesis.h"

#include <poll.h>
#include <stdlib.h>

enum {
    CLAIMABLE_MAX = 4096,
    POLL_FIRST_MS = 20,     /* after work has run out, the next may be close */
    BUSY_MS = 1000,         /* so long it finds work before it says that it is not idle */
    REFUSED_WAIT_MS = 1000, /* after the database refused a statement */
    BEGINNING_LIMIT_MS = 30000,
    MEMORY_WAIT_MS = 1000, /* should a wake-up be missed */
};

/* A key of gigabytes is read from the disk on its way to the device. */
#define LOAD_KEY_LIMIT_NS INT64_C(600000000000)

static const struct db_statement prover_idle = {"prover_idle", "ib", ""};
static const struct db_statement *const statements[] = {&claims_statement, &prover_idle};
const struct stage_statements dispatcher_statements = {statements,
                                                       sizeof statements / sizeof *statements};

struct dispatcher {
    struct pipeline *pipeline;
    struct db *db;
    struct claims bounds;
    uint64_t claims;  /* tasks made so far */
    bool is_idle;     /* as published */
    bool is_cautious; /* there was no place for what was claimed last: claim one at a time */
    bool is_poll;     /* it waited for work, and nobody said that there is some */
    uint32_t poll_ms; /* the next wait for work */
    int64_t started_ns;
    int64_t busy_ns; /* since when each claim has found something; 0: the last did not */
};

/* --- from rows to tasks --- */

static struct task *make_task(struct dispatcher *self, struct claim_rows *rows, int row) {
    struct task *task = calloc(1, sizeof *task);
    if (!task) return NULL;
    const struct db_result *result = rows->rows;
    task->job = db_get_int(result, row, CLAIM_JOB);
    task->partition = (int32_t)db_get_int(result, row, CLAIM_PARTITION);
    task->attempt = (int32_t)db_get_int(result, row, CLAIM_ATTEMPT);
    task->lease.token = db_get_uuid(result, row, CLAIM_TOKEN);
    task->lease.job = task->job;
    task->lease.partition = task->partition;
    task->circuit = keyring_find(self->pipeline->keyring, db_get_int(result, row, CLAIM_CIRCUIT));
    if (!db_is_null(result, row, CLAIM_WITNESS))
        task->witness = db_get_bytes(result, row, CLAIM_WITNESS, &task->witness_bytes);
    if (!db_is_null(result, row, CLAIM_WITNESS_PATH))
        task->path = db_get_text(result, row, CLAIM_WITNESS_PATH);
    if (!db_is_null(result, row, CLAIM_INPUTS))
        task->inputs = db_get_text(result, row, CLAIM_INPUTS);
    task->claim = rows;
    atomic_fetch_add(&rows->users, 1);
    return task;
}

static enum err check_circuit(const struct task *task, struct error *error) {
    if (task->circuit->state != CIRCUIT_BAD) return ERR_NONE;
    *error = task->circuit->error;
    return error_prefix(error, "circuit %s version %d", task->circuit->name,
                        task->circuit->version);
}

/* The key on the device, then a witness buffer; *placed is false when one is not to be had before
 * tasks that are in hand have ended. The deadline is also that of the wait for a key that the loader
 * places; the step load_key, which is the keyring's, does not contain the wait. */
static enum err place(struct dispatcher *self, struct task *task, bool *placed,
                      struct error *error) {
    struct pipeline *pipeline = self->pipeline;
    enum err rc;
    *placed = false;
    TRY(check_circuit(task, error));
    keyring_take_loading(pipeline->keyring, task->circuit, &task->timing);
    if (!task->has_key) {
        lease_limit(&task->lease, step_name(STEP_LOAD_KEY), LOAD_KEY_LIMIT_NS);
        rc = keyring_use(pipeline->keyring, task->circuit, WORKER_DISPATCHER, &task->timing,
                         &task->has_key, error);
        lease_limit(&task->lease, step_name(task->step), LEASE_NO_DEADLINE);
        if (rc != ERR_NONE || !task->has_key) goto fail;
    }
    TRY(buffers_take(pipeline->buffers, witness_buffer_bytes(task->circuit->zkey), &task->buffer,
                     error));
    *placed = task->buffer != NULL;
fail:
    return rc;
}

static void wait_for_room(struct dispatcher *self, int ms);

/* Tries once; false: there is no place for the task yet. */
static bool try_dispatch(struct dispatcher *self, struct task *task) {
    struct pipeline *pipeline = self->pipeline;
    struct error error;
    bool placed;
    if (pipeline_is_over(pipeline, task)) return true;
    int64_t start = monotonic_ns();
    enum err rc = place(self, task, &placed, &error);
    if (rc == ERR_DEVICE_FAULT) pipeline_fault(pipeline, &error);
    if (rc != ERR_NONE) {
        pipeline_give_up(pipeline, task, &error);
        return true;
    }
    if (!placed) return false;
    if (task->step == STEP_MEMORY_WAIT) step_end_at(task, WORKER_DISPATCHER, start);
    step_begin(task, STEP_SYNTHESIS_WAIT, LEASE_NO_DEADLINE);
    queue_push(&pipeline->synthesis, task);
    return true;
}

/* Waits until the task has its place; nothing behind it gets one, and nothing is claimed meanwhile.
 * What is in hand needs nothing more from us, so it ends, and then there is room. */
static void dispatch(struct dispatcher *self, struct task *task) {
    if (try_dispatch(self, task)) return;
    step_begin(task, STEP_MEMORY_WAIT, LEASE_NO_DEADLINE);
    self->is_cautious = true;
    do
        wait_for_room(self, MEMORY_WAIT_MS);
    while (!try_dispatch(self, task));
}

/* --- claiming --- */

static int least(int a, int b) {
    return a < b ? a : b;
}

/* How many partitions may be claimed now. Those whose witness is being computed come on top of
 * those that wait for the device, as many as can be computed at once. With groups a whole group is
 * claimed, whenever there would be room for one partition. */
static int room(struct dispatcher *self) {
    struct pipeline *pipeline = self->pipeline;
    int group = least((int)pipeline->options->group_claims, PACING_MOST);
    int fixed = fault_switch("PROVERQ_DEPTH");
    int depth = fixed ? fixed : pacing_depth(&pipeline->pacing, pipeline->synthesis_threads);
    int computing = least(atomic_load(&pipeline->computing), pipeline->synthesis_threads);
    int ahead = depth + computing - atomic_load(&pipeline->ahead);
    int most = least((int)buffers_free_count(pipeline->buffers),
                     TASKS_MAX - atomic_load(&pipeline->in_hand));
    if (group > 1) return ahead > 0 && most >= group ? group : 0;
    return least(ahead, self->is_cautious ? least(most, 1) : most);
}

/* Brings the partitions of a circuit together, behind its first one. */
static void group_by_circuit(struct task **tasks, int n) {
    for (int end = 1; end < n; end++) {
        struct task *task = tasks[end];
        int to = end;
        while (to > 0 && tasks[to - 1]->circuit != task->circuit)
            to--;
        if (to == 0) continue;
        for (int i = end; i > to; i--)
            tasks[i] = tasks[i - 1];
        tasks[to] = task;
    }
}

/* All leases of a claim are renewed from now on, also those of tasks that wait for the others. */
static int begin_tasks(struct dispatcher *self, struct claim_rows *rows, int64_t start_ns,
                       struct task *tasks[TASKS_MAX]) {
    int n = 0;
    for (int row = 0; row < db_rows(rows->rows) && n < TASKS_MAX; row++) {
        struct task *task = make_task(self, rows, row);
        if (!task) {
            log_error("out of memory: a claimed partition is left until its lease expires");
            continue;
        }
        step_begin_at(task, STEP_CLAIM, LEASE_NO_DEADLINE, start_ns);
        start_ns = step_end(task, WORKER_DISPATCHER);
        pipeline_begin(self->pipeline, task);
        tasks[n++] = task;
    }
    if (self->pipeline->options->group_claims > 1) group_by_circuit(tasks, n);
    for (int i = 0; i < n; i++)
        tasks[i]->order = self->claims++;
    return n;
}

static enum err ask(struct dispatcher *self, int most, int64_t start_ns, struct claim_rows *rows,
                    struct error *error) {
    struct pipeline *pipeline = self->pipeline;
    int64_t ids[CLAIMABLE_MAX];
    size_t circuits = keyring_claimable(pipeline->keyring, ids, CLAIMABLE_MAX);
    enum err rc = ERR_NONE;
    if (circuits == 0) return ERR_NONE;
    TRY(claims_take(&self->bounds, self->db,
                    &(struct claims_wish){pipeline->prover_id, ids, circuits,
                                          pipeline->options->lease_ms, most, self->is_poll},
                    &rows->rows, error));
    self->is_poll = false;
    pacing_claimed(&pipeline->pacing, monotonic_ns() - start_ns);
fail:
    return rc;
}

/* Claims at most `most` partitions and sends them on; *n gets how many there were. */
static enum err claim_some(struct dispatcher *self, int most, int *n, struct error *error) {
    struct task *tasks[TASKS_MAX];
    struct claim_rows *rows = calloc(1, sizeof *rows);
    enum err rc;
    *n = 0;
    if (!rows) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    atomic_store(&rows->users, 1);
    int64_t start = timing_start(STEP_CLAIM);
    TRY(ask(self, most, start, rows, error));
    if (!rows->rows) goto fail;
    *n = begin_tasks(self, rows, start, tasks);
    self->is_cautious = false;
    for (int i = 0; i < *n; i++)
        if (!racing_start(self, tasks[i], try_dispatch)) dispatch(self, tasks[i]);
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

/* Each change is a new version of the prover's row, which every insert looks at and an old snapshot
 * keeps: work that comes a partition at a time changes nothing. */
static enum err publish_busy(struct dispatcher *self, struct error *error) {
    if (!self->is_idle || !self->busy_ns ||
        monotonic_ns() - self->busy_ns < (int64_t)BUSY_MS * 1000000)
        return ERR_NONE;
    return publish_idle(self, false, error);
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
    self->is_poll = wake == DB_WAKE_TIMEOUT;
    if (self->is_poll) {
        uint32_t most = pipeline->options->poll_ms;
        self->poll_ms = self->poll_ms * 2 < most ? self->poll_ms * 2 : most;
    }
fail:
    return rc;
}

/* --- the stage --- */

/* A prover begins with the circuits that have work already, so that its claims are in order from
 * the first one on; but work does not wait long for keys that others need. */
static bool is_beginning(const struct dispatcher *self) {
    return !atomic_load(&self->pipeline->loaded) &&
           monotonic_ns() - self->started_ns < (int64_t)BEGINNING_LIMIT_MS * 1000000;
}

/* One claim, or one wait for a reason to claim. */
static enum err claim_or_wait(struct dispatcher *self, struct error *error) {
    int most = room(self), n;
    enum err rc;
    TRY(publish_busy(self, error));
    if (most <= 0 || is_beginning(self)) {
        wait_for_room(self, MEMORY_WAIT_MS);
        return ERR_NONE;
    }
    TRY(claim_some(self, most, &n, error));
    if (n > 0) {
        self->poll_ms = POLL_FIRST_MS;
        if (!self->busy_ns) self->busy_ns = monotonic_ns();
        return ERR_NONE;
    }
    self->busy_ns = 0;
    if (!self->is_idle) {
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
                              .started_ns = monotonic_ns()};
    struct error error;
    while (!atomic_load(&pipeline->stopping)) {
        enum err rc = claim_or_wait(&self, &error);
        if (rc != ERR_NONE && !atomic_load(&pipeline->stopping)) recover(&self, rc, &error);
    }
    racing_join();
    queue_close(&pipeline->synthesis);
    return NULL;
}
