/* The finalizer process against a database and a real webhook receiver. */
#include "service/finalizer/finalizer.h"
#include "service/finalizer/webhook.h"
#include "tests/service/child_log.h"
#include "tests/service/database.h"
#include "tests/service/receiver.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FINALIZERS_MAX = 2 };

static struct error error;
static pid_t finalizers[FINALIZERS_MAX];

/* --- the finalizer under test, a child process --- */

/* This program, called as `finalizer`. */
static int play_finalizer(int argc, const char *const *argv) {
    struct options o;
    enum err rc = options_parse(argc, argv, &o, &error);
    if (!rc) rc = finalizer_run(&o, &error);
    if (rc) (void)fprintf(stderr, "ended with %s: %s\n", error_name(rc), error.text);
    options_free(&o);
    return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The receiver has threads: between fork and exec only what is safe there (signal-safety(7)). */
static void start_finalizer(size_t which, const char *const *arguments) {
    const char *argv[16] = {"proverq", "finalizer", "--database", test_dsn(), "--poll", "100ms"};
    for (size_t i = 0; arguments[i]; i++)
        argv[6 + i] = arguments[i];
    finalizers[which] = fork();
    ck_assert_int_ge(finalizers[which], 0);
    if (finalizers[which] > 0) return;
    if (child_log_take_stderr()) (void)execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(98);
}

#define START(...) start_finalizer(0, (const char *const[]){__VA_ARGS__, NULL})
#define LOCAL      "--webhook-http", "--webhook-allow", "127.0.0.0/8"

static int end_of_finalizer(int seconds) {
    int status;
    for (int i = 0; i < seconds * 100; i++) {
        if (waitpid(finalizers[0], &status, WNOHANG) == finalizers[0]) {
            finalizers[0] = 0;
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        (void)usleep(10000);
    }
    return -1;
}

/* --- what it works on --- */

static void setup(void) {
    open_db();
    /* A killed finalizer's last statement may still run, and take its locks in another order. */
    script("select pg_terminate_backend(pid, 20000) from pg_stat_activity "
           "where application_name like 'proverq finalizer%%' and datname = current_database()");
    reset_rows();
    child_log_open();
    receiver_start(NULL, NULL);
}

static void teardown(void) {
    for (size_t i = 0; i < FINALIZERS_MAX; i++)
        if (finalizers[i] > 0) {
            (void)kill(finalizers[i], SIGKILL);
            (void)waitpid(finalizers[i], NULL, 0);
        }
    receiver_stop();
    child_log_close();
    close_db();
}

/* An endpoint "e" with a path of the receiver. */
static void make_endpoint(const char *path) {
    script("select proverq.create_webhook_endpoint('e', '%s%s')", receiver_url(), path);
}

/* n jobs of one partition, proved and to be finalized. */
static void prove_jobs(int n, bool has_webhook) {
    script("do $$ declare j bigint; begin for i in 1..%d loop "
           "j := proverq.enqueue_witness('c', array['x'::bytea], webhook => %s); "
           "update proverq.partition set state = 'proved', proof = '{\"pi_a\":[]}', publics = "
           "'[\"7\"]', "
           "proved_at = now() where job_seq = j; "
           "update proverq.job set state = 'completing', remaining = 0 where job_seq = j; "
           "end loop; notify proverq_finalize; end $$",
           n, has_webhook ? "'e'" : "null");
}

static const char state[] = "select coalesce(min(state)::text, 'none') from proverq.job";
static const char delivery[] =
    "select coalesce(min(state || ' ' || attempts), 'none') from proverq_private.webhook_delivery";
static const char last_error[] =
    "select coalesce(min(last_error), '') from proverq_private.webhook_delivery";

/* --- jobs --- */

START_TEST(a_proved_job_is_finalized_and_told) {
    enum db_wake wake;
    CHECK_OK(db_listen(db, "proverq_job", &error));
    START(LOCAL);
    wait_for_log("finalizer started");
    prove_jobs(1, false);
    CHECK_OK(db_wait(db, -1, 20000, &wake, &error));
    ck_assert_int_eq(wake, DB_WAKE_NOTIFIED);
    wait_for(state, "finished");
    wait_for("select witness is null from proverq.partition", "true");
    wait_for_log("msg=\"job finalized\" job=1 run=1 event=proverq.job.finished");
}
END_TEST

START_TEST(a_job_that_was_proved_before_it_started_is_finalized) {
    prove_jobs(3, false);
    START(LOCAL);
    wait_for("select count(*) from proverq.job where state = 'finished'", "3");
}
END_TEST

START_TEST(expired_leases_are_taken_away_and_due_partitions_are_woken) {
    script(
        "select proverq.enqueue_witness('c', array['x'::bytea, 'y'::bytea]); "
        "update proverq.partition set state = 'leased', token = gen_random_uuid(), prover_id = 1, "
        "lease_until = clock_timestamp() - interval '1 s' where partition_idx = 0; "
        "update proverq.partition set state = 'held', due_at = clock_timestamp() + interval '1 s' "
        "where partition_idx = 1");
    START(LOCAL);
    wait_for("select string_agg(state || ' ' || losses, ', ' order by partition_idx) from "
             "proverq.partition",
             "ready 1, ready 0");
}
END_TEST

/* --- webhooks --- */

START_TEST(the_receiver_gets_what_the_outbox_holds_and_can_verify_it) {
    char signature[WEBHOOK_SIGNATURE_BYTES];
    make_endpoint("/200");
    START(LOCAL);
    prove_jobs(1, true);
    wait_for(delivery, "delivered 1");
    struct receiver_request last = receiver_last();
    char *body = value("select body from proverq_private.webhook_delivery"),
         *secret = value("select secret from proverq_private.webhook_secret"),
         *id = value("select 'msg_' || replace(delivery_id::text, '-', '') from "
                     "proverq_private.webhook_delivery");
    ck_assert_uint_eq(last.body_bytes, strlen(body));
    ck_assert_mem_eq(last.body, body, last.body_bytes);
    ck_assert_ptr_nonnull(strstr(body, "\"type\":\"proverq.job.finished\""));
    ck_assert_str_eq(last.id, id);
    CHECK_OK(webhook_sign(secret, last.id, strtoll(last.timestamp, NULL, 10), last.body,
                          last.body_bytes, signature, &error));
    ck_assert_str_eq(last.signature, signature);
    ck_assert_int_eq(receiver_requests(), 1);
    free(body);
    free(secret);
    free(id);
}
END_TEST

START_TEST(a_receiver_that_refuses_is_tried_again_under_the_same_id) {
    make_endpoint("/500");
    START(LOCAL);
    prove_jobs(1, true);
    wait_for(delivery, "pending 1");
    wait_for(last_error, "HTTP 500 from 127.0.0.1: first line.second .[31m line");
    char first[sizeof receiver_last().id];
    (void)snprintf(first, sizeof first, "%s", receiver_last().id);
    script(
        "update proverq_private.webhook_endpoint set url = replace(url, '500', '200'); "
        "update proverq_private.webhook_delivery set next_attempt_at = clock_timestamp(); notify "
        "proverq_finalize");
    wait_for(delivery, "delivered 2");
    ck_assert_str_eq(receiver_last().id, first);
    wait_for(state, "finished");
}
END_TEST

START_TEST(an_endpoint_that_is_gone_is_disabled) {
    make_endpoint("/410");
    START(LOCAL);
    prove_jobs(1, true);
    wait_for(delivery, "failed 1");
    wait_for("select disabled_at is not null from proverq_private.webhook_endpoint", "true");
}
END_TEST

START_TEST(what_the_operator_did_not_allow_is_readable_in_sql) {
    make_endpoint("/200");
    START("--webhook-http");
    prove_jobs(1, true);
    wait_for(last_error,
             "127.0.0.1 is not a public address: the finalizer's operator can allow its "
             "network with --webhook-allow");
    ck_assert_int_eq(receiver_requests(), 0);
}
END_TEST

START_TEST(a_slow_endpoint_holds_up_no_job) {
    make_endpoint("/slow");
    START(LOCAL, "--webhook-timeout", "1s");
    prove_jobs(1, true);
    wait_for("select count(token) = 1 from proverq_private.webhook_delivery", "true");
    prove_jobs(1, false);
    wait_for("select state from proverq.job where webhook is null", "finished");
    wait_for("select coalesce(bool_or(last_error ~ 'timed out'), false) from "
             "proverq_private.webhook_delivery",
             "true");
    ck_assert_int_eq(receiver_requests(), 1);
}
END_TEST

START_TEST(a_slow_endpoint_holds_up_no_other) {
    make_endpoint("/slow");
    script("select proverq.create_webhook_endpoint('f', '%s/200')", receiver_url());
    START(LOCAL, "--webhook-parallel", "3", "--webhook-per-endpoint", "2");
    prove_jobs(5, true);
    wait_for("select count(token) from proverq_private.webhook_delivery", "2");
    for (int i = 0; i < 3; i++)
        script("select proverq.ping_webhook_endpoint('f')");
    wait_for("select count(*) from proverq_private.webhook_delivery where state = 'delivered'",
             "3");
    wait_for("select count(token) from proverq_private.webhook_delivery", "2");
}
END_TEST

START_TEST(an_attempt_is_logged) {
    make_endpoint("/500");
    START(LOCAL);
    prove_jobs(1, true);
    wait_for(delivery, "pending 1");
    wait_for("select coalesce(min(format('%s %s %s %s %s %s %s', attempt, status, curl_code, peer, "
             "answer, "
             "first_byte_us >= connect_us, total_us >= first_byte_us)), '') from "
             "proverq.delivery_attempts",
             "1 500 0 127.0.0.1 first line.second .[31m line t t");
}
END_TEST

START_TEST(while_a_secret_is_replaced_both_sign) {
    make_endpoint("/200");
    script("select proverq.rotate_webhook_secret('e'), proverq.ping_webhook_endpoint('e')");
    START(LOCAL);
    wait_for(delivery, "delivered 1");
    ck_assert_uint_eq(strlen(receiver_last().signature), 2 * (WEBHOOK_SIGNATURE_BYTES - 1) + 1);
}
END_TEST

START_TEST(two_finalizers_do_each_thing_once) {
    make_endpoint("/200");
    start_finalizer(0, (const char *const[]){LOCAL, NULL});
    start_finalizer(1, (const char *const[]){LOCAL, "--webhook-parallel", "3", NULL});
    prove_jobs(60, true);
    wait_for("select count(*) from proverq_private.webhook_delivery where state = 'delivered'",
             "60");
    wait_for("select max(attempts) from proverq_private.webhook_delivery", "1");
    wait_for("select count(*) from proverq.job where state = 'finished'", "60");
    ck_assert_int_eq(receiver_requests(), 60);
}
END_TEST

/* --- faults and the end --- */

START_TEST(lost_connections_are_made_again) {
    START(LOCAL);
    make_endpoint("/200");
    wait_for_log("finalizer started");
    script("select count(pg_terminate_backend(pid)) from pg_stat_activity "
           "where application_name like 'proverq finalizer%%' and datname = current_database()");
    prove_jobs(2, true);
    wait_for("select count(*) from proverq_private.webhook_delivery where state = 'delivered'",
             "2");
    wait_for_log("the connection is lost");
    ck_assert_int_eq(end_of_finalizer(0), -1);
}
END_TEST

START_TEST(a_schema_that_is_missing_ends_it_with_what_to_run) {
    script("alter schema proverq rename to elsewhere");
    START(LOCAL);
    int status = end_of_finalizer(20);
    script("alter schema elsewhere rename to proverq");
    ck_assert_int_eq(status, 1);
    wait_for_log("proverq migrate up");
}
END_TEST

START_TEST(a_network_that_is_none_is_refused) {
    START("--webhook-allow", "10.0.0.0/99");
    ck_assert_int_eq(end_of_finalizer(20), 1);
    wait_for_log("ended with usage: --webhook-allow: \"10.0.0.0/99\" is no network");
}
END_TEST

START_TEST(the_first_signal_ends_it_after_the_deliveries_under_way) {
    make_endpoint("/pause");
    START(LOCAL);
    prove_jobs(1, true);
    wait_for("select count(token) = 1 from proverq_private.webhook_delivery", "true");
    ck_assert_int_eq(kill(finalizers[0], SIGTERM), 0);
    ck_assert_int_eq(end_of_finalizer(20), 0);
    wait_for(delivery, "delivered 1");
    prove_jobs(1, false);
    (void)usleep(300000);
    wait_for("select state from proverq.job where webhook is null", "completing");
}
END_TEST

START_TEST(the_second_signal_ends_it_at_once) {
    make_endpoint("/slow");
    START(LOCAL);
    prove_jobs(1, true);
    wait_for("select count(token) = 1 from proverq_private.webhook_delivery", "true");
    ck_assert_int_eq(kill(finalizers[0], SIGTERM), 0);
    ck_assert_int_eq(end_of_finalizer(1), -1);
    ck_assert_int_eq(kill(finalizers[0], SIGTERM), 0);
    ck_assert_int_eq(end_of_finalizer(2), 128 + SIGTERM);
}
END_TEST

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "finalizer") == 0)
        return play_finalizer(argc, (const char *const *)argv);
    const TTest *const *const tests[] = {
        &a_proved_job_is_finalized_and_told,
        &a_job_that_was_proved_before_it_started_is_finalized,
        &expired_leases_are_taken_away_and_due_partitions_are_woken,
        &the_receiver_gets_what_the_outbox_holds_and_can_verify_it,
        &a_receiver_that_refuses_is_tried_again_under_the_same_id,
        &an_endpoint_that_is_gone_is_disabled,
        &what_the_operator_did_not_allow_is_readable_in_sql,
        &a_slow_endpoint_holds_up_no_job,
        &a_slow_endpoint_holds_up_no_other,
        &an_attempt_is_logged,
        &while_a_secret_is_replaced_both_sign,
        &two_finalizers_do_each_thing_once,
        &lost_connections_are_made_again,
        &a_schema_that_is_missing_ends_it_with_what_to_run,
        &a_network_that_is_none_is_refused,
        &the_first_signal_ends_it_after_the_deliveries_under_way,
        &the_second_signal_ends_it_at_once};
    return run_database_tests("finalizer", setup, teardown, tests, sizeof tests / sizeof *tests);
}
