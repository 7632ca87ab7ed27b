/* What is recorded beside the partitions: nothing is lost while the database refuses, nothing twice.
 * Needs PROVERQ_TEST_DSN. */
#include "service/evidence.h"
#include "service/migrate.h"
#include "service/stages.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct error error;
static struct db *db; /* the test's */
static struct options options;
static struct pipeline pipeline;
static struct evidence evidence;

static void must(enum err rc) {
    ck_assert_msg(rc == ERR_NONE, "%s", error.text);
}

static struct db *connect_with(const struct stage_statements *statements) {
    struct db_settings settings = {.conninfo = getenv("PROVERQ_TEST_DSN"),
                                   .application = "test_evidence",
                                   .statement_timeout_ms = 5000,
                                   .lock_timeout_ms = 5000,
                                   .statements = statements ? statements->list : NULL,
                                   .n_statements = statements ? statements->n : 0};
    struct db *made = NULL;
    must(db_open(&settings, &made, &error));
    return made;
}

static int64_t number(const char *sql) {
    struct db_result *rows = NULL;
    must(db_query(db, sql, "", "l", DB_NO_PARAMS, &rows, &error));
    int64_t value = db_get_int(rows, 0, 0);
    db_free(rows);
    return value;
}

static void setup(void) {
    options = (struct options){.database = getenv("PROVERQ_TEST_DSN"), .listen_database = ""};
    must(migrate_up(&options, &error));
    db = connect_with(NULL);
    must(db_script(db, "test",
                   "truncate proverq.prover, proverq.timing, proverq.device_activity "
                   "restart identity cascade;"
                   "insert into proverq.prover (instance, host, pid, device) "
                   "values (gen_random_uuid(), 'h', 1, 'cpu')",
                   &error));
    memset(&pipeline, 0, sizeof pipeline);
    pipeline.options = &options;
    pipeline.prover_id = 1;
    timeline_log_init(&pipeline.timelines);
    must(device_open("cpu", 1, &pipeline.device, &error));
    must(device_activity_start(pipeline.device, &error));
    pipeline.record_db = connect_with(&record_statements);
    evidence_init(&evidence, &pipeline);
}

static void teardown(void) {
    evidence_destroy(&evidence);
    timeline_log_destroy(&pipeline.timelines);
    db_close(pipeline.record_db);
    device_close(pipeline.device);
    db_close(db);
}

static void add_idle_rows(int n) {
    for (int i = 0; i < n; i++)
        timeline_log_add(
            &pipeline.timelines,
            &(struct timeline_row){.span = {STEP_IDLE, 20, timing_now(), 5000}, .job = -1});
}

START_TEST(rows_are_written_in_batches_until_none_is_left) {
    add_idle_rows(2 * TIMELINE_BATCH + 3);
    must(evidence_record(&evidence, false, &error));
    ck_assert_int_eq(number("select count(*) from proverq.timing"), 0); /* it is not time yet */
    evidence.due_ns = 0;
    must(evidence_record(&evidence, false, &error));
    ck_assert_int_eq(number("select count(*) from proverq.timing where job_seq is null"),
                     2 * TIMELINE_BATCH + 3);
    ck_assert_int_ge(evidence.due_ns, timing_now());
    ck_assert_uint_eq(pipeline.timelines.n, 0);
}
END_TEST

START_TEST(what_the_database_refuses_is_kept_and_written_later_once) {
    struct error ignored;
    add_idle_rows(5);
    must(db_script(db, "test", "alter table proverq.timing rename to away", &error));
    ck_assert_int_ne(evidence_record(&evidence, true, &ignored), ERR_NONE);
    must(db_script(db, "test", "alter table proverq.away rename to timing", &error));
    ck_assert_uint_eq(pipeline.timelines.n, 5);
    must(evidence_record(&evidence, true, &error));
    ck_assert_int_eq(number("select count(*) from proverq.timing"), 5);
}
END_TEST

static void prove_one(void) {
    struct zkey *zkey = NULL;
    struct wtns *wtns = NULL;
    struct key *key = NULL;
    struct pending *pending = NULL;
    struct proof proof;
    must(zkey_open("tests/circuits/factor/factor.zkey", &zkey, &error));
    must(wtns_open("tests/circuits/factor/witness.wtns", &wtns, &error));
    must(key_load(pipeline.device, zkey, &key, &error));
    const struct scalar *witness = wtns->values;
    must(prove_start(key, &witness, 1, &pending, &error));
    must(prove_finish(pending, &proof, NULL, NULL, &error));
    key_free(key);
    wtns_close(wtns);
    zkey_close(zkey);
}

START_TEST(the_devices_intervals_are_kept_too) {
    struct error ignored;
    prove_one();
    must(db_script(db, "test", "alter table proverq.device_activity rename to away", &error));
    ck_assert_int_eq(evidence_record(&evidence, false, &error), ERR_NONE); /* not due */
    ck_assert_int_ne(evidence_record(&evidence, true, &ignored), ERR_NONE);
    must(db_script(db, "test", "alter table proverq.away rename to device_activity", &error));
    must(evidence_record(&evidence, true, &error));
    ck_assert_int_gt(number("select count(*) from proverq.device_activity "
                            "where kind = 'cpu_span' and busy > 0"),
                     0);
    ck_assert_int_eq(number("select count(*) from (select from proverq.device_activity "
                            "group by started_at having count(*) > 1) twice"),
                     0);
    ck_assert_int_eq(number("select count(*) from proverq.prover where activity_until > "
                            "(select max(started_at) from proverq.device_activity)"),
                     1);
}
END_TEST

START_TEST(a_lost_connection_is_told_and_loses_nothing) {
    struct error lost;
    add_idle_rows(3);
    must(db_script(db, "test",
                   "select pg_terminate_backend(pid) from pg_stat_activity "
                   "where pid <> pg_backend_pid() and application_name = 'test_evidence'",
                   &error));
    ck_assert_int_eq(evidence_record(&evidence, true, &lost), ERR_CONNECTION);
    must(db_reconnect_within(pipeline.record_db, -1, 5000, &error));
    must(evidence_record(&evidence, true, &error));
    ck_assert_int_eq(number("select count(*) from proverq.timing"), 3);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("evidence");
    TCase *tcase = tcase_create("evidence");
    tcase_set_timeout(tcase, 60);
    if (!getenv("PROVERQ_TEST_DSN")) {
        fputs("test_evidence: PROVERQ_TEST_DSN names no database\n", stderr);
        return EXIT_FAILURE;
    }
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, rows_are_written_in_batches_until_none_is_left);
    tcase_add_test(tcase, what_the_database_refuses_is_kept_and_written_later_once);
    tcase_add_test(tcase, the_devices_intervals_are_kept_too);
    tcase_add_test(tcase, a_lost_connection_is_told_and_loses_nothing);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
