#include "service/schema/run.h"

#include "gpu/monotonic.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Short enough that three locks are had or given up before anybody's deadlock_timeout of a second:
 * so in a deadlock it is us who give way. Only for an autovacuum we wait longer, which makes it
 * give way. */
enum {
    LOCK_TIMEOUT_MS = 300,
    AUTOVACUUM_LOCK_TIMEOUT_MS = 1500,
    PAUSE_MS = 500, /* after the first try; more after each */
    PAUSE_MOST_MS = 3000,
    ALONE_POLL_MS = 100,
};

static void sleep_ms(int64_t ms) {
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};
    if (ms > 0) (void)nanosleep(&time, NULL);
}

/* --- being the only one --- */

/* `function` is pg_try_advisory_xact_lock, which works through a pooler, or pg_try_advisory_lock,
 * which outlives a transaction. */
static enum err try_alone(struct db *db, const char *function, bool *out, struct error *error) {
    struct db_result *rows = NULL;
    char sql[120];
    enum err rc;
    (void)snprintf(sql, sizeof sql, "select %s(hashtextextended('proverq migrate', 0))", function);
    TRY(db_query(db, sql, "", "b", DB_NO_PARAMS, &rows, error));
    *out = db_get_bool(rows, 0, 0);
fail:
    db_free(rows);
    return rc;
}

static enum err not_alone(struct error *error) {
    return error_set(error, ERR_DATABASE,
                     "another `proverq migrate` is at work on this database and has not ended in "
                     "%d s; try again",
                     DB_LOCK_TIMEOUT_MS / 1000);
}

/* Begins a transaction that no other migration runs beside, and in which an unqualified name means
 * nothing but PostgreSQL's own: others may create functions where the role's search path leads. */
static enum err begin_alone(struct db *db, uint32_t lock_timeout_ms, struct error *error) {
    int64_t until = monotonic_ms() + DB_LOCK_TIMEOUT_MS;
    char sql[120];
    bool is_alone = false;
    enum err rc;
    (void)snprintf(sql, sizeof sql,
                   "set local search_path = pg_catalog, pg_temp; set local lock_timeout = %" PRIu32,
                   lock_timeout_ms);
    for (;;) {
        TRY(db_begin(db, error));
        TRY(try_alone(db, "pg_try_advisory_xact_lock", &is_alone, error));
        if (is_alone) return db_script(db, "settings", sql, error);
        db_rollback(db);
        if (monotonic_ms() > until) return not_alone(error);
        sleep_ms(ALONE_POLL_MS);
    }
fail:
    return rc;
}

static enum err stay_alone(struct db *db, struct error *error) {
    int64_t until = monotonic_ms() + DB_LOCK_TIMEOUT_MS;
    bool is_alone = false;
    enum err rc;
    for (;;) {
        TRY(try_alone(db, "pg_try_advisory_lock", &is_alone, error));
        if (is_alone) return ERR_NONE;
        if (monotonic_ms() > until) return not_alone(error);
        sleep_ms(ALONE_POLL_MS);
    }
fail:
    return rc;
}

/* --- steps --- */

/* Says what to grant when the role may not do what a migration does. */
static enum err run_script(struct db *db, const char *label, const char *sql, struct error *error) {
    enum err rc = db_script(db, label, sql, error);
    if (rc != ERR_NONE && strcmp(db_sqlstate(db), "42501") == 0)
        return error_prefix(error, "the role must own the schema proverq, or have CREATE on the "
                                   "database (GRANT CREATE ON DATABASE ... TO ...)");
    return rc;
}

static enum err run_file(struct db *db, const struct embedded_file *file, struct error *error) {
    return run_script(db, file->path, file->text, error);
}

