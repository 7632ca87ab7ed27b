/* The janitor against a database. */
#include "service/finalizer/janitor.h"
#include "tests/service/database.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct error error;
static struct options options;
static atomic_int ends;

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
    CHECK_OK(janitor_start(&options, on_end, &janitor, &error));
    return janitor;
}

static void setup(void) {
    options.database = test_dsn();
    atomic_store(&ends, 0);
    open_db();
    reset_rows();
}

START_TEST(leases_end_and_backoffs_are_over_within_seconds) {
    script("select proverq.enqueue_path('c', '{a,b}');"
           "select * from proverq_private.claim(1, '{1}', 1, 1);"
           "update proverq.partition set state = 'held', due_at = clock_timestamp() where state = "
           "'ready'");
    struct janitor *janitor = start();
    wait_for("select count(*) from proverq.partition where state = 'ready'", "2");
    CHECK_OK(janitor_stop(janitor, &error));
}
END_TEST

START_TEST(however_many_backoffs_are_over_none_waits_for_the_next_second) {
    script("select proverq.enqueue_path('c', array_agg('w' || i)) from generate_series(1, 10000) i;"
           "update proverq.partition set state = 'held', due_at = clock_timestamp()");
    double began = seconds();
    struct janitor *janitor = start();
    wait_for("select count(*) from proverq.partition where state = 'ready'", "10000");
    ck_assert_msg(seconds() - began < 8, "it took %.1f s", seconds() - began);
    CHECK_OK(janitor_stop(janitor, &error));
}
END_TEST

/* As it is beside an old snapshot. */
START_TEST(slow_looks_for_expired_leases_are_rare_and_hold_up_no_backoff) {
    char *usual = value("select pg_get_functiondef('proverq.rescue_expired()'::regprocedure)");
    script("create sequence proverq.looks; create or replace function proverq.rescue_expired() "
           "returns int language sql as $$select nextval('proverq.looks'), pg_sleep(0.4); "
           "select 0$$");
    struct janitor *janitor = start();
    wait_for("select is_called from proverq.looks", "true");
    script("select proverq.enqueue_path('c', '{a}'); update proverq.partition set state = 'held', "
           "due_at = clock_timestamp()");
    double began = seconds();
    wait_for("select state from proverq.partition", "ready");
    double waited = seconds() - began;
    (void)usleep(1500000);
    int64_t looks = number("select last_value from proverq.looks"),
            most = 1 + (int64_t)((seconds() - began + 0.5) / 4);
    CHECK_OK(janitor_stop(janitor, &error));
    script("%s; drop sequence proverq.looks", usual);
    free(usual);
    ck_assert_int_le(looks, most);
    ck_assert_msg(waited < 2.5, "it waited %.1f s", waited);
}
END_TEST

START_TEST(timing_tables_are_made_ahead) {
    script("drop table if exists proverq_private.timing_20300101;"
           "do $$ declare t text; begin for t in select c.relname from pg_class c join pg_inherits "
           "i on i.inhrelid = c.oid where i.inhparent = 'proverq.timing'::regclass and c.relname "
           "<> 'timing_default' loop execute format('drop table proverq_private.%%I', t); end "
           "loop; end $$");
    struct janitor *janitor = start();
    wait_for("select count(*) from pg_inherits where inhparent = 'proverq.timing'::regclass", "9");
    CHECK_OK(janitor_stop(janitor, &error));
}
END_TEST

START_TEST(what_is_too_old_is_deleted_in_batches_that_hold_up_no_sweep) {
    script("select proverq.enqueue_path('c', array_agg('w' || i)) from generate_series(1, 5000) i;"
           "select proverq.cancel(job_seq) from proverq.job;"
           "update proverq.job set created_at = '2020-01-01', finished_at = '2020-01-01';"
           "select proverq.enqueue_path('c', '{a}');"
           "select * from proverq_private.claim(1, '{1}', 1, 1)");
    struct janitor *janitor = start(), *other = start();
    wait_for("select count(*) from proverq.partition where state = 'ready'", "1");
    wait_for("select count(*) from proverq.partition", "1");
    wait_for("select count(*) from proverq.job", "1");
    CHECK_OK(janitor_stop(janitor, &error));
    CHECK_OK(janitor_stop(other, &error));
}
END_TEST

START_TEST(it_ends_at_once_in_the_midst_of_deleting) {
    script("select proverq.enqueue_path('c', array_agg('w' || i)) from generate_series(1, 20000) i;"
           "select proverq.cancel(job_seq) from proverq.job;"
           "update proverq.job set created_at = '2020-01-01', finished_at = '2020-01-01'");
    struct janitor *janitor = start();
    wait_for("select count(*) < 20000 from proverq.partition", "true");
    double began = seconds();
    CHECK_OK(janitor_stop(janitor, &error));
    ck_assert_msg(seconds() - began < 3, "it took %.1f s", seconds() - began);
    ck_assert_int_gt(number("select count(*) from proverq.partition"), 0);
}
END_TEST

START_TEST(a_lost_connection_is_made_again) {
    struct janitor *janitor = start();
    wait_for("select count(*) from pg_stat_activity where application_name like "
             "'proverq finalizer %' and datname = current_database()",
             "1");
    script("select pg_terminate_backend(pid) from pg_stat_activity where application_name like "
           "'proverq finalizer %%' and datname = current_database()");
    script("select proverq.enqueue_path('c', '{a}'); select * from proverq_private.claim(1, '{1}', "
           "1, 1)");
    wait_for("select count(*) from proverq.partition where state = 'ready'", "1");
    CHECK_OK(janitor_stop(janitor, &error));
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
    CHECK_OK(janitor_stop(NULL, &error));
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &leases_end_and_backoffs_are_over_within_seconds,
        &however_many_backoffs_are_over_none_waits_for_the_next_second,
        &slow_looks_for_expired_leases_are_rare_and_hold_up_no_backoff,
        &timing_tables_are_made_ahead,
        &what_is_too_old_is_deleted_in_batches_that_hold_up_no_sweep,
        &it_ends_at_once_in_the_midst_of_deleting,
        &a_lost_connection_is_made_again,
        &a_schema_that_is_missing_ends_it_with_what_to_run,
        &stopping_what_was_not_started_is_fine};
    return run_database_tests("janitor", setup, close_db, tests, sizeof tests / sizeof *tests);
}
