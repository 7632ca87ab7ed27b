#include "service/migrate.h"

#include "service/embedded.h"
#include "service/log.h"
#include "service/version.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST_SERVER = 150000, DIGEST_BYTES = 32, DIGEST_HEX_BYTES = 2 * DIGEST_BYTES + 1 };

/* --- what this program has --- */

struct migration {
    int version;
    const struct embedded_file *up, *down;
};

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* The first migration above `version` that this program has. */
static bool next_known(int version, struct migration *out) {
    *out = (struct migration){0};
    for (const struct embedded_file *file = embedded_migrations; file->path; file++) {
        int number = (int)strtol(file->name, NULL, 10);
        if (number <= version || (out->version && number > out->version)) continue;
        if (number < out->version || !out->version) *out = (struct migration){.version = number};
        if (ends_with(file->name, ".up")) out->up = file;
        if (ends_with(file->name, ".down")) out->down = file;
    }
    return out->up && out->down;
}

static bool find_known(int version, struct migration *out) {
    return next_known(version - 1, out) && out->version == version;
}

static int newest_known(void) {
    struct migration m = {0};
    int newest = 0;
    while (next_known(newest, &m))
        newest = m.version;
    return newest;
}

/* 0001_initial.up -> initial */
static void short_name(const struct migration *m, char *out, size_t size) {
    const char *from = m->up->name + strspn(m->up->name, "0123456789_");
    (void)snprintf(out, size, "%.*s", (int)(strlen(from) - strlen(".up")), from);
}

/* SHA-256 over all functions and views, in hexadecimal. */
static enum err code_digest(char out[DIGEST_HEX_BYTES], struct error *error) {
    const struct embedded_file *const tables[] = {embedded_functions, embedded_views, embedded_grants};
    unsigned char digest[DIGEST_BYTES];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct embedded_file *file = tables[i]; ok && file->path; file++)
            ok = EVP_DigestUpdate(context, file->text, strlen(file->text) + 1) == 1;
    ok = ok && EVP_DigestFinal_ex(context, digest, NULL) == 1;
    EVP_MD_CTX_free(context);
    if (!ok) return error_set(error, ERR_INTERNAL, "libcrypto cannot compute SHA-256");
    for (size_t i = 0; i < DIGEST_BYTES; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", (unsigned)digest[i]);
    return ERR_NONE;
}

/* --- what the database has --- */

struct schema {
    struct db_result *rows; /* version, name, breaking, applied_at as text; ascending */
    int version;            /* the newest; 0: there is no schema */
};

static void schema_free(struct schema *schema) {
    db_free(schema->rows);
    schema->rows = NULL;
}

static enum err query_bool(struct db *db, const char *sql, bool *out, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc;
    TRY(db_query(db, sql, "", "b", DB_NO_PARAMS, &rows, error));
    *out = db_rows(rows) > 0 && db_get_bool(rows, 0, 0);
fail:
    db_free(rows);
    return rc;
}

static enum err schema_read(struct db *db, struct schema *out, struct error *error) {
    bool exists = false;
    enum err rc;
    *out = (struct schema){0};
    /* Not to_regclass: it may remember what was there before begin_alone waited. */
    TRY(query_bool(db,
                   "select exists (select from pg_class c join pg_namespace n on n.oid = "
                   "c.relnamespace where n.nspname = 'proverq' and c.relname = 'schema_migration')",
                   &exists, error));
    if (!exists) return ERR_NONE;
    TRY(db_query(db,
                 "select version, name, breaking, date_trunc('second', applied_at)::text "
                 "from proverq.schema_migration order by version",
                 "", "itbt", DB_NO_PARAMS, &out->rows, error));
    int n = db_rows(out->rows);
    if (n > 0) out->version = (int)db_get_int(out->rows, n - 1, 0);
fail:
    return rc;
}

static bool schema_has(const struct schema *schema, int version) {
    if (!schema->rows) return false;
    for (int i = 0; i < db_rows(schema->rows); i++)
        if (db_get_int(schema->rows, i, 0) == version) return true;
    return false;
}