/* Whether the migration's row is there, with the checksum of its file, or is not. */
static enum err check_row(struct db *db, const struct migration *m, bool is_wanted,
                          struct error *error) {
    struct schema now = {0};
    enum err rc;
    TRY(schema_read(db, &now, error));
    const struct schema_row *row = schema_find(&now, m->version);
    if (is_wanted && !row)
        rc = error_set(error, ERR_INTERNAL, "%s did not record itself", m->up->path);
    else if (!is_wanted && row)
        rc = error_set(error, ERR_INTERNAL, "%s did not take its row away", m->down->path);
    else if (row && strcmp(row->checksum, m->checksum) != 0)
        rc = error_set(error, ERR_INTERNAL,
                       "%s records a checksum that is not its own; "
                       "run contrib/scripts/seal-migrations.sh and build again",
                       m->up->path);
fail:
    schema_free(&now);
    return rc;
}

static enum err apply_code(struct db *db, const struct code *code, struct error *error) {
    char sql[512];
    enum err rc = ERR_NONE;
    for (size_t i = 0; i < code->n; i++)
        TRY(run_file(db, code->files[i], error));
    code_digest_sql(code, sql, sizeof sql);
    TRY(db_script(db, "code_digest", sql, error));
fail:
    return rc;
}

static enum err run_step(struct db *db, const struct plan *plan, const struct plan_step *step,
                         struct error *error) {
    enum err rc = ERR_NONE;
    switch (step->kind) {
    case PLAN_UP:
        TRY(run_file(db, step->migration->up, error));
        TRY(check_row(db, step->migration, true, error));
        break;
    case PLAN_DOWN:
        TRY(run_file(db, step->migration->down, error));
        TRY(check_row(db, step->migration, false, error));
        break;
    case PLAN_DROP_CODE:
        TRY(run_file(db, code_drop_file(), error));
        break;
    case PLAN_CODE:
        TRY(apply_code(db, plan->code, error));
        break;
    }
fail:
    return rc;
}

static void print_step(const struct plan_step *step) {
    if (step->kind == PLAN_UP) (void)printf("%s applied\n", step->migration->up->path);
    if (step->kind == PLAN_DOWN) (void)printf("%s applied\n", step->migration->down->path);
    if (step->kind == PLAN_CODE) (void)printf("functions and views applied\n");
    (void)fflush(stdout);
}

static bool mentions_queue(const struct plan_step *step) {
    const struct embedded_file *file =
        step->kind == PLAN_UP ? step->migration->up : step->migration->down;
    return strstr(file->text, "proverq.job") || strstr(file->text, "proverq.partition") ||
           strstr(file->text, "proverq_private.prover");
}

/* The tables that programs at work use together in one transaction are locked before all else, so
 * that later steps find those programs waiting and not half done. The triggers of functions and
 * views keep writers out; what changes tables keeps everybody out. */
static enum err lock_tables(struct db *db, const struct plan *plan, size_t n, struct error *error) {
    const char *mode = "share row exclusive";
    char sql[120];
    for (size_t i = 0; i < n; i++)
        if (plan->steps[i].kind == PLAN_DROP_CODE ||
            (plan->steps[i].kind != PLAN_CODE && mentions_queue(&plan->steps[i])))
            mode = "access exclusive";
    (void)snprintf(sql, sizeof sql,
                   "lock table proverq.job, proverq.partition, proverq_private.prover in %s mode",
                   mode);
    return run_script(db, "locking tables", sql, error);
}

static enum err run_steps(struct db *db, const struct plan *plan, bool is_new, size_t n,
                          struct error *error) {
    enum err rc = ERR_NONE;
    if (!is_new) TRY(lock_tables(db, plan, n, error));
    for (size_t i = 0; i < n; i++)
        TRY(run_step(db, plan, &plan->steps[i], error));
    TRY(db_commit(db, error));
    for (size_t i = 0; i < n; i++)
        print_step(&plan->steps[i]);
fail:
    return rc;
}

/* --- a migration that stands alone --- */

#define INDEX_COLUMNS(X) X(INDEX_NAME, "relname", "t") X(INDEX_DROP, "drop_it", "t")
enum { INDEX_COLUMNS(DB_COLUMN) };

