/* The rules by which a task goes on, is given up or stops. */
#include "service/prover/pipeline.h"
#include "service/prover/step.h"
#include "tests/gpu/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct error error;
static struct pipeline pipeline;
static struct device *device;

static void open_pipeline(void) {
    memset(&pipeline, 0, sizeof pipeline);
    queue_init(&pipeline.record);
    pthread_mutex_init(&pipeline.fault_mutex, NULL);
    pipeline.stop_fd = eventfd(0, EFD_NONBLOCK);
    pipeline.dispatcher_wake = eventfd(0, EFD_NONBLOCK);
    pipeline.loader_wake = eventfd(0, EFD_NONBLOCK);
    ck_assert_int_eq(leases_open(&pipeline.leases, &error), ERR_NONE);
    ck_assert_int_eq(device_open("cpu", 1, &device, &error), ERR_NONE);
    budget_init(&pipeline.host, 2 << 20);
    pacing_init(&pipeline.pacing);
    ck_assert_int_eq(keyring_open(device, SIZE_MAX, &pipeline.keyring, &error), ERR_NONE);
    ck_assert_int_eq(buffers_open(device, &pipeline.host, 2, &pipeline.buffers, &error), ERR_NONE);
}

static void close_pipeline(void) {
    buffers_close(pipeline.buffers);
    ck_assert_uint_eq(pipeline.host.used, 0);
    budget_destroy(&pipeline.host);
    pacing_destroy(&pipeline.pacing);
    keyring_close(pipeline.keyring);
    device_close(device);
    leases_close(pipeline.leases);
    queue_destroy(&pipeline.record);
    close(pipeline.stop_fd);
    close(pipeline.dispatcher_wake);
    close(pipeline.loader_wake);
}

static struct task *begin_task(void) {
    struct task *task = calloc(1, sizeof *task);
    ck_assert_ptr_nonnull(task);
    step_begin(task, STEP_CLAIM, LEASE_NO_DEADLINE);
    pipeline_begin(&pipeline, task);
    ck_assert_int_eq(buffers_take(pipeline.buffers, 100, &task->buffer, &error), ERR_NONE);
    return task;
}

static void pop_and_end(struct task *task, enum outcome outcome) {
    ck_assert_ptr_eq(queue_pop(&pipeline.record), task);
    ck_assert_int_eq(task->outcome, outcome);
    pipeline_end(&pipeline, task);
    ck_assert_int_eq(atomic_load(&pipeline.in_hand), 0);
    ck_assert_int_eq(atomic_load(&pipeline.ahead), 0);
    ck_assert_uint_eq(buffers_free_count(pipeline.buffers), 2);
    int64_t job, partition;
    struct uuid token;
    ck_assert_uint_eq(leases_list(pipeline.leases, true, &job, &partition, &token, 1), 0);
}

START_TEST(a_task_counts_as_ahead_until_it_reaches_the_device_whatever_becomes_of_it) {
    struct task *task = begin_task();
    ck_assert_int_eq(atomic_load(&pipeline.ahead), 1);
    pipeline_room(&pipeline, task);
    pipeline_room(&pipeline, task);
    ck_assert_int_eq(atomic_load(&pipeline.ahead), 0);
    ck_assert_int_eq(atomic_load(&pipeline.in_hand), 1);
    pipeline_proved(&pipeline, task);
    pop_and_end(task, OUTCOME_PROOF);
    task = begin_task();
    error_set(&error, ERR_FORMAT, "bad");
    pipeline_give_up(&pipeline, task, &error);
    pop_and_end(task, OUTCOME_FAILURE);
}
END_TEST

START_TEST(a_file_that_is_not_here_releases_the_partition) {
    struct task *task = begin_task();
    error_set(&error, ERR_ABSENT, "not here");
    pipeline_give_up(&pipeline, task, &error);
    pop_and_end(task, OUTCOME_RELEASE);
}
END_TEST

START_TEST(a_lost_lease_or_a_stop_ends_a_task) {
    struct task *task = begin_task();
    ck_assert(!pipeline_is_over(&pipeline, task));
    atomic_store(&task->lease.fate, LEASE_CANCELLED);
    ck_assert(pipeline_is_over(&pipeline, task));
    pop_and_end(task, OUTCOME_DROP);
    task = begin_task();
    pipeline_stop(&pipeline);
    ck_assert(pipeline_is_over(&pipeline, task));
    pop_and_end(task, OUTCOME_RELEASE);
}
END_TEST

START_TEST(the_first_fault_counts_and_stops_the_prover) {
    error_set(&error, ERR_DEVICE_FAULT, "first");
    pipeline_fault(&pipeline, &error);
    error_set(&error, ERR_SCHEMA, "second");
    pipeline_fault(&pipeline, &error);
    ck_assert_int_eq(pipeline.fault.code, ERR_DEVICE_FAULT);
    ck_assert(atomic_load(&pipeline.stopping));
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &a_task_counts_as_ahead_until_it_reaches_the_device_whatever_becomes_of_it,
        &a_file_that_is_not_here_releases_the_partition, &a_lost_lease_or_a_stop_ends_a_task,
        &the_first_fault_counts_and_stops_the_prover};
    return run_tests("pipeline", open_pipeline, close_pipeline, tests,
                     sizeof tests / sizeof *tests);
}