/* The digest of the functions and views that are there; "" when none was left. */
static enum err installed_digest(struct db *db, char out[DIGEST_HEX_BYTES], struct error *error) {
    struct db_result *rows = NULL;
    bool exists = false;
    enum err rc;
    out[0] = '\0';
    TRY(query_bool(db,
                   "select exists (select from pg_proc p join pg_namespace n on n.oid = "
                   "p.pronamespace where n.nspname = 'proverq' and p.proname = 'code_digest')",
                   &exists, error));
    if (!exists) return ERR_NONE;
    TRY(db_query(db, "select proverq.code_digest()", "", "t", DB_NO_PARAMS, &rows, error));
    if (db_rows(rows) > 0) (void)snprintf(out, DIGEST_HEX_BYTES, "%s", db_get_text(rows, 0, 0));
fail:
    db_free(rows);
    return rc;
}

static enum err code_is_ours(struct db *db, bool *out, struct error *error) {
    char ours[DIGEST_HEX_BYTES], theirs[DIGEST_HEX_BYTES];
    enum err rc;
    TRY(code_digest(ours, error));
    TRY(installed_digest(db, theirs, error));
    *out = strcmp(ours, theirs) == 0;
fail:
    return rc;
}

/* --- steps --- */

static enum err open_database(const struct options *options, struct db **db, struct error *error) {
    const struct db_settings settings = {.conninfo = options->database,
                                         .application = "proverq migrate",
                                         .lock_timeout_ms = DB_LOCK_TIMEOUT_MS};
    enum err rc;
    TRY(db_open(&settings, db, error));
    if (db_server_version(*db) < OLDEST_SERVER)
        TRY(error_set(error, ERR_UNSUPPORTED,
                      "the server is PostgreSQL %d; proverq needs 15 or newer",
                      db_server_version(*db) / 10000));
fail:
    return rc;
}

/* Begins a transaction that no other migration runs beside. A transaction's lock, so that it works
 * through a pooler. */
static enum err begin_alone(struct db *db, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc;
    TRY(db_begin(db, error));
    rc = db_query(db, "select pg_advisory_xact_lock(hashtextextended('proverq migrate', 0))", "",
                  "v", DB_NO_PARAMS, &rows, error);
    db_free(rows);
    if (rc && strcmp(db_sqlstate(db), "55P03") == 0)
        return error_set(error, rc,
                         "another `proverq migrate` is at work on this database and has "
                         "not ended in %d s; try again",
                         DB_LOCK_TIMEOUT_MS / 1000);
fail:
    return rc;
}

/* Says what to grant when the role may not do what a migration does. */
static enum err explain_refusal(const struct db *db, enum err rc, struct error *error) {
    if (rc != ERR_NONE && strcmp(db_sqlstate(db), "42501") == 0)
        return error_prefix(error, "the role must own the schema proverq, or have CREATE on the "
                                   "database (GRANT CREATE ON DATABASE ... TO ...)");
    return rc;
}

/* Applies m unless it is there by now. */
static enum err apply_one(struct db *db, const struct migration *m, struct error *error) {
    struct schema now = {0};
    enum err rc;
    TRY(begin_alone(db, error));
    TRY(schema_read(db, &now, error));
    if (!schema_has(&now, m->version)) {
        rc = db_script(db, m->up->path, m->up->text, error);
        TRY(explain_refusal(db, rc, error));
        schema_free(&now);
        TRY(schema_read(db, &now, error));
        if (!schema_has(&now, m->version))
            TRY(error_set(error, ERR_INTERNAL, "%s did not record itself", m->up->path));
        TRY(db_commit(db, error));
        (void)printf("%s applied\n", m->up->path);
    }
fail:
    schema_free(&now);
    db_rollback(db);
    return rc;
}

