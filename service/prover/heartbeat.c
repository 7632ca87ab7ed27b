#include "gpu/monotonic.h"
#include "service/common/log.h"
#include "service/common/report.h"
#include "service/prover/stages.h"

#include <poll.h>
#include <stdlib.h>

/* Whoever cancels a job does not wait for the next renewal: leases are looked for between them. */
enum { RENEWALS_PER_LEASE = 3, LONGEST_TICK_MS = 10000, LOOK_MS = 400 };

#define LOST_COLUMNS(X) X(LOST_TOKEN, "token", "u") X(LOST_REASON, "reason", "t")
enum { LOST_COLUMNS(DB_COLUMN) };

static const struct db_statement renew_leases = {"renew_leases", "iLLUi", "i"};
static const struct db_statement lost_leases = {"lost_leases", "LLU", LOST_COLUMNS(DB_COLUMN_TYPE)};
static const struct db_statement *const statements[] = {&renew_leases, &lost_leases};
const struct stage_statements heartbeat_statements = {statements, 2};

/* Work that hangs must not keep its lease, and nothing can end it but the end of the process. */
static void abort_if_overdue(struct pipeline *pipeline) {
    struct lease_overdue overdue;
    if (!leases_overdue(pipeline->leases, monotonic_ns(), &overdue)) return;
    log_error("a step takes too long; the process aborts and its partitions are proved elsewhere",
              log_text("step", overdue.work), log_number("job", overdue.job),
              log_number("partition", overdue.partition),
              log_number("late_ms", overdue.late_ns / 1000000));
    abort();
}

struct lease_keys {
    int64_t jobs[TASKS_MAX], partitions[TASKS_MAX];
    struct uuid tokens[TASKS_MAX];
    size_t n;
};

static void list(struct pipeline *pipeline, bool all, struct lease_keys *keys) {
    keys->n =
        leases_list(pipeline->leases, all, keys->jobs, keys->partitions, keys->tokens, TASKS_MAX);
}

static enum err renew(struct pipeline *pipeline, struct error *error) {
    struct lease_keys keys;
    list(pipeline, true, &keys);
    return db_run(pipeline->heartbeat_db, &renew_leases,
                  DB_PARAMS(db_int(pipeline->prover_id), db_int8_array(keys.jobs, keys.n),
                            db_int8_array(keys.partitions, keys.n),
                            db_uuid_array(keys.tokens, keys.n),
                            db_int(pipeline->options->lease_ms)),
                  NULL, error);
}

static void log_loss(const struct lease_loss *loss, enum lease_fate fate) {
    const struct log_field job = log_number("job", loss->job),
                           partition = log_number("partition", loss->partition),
                           step = log_text("step", loss->work),
                           reason = log_text("reason", lease_fate_meaning(fate));
    if (fate == LEASE_TAKEN)
        log_warn("work is dropped", job, partition, step, reason,
                 log_text("code", error_name(ERR_LOST_LEASE)));
    else
        log_info("work is dropped", job, partition, step, reason);
}

/* Drops the work whose lease has ended; who computes for it is woken. */
static enum err look(struct pipeline *pipeline, struct error *error) {
    struct lease_keys keys;
    struct db_result *rows = NULL;
    enum err rc;
    list(pipeline, false, &keys);
    if (keys.n == 0) return ERR_NONE;
    TRY(db_run(pipeline->heartbeat_db, &lost_leases,
               DB_PARAMS(db_int8_array(keys.jobs, keys.n), db_int8_array(keys.partitions, keys.n),
                         db_uuid_array(keys.tokens, keys.n)),
               &rows, error));
    for (int i = 0; i < db_rows(rows); i++) {
        struct uuid token = db_get_uuid(rows, i, LOST_TOKEN);
        enum lease_fate fate = lease_fate_by_name(db_get_text(rows, i, LOST_REASON));
        struct lease_loss loss;
        if (!leases_lose(pipeline->leases, &token, fate, &loss)) continue;
        log_loss(&loss, fate);
        wake_up(pipeline->dispatcher_wake); /* it may wait for a place for it */
    }
fail:
    db_free(rows);
    return rc;
}

static bool wait_tick(int fd, int64_t ms) {
    struct pollfd poll_fd = {fd, POLLIN, 0};
    return poll(&poll_fd, 1, ms > 0 ? (int)ms : 0) > 0;
}

static uint32_t tick_ms(const struct pipeline *pipeline) {
    uint32_t ms = pipeline->options->lease_ms / RENEWALS_PER_LEASE;
    return ms < LONGEST_TICK_MS ? ms : LONGEST_TICK_MS;
}

/* Renews when it is time to, and looks. */
static enum err beat(struct pipeline *pipeline, int64_t *renewal_ns, struct error *error) {
    enum err rc;
    report_tick();
    abort_if_overdue(pipeline);
    if (monotonic_ns() >= *renewal_ns) {
        TRY(renew(pipeline, error));
        *renewal_ns = monotonic_ns() + tick_ms(pipeline) * INT64_C(1000000);
    }
    TRY(look(pipeline, error));
fail:
    return rc;
}

void *heartbeat_main(void *arg) {
    struct pipeline *pipeline = ((struct stage_thread *)arg)->pipeline;
    int64_t renewal_ns = 0, left_ms;
    struct error error;
    do {
        enum err rc = beat(pipeline, &renewal_ns, &error);
        while (rc == ERR_CONNECTION) {
            report_tick();
            abort_if_overdue(pipeline);
            renewal_ns = 0; /* it may have been long */
            rc = db_reconnect_within(pipeline->heartbeat_db, pipeline->heartbeat_stop,
                                     tick_ms(pipeline), &error);
            if (wait_tick(pipeline->heartbeat_stop, 0)) return NULL;
            if (rc == ERR_NONE) rc = beat(pipeline, &renewal_ns, &error);
        }
        if (rc != ERR_NONE) log_warn("leases cannot be renewed now", log_text("error", error.text));
        left_ms = (renewal_ns - monotonic_ns()) / 1000000;
        if (left_ms > LOOK_MS || rc != ERR_NONE) left_ms = LOOK_MS;
    } while (!wait_tick(pipeline->heartbeat_stop, left_ms));
    return NULL;
}
