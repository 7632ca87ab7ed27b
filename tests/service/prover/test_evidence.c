/* What is recorded beside the partitions: nothing is lost while the database refuses, nothing twice. */
#include "gpu/monotonic.h"
#include "service/prover/evidence.h"
#include "service/prover/stages.h"
#include "tests/service/database.h"

#include <string.h>

static struct error error;
static struct options options;
static struct pipeline pipeline;
static struct evidence evidence;

static void setup(void) {
    options = (struct options){.database = test_dsn(), .listen_database = ""};
    open_db();
    reset_rows();
    memset(&pipeline, 0, sizeof pipeline);
    pipeline.options = &options;
    pipeline.prover_id = 1;
    timeline_log_init(&pipeline.timelines);
    CHECK_OK(device_open("cpu", 1, &pipeline.device, &error));
    CHECK_OK(device_activity_start(pipeline.device, &error));
    pipeline.record_db = connect_with(record_statements.list, record_statements.n);
    evidence_init(&evidence, &pipeline);
}

static void teardown(void) {
    evidence_destroy(&evidence);
    timeline_log_destroy(&pipeline.timelines);
    db_close(pipeline.record_db);
    device_close(pipeline.device);
    close_db();
}

static void add_idle_rows(int n) {
    for (int i = 0; i < n; i++)
        timeline_log_add(
            &pipeline.timelines,
            &(struct timeline_row){.span = {STEP_IDLE, 20, monotonic_ns(), 5000}, .job = -1});
}

START_TEST(rows_are_written_in_batches_until_none_is_left) {
    add_idle_rows(2 * TIMELINE_BATCH + 3);
    CHECK_OK(evidence_record(&evidence, false, &error));
    ck_assert_int_eq(number("select count(*) from proverq.timing"), 0); /* it is not time yet */
    evidence.due_ns = 0;
    CHECK_OK(evidence_record(&evidence, false, &error));
    ck_assert_int_eq(number("select count(*) from proverq.timing where job_seq is null"),
                     2 * TIMELINE_BATCH + 3);
    ck_assert_int_ge(evidence.due_ns, monotonic_ns());
    ck_assert_uint_eq(pipeline.timelines.n, 0);
}
END_TEST

START_TEST(what_the_database_refuses_is_kept_and_written_later_once) {
    struct error ignored;
    add_idle_rows(5);
    script("alter table proverq.timing rename to away");
    ck_assert_int_ne(evidence_record(&evidence, true, &ignored), ERR_NONE);
    script("alter table proverq.away rename to timing");
    ck_assert_uint_eq(pipeline.timelines.n, 5);
    CHECK_OK(evidence_record(&evidence, true, &error));
    ck_assert_int_eq(number("select count(*) from proverq.timing"), 5);
}
END_TEST

static void prove_one(void) {
    struct zkey *zkey = NULL;
    struct wtns *wtns = NULL;
    struct key *key = NULL;
    struct pending *pending = NULL;
    struct proof proof;
    CHECK_OK(zkey_open("tests/circuits/factor/factor.zkey", &zkey, &error));
    CHECK_OK(wtns_open("tests/circuits/factor/witness.wtns", &wtns, &error));
    CHECK_OK(key_load(pipeline.device, zkey, &key, &error));
    const struct scalar *witness = wtns->values;
    CHECK_OK(prove_start(key, &witness, 1, &pending, &error));
    CHECK_OK(prove_finish(pending, &proof, NULL, NULL, &error));
    key_free(key);
    wtns_close(wtns);
    zkey_close(zkey);
}

START_TEST(the_devices_intervals_are_kept_too) {
    struct error ignored;
    prove_one();
    script("alter table proverq_private.device_activity rename to away");
    ck_assert_int_eq(evidence_record(&evidence, false, &error), ERR_NONE); /* not due */
    ck_assert_int_ne(evidence_record(&evidence, true, &ignored), ERR_NONE);
    script("alter table proverq_private.away rename to device_activity");
    CHECK_OK(evidence_record(&evidence, true, &error));
    ck_assert_int_gt(number("select count(*) from proverq_private.device_activity "
                            "where kind = 'cpu_span' and busy > 0"),
                     0);
    ck_assert_int_eq(number("select count(*) from (select from proverq_private.device_activity "
                            "group by started_at having count(*) > 1) twice"),
                     0);
    ck_assert_int_eq(number("select count(*) from proverq_private.prover where activity_until > "
                            "(select max(started_at) from proverq_private.device_activity)"),
                     1);
}
END_TEST

START_TEST(a_lost_connection_is_told_and_loses_nothing) {
    struct error lost;
    add_idle_rows(3);
    script("select pg_terminate_backend(pid) from pg_stat_activity "
           "where pid <> pg_backend_pid() and application_name = 'test' and datname = "
           "current_database()");
    ck_assert_int_eq(evidence_record(&evidence, true, &lost), ERR_CONNECTION);
    CHECK_OK(db_reconnect_within(pipeline.record_db, -1, 5000, &error));
    CHECK_OK(evidence_record(&evidence, true, &error));
    ck_assert_int_eq(number("select count(*) from proverq.timing"), 3);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&rows_are_written_in_batches_until_none_is_left,
                                         &what_the_database_refuses_is_kept_and_written_later_once,
                                         &the_devices_intervals_are_kept_too,
                                         &a_lost_connection_is_told_and_loses_nothing};
    return run_database_tests("evidence", setup, teardown, tests, sizeof tests / sizeof *tests);
}
