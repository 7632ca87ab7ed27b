#include "tests/service/database.h"

#include "service/commands/migrate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct db *db;

const char *test_dsn(void) {
    const char *dsn = getenv("PROVERQ_TEST_DSN");
    ck_assert_msg(dsn != NULL, "PROVERQ_TEST_DSN is not set: give the connection string of a "
                               "database whose schema proverq may be removed, or run "
                               "tests/check.sh unit, which makes one");
    return dsn;
}

int run_database_tests(const char *name, void (*set_up)(void), void (*tear_down)(void),
                       const TTest *const *const *tests, size_t n) {
    Suite *suite = suite_create(name);
    TCase *tcase = add_tests(suite, name, set_up, tear_down, tests, n);
    tcase_add_unchecked_fixture(tcase, new_schema, NULL);
    return run_suite(suite);
}

void new_schema(void) {
    struct error error;
    struct db *own = connect_with(NULL, 0);
    CHECK_OK(
        db_script(own, "test", "drop schema if exists proverq, proverq_private cascade", &error));
    db_close(own);
    CHECK_OK(migrate_up(&(struct options){.database = test_dsn()}, &error));
}

struct db *connect_with(const struct db_statement *const *statements, size_t n) {
    struct error error;
    struct db *made = NULL;
    struct db_settings settings = {.conninfo = test_dsn(),
                                   .application = "test",
                                   .statement_timeout_ms = DB_STATEMENT_TIMEOUT_MS,
                                   .lock_timeout_ms = DB_LOCK_TIMEOUT_MS,
                                   .statements = statements,
                                   .n_statements = n};
    CHECK_OK(db_open(&settings, &made, &error));
    return made;
}

void open_db(void) {
    db = connect_with(NULL, 0);
}

void close_db(void) {
    db_close(db);
    db = NULL;
}

void reset_rows(void) {
    script("truncate proverq_private.artefact, proverq_private.prover, proverq.job, "
           "proverq_private.failure, "
           "proverq.timing, proverq_private.device_activity, proverq_private.webhook_endpoint "
           "restart identity cascade;"
           "insert into proverq_private.artefact values (sha256('z'), 'zkey', 1, 'z');"
           "insert into proverq.circuit (name, version, sha256, curve, n_vars, n_public, "
           "log_domain, zkey, vkey) "
           "values ('c', 1, sha256('c'), 'bn128', 2, 1, 1, sha256('z'), '{}');"
           "insert into proverq_private.prover (instance, host, pid, device) "
           "values (gen_random_uuid(), 'h', 1, 'cpu')");
}

void script(const char *format, ...) {
    struct error error;
    char *sql = NULL;
    va_list args;
    va_start(args, format);
    ck_assert_int_ge(vasprintf(&sql, format, args), 0);
    va_end(args);
    CHECK_OK(db_script(db, "test", sql, &error));
    free(sql);
}

struct db_result *query(const char *sql, const char *params, const char *columns,
                        const struct db_param *values) {
    struct error error;
    struct db_result *rows = NULL;
    CHECK_OK(db_query(db, sql, params, columns, values, &rows, &error));
    return rows;
}

int64_t number(const char *sql) {
    struct db_result *rows = query(sql, "", "l", DB_NO_PARAMS);
    ck_assert_msg(db_rows(rows) > 0, "no row: %s", sql);
    int64_t first = db_get_int(rows, 0, 0);
    db_free(rows);
    return first;
}

char *value(const char *sql) {
    char *as_text = NULL;
    ck_assert_int_ge(asprintf(&as_text, "select value::text from (%s) as query (value)", sql), 0);
    struct db_result *rows = query(as_text, "", "t", DB_NO_PARAMS);
    free(as_text);
    ck_assert_msg(db_rows(rows) > 0, "no row: %s", sql);
    char *first = strdup(db_get_text(rows, 0, 0));
    ck_assert_ptr_nonnull(first);
    db_free(rows);
    return first;
}

void wait_for(const char *sql, const char *wanted) {
    char *have = value(sql);
    for (int i = 0; i < 2000 && strcmp(have, wanted) != 0; i++) {
        free(have);
        (void)usleep(10000);
        have = value(sql);
    }
    ck_assert_msg(strcmp(have, wanted) == 0, "%s: %s, not %s", sql, have, wanted);
    free(have);
}
