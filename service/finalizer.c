#include "service/finalizer.h"

#include "service/db.h"
#include "service/log.h"
#include "service/migrate.h"
#include "service/webhook.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
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
static const struct db_statement delivery_claim = {"delivery_claim", "ii", "uutttti"};
static const struct db_statement delivery_done = {"delivery_done", "uuiti", "t"};

enum {
    SWEEP_MS = 1000,                /* between two looks for expired leases and due partitions */
    PARTITION_MS = 3600 * 1000,     /* between two looks at the timing tables */
    PARTITION_DAYS = 7,             /* so many days ahead they are made */
    DELIVERY_LEASE_EXTRA_MS = 45000 /* beyond the timeout: the time to record the outcome */
};

struct finalizer {
    const struct options *options;
    char application[64];
    struct db *db, *listener; /* the same connection unless --listen-database is given */
    int64_t next_sweep_ms, next_partition_ms;
    struct webhook_client *client;
    enum err courier_rc; /* the courier thread's end; valid once it was joined */
    struct error courier_error;
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

/* What an error means for a loop: ERR_NONE to go on (after a reconnection, or because only one
 * statement was refused), else the error that ends the process. */
static enum err recover(struct db *db, enum err rc, struct error *error) {
    if (rc == ERR_NONE || rc == ERR_SCHEMA) return rc;
    if (rc == ERR_DATABASE) {
        log_error("a statement was refused", log_text("error", error->text));
        return ERR_NONE;
    }
    if (rc != ERR_CONNECTION) return rc;
    log_warn("the connection is lost", log_text("error", error->text));
    rc = db_reconnect(db, stop_fd, error);
    if (atomic_load(&is_stopping)) return ERR_NONE;
    if (rc == ERR_NONE) log_info("connected again");
    return rc;
}

/* --- jobs --- */

static enum err finalize_one(struct finalizer *f, bool *found, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc = db_run(f->db, &finalize_next, DB_NO_PARAMS, &rows, error);
    if (rc) return rc;
    *found = db_rows(rows) > 0;
    if (*found)
        log_info("job finalized", log_number("job", db_get_int(rows, 0, 0)),
                 log_number("run", db_get_int(rows, 0, 1)),
                 log_text("event", db_get_text(rows, 0, 2)));
    db_free(rows);
    return ERR_NONE;
}

static enum err finalize_all(struct finalizer *f, struct error *error) {
    bool found = true, any = false;
    while (found && !atomic_load(&is_stopping)) {
        enum err rc = finalize_one(f, &found, error);
        if (rc) return rc;
        any = any || found;
    }
    if (any) webhook_wake(f->client); /* there may be something to deliver */
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
    if (!rc && wake == DB_WAKE_NOTIFIED) webhook_wake(f->client); /* or a delivery is due */
    return rc;
}

static enum err main_loop(struct finalizer *f, struct error *error) {
    enum err rc = ERR_NONE;
    while (!atomic_load(&is_stopping)) {
        TRY(recover(f->db, finalize_all(f, error), error));
        TRY(recover(f->db, sweep(f, error), error));
        TRY(recover(f->listener, wait_for_work(f, error), error));
    }
fail:
    return rc;
}

/* --- the courier: a thread with its own connection --- */

static enum err claim(struct finalizer *f, struct db *db, struct error *error) {
    struct db_result *rows = NULL;
    size_t under_way = webhook_under_way(f->client);
    if (atomic_load(&is_stopping) || under_way >= f->options->webhook_parallel) return ERR_NONE;
    enum err rc =
        db_run(db, &delivery_claim,
               DB_PARAMS(db_int((int64_t)(f->options->webhook_parallel - under_way)),
                         db_int((int64_t)f->options->webhook_timeout_ms + DELIVERY_LEASE_EXTRA_MS)),
               &rows, error);
    for (int i = 0; !rc && i < db_rows(rows); i++) {
        struct webhook_message message = {.delivery = db_get_uuid(rows, i, 0),
                                          .token = db_get_uuid(rows, i, 1),
                                          .url = db_get_text(rows, i, 3),
                                          .secret = db_get_text(rows, i, 4),
                                          .body = db_get_text(rows, i, 5)};
        rc = webhook_start(f->client, &message, error);
    }
    db_free(rows);
    return rc;
}

static void log_outcome(const struct webhook_result *result, const char *outcome) {
    char id[UUID_TEXT_BYTES];
    uuid_format(&result->delivery, id);
    if (*result->error)
        log_warn("webhook not delivered", log_text("delivery", id), log_text("outcome", outcome),
                 log_number("status", result->status), log_text("error", result->error),
                 log_number("ms", result->duration_ms));
    else
        log_info("webhook delivered", log_text("delivery", id),
                 log_number("status", result->status), log_number("ms", result->duration_ms));
}

static enum err record(struct db *db, const struct webhook_result *result, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc =
        db_run(db, &delivery_done,
               DB_PARAMS(db_uuid(&result->delivery), db_uuid(&result->token),
                         result->status ? db_int(result->status) : db_null(),
                         db_text(*result->error ? result->error : NULL),
                         result->retry_after_s > 0 ? db_int(result->retry_after_s) : db_null()),
               &rows, error);
    if (rc) return rc;
    log_outcome(result, db_rows(rows) > 0 ? db_get_text(rows, 0, 0) : "");
    db_free(rows);
    return ERR_NONE;
}

/* A result that cannot be recorded for want of a connection is recorded after it is made again:
 * recording is bound to the token, so doing it twice does it once. */
static enum err record_all(struct finalizer *f, struct db *db, struct error *error) {
    struct webhook_result result;
    while (webhook_take(f->client, &result)) {
        enum err rc;
        do {
            rc = record(db, &result, error);
            enum err fatal = recover(db, rc, error);
            if (fatal) return fatal;
        } while (rc == ERR_CONNECTION && !atomic_load(&is_stopping));
    }
    return ERR_NONE;
}

static enum err courier_loop(struct finalizer *f, struct db *db, struct error *error) {
    enum err rc = ERR_NONE;
    while (!atomic_load(&is_stopping) || webhook_under_way(f->client) > 0) {
        TRY(recover(db, claim(f, db, error), error));
        TRY(webhook_wait(f->client, (int)f->options->poll_ms, error));
        TRY(record_all(f, db, error));
    }
fail:
    return rc;
}

static void *courier(void *argument) {
    struct finalizer *f = argument;
    struct db *db = NULL;
    static const struct db_statement *const statements[] = {&delivery_claim, &delivery_done};
    const struct db_settings settings = {.conninfo = f->options->database,
                                         .application = f->application,
                                         .statement_timeout_ms = DB_STATEMENT_TIMEOUT_MS,
                                         .lock_timeout_ms = DB_LOCK_TIMEOUT_MS,
                                         .statements = statements,
                                         .n_statements = sizeof statements / sizeof *statements};
    enum err rc;
    TRY(db_open(&settings, &db, &f->courier_error));
    TRY(courier_loop(f, db, &f->courier_error));
fail:
    db_close(db);
    f->courier_rc = rc;
    if (rc) stop();
    return NULL;
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

static enum err open_client(struct finalizer *f, struct error *error) {
    const struct options *o = f->options;
    struct webhook_settings settings = {
        .http = o->webhook_http, .timeout_ms = o->webhook_timeout_ms, .ca_file = o->webhook_ca};
    for (size_t i = 0; i < o->webhook_allow.n; i++)
        if (address_filter_allow(&settings.filter, o->webhook_allow.item[i], error))
            return error_prefix(error, "--webhook-allow");
    return webhook_client_open(&settings, &f->client, error);
}

static enum err start_courier(struct finalizer *f, pthread_t *thread, struct error *error) {
    sigset_t all, old; /* the main thread takes the signals */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = pthread_create(thread, NULL, courier, f);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!failed) return ERR_NONE;
    return error_set(error, ERR_INTERNAL, "cannot start a thread: %s", strerror(failed));
}

enum err finalizer_run(const struct options *options, struct error *error) {
    struct finalizer f = {.options = options};
    pthread_t thread;
    bool is_started = false;
    char host[40] = "";
    enum err rc;
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(f.application, sizeof f.application, "proverq finalizer %s", host);
    TRY(take_signals(error));
    TRY(open_client(&f, error));
    TRY(connect_main(&f, error));
    TRY(start_courier(&f, &thread, error));
    is_started = true;
    log_info("finalizer started");
    rc = main_loop(&f, error);
fail:
    if (is_started) {
        if (rc) stop();
        webhook_wake(f.client);
        (void)pthread_join(thread, NULL);
        if (!rc && f.courier_rc) *error = f.courier_error, rc = f.courier_rc;
    }
    if (f.listener != f.db) db_close(f.listener);
    db_close(f.db);
    webhook_client_close(f.client);
    if (!rc) log_info("finalizer stopped");
    return rc;
}
