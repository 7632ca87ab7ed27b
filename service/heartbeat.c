#include "service/log.h"
#include "service/stages.h"

#include <poll.h>
#include <stdlib.h>

enum { RENEWALS_PER_LEASE = 3, LONGEST_TICK_MS = 10000 };

static const struct db_statement heartbeat = {"heartbeat", "iUi", "u"};
static const struct db_statement *const statements[] = {&heartbeat};
const struct stage_statements heartbeat_statements = {statements, 1};

/* A step that hangs must not keep its lease, and nothing can end it but the end of the process. */
static void abort_if_overdue(struct pipeline *pipeline) {
    struct lease_overdue overdue;
    if (!leases_overdue(pipeline->leases, timing_now(), &overdue)) return;
    log_error("a step takes too long; the process aborts and its partitions are proved elsewhere",
              log_text("step", overdue.step), log_number("job", overdue.job),
              log_number("partition", overdue.partition),
              log_number("late_ms", overdue.late_ns / 1000000));
    abort();
}

static enum err renew(struct pipeline *pipeline, struct error *error) {
    struct uuid asked[TASKS_MAX], held[TASKS_MAX];
    const size_t max = TASKS_MAX;
    struct db_result *rows = NULL;
    size_t n = leases_tokens(pipeline->leases, asked, max);
    enum err rc;
    if (n > max) n = max;
    TRY(db_run(pipeline->heartbeat_db, &heartbeat,
               DB_PARAMS(db_int(pipeline->prover_id), db_uuid_array(asked, n),
                         db_int(pipeline->options->lease_ms)),
               &rows, error));
    size_t m = (size_t)db_rows(rows) < max ? (size_t)db_rows(rows) : max;
    for (size_t i = 0; i < m; i++)
        held[i] = db_get_uuid(rows, (int)i, 0);
    size_t lost = leases_mark_lost(pipeline->leases, asked, n, held, m);
    if (lost)
        log_warn("leases were taken away; the work on them is dropped",
                 log_number("leases", (int64_t)lost));
fail:
    db_free(rows);
    return rc;
}

static bool wait_tick(int fd, uint32_t ms) {
    struct pollfd poll_fd = {fd, POLLIN, 0};
    return poll(&poll_fd, 1, (int)ms) > 0;
}

void *heartbeat_main(void *arg) {
    struct pipeline *pipeline = ((struct stage_thread *)arg)->pipeline;
    uint32_t tick = pipeline->options->lease_ms / RENEWALS_PER_LEASE;
    struct error error;
    if (tick > LONGEST_TICK_MS) tick = LONGEST_TICK_MS;
    do {
        abort_if_overdue(pipeline);
        enum err rc = renew(pipeline, &error);
        while (rc == ERR_CONNECTION) {
            abort_if_overdue(pipeline);
            rc =
                db_reconnect_within(pipeline->heartbeat_db, pipeline->heartbeat_stop, tick, &error);
            if (wait_tick(pipeline->heartbeat_stop, 0)) return NULL;
            if (rc == ERR_NONE) rc = renew(pipeline, &error);
        }
        if (rc != ERR_NONE) log_warn("leases cannot be renewed now", log_text("error", error.text));
    } while (!wait_tick(pipeline->heartbeat_stop, tick));
    return NULL;
}
