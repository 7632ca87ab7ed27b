#include "service/finalizer.h"

#include "service/courier.h"
#include "service/db.h"
#include "service/log.h"
#include "service/migrate.h"
#include "service/recover.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static const struct db_statement finalize_next = {"finalize_next", "", "lit"};
static const struct db_statement rescue_expired = {"rescue_expired", "", "i"};
static const struct db_statement wake_due = {"wake_due", "", "i"};
static const struct db_statement make_timing_partitions = {"make_timing_partitions", "i", "i"};

enum {
    SWEEP_MS = 1000,            /* between two looks for expired leases and due partitions */
    PARTITION_MS = 3600 * 1000, /* between two looks at the timing tables */
    PARTITION_DAYS = 7,         /* so many days ahead they are made */
};

struct finalizer {
    const struct options *options;
    char application[64];
    struct db *db, *listener; /* the same connection unless --listen-database is given */
    int64_t next_sweep_ms, next_partition_ms;
    struct courier *courier;
};

/* Readable, for good, once the process is to stop: waits everywhere end. */
static int stop_fd = -1;
static atomic_bool is_stopping;

static void stop(void) {
    uint64_t one = 1;
    atomic_store(&is_stopping, true);
    (void)!write(stop_fd, &one, sizeof one);
}

static void on_signal(int number) {
    int saved = errno;
    if (atomic_load(&is_stopping)) _exit(128 + number);
    stop();
    errno = saved;
}

static enum err take_signals(struct error *error) {
    struct sigaction action = {.sa_handler = on_signal};
    (void)sigemptyset(&action.sa_mask);
    stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (stop_fd < 0 || sigaction(SIGTERM, &action, NULL) || sigaction(SIGINT, &action, NULL))
        return error_set(error, ERR_INTERNAL, "cannot set up signals: %s", strerror(errno));
    return ERR_NONE;
}

static int64_t now_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- jobs --- */

static enum err finalize_one(struct finalizer *f, bool *found, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc = db_run(f->db, &finalize_next, DB_NO_PARAMS, &rows, error);
    if (rc) return rc;
    *found = db_rows(rows) > 0;
    if (*found) {
        courier_wake(f->courier); /* the job may have a webhook */
        log_info("job finalized", log_number("job", db_get_int(rows, 0, 0)),
                 log_number("run", db_get_int(rows, 0, 1)),
                 log_text("event", db_get_text(rows, 0, 2)));
    }
    db_free(rows);
    return ERR_NONE;
}

static enum err finalize_all(struct finalizer *f, struct error *error) {
    bool found = true;
    while (found && !atomic_load(&is_stopping)) {
        enum err rc = finalize_one(f, &found, error);
        if (rc) return rc;
    }
    return ERR_NONE;
}

/* Runs a statement that gives a count, and logs it unless it is 0. */
static enum err counted(struct finalizer *f, const struct db_statement *statement,
                        const struct db_param *params, const char *message, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc = db_run(f->db, statement, params, &rows, error);
    if (rc) return rc;
    int64_t n = db_rows(rows) > 0 ? db_get_int(rows, 0, 0) : 0;
    if (n > 0) log_info(message, log_number("count", n));
    db_free(rows);
    return ERR_NONE;
}

static enum err sweep(struct finalizer *f, struct error *error) {
    enum err rc = ERR_NONE;
    int64_t now = now_ms();
    if (now >= f->next_sweep_ms) {
        f->next_sweep_ms = now + SWEEP_MS;
        TRY(counted(f, &rescue_expired, DB_NO_PARAMS, "expired leases were taken away", error));
        TRY(counted(f, &wake_due, DB_NO_PARAMS, "partitions are due again", error));
    }
    if (now >= f->next_partition_ms) {
        f->next_partition_ms = now + PARTITION_MS;
        TRY(counted(f, &make_timing_partitions, DB_PARAMS(db_int(PARTITION_DAYS)),
                    "timing tables were made", error));
    }
fail:
    return rc;
}

static enum err wait_for_work(struct finalizer *f, struct error *error) {
    enum db_wake wake;
    int64_t until_sweep = f->next_sweep_ms - now_ms();
    int timeout = (int)f->options->poll_ms;
    if (until_sweep < timeout) timeout = until_sweep > 0 ? (int)until_sweep : 0;
    enum err rc = db_wait(f->listener, stop_fd, timeout, &wake, error);
    if (!rc && wake == DB_WAKE_NOTIFIED) courier_wake(f->courier); /* or a delivery is due */
    return rc;
}

static enum err main_loop(struct finalizer *f, struct error *error) {
    enum err rc = ERR_NONE;
    while (!atomic_load(&is_stopping)) {
        TRY(recover(f->db, finalize_all(f, error), stop_fd, error));
        TRY(recover(f->db, sweep(f, error), stop_fd, error));
        TRY(recover(f->listener, wait_for_work(f, error), stop_fd, error));
    }
fail:
    return rc;
}

/* --- start and end --- */

static enum err connect_main(struct finalizer *f, struct error *error) {
    static const struct db_statement *const statements[] = {&finalize_next, &rescue_expired,
                                                            &wake_due, &make_timing_partitions};
    struct db_settings settings = {.conninfo = f->options->database,
                                   .application = f->application,
                                   .statement_timeout_ms = DB_STATEMENT_TIMEOUT_MS,
                                   .lock_timeout_ms = DB_LOCK_TIMEOUT_MS,
                                   .statements = statements,
                                   .n_statements = sizeof statements / sizeof *statements};
    enum err rc;
    TRY(db_open(&settings, &f->db, error));
    TRY(migrate_check(f->db, error));
    f->listener = f->db;
    if (*f->options->listen_database) {
        settings.conninfo = f->options->listen_database;
        settings.n_statements = 0;
        f->listener = NULL;
        TRY(db_open(&settings, &f->listener, error));
    }
    rc = db_listen(f->listener, "proverq_finalize", error);
fail:
    return rc;
}

enum err finalizer_run(const struct options *options, struct error *error) {
    struct finalizer f = {.options = options};
    struct error courier_error = {.code = ERR_NONE};
    char host[40] = "";
    enum err rc;
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(f.application, sizeof f.application, "proverq finalizer %s", host);
    TRY(take_signals(error));
    TRY(connect_main(&f, error));
    TRY(courier_start(options, f.application, stop, &f.courier, error));
    log_info("finalizer started");
    rc = main_loop(&f, error);
fail:
    if (courier_stop(f.courier, &courier_error) && !rc)
        *error = courier_error, rc = courier_error.code;
    if (f.listener != f.db) db_close(f.listener);
    db_close(f.db);
    if (!rc) log_info("finalizer stopped");
    return rc;
}
