#include "service/supervisor/supervisor_db.h"
#include "service/common/log.h"
#include "service/common/thread.h"
#include "service/db/db.h"
#include "service/schema/check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct db_statement rescue_prover = {"rescue_prover", "u", "i"};
static const struct db_statement device_quarantined = {"device_quarantined", "ttit", "v"};

enum { WAITING_MAX = 64, RETRY_MS = 2000 };

struct word {
    struct uuid instance; /* to rescue, unless there is a device */
    char device[16];
    unsigned faults;
    bool is_quarantined;
    char reason[sizeof((struct error *)0)->text];
};

struct supervisor_db {
    const struct options *options;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct word waiting[WAITING_MAX]; /* the first one first */
    size_t n;
    bool is_ending;
};

static enum err connect(const struct options *options, bool has_statements, struct db **out,
                        struct error *error) {
    static const struct db_statement *const statements[] = {&rescue_prover, &device_quarantined};
    const struct db_settings settings =
        db_settings_for_daemon(options->database, "supervisor", NULL, statements,
                               has_statements ? sizeof statements / sizeof *statements : 0);
    return db_open(&settings, out, error);
}

enum err supervisor_db_check(const struct options *options, struct error *error) {
    struct db *db = NULL;
    enum err rc;
    TRY(connect(options, false, &db, error));
    TRY(schema_check(db, error));
fail:
    db_close(db);
    return rc;
}

static enum err rescue(struct db *db, const struct uuid *instance, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc;
    TRY(db_run(db, &rescue_prover, DB_PARAMS(db_uuid(instance)), &rows, error));
    if (db_rows(rows) > 0)
        log_info("leases of a dead prover were given back",
                 log_number("count", db_get_int(rows, 0, 0)));
fail:
    db_free(rows);
    return rc;
}

static enum err tell_quarantine(struct db *db, const struct word *word, struct error *error) {
    char host[256] = "?"; /* as provers say it */
    (void)gethostname(host, sizeof host - 1);
    return db_run(db, &device_quarantined,
                  DB_PARAMS(db_text(host), db_text(word->device), db_int(word->faults),
                            db_text(word->is_quarantined ? word->reason : NULL)),
                  NULL, error);
}

static enum err tell(const struct supervisor_db *self, const struct word *word,
                     struct error *error) {
    struct db *db = NULL;
    enum err rc;
    TRY(connect(self->options, true, &db, error));
    rc = *word->device ? tell_quarantine(db, word, error) : rescue(db, &word->instance, error);
fail:
    db_close(db);
    return rc;
}

/* --- the thread --- */

/* Waits for the next; false when there will be none. */
static bool next(struct supervisor_db *r, struct word *out) {
    (void)pthread_mutex_lock(&r->mutex);
    while (r->n == 0 && !r->is_ending)
        (void)pthread_cond_wait(&r->changed, &r->mutex);
    bool any = r->n > 0;
    if (any) {
        *out = r->waiting[0];
        memmove(r->waiting, r->waiting + 1, --r->n * sizeof *r->waiting);
    }
    (void)pthread_mutex_unlock(&r->mutex);
    return any;
}

/* Waits a moment; false when the supervisor ends: no more than one attempt then. */
static bool wait_a_moment(struct supervisor_db *r) {
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until); /* a clock that is set back would hold it up */
    until.tv_sec += RETRY_MS / 1000;
    (void)pthread_mutex_lock(&r->mutex);
    if (!r->is_ending) (void)pthread_cond_timedwait(&r->changed, &r->mutex, &until);
    bool go_on = !r->is_ending;
    (void)pthread_mutex_unlock(&r->mutex);
    return go_on;
}

static void *supervisor_db_main(void *arg) {
    struct supervisor_db *r = arg;
    struct word word;
    while (next(r, &word)) {
        struct error error;
        while (tell(r, &word, &error) != ERR_NONE) {
            log_warn(*word.device ? "the database cannot be told yet of a device's quarantine"
                                  : "the leases of a dead prover cannot be given back yet",
                     log_text("error", error.text));
            if (!wait_a_moment(r)) break;
        }
    }
    return NULL;
}

enum err supervisor_db_open(const struct options *options, struct supervisor_db **out,
                            struct error *error) {
    struct supervisor_db *r = calloc(1, sizeof *r);
    pthread_condattr_t attributes;
    if (!r) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    r->options = options;
    (void)pthread_mutex_init(&r->mutex, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&r->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    enum err rc = thread_start(&r->thread, supervisor_db_main, r, error);
    if (rc)
        free(r);
    else
        *out = r;
    return rc;
}

void supervisor_db_close(struct supervisor_db *r) {
    if (!r) return;
    (void)pthread_mutex_lock(&r->mutex);
    r->is_ending = true;
    (void)pthread_cond_signal(&r->changed);
    (void)pthread_mutex_unlock(&r->mutex);
    (void)pthread_join(r->thread, NULL);
    (void)pthread_mutex_destroy(&r->mutex);
    (void)pthread_cond_destroy(&r->changed);
    free(r);
}

static void add(struct supervisor_db *r, const struct word *word) {
    (void)pthread_mutex_lock(&r->mutex);
    if (r->n < WAITING_MAX) r->waiting[r->n++] = *word;
    (void)pthread_cond_signal(&r->changed);
    (void)pthread_mutex_unlock(&r->mutex);
}

void supervisor_db_rescue(struct supervisor_db *r, const struct uuid *instance) {
    add(r, &(struct word){.instance = *instance});
}

void supervisor_db_quarantine(struct supervisor_db *r, const char *device, unsigned faults,
                              const char *reason) {
    struct word word = {.faults = faults, .is_quarantined = reason != NULL};
    (void)snprintf(word.device, sizeof word.device, "%s", device);
    (void)snprintf(word.reason, sizeof word.reason, "%s", reason ? reason : "");
    add(r, &word);
}
