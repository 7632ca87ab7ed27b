#include "service/finalizer/finalizer.h"

#include "service/common/log.h"
#include "service/common/report.h"
#include "service/common/stop.h"
#include "service/db/db.h"
#include "service/db/recover.h"
#include "service/finalizer/courier.h"
#include "service/finalizer/janitor.h"
#include "service/schema/check.h"

#include <unistd.h>

static const struct db_statement finalizable = {"finalizable", "i", "l"};
#define FINALIZE_COLUMNS(X)                                                                        \
    X(FINALIZE_RUN, "run", "i") X(FINALIZE_EVENT, "event", "t") X(FINALIZE_ERROR, "error", "t")
enum { FINALIZE_COLUMNS(DB_COLUMN) };
static const struct db_statement finalize = {"finalize", "l", FINALIZE_COLUMNS(DB_COLUMN_TYPE)};

enum { JOBS_MAX = 1000 }; /* that are looked for at once, see sql/functions/finalize.sql */

struct finalizer {
    const struct options *options;
    struct db *db, *listener; /* the same connection unless --listen-database is given */
    struct courier *courier;
    struct janitor *janitor;
};

static void on_stop_signal(void *context, int number, bool is_again) {
    (void)context;
    if (is_again) _exit(128 + number);
}

/* --- jobs --- */

static enum err finalize_one(struct finalizer *f, int64_t job, int *ended, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc = db_run(f->db, &finalize, DB_PARAMS(db_int(job)), &rows, error);
    if (rc) return rc;
    bool is_mine = db_rows(rows) > 0;
    if (is_mine && db_is_null(rows, 0, FINALIZE_EVENT))
        log_error("a job cannot be ended and is tried again later", log_number("job", job),
                  log_text("error", db_get_text(rows, 0, FINALIZE_ERROR)));
    else if (is_mine) {
        (*ended)++;
        courier_wake(f->courier); /* the job may have a webhook */
        log_info("job finalized", log_number("job", job),
                 log_number("run", db_get_int(rows, 0, FINALIZE_RUN)),
                 log_text("event", db_get_text(rows, 0, FINALIZE_EVENT)));
    }
    db_free(rows);
    return ERR_NONE;
}

/* Those that are there; what others have in hand is theirs. */
static enum err finalize_some(struct finalizer *f, int *ended, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc = db_run(f->db, &finalizable, DB_PARAMS(db_int(JOBS_MAX)), &rows, error);
    for (int i = 0; !rc && i < db_rows(rows) && !stop_is_requested(); i++) {
        report_tick();
        rc = finalize_one(f, db_get_int(rows, i, 0), ended, error);
    }
    db_free(rows);
    return rc;
}

static enum err finalize_all(struct finalizer *f, struct error *error) {
    int ended;
    do {
        ended = 0;
        enum err rc = finalize_some(f, &ended, error);
        if (rc) return rc;
    } while (ended > 0 && !stop_is_requested());
    return ERR_NONE;
}

static enum err wait_for_work(struct finalizer *f, struct error *error) {
    enum db_wake wake;
    enum err rc = db_wait(f->listener, stop_fd(), (int)f->options->poll_ms, &wake, error);
    if (!rc && wake == DB_WAKE_NOTIFIED) courier_wake(f->courier); /* or a delivery is due */
    return rc;
}

static enum err main_loop(struct finalizer *f, struct error *error) {
    enum err rc = ERR_NONE;
    while (!stop_is_requested()) {
        report_tick();
        TRY(recover(f->db, finalize_all(f, error), stop_fd(), error));
        TRY(recover(f->listener, wait_for_work(f, error), stop_fd(), error));
    }
fail:
    return rc;
}

/* --- start and end --- */

static enum err connect_main(struct finalizer *f, struct error *error) {
    static const struct db_statement *const statements[] = {&finalizable, &finalize};
    struct db_settings settings =
        db_settings_for_daemon(f->options->database, "finalizer", NULL, statements,
                               sizeof statements / sizeof *statements);
    enum err rc;
    TRY(db_open_patiently(&settings, stop_fd(), &f->db, error));
    TRY(schema_check(f->db, error));
    f->listener = f->db;
    if (*f->options->listen_database) {
        settings.conninfo = f->options->listen_database;
        settings.n_statements = 0;
        f->listener = NULL;
        TRY(db_open_patiently(&settings, stop_fd(), &f->listener, error));
    }
    rc = db_listen(f->listener, "proverq_finalize", error);
fail:
    return rc;
}

/* What has ended a thread is why the process ends, unless the process had a reason of its own. */
static enum err stop_threads(struct finalizer *f, enum err rc, struct error *error) {
    struct error courier_error = {.code = ERR_NONE}, janitor_error = {.code = ERR_NONE};
    if (courier_stop(f->courier, &courier_error) && !rc)
        *error = courier_error, rc = courier_error.code;
    if (janitor_stop(f->janitor, &janitor_error) && !rc)
        *error = janitor_error, rc = janitor_error.code;
    return rc;
}

enum err finalizer_run(const struct options *options, struct error *error) {
    struct finalizer f = {.options = options};
    enum err rc;
    TRY(stop_open(on_stop_signal, NULL, error));
    TRY(connect_main(&f, error));
    TRY(courier_start(options, stop_request, &f.courier, error));
    TRY(janitor_start(options, stop_request, &f.janitor, error));
    log_info("finalizer started");
    report_ready();
    rc = main_loop(&f, error);
fail:
    if (rc == ERR_CONNECTION && stop_is_requested()) rc = ERR_NONE; /* it was told to */
    rc = stop_threads(&f, rc, error);
    if (f.listener != f.db) db_close(f.listener);
    db_close(f.db);
    stop_close();
    if (!rc) log_info("finalizer stopped");
    return rc;
}