static enum err run_files(struct db *db, const struct embedded_file *file, struct error *error) {
    enum err rc = ERR_NONE;
    for (; file->path; file++) {
        rc = db_script(db, file->path, file->text, error);
        TRY(explain_refusal(db, rc, error));
    }
fail:
    return rc;
}

static enum err leave_digest(struct db *db, struct error *error) {
    char digest[DIGEST_HEX_BYTES], sql[512];
    enum err rc;
    TRY(code_digest(digest, error));
    (void)snprintf(sql, sizeof sql,
                   "create or replace function proverq.code_digest() returns text language sql "
                   "immutable set search_path = pg_catalog, pg_temp as $$ select '%s' $$; "
                   "comment on function proverq.code_digest() is "
                   "'Which functions and views these are; of proverq %s.';",
                   digest, PROVERQ_VERSION);
    TRY(db_script(db, "code_digest", sql, error));
fail:
    return rc;
}

static enum err apply_code(struct db *db, struct error *error) {
    struct schema now = {0};
    enum err rc;
    TRY(begin_alone(db, error));
    TRY(schema_read(db, &now, error));
    if (now.version > newest_known())
        TRY(error_set(error, ERR_SCHEMA, "the schema went to version %d meanwhile", now.version));
    TRY(run_files(db, embedded_functions, error));
    TRY(run_files(db, embedded_views, error));
    TRY(leave_digest(db, error));
    TRY(run_files(db, embedded_grants, error)); /* the last: they are on all that is there */
    TRY(db_commit(db, error));
    (void)printf("functions and views applied\n");
fail:
    schema_free(&now);
    db_rollback(db);
    return rc;
}

static enum err drop_views(struct db *db, struct error *error) {
    char sql[200];
    enum err rc = ERR_NONE;
    for (const struct embedded_file *view = embedded_views; view->path; view++) {
        (void)snprintf(sql, sizeof sql, "drop view if exists proverq.%s", view->name);
        TRY(db_script(db, view->name, sql, error));
    }
fail:
    return rc;
}

/* Views go first: they hold on to the tables. `migrate up` brings them back. */
static enum err take_back(struct db *db, const struct migration *m, struct error *error) {
    struct schema now = {0};
    enum err rc;
    TRY(begin_alone(db, error));
    TRY(schema_read(db, &now, error));
    if (schema_has(&now, m->version)) {
        TRY(drop_views(db, error));
        rc = db_script(db, m->down->path, m->down->text, error);
        TRY(explain_refusal(db, rc, error));
        TRY(db_commit(db, error));
        (void)printf("%s applied\n", m->down->path);
    }
fail:
    schema_free(&now);
    db_rollback(db);
    return rc;
}

/* --- commands --- */

static enum err read_version(const struct options *options, int fallback, int *out,
                             struct error *error) {
    *out = fallback;
    if (options->n_arguments == 0) return ERR_NONE;
    const char *text = options->arguments[0];
    struct migration m;
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    bool is_number = *text >= '0' && *text <= '9' && !*end && !errno && number <= newest_known();
    if (!is_number || (number > 0 && !find_known((int)number, &m)))
        return error_set(error, ERR_USAGE, "there is no migration '%s'; the newest is %d", text,
                         newest_known());
    *out = (int)number;
    return ERR_NONE;
}

static enum err newer_schema(const struct schema *schema, struct error *error) {
    return error_set(error, ERR_SCHEMA,
                     "the schema is at version %d and this program (proverq %s) knows %d: use the "
                     "proverq that migrated it, or a newer one",
                     schema->version, PROVERQ_VERSION, newest_known());
}

enum err migrate_up(const struct options *options, struct error *error) {
    struct db *db = NULL;
    struct schema schema = {0};
    struct migration m = {0};
    int target;
    enum err rc;
    TRY(read_version(options, newest_known(), &target, error));
    TRY(open_database(options, &db, error));
    TRY(schema_read(db, &schema, error));
    if (schema.version > newest_known()) TRY(newer_schema(&schema, error));
    if (schema.version > target)
        TRY(error_set(
            error, ERR_USAGE,
            "the schema is at version %d already; to go back run: proverq migrate down %d",
            schema.version, target));
    while (next_known(m.version, &m) && m.version <= target)
        TRY(apply_one(db, &m, error));
    if (target == newest_known()) TRY(apply_code(db, error));
    (void)printf("the schema is at version %d\n", target);
fail:
    schema_free(&schema);
    db_close(db);
    return rc;
}

