#include "service/finalizer/janitor.h"

#include "gpu/monotonic.h"
#include "service/common/log.h"
#include "service/common/stop.h"
#include "service/common/thread.h"
#include "service/db/db.h"
#include "service/db/recover.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static const struct db_statement rescue_expired = {"rescue_expired", "", "i"};
static const struct db_statement wake_due = {"wake_due", "", "i"};
static const struct db_statement make_timing_partitions = {"make_timing_partitions", "i", "i"};
static const struct db_statement prune = {"prune", "i", "l"};

enum {
    SWEEP_MS = 1000,   /* between two looks for due partitions (the shortest backoff is of that
                              * order), and for expired leases */
    SWEEP_SHARE = 10,  /* each of the two takes at most a tenth of the time: see rest() */
    WOKEN_MOST = 1000, /* by one call: sql/functions/wake_due.sql */
    TABLES_MS = 3600 * 1000, /* between two looks at the timing tables */
    TABLES_DAYS = 7,         /* so many days ahead they are made */
    PRUNE_MS = 60 * 1000,    /* between two rounds of deletion */
    PRUNE_PAUSE_MS = 100,    /* between two batches of a round */
    PRUNE_ROWS = 1000        /* in a batch: some 20 ms */
};

struct janitor {
    const struct options *options;
    void (*on_end)(void);
    pthread_t thread;
    bool is_started;
    int stop_fd; /* readable, for good, once it is to stop */
    int64_t next_wake_ms, next_rescue_ms, next_tables_ms, next_prune_ms;
    int64_t pruned; /* in this round */
    enum err rc;    /* how the thread ended; valid once it was joined */
    struct error error;
};

/* Runs a statement that gives a count. */
static enum err run_counted(struct db *db, const struct db_statement *statement,
                            const struct db_param *params, int64_t *count, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc = db_run(db, statement, params, &rows, error);
    if (rc) return rc;
    *count = db_rows(rows) > 0 ? db_get_int(rows, 0, 0) : 0;
    db_free(rows);
    return ERR_NONE;
}

/* --- the duties --- */

/* An old snapshot makes the two sweeps slow, since they read past all that has ended meanwhile: a
 * third of a second for a million leases. */
static void rest(int64_t *next_ms, int64_t began_ms) {
    int64_t pause_ms = (monotonic_ms() - began_ms) * SWEEP_SHARE;
    if (pause_ms > SWEEP_MS) *next_ms = began_ms + pause_ms;
}

static enum err wake(struct janitor *j, struct db *db, struct error *error) {
    int64_t began_ms = monotonic_ms(), woken = 0;
    enum err rc;
    TRY(run_counted(db, &wake_due, DB_NO_PARAMS, &woken, error));
    if (woken > 0) log_info("partitions are due again", log_number("count", woken));
    rest(&j->next_wake_ms, began_ms);
    if (woken >= WOKEN_MOST) j->next_wake_ms = began_ms; /* there may be more */
fail:
    return rc;
}

static enum err rescue(struct janitor *j, struct db *db, struct error *error) {
    int64_t began_ms = monotonic_ms(), rescued = 0;
    enum err rc;
    TRY(run_counted(db, &rescue_expired, DB_NO_PARAMS, &rescued, error));
    if (rescued > 0) log_info("expired leases were taken away", log_number("count", rescued));
    rest(&j->next_rescue_ms, began_ms);
fail:
    return rc;
}

static enum err make_tables(struct db *db, struct error *error) {
    int64_t days = 0;
    enum err rc;
    TRY(run_counted(db, &make_timing_partitions, DB_PARAMS(db_int(TABLES_DAYS)), &days, error));
    if (days > 0) log_info("timing tables were made", log_number("count", days));
fail:
    return rc;
}

