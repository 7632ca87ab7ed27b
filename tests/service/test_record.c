/* The record stage: what has piled up is recorded together, and one result does not spoil the
 * others. Needs PROVERQ_TEST_DSN. */
#include "service/migrate.h"
#include "service/stages.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { PARTITIONS = 5, JOBS = 2, TASKS = PARTITIONS * JOBS };

static struct error error;
static struct db *db; /* the test's */
static struct options options;
static struct pipeline pipeline;
static struct stage_thread thread;
static struct vkey vkey = {.n_public = 1};
static struct held circuit = {.name = "c", .vkey = &vkey};
static struct task *tasks[TASKS];
static struct proof proof;

static void must(enum err rc) {
    ck_assert_msg(rc == ERR_NONE, "%s", error.text);
}

static void sql(const char *text) {
    must(db_script(db, "test", text, &error));
}

static int64_t number(const char *text) {
    struct db_result *rows = NULL;
    must(db_query(db, text, "", "l", DB_NO_PARAMS, &rows, &error));
    int64_t value = db_get_int(rows, 0, 0);
    db_free(rows);
    return value;
}

static struct db *connect_with(const struct stage_statements *statements) {
    struct db_settings settings = {.conninfo = getenv("PROVERQ_TEST_DSN"),
                                   .application = "test_record",
                                   .statement_timeout_ms = 5000,
                                   .lock_timeout_ms = 5000,
                                   .statements = statements ? statements->list : NULL,
                                   .n_statements = statements ? statements->n : 0};
    struct db *made = NULL;
    must(db_open(&settings, &made, &error));
    return made;
}

static void read_proof(const char *path) {
    char text[4096];
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    size_t n = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    must(proof_from_json(text, n, &proof, &error));
}

static struct task *make_task(const struct db_result *rows, int row) {
    struct task *task = calloc(1, sizeof *task);
    ck_assert_ptr_nonnull(task);
    task->job = db_get_int(rows, row, 0);
    task->partition = (int32_t)db_get_int(rows, row, 1);
    task->attempt = 1;
    task->order = (uint64_t)row;
    task->lease.token = db_get_uuid(rows, row, 2);
    task->circuit = &circuit;
    task->proof = proof;
    task->publics = calloc(1, sizeof *task->publics);
    for (int i = 0; i <= row; i++) /* each has another number of steps */
        timing_add(&task->timing, STEP_VERIFY, (int16_t)(100 * row + i), timing_now(),
                   timing_now());
    task->queued_ns = timing_now();
    pipeline_begin(&pipeline, task);
    return task;
}

/* Two jobs of five partitions, all claimed by prover 1. */
static void setup(void) {
    struct db_result *rows = NULL;
    options = (struct options){.database = getenv("PROVERQ_TEST_DSN"), .listen_database = ""};
    must(migrate_up(&options, &error));
    db = connect_with(NULL);
    sql("truncate proverq.artefact, proverq.prover, proverq.job, proverq.failure, proverq.timing "
        "restart identity cascade; insert into proverq.artefact values (sha256('z'), 'zkey', 1, "
        "'z');"
        "insert into proverq.circuit (name, version, sha256, curve, n_vars, n_public, log_domain, "
        "zkey, vkey) values ('c', 1, sha256('c'), 'bn128', 2, 1, 1, sha256('z'), '{}');"
        "insert into proverq.prover (instance, host, pid, device) "
        "values (gen_random_uuid(), 'h', 1, 'cpu');"
        "select proverq.enqueue_path('c', array_fill('w'::text, array[5])) "
        "from generate_series(1, 2);"
        "select proverq.claim(1, array(select circuit_id from proverq.circuit), 60000, 10)");
    memset(&pipeline, 0, sizeof pipeline);
    pipeline.options = &options;
    pipeline.prover_id = 1;
    pipeline.dispatcher_wake = eventfd(0, EFD_NONBLOCK);
    pipeline.stop_fd = eventfd(0, EFD_NONBLOCK);
    timeline_log_init(&pipeline.timelines);
    queue_init(&pipeline.record);
    must(leases_open(&pipeline.leases, &error));
    must(device_open("cpu", 1, &pipeline.device, &error));
    must(device_activity_start(pipeline.device, &error));
    pipeline.record_db = connect_with(&record_statements);
    thread.pipeline = &pipeline;
    read_proof("tests/circuits/factor/proof.json");
    must(db_query(db,
                  "select job_seq, partition_idx, token from proverq.partition "
                  "order by job_seq, partition_idx",
                  "", "liu", DB_NO_PARAMS, &rows, &error));
    ck_assert_int_eq(db_rows(rows), TASKS);
    for (int i = 0; i < TASKS; i++)
        tasks[i] = make_task(rows, i);
    db_free(rows);
}

static void teardown(void) {
    db_close(pipeline.record_db);
    device_close(pipeline.device);
    leases_close(pipeline.leases);
    queue_destroy(&pipeline.record);
    timeline_log_destroy(&pipeline.timelines);
    close(pipeline.stop_fd);
    close(pipeline.dispatcher_wake);
    sql("truncate proverq.artefact, proverq.prover, proverq.job cascade");
    db_close(db);
}