enum err migrate_down(const struct options *options, struct error *error) {
    struct db *db = NULL;
    struct schema schema = {0};
    struct migration m;
    int target;
    enum err rc;
    TRY(read_version(options, 0, &target, error));
    TRY(open_database(options, &db, error));
    TRY(schema_read(db, &schema, error));
    if (schema.version > newest_known()) TRY(newer_schema(&schema, error));
    for (int version = schema.version; version > target; version--)
        if (find_known(version, &m)) TRY(take_back(db, &m, error));
    (void)printf("the schema is at version %d\n",
                 schema.version < target ? schema.version : target);
fail:
    schema_free(&schema);
    db_close(db);
    return rc;
}

static void print_known(const struct schema *schema) {
    struct migration m = {0};
    char name[64];
    while (next_known(m.version, &m)) {
        if (schema_has(schema, m.version)) continue;
        short_name(&m, name, sizeof name);
        (void)printf("%7d  %-24s  missing; run: proverq migrate up\n", m.version, name);
    }
}

static void print_applied(const struct schema *schema) {
    struct migration m;
    for (int i = 0; schema->rows && i < db_rows(schema->rows); i++) {
        int version = (int)db_get_int(schema->rows, i, 0);
        (void)printf("%7d  %-24s  applied %s%s%s\n", version, db_get_text(schema->rows, i, 1),
                     db_get_text(schema->rows, i, 3),
                     db_get_bool(schema->rows, i, 2) ? ", breaking" : "",
                     find_known(version, &m) ? "" : ", unknown to this program");
    }
}

enum err migrate_status(const struct options *options, struct error *error) {
    struct db *db = NULL;
    struct schema schema = {0};
    bool is_ours = false;
    enum err rc;
    TRY(open_database(options, &db, error));
    TRY(schema_read(db, &schema, error));
    (void)printf("version  %-24s  state\n", "name");
    print_applied(&schema);
    print_known(&schema);
    if (schema.version == 0) goto fail;
    TRY(code_is_ours(db, &is_ours, error));
    (void)printf("functions and views: %s\n",
                 is_ours ? "of this program" : "not of this program; run: proverq migrate up");
fail:
    schema_free(&schema);
    db_close(db);
    return rc;
}

/* A breaking migration that this program does not know. */
static enum err check_unknown(const struct schema *schema, struct error *error) {
    struct migration m;
    for (int i = 0; i < db_rows(schema->rows); i++)
        if (db_get_bool(schema->rows, i, 2) && !find_known((int)db_get_int(schema->rows, i, 0), &m))
            return newer_schema(schema, error);
    return ERR_NONE;
}

static enum err check_missing(const struct schema *schema, struct error *error) {
    struct migration m = {0};
    while (next_known(m.version, &m))
        if (!schema_has(schema, m.version))
            return error_set(error, ERR_SCHEMA, "the schema lacks %s; run: proverq migrate up",
                             m.up->path);
    return ERR_NONE;
}

enum err migrate_check(struct db *db, struct error *error) {
    struct schema schema = {0};
    bool is_ours = false;
    enum err rc;
    TRY(schema_read(db, &schema, error));
    if (schema.version == 0)
        TRY(error_set(error, ERR_SCHEMA,
                      "the database has no schema proverq; run: proverq migrate up"));
    TRY(check_unknown(&schema, error));
    TRY(check_missing(&schema, error));
    TRY(code_is_ours(db, &is_ours, error));
    if (!is_ours)
        log_warn("functions and views in the database are another version's",
                 log_text("do", "proverq migrate up, unless a newer proverq made them"));
fail:
    schema_free(&schema);
    return rc;
}