/* One batch; the round goes on until one finds nothing. */
static enum err delete_old(struct janitor *j, struct db *db, struct error *error) {
    int64_t deleted = 0;
    enum err rc;
    TRY(run_counted(db, &prune, DB_PARAMS(db_int(PRUNE_ROWS)), &deleted, error));
    j->pruned += deleted;
    if (deleted > 0) {
        j->next_prune_ms = monotonic_ms() + PRUNE_PAUSE_MS;
        return ERR_NONE;
    }
    if (j->pruned > 0)
        log_info("what is kept no longer was deleted", log_number("rows", j->pruned));
    j->pruned = 0;
fail:
    return rc;
}

/* --- their times --- */

/* The next time is set before: a statement that is refused is not repeated at once. */
static bool is_due(int64_t *next_ms, int every_ms) {
    int64_t now = monotonic_ms();
    if (now < *next_ms) return false;
    *next_ms = now + every_ms;
    return true;
}

static enum err do_what_is_due(struct janitor *j, struct db *db, struct error *error) {
    enum err rc = ERR_NONE;
    if (is_due(&j->next_wake_ms, SWEEP_MS)) TRY(wake(j, db, error));
    if (is_due(&j->next_rescue_ms, SWEEP_MS)) TRY(rescue(j, db, error));
    if (is_due(&j->next_tables_ms, TABLES_MS)) TRY(make_tables(db, error));
    if (is_due(&j->next_prune_ms, PRUNE_MS)) TRY(delete_old(j, db, error));
fail:
    return rc;
}

static void wait_for_next(const struct janitor *j) {
    struct pollfd stop = {j->stop_fd, POLLIN, 0};
    const int64_t times[] = {j->next_wake_ms, j->next_rescue_ms, j->next_prune_ms};
    int64_t now = monotonic_ms(), next = now + SWEEP_MS;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] < next) next = times[i];
    if (next > now) (void)poll(&stop, 1, (int)(next - now));
}

/* --- the thread --- */

static enum err keep_order(struct janitor *j, struct db *db, struct error *error) {
    enum err rc = ERR_NONE;
    while (!stop_event_is_set(j->stop_fd)) {
        TRY(recover(db, do_what_is_due(j, db, error), j->stop_fd, error));
        wait_for_next(j);
    }
fail:
    return rc;
}

static void *run(void *argument) {
    struct janitor *j = argument;
    struct db *db = NULL;
    static const struct db_statement *const statements[] = {&rescue_expired, &wake_due,
                                                            &make_timing_partitions, &prune};
    const struct db_settings settings =
        db_settings_for_daemon(j->options->database, "finalizer", NULL, statements,
                               sizeof statements / sizeof *statements);
    enum err rc;
    TRY(db_open_patiently(&settings, j->stop_fd, &db, &j->error));
    TRY(keep_order(j, db, &j->error));
fail:
    if (!db && stop_event_is_set(j->stop_fd)) rc = ERR_NONE; /* it was told to */
    db_close(db);
    j->rc = rc;
    if (rc) j->on_end();
    return NULL;
}

enum err janitor_start(const struct options *options, void (*on_end)(void), struct janitor **out,
                       struct error *error) {
    enum err rc;
    struct janitor *j = calloc(1, sizeof *j);
    if (!j) return error_set(error, ERR_HOST_MEMORY, "out of memory while starting the janitor");
    *j = (struct janitor){.options = options, .on_end = on_end, .stop_fd = -1};
    TRY(stop_event_open(&j->stop_fd, error));
    TRY(thread_start(&j->thread, run, j, error));
    j->is_started = true;
    *out = j;
    return ERR_NONE;
fail:
    if (janitor_stop(j, &(struct error){.code = ERR_NONE})) return rc;
    return rc;
}

enum err janitor_stop(struct janitor *janitor, struct error *error) {
    if (!janitor) return ERR_NONE;
    if (janitor->is_started) {
        stop_event_set(janitor->stop_fd);
        (void)pthread_join(janitor->thread, NULL);
    }
    enum err rc = janitor->rc;
    if (rc) *error = janitor->error;
    if (janitor->stop_fd >= 0) (void)close(janitor->stop_fd);
    free(janitor);
    return rc;
}