/* Everything is in the queue before the stage begins, so it comes together. */
static void record_all(void) {
    for (int i = 0; i < TASKS; i++)
        queue_push(&pipeline.record, tasks[i]);
    queue_close(&pipeline.record);
    ck_assert_int_eq(pthread_create(&thread.thread, NULL, record_main, &thread), 0);
    pthread_join(thread.thread, NULL);
    ck_assert_int_eq(atomic_load(&pipeline.in_hand), 0);
}

static int64_t proved(void) {
    return number("select count(*) from proverq.partition where state = 'proved' "
                  "and proof->>'protocol' = 'groth16' and publics = '[\"0\"]'");
}

START_TEST(what_piled_up_is_one_transaction) {
    record_all();
    ck_assert_int_eq(proved(), TASKS);
    ck_assert_int_eq(number("select count(distinct xmin::text) from proverq.partition"), 1);
    ck_assert_int_eq(number("select count(distinct xmin::text) from proverq.job "
                            "where state = 'completing' and remaining = 0"),
                     1);
}
END_TEST

START_TEST(each_gets_its_own_steps) {
    record_all();
    ck_assert_int_eq(number("select count(*) from proverq.timing where job_seq is not null"),
                     TASKS * (TASKS + 1) / 2 + TASKS); /* and the step record */
    ck_assert_int_eq(number("select count(*) from proverq.timing t where step = 80 and "
                            "worker / 100 <> (job_seq - 1) * 5 + partition_idx"),
                     0);
    ck_assert_int_eq(number("select count(*) from proverq.timing where step = 90"), TASKS);
}
END_TEST

START_TEST(compressed_proofs_go_along) {
    read_proof("tests/circuits/factor381/proof.json");
    for (int i = 0; i < TASKS; i += 2)
        tasks[i]->proof = proof;
    record_all();
    ck_assert_int_eq(number("select count(*) from proverq.partition "
                            "where octet_length(proof_compressed) = 192 "
                            "and ((job_seq - 1) * 5 + partition_idx) % 2 = 0"),
                     TASKS / 2);
    ck_assert_int_eq(number("select count(*) from proverq.partition "
                            "where proof_compressed is null and state = 'proved'"),
                     TASKS / 2);
}
END_TEST

START_TEST(a_stale_one_is_refused_alone) {
    ck_assert_int_eq(uuid_random(&tasks[3]->lease.token, &error), ERR_NONE);
    record_all();
    ck_assert_int_eq(proved(), TASKS - 1);
    ck_assert_int_eq(number("select remaining::int8 from proverq.job where job_seq = 1"), 1);
    ck_assert_int_eq(number("select count(*) from proverq.timing "
                            "where job_seq = 1 and partition_idx = 3"),
                     0);
}
END_TEST

START_TEST(one_that_the_database_refuses_does_not_spoil_the_others) {
    sql("create or replace function pg_temp.refuse() returns trigger language plpgsql as "
        "$$ begin raise 'refused'; end $$;"
        "create trigger refuse before update on proverq.partition for each row "
        "when (new.job_seq = 2 and new.partition_idx = 1 and new.state = 'proved') "
        "execute function pg_temp.refuse()");
    record_all();
    sql("drop trigger refuse on proverq.partition");
    ck_assert_int_eq(proved(), TASKS - 1);
    ck_assert_int_eq(number("select remaining::int8 from proverq.job where job_seq = 2"), 1);
}
END_TEST

START_TEST(failures_and_releases_are_told_too) {
    tasks[2]->outcome = OUTCOME_RELEASE;
    error_set(&tasks[2]->error, ERR_NONE, "the prover is stopping");
    tasks[7]->outcome = OUTCOME_FAILURE;
    error_set(&tasks[7]->error, ERR_HOST_MEMORY, "out of memory");
    record_all();
    ck_assert_int_eq(proved(), TASKS - 2);
    ck_assert_int_eq(number("select count(*) from proverq.partition "
                            "where state = 'ready' and job_seq = 1 and partition_idx = 2"),
                     1);
    ck_assert_int_eq(number("select count(*) from proverq.partition where state = 'held' and "
                            "job_seq = 2 and partition_idx = 2 and error_code = 'host_memory'"),
                     1);
}
END_TEST

START_TEST(a_lost_connection_loses_no_result) {
    struct db_result *rows = NULL;
    must(db_query(db,
                  "select count(pg_terminate_backend(pid)) from pg_stat_activity "
                  "where application_name = 'test_record' and pid <> pg_backend_pid()",
                  "", "l", DB_NO_PARAMS, &rows, &error));
    db_free(rows);
    record_all();
    ck_assert_int_eq(proved(), TASKS);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("record");
    TCase *tcase = tcase_create("record");
    if (!getenv("PROVERQ_TEST_DSN")) {
        printf("test_record: skipped, PROVERQ_TEST_DSN is not set\n");
        return EXIT_SUCCESS;
    }
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, what_piled_up_is_one_transaction);
    tcase_add_test(tcase, each_gets_its_own_steps);
    tcase_add_test(tcase, compressed_proofs_go_along);
    tcase_add_test(tcase, a_stale_one_is_refused_alone);
    tcase_add_test(tcase, one_that_the_database_refuses_does_not_spoil_the_others);
    tcase_add_test(tcase, failures_and_releases_are_told_too);
    tcase_add_test(tcase, a_lost_connection_loses_no_result);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
