/* The heartbeat: leases are renewed while their steps are in time, and only then.
 *
 * What must happen is waited for. What must not happen is watched for longer than a lease lasts,
 * which is long enough for a machine that stands still for a second. */
#include "service/prover/stages.h"
#include "tests/service/database.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { LEASE_MS = 2500 };

static struct error error;
static struct options options;
static struct pipeline pipeline;
static struct stage_thread thread;
static struct lease lease;

/* A partition that prover 1 has claimed for LEASE_MS. */
static void claim_partition(void) {
    reset_rows();
    script("update proverq_private.prover set seen_at = '2000-01-01';"
           "select proverq.enqueue_witness('c', array['x'::bytea]);"
           "select proverq_private.claim(1, '{1}', %d, 1)",
           LEASE_MS);
    struct db_result *rows =
        query("select job_seq, token from proverq.partition", "", "lu", DB_NO_PARAMS);
    lease.job = db_get_int(rows, 0, 0);
    lease.token = db_get_uuid(rows, 0, 1);
    db_free(rows);
    ck_assert_int_eq(number("select count(*) from proverq.partition where state = 'leased'"), 1);
}

static void setup(void) {
    options = (struct options){.database = test_dsn(), .listen_database = "", .lease_ms = LEASE_MS};
    open_db();
    memset(&lease, 0, sizeof lease);
    claim_partition();
    memset(&pipeline, 0, sizeof pipeline);
    pipeline.options = &options;
    pipeline.prover_id = 1;
    pipeline.heartbeat_stop = eventfd(0, EFD_NONBLOCK);
    pipeline.dispatcher_wake = eventfd(0, EFD_NONBLOCK);
    pipeline.heartbeat_db = connect_with(heartbeat_statements.list, heartbeat_statements.n);
    CHECK_OK(leases_open(&pipeline.leases, &error));
    lease_limit(&lease, "prove", LEASE_NO_DEADLINE);
    leases_add(pipeline.leases, &lease);
    thread.pipeline = &pipeline;
}

static void teardown(void) {
    leases_remove(pipeline.leases, &lease);
    leases_close(pipeline.leases);
    db_close(pipeline.heartbeat_db);
    close_db();
}

static void start_beating(void) {
    ck_assert_int_eq(pthread_create(&thread.thread, NULL, heartbeat_main, &thread), 0);
}

static void stop_beating(void) {
    wake_up(pipeline.heartbeat_stop);
    pthread_join(thread.thread, NULL);
}

static void beat_for(unsigned ms) {
    start_beating();
    usleep(ms * 1000);
    stop_beating();
}

static void wait_for_fate(enum lease_fate fate) {
    for (int i = 0; i < 2000 && atomic_load(&lease.fate) != fate; i++)
        usleep(10000);
    ck_assert_int_eq(atomic_load(&lease.fate), fate);
}

static const char is_held[] = "select count(*) from proverq.partition where state = 'leased' and "
                              "lease_until > clock_timestamp()";

START_TEST(a_lease_lasts_as_long_as_it_is_renewed) {
    beat_for(LEASE_MS * 3 / 2);
    ck_assert_int_eq(number(is_held), 1);
    ck_assert_int_eq(number("select proverq.rescue_expired()::int8"), 0);
    ck_assert_int_eq(number("select count(*) from proverq_private.prover "
                            "where seen_at > clock_timestamp() - interval '10 s'"),
                     1);
    ck_assert(!lease_is_lost(&lease));
    wait_for(is_held, "0");
    ck_assert_int_eq(number("select proverq.rescue_expired()::int8"), 1);
}
END_TEST

START_TEST(a_lease_that_was_taken_away_is_known_as_lost) {
    script("update proverq.partition set lease_until = '2000-01-01';"
           "select proverq.rescue_expired()");
    start_beating();
    wait_for_fate(LEASE_TAKEN);
    stop_beating();
    ck_assert_int_eq(number("select count(*) from proverq.partition where state = 'ready'"), 1);
}
END_TEST

/* What ends the lease while the thread runs, and what the lease then says: by a look, which comes every
 * 0.4 s, not by the next renewal. */
static void ends_with(const char *sql, enum lease_fate fate) {
    options.lease_ms = 600000; /* renewed every 10 s */
    int watch = lease_watch(pipeline.leases, &lease);
    start_beating();
    usleep(300000);
    ck_assert(!lease_is_lost(&lease));
    script("%s", sql);
    struct pollfd fd = {watch, POLLIN, 0};
    ck_assert_int_eq(poll(&fd, 1, 4000), 1);
    ck_assert_int_eq(atomic_load(&lease.fate), fate);
    stop_beating();
    lease_unwatch(pipeline.leases, &lease);
}

START_TEST(a_cancelled_job_is_known_before_the_next_renewal) {
    ends_with("begin; update proverq.partition set state = 'cancelled', token = null, "
              "lease_until = null; update proverq.job set state = 'cancelled'; commit",
              LEASE_CANCELLED);
}
END_TEST

START_TEST(a_job_that_failed_elsewhere_is_known_before_the_next_renewal) {
    ends_with("begin; update proverq.partition set state = 'cancelled', token = null, "
              "lease_until = null; update proverq.job set state = 'failing'; commit",
              LEASE_FAILED);
}
END_TEST

START_TEST(a_job_that_is_gone_is_known_before_the_next_renewal) {
    ends_with("truncate proverq.job cascade", LEASE_GONE);
}
END_TEST

START_TEST(a_lease_that_ends_because_its_outcome_is_recorded_is_not_lost) {
    lease_record(&lease);
    script("update proverq.partition set state = 'cancelled', token = null, "
           "lease_until = null");
    beat_for(600);
    ck_assert(!lease_is_lost(&lease));
}
END_TEST

START_TEST(a_lost_connection_is_made_again_and_the_lease_renewed) {
    script("select pg_terminate_backend(pid, 5000) from pg_stat_activity "
           "where application_name = 'test' and datname = current_database() and pid <> "
           "pg_backend_pid()");
    beat_for(LEASE_MS * 3 / 2);
    ck_assert_int_eq(number(is_held), 1);
}
END_TEST

START_TEST(a_step_past_its_deadline_ends_the_process_and_its_lease) {
    lease_limit(&lease, "prove", INT64_C(1000000));
    usleep(10000);
    beat_for(20000);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &a_lease_lasts_as_long_as_it_is_renewed,
        &a_lease_that_was_taken_away_is_known_as_lost,
        &a_cancelled_job_is_known_before_the_next_renewal,
        &a_job_that_failed_elsewhere_is_known_before_the_next_renewal,
        &a_job_that_is_gone_is_known_before_the_next_renewal,
        &a_lease_that_ends_because_its_outcome_is_recorded_is_not_lost,
        &a_lost_connection_is_made_again_and_the_lease_renewed};
    Suite *suite = suite_create("heartbeat");
    TCase *tcase =
        add_tests(suite, "heartbeat", setup, teardown, tests, sizeof tests / sizeof *tests);
    tcase_add_unchecked_fixture(tcase, new_schema, NULL);
    tcase_add_test_raise_signal(tcase, a_step_past_its_deadline_ends_the_process_and_its_lease,
                                SIGABRT);
    return run_suite(suite);
}
