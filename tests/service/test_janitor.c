/* The janitor against the database PROVERQ_TEST_DSN, whose schema is made anew. */
#include "service/db.h"
#include "service/janitor.h"
#include "service/migrate.h"

#include <check.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct error error;
static struct db *db;
static struct options options;
static atomic_int ends;

static void must(enum err rc) {
    ck_assert_msg(rc == ERR_NONE, "%s", error.text);
}

static void script(const char *sql) {
    must(db_script(db, "test", sql, &error));
}

static int64_t number(const char *sql) {
    struct db_result *rows = NULL;
    must(db_query(db, sql, "", "l", DB_NO_PARAMS, &rows, &error));
    ck_assert_int_gt(db_rows(rows), 0);
    int64_t n = db_get_int(rows, 0, 0);
    db_free(rows);
    return n;
}

/* Waits until the query, which gives one bigint, gives `wanted`. */
static void wait_for(const char *sql, int64_t wanted) {
    int64_t have = -1;
    for (int i = 0; i < 2000; i++) {
        have = number(sql);
        if (have == wanted) return;
        (void)usleep(10000);
    }
    ck_abort_msg("%s: %lld, not %lld", sql, (long long)have, (long long)wanted);
}

static double seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void on_end(void) {
    atomic_fetch_add(&ends, 1);
}

static struct janitor *start(void) {
    struct janitor *janitor = NULL;
    must(janitor_start(&options, "proverq finalizer test", on_end, &janitor, &error));
    return janitor;
}

static void open_db(void) {
    struct db_settings settings = {.conninfo = options.database, .application = "test"};
    must(db_open(&settings, &db, &error));
}

static void make_schema(void) {
    options.database = getenv("PROVERQ_TEST_DSN");
    open_db();
    script("drop schema if exists proverq cascade");
    must(migrate_up(&options, &error));
    script("insert into proverq.artefact (sha256, kind, bytes, path) values (sha256('k'), 'zkey', "
           "1, 'k');"
           "select proverq.circuit_add('c', sha256('c'), 'bn128', 3, 1, 1, sha256('k'), null, "
           "'{}', false);"
           "insert into proverq.prover (instance, host, pid, device) values (gen_random_uuid(), "
           "'h', 1, 'cpu')");
    db_close(db);
}

static void setup(void) {
    atomic_store(&ends, 0);
    open_db();
    script("truncate proverq.partition, proverq.job cascade");
}

static void teardown(void) {
    db_close(db);
}

START_TEST(leases_end_and_backoffs_are_over_within_seconds) {
    script("select proverq.enqueue_path('c', '{a,b}');"
           "select * from proverq.claim(1, '{1}', 1, 1);"
           "update proverq.partition set state = 'held', due_at = clock_timestamp() where state = "
           "'ready'");
    struct janitor *janitor = start();
    wait_for("select count(*) from proverq.partition where state = 'ready'", 2);
    must(janitor_stop(janitor, &error));
}
END_TEST

START_TEST(timing_tables_are_made_ahead) {
    script("drop table if exists proverq.timing_20300101;"
           "do $$ declare t text; begin for t in select c.relname from pg_class c join pg_inherits "
           "i on i.inhrelid = c.oid where i.inhparent = 'proverq.timing'::regclass and c.relname "
           "<> 'timing_default' loop execute format('drop table proverq.%I', t); end loop; end $$");
    struct janitor *janitor = start();
    wait_for("select count(*) from pg_inherits where inhparent = 'proverq.timing'::regclass", 9);
    must(janitor_stop(janitor, &error));
}
END_TEST

START_TEST(what_is_too_old_is_deleted_in_batches_that_hold_up_no_sweep) {
    script("select proverq.enqueue_path('c', array_agg('w' || i)) from generate_series(1, 5000) i;"
           "select proverq.cancel(job_seq) from proverq.job;"
           "update proverq.job set created_at = '2020-01-01', finished_at = '2020-01-01';"
           "select proverq.enqueue_path('c', '{a}');"
           "select * from proverq.claim(1, '{1}', 1, 1)");
    struct janitor *janitor = start(), *other = start();
    wait_for("select count(*) from proverq.partition where state = 'ready'", 1);
    wait_for("select count(*) from proverq.partition", 1);
    wait_for("select count(*) from proverq.job", 1);
    must(janitor_stop(janitor, &error));
    must(janitor_stop(other, &error));
}
END_TEST

START_TEST(it_ends_at_once_in_the_midst_of_deleting) {
    script("select proverq.enqueue_path('c', array_agg('w' || i)) from generate_series(1, 20000) i;"
           "select proverq.cancel(job_seq) from proverq.job;"
           "update proverq.job set created_at = '2020-01-01', finished_at = '2020-01-01'");
    struct janitor *janitor = start();
    wait_for("select (count(*) < 20000)::int::bigint from proverq.partition", 1);
    double began = seconds();
    must(janitor_stop(janitor, &error));
    ck_assert_msg(seconds() - began < 3, "it took %.1f s", seconds() - began);
    ck_assert_int_gt(number("select count(*) from proverq.partition"), 0);
}
END_TEST

START_TEST(a_lost_connection_is_made_again) {
    struct janitor *janitor = start();
    wait_for("select count(*) from pg_stat_activity where application_name = 'proverq finalizer "
             "test'",
             1);
    script("select pg_terminate_backend(pid) from pg_stat_activity where application_name = "
           "'proverq finalizer test'");
    script("select proverq.enqueue_path('c', '{a}'); select * from proverq.claim(1, '{1}', 1, 1)");
    wait_for("select count(*) from proverq.partition where state = 'ready'", 1);
    must(janitor_stop(janitor, &error));
    ck_assert_int_eq(atomic_load(&ends), 0);
}
END_TEST

START_TEST(a_schema_that_is_missing_ends_it_with_what_to_run) {
    script("alter schema proverq rename to elsewhere");
    struct janitor *janitor = start();
    for (int i = 0; i < 1000 && atomic_load(&ends) == 0; i++)
        (void)usleep(10000);
    script("alter schema elsewhere rename to proverq");
    ck_assert_int_eq(atomic_load(&ends), 1);
    ck_assert_int_eq(janitor_stop(janitor, &error), ERR_SCHEMA);
    ck_assert_ptr_nonnull(strstr(error.text, "proverq migrate up"));
}
END_TEST

START_TEST(stopping_what_was_not_started_is_fine) {
    must(janitor_stop(NULL, &error));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("janitor");
    TCase *tcase = tcase_create("janitor");
    SRunner *runner;
    if (!getenv("PROVERQ_TEST_DSN")) {
        (void)fprintf(stderr, "PROVERQ_TEST_DSN is not set: nothing is tested\n");
        return EXIT_FAILURE;
    }
    tcase_set_timeout(tcase, 60);
    tcase_add_unchecked_fixture(tcase, make_schema, NULL);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, leases_end_and_backoffs_are_over_within_seconds);
    tcase_add_test(tcase, timing_tables_are_made_ahead);
    tcase_add_test(tcase, what_is_too_old_is_deleted_in_batches_that_hold_up_no_sweep);
    tcase_add_test(tcase, it_ends_at_once_in_the_midst_of_deleting);
    tcase_add_test(tcase, a_lost_connection_is_made_again);
    tcase_add_test(tcase, a_schema_that_is_missing_ends_it_with_what_to_run);
    tcase_add_test(tcase, stopping_what_was_not_started_is_fine);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
