/* What the connections of the service are called, and how long their statements may take. */
#include "service/db/db.h"
#include "tests/gpu/suite.h"

#include <stdio.h>
#include <unistd.h>

static const struct db_statement some = {"some", "", ""};
static const struct db_statement *const list[] = {&some};

static void is_named(const struct db_settings *settings, const char *before_host) {
    char host[64] = "", wanted[DB_APPLICATION_BYTES];
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(wanted, sizeof wanted, "%s%s", before_host, host);
    ck_assert_str_eq(settings->application, wanted);
}

START_TEST(a_command_is_named_after_what_it_does) {
    struct db_settings settings = db_settings_for("dbname=x", "circuit", list, 1);
    ck_assert_str_eq(settings.application, "proverq circuit");
    ck_assert_str_eq(settings.conninfo, "dbname=x");
    ck_assert_uint_eq(settings.statement_timeout_ms, DB_STATEMENT_TIMEOUT_MS);
    ck_assert_uint_eq(settings.lock_timeout_ms, DB_LOCK_TIMEOUT_MS);
    ck_assert_ptr_eq(settings.statements, list);
    ck_assert_uint_eq(settings.n_statements, 1);
}
END_TEST

START_TEST(a_process_is_named_after_its_host_and_device_too) {
    struct db_settings finalizer = db_settings_for_daemon("", "finalizer", NULL, NULL, 0),
                       prover = db_settings_for_daemon("", "prover-loader", "cuda:0", list, 1);
    is_named(&finalizer, "proverq finalizer ");
    is_named(&prover, "proverq prover-loader cuda:0@");
    ck_assert_uint_eq(finalizer.n_statements, 0);
    ck_assert_uint_eq(prover.lock_timeout_ms, DB_LOCK_TIMEOUT_MS);
}
END_TEST

START_TEST(a_name_that_is_too_long_is_cut) {
    char role[2 * DB_APPLICATION_BYTES];
    memset(role, 'r', sizeof role - 1);
    role[sizeof role - 1] = '\0';
    struct db_settings settings = db_settings_for_daemon("", role, "cpu", NULL, 0);
    ck_assert_uint_eq(strlen(settings.application), DB_APPLICATION_BYTES - 1);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&a_command_is_named_after_what_it_does,
                                         &a_process_is_named_after_its_host_and_device_too,
                                         &a_name_that_is_too_long_is_cut};
    return run_tests("db_settings", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