/* An index whose building failed stays behind, takes writes and answers no query. */
static enum err drop_invalid_index(struct db *db, const struct migration *m, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc;
    TRY(db_query(
        db,
        "select c.relname, format('drop index concurrently %s', c.oid::regclass) as drop_it "
        "from pg_index i join pg_class c on c.oid = i.indexrelid "
        "join pg_namespace n on n.oid = c.relnamespace "
        "where n.nspname in ('proverq', 'proverq_private') and c.relkind = 'i' and "
        "not i.indisvalid",
        "", INDEX_COLUMNS(DB_COLUMN_TYPE), DB_NO_PARAMS, &rows, error));
    for (int i = 0; i < db_rows(rows); i++)
        if (strstr(m->up->text, db_get_text(rows, i, INDEX_NAME)))
            TRY(db_script(db, "an invalid index", db_get_text(rows, i, INDEX_DROP), error));
fail:
    db_free(rows);
    return rc;
}

static enum err build(struct db *db, const struct migration *m, struct error *error) {
    char statement[4000];
    enum err rc;
    if (m->record >= sizeof statement)
        return error_set(error, ERR_INTERNAL, "%s is too long to stand alone", m->up->path);
    (void)snprintf(statement, sizeof statement, "%.*s", (int)m->record, m->up->text);
    TRY(drop_invalid_index(db, m, error));
    TRY(run_script(db, m->up->path, statement, error));
    TRY(run_script(db, m->up->path, m->up->text + m->record, error));
    TRY(check_row(db, m, true, error));
    (void)printf("%s applied\n", m->up->path);
fail:
    return rc;
}

/* No lock timeout: a concurrent build waits for older transactions, but nobody waits for it. */
static enum err run_alone(struct db *db, const struct migration *m, struct error *error) {
    struct schema now = {0};
    struct error ignored;
    char reset[60];
    enum err rc;
    (void)snprintf(reset, sizeof reset, "set lock_timeout = %d", DB_LOCK_TIMEOUT_MS);
    TRY(stay_alone(db, error));
    TRY(db_script(db, "settings", "set search_path = pg_catalog, pg_temp; set lock_timeout = 0",
                  error));
    TRY(schema_read(db, &now, error));
    if (!schema_find(&now, m->version)) rc = build(db, m, error);
    if (rc) (void)!drop_invalid_index(db, m, &ignored);
    (void)!db_script(db, "lock_timeout", reset, &ignored);
    (void)!db_script(db, "unlock",
                     "select pg_advisory_unlock(hashtextextended('proverq migrate', 0))", &ignored);
fail:
    schema_free(&now);
    return rc;
}

/* --- groups of steps, tried until others let us --- */

/* Does what runs in one transaction; the plan is made anew each time, when nobody else migrates. */
static enum err run_group(struct db *db, const struct migrations *all, int target,
                          uint32_t lock_timeout_ms, bool *done, struct error *error) {
    struct schema schema = {0};
    struct plan *plan = NULL;
    enum err rc;
    TRY(begin_alone(db, lock_timeout_ms, error));
    TRY(schema_read(db, &schema, error));
    TRY(plan_make(all, &schema, target, &plan, error));
    size_t n = plan_group(plan, 0);
    if (n > 0 && plan_is_alone(&plan->steps[0])) {
        db_rollback(db);
        TRY(run_alone(db, plan->steps[0].migration, error));
    } else if (n > 0) {
        TRY(run_steps(db, plan, schema.version == 0, n, error));
    }
    *done = n == plan->n;
fail:
    schema_free(&schema);
    plan_free(plan);
    db_rollback(db);
    return rc;
}

/* Who is in the way, and has been for longest; "" when nobody is any more. */
struct blocker {
    char text[300];
    bool is_autovacuum;
};

#define BLOCKER_COLUMNS(X)                                                                         \
    X(BLOCKER_TEXT, "blocker", "t") X(BLOCKER_IS_AUTOVACUUM, "is_autovacuum", "b")
enum { BLOCKER_COLUMNS(DB_COLUMN) };

