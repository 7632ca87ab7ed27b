/* The record stage: what has piled up is recorded together, and one result does not spoil the
 * others. */
#include "gpu/monotonic.h"
#include "service/prover/stages.h"
#include "service/prover/step.h"
#include "tests/service/database.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { PARTITIONS = 5, JOBS = 2, TASKS = PARTITIONS * JOBS };

static struct error error;
static struct options options;
static struct pipeline pipeline;
static struct stage_thread thread;
static struct vkey vkey = {.n_public = 1};
static struct loaded_circuit circuit = {.name = "c", .vkey = &vkey};
static struct task *tasks[TASKS];
static struct proof proof;

static void read_proof(const char *path) {
    char text[4096];
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    size_t n = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    CHECK_OK(proof_from_json(text, n, &proof, &error));
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
        timing_add(&task->timing, STEP_VERIFY, (int16_t)(100 * row + i), monotonic_ns(),
                   monotonic_ns());
    step_begin(task, STEP_RECORD, LEASE_NO_DEADLINE);
    pipeline_begin(&pipeline, task);
    return task;
}

/* Two jobs of five partitions, all claimed by prover 1. */
static void setup(void) {
    options = (struct options){.database = test_dsn(), .listen_database = ""};
    open_db();
    reset_rows();
    script("select proverq.enqueue_path('c', array_fill('w'::text, array[5])) "
           "from generate_series(1, 2);"
           "select proverq_private.claim(1, '{1}', 60000, 10)");
    memset(&pipeline, 0, sizeof pipeline);
    pipeline.options = &options;
    pipeline.prover_id = 1;
    pipeline.dispatcher_wake = eventfd(0, EFD_NONBLOCK);
    pipeline.stop_fd = eventfd(0, EFD_NONBLOCK);
    timeline_log_init(&pipeline.timelines);
    queue_init(&pipeline.record);
    CHECK_OK(leases_open(&pipeline.leases, &error));
    CHECK_OK(device_open("cpu", 1, &pipeline.device, &error));
    CHECK_OK(device_activity_start(pipeline.device, &error));
    pipeline.record_db = connect_with(record_statements.list, record_statements.n);
    thread.pipeline = &pipeline;
    read_proof("tests/circuits/factor/proof.json");
    struct db_result *rows = query("select job_seq, partition_idx, token from proverq.partition "
                                   "order by job_seq, partition_idx",
                                   "", "liu", DB_NO_PARAMS);
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
    close_db();
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
    script("create or replace function pg_temp.refuse() returns trigger language plpgsql as "
           "$$ begin raise 'refused'; end $$;"
           "create trigger refuse before update on proverq.partition for each row "
           "when (new.job_seq = 2 and new.partition_idx = 1 and new.state = 'proved') "
           "execute function pg_temp.refuse()");
    record_all();
    script("drop trigger refuse on proverq.partition");
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
    script("select pg_terminate_backend(pid) from pg_stat_activity "
           "where application_name = 'test' and datname = current_database() and pid <> "
           "pg_backend_pid()");
    record_all();
    ck_assert_int_eq(proved(), TASKS);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&what_piled_up_is_one_transaction,
                                         &each_gets_its_own_steps,
                                         &compressed_proofs_go_along,
                                         &a_stale_one_is_refused_alone,
                                         &one_that_the_database_refuses_does_not_spoil_the_others,
                                         &failures_and_releases_are_told_too,
                                         &a_lost_connection_loses_no_result};
    return run_database_tests("record", setup, teardown, tests, sizeof tests / sizeof *tests);
}