static enum err find_blocker(struct db *db, struct blocker *out, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc;
    TRY(db_query(
        db,
        "select format('process %s (%s%s%s) has %s in use', a.pid, "
        "coalesce('user ' || a.usename, a.backend_type), "
        "coalesce(', ' || nullif(a.application_name, ''), ''), "
        "coalesce(format(', transaction for %s s', "
        "extract(epoch from clock_timestamp() - a.xact_start)::int), ''), "
        "string_agg(distinct format('%I.%I', n.nspname, c.relname), ', ')) as blocker, "
        "coalesce(a.backend_type, '') = 'autovacuum worker' as is_autovacuum "
        "from pg_locks l join pg_class c on c.oid = l.relation and c.relkind in ('r', 'p') "
        "join pg_namespace n on n.oid = c.relnamespace "
        "join pg_stat_activity a on a.pid = l.pid "
        "where n.nspname = 'proverq' and l.granted and l.pid <> pg_backend_pid() "
        "and a.datname = current_database() "
        "group by a.pid, a.usename, a.backend_type, a.application_name, a.xact_start, "
        "a.backend_type "
        "order by a.xact_start nulls last limit 1",
        "", BLOCKER_COLUMNS(DB_COLUMN_TYPE), DB_NO_PARAMS, &rows, error));
    *out = (struct blocker){.is_autovacuum =
                                db_rows(rows) && db_get_bool(rows, 0, BLOCKER_IS_AUTOVACUUM)};
    if (db_rows(rows))
        (void)snprintf(out->text, sizeof out->text, "%s", db_get_text(rows, 0, BLOCKER_TEXT));
fail:
    db_free(rows);
    return rc;
}

static bool was_blocked(const struct db *db, enum err rc) {
    const char *state = db_sqlstate(db);
    return rc == ERR_DATABASE && (strcmp(state, "55P03") == 0 || strcmp(state, "40P01") == 0);
}

static enum err give_up(const char *who, uint32_t lock_wait_ms, struct error *error) {
    return error_set(error, ERR_DATABASE,
                     "a table was in use for %" PRIu32 " s whenever it was tried; nothing was "
                     "changed by this attempt; %s: end that transaction, or allow more time with "
                     "--lock-wait",
                     lock_wait_ms / 1000, *who ? who : "many short transactions did it");
}

static void say_who(const struct blocker *who, char said[300], int64_t left_ms) {
    if (!*who->text || strncmp(who->text, said, strcspn(who->text, "(")) == 0) return;
    (void)fprintf(stderr, "waiting: %s; trying again for %" PRId64 " s\n", who->text,
                  left_ms / 1000);
    (void)snprintf(said, 300, "%s", who->text);
}

static enum err run_patiently(struct db *db, const struct migrations *all, int target,
                              uint32_t lock_wait_ms, bool *done, struct error *error) {
    int64_t until = monotonic_ms() + lock_wait_ms;
    struct blocker who = {.text = ""};
    char said[300] = "";
    enum err rc;
    for (int attempt = 1;; attempt++) {
        rc = run_group(db, all, target,
                       who.is_autovacuum ? AUTOVACUUM_LOCK_TIMEOUT_MS : LOCK_TIMEOUT_MS, done,
                       error);
        if (!was_blocked(db, rc)) return rc;
        int64_t left = until - monotonic_ms(), pause = (int64_t)attempt * PAUSE_MS;
        TRY(find_blocker(db, &who, error));
        if (left <= 0) return give_up(who.text, lock_wait_ms, error);
        say_who(&who, said, left);
        if (pause > PAUSE_MOST_MS) pause = PAUSE_MOST_MS;
        sleep_ms(pause < left ? pause : left);
    }
fail:
    return rc;
}

enum err migrate_run(struct db *db, const struct migrations *all, int target, uint32_t lock_wait_ms,
                     struct error *error) {
    bool done = false;
    enum err rc = ERR_NONE;
    while (!done)
        TRY(run_patiently(db, all, target, lock_wait_ms, &done, error));
fail:
    return rc;
}
