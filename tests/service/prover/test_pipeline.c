/* The handover between stages, the leases of what is in hand, and the witness buffers. */
#include "gpu/monotonic.h"
#include "service/prover/pipeline.h"
#include "tests/gpu/suite.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct error error;

/* --- queues --- */

START_TEST(the_lowest_claim_goes_first) {
    static const uint64_t orders[] = {5, 1, 4, 2, 3};
    struct task tasks[5];
    struct queue queue;
    memset(tasks, 0, sizeof tasks);
    queue_init(&queue);
    for (int i = 0; i < 5; i++) {
        tasks[i].order = orders[i];
        queue_push(&queue, &tasks[i]);
    }
    for (uint64_t order = 1; order <= 5; order++)
        ck_assert_uint_eq(queue_pop(&queue)->order, order);
    queue_close(&queue);
    ck_assert_ptr_null(queue_pop(&queue));
    queue_destroy(&queue);
}
END_TEST

START_TEST(what_is_in_a_closed_queue_can_still_be_popped) {
    struct task task = {.order = 7};
    struct queue queue;
    queue_init(&queue);
    queue_push(&queue, &task);
    queue_close(&queue);
    ck_assert_ptr_eq(queue_pop(&queue), &task);
    ck_assert_ptr_null(queue_pop(&queue));
    queue_destroy(&queue);
}
END_TEST

START_TEST(a_wait_ends_with_a_task_with_the_end_or_with_its_time) {
    struct task task = {.order = 7}, *got = &task;
    struct queue queue;
    queue_init(&queue);
    int64_t start = monotonic_ns();
    ck_assert(!queue_pop_within(&queue, 30000000, &got));
    ck_assert_ptr_null(got);
    ck_assert_int_ge(monotonic_ns() - start, 30000000);
    queue_push(&queue, &task);
    ck_assert(queue_pop_within(&queue, INT64_C(60000000000), &got));
    ck_assert_ptr_eq(got, &task);
    queue_close(&queue);
    ck_assert(queue_pop_within(&queue, INT64_C(60000000000), &got));
    ck_assert_ptr_null(got);
    queue_destroy(&queue);
}
END_TEST

enum { THREADS = 4, MANY = 20000 };

struct consumer {
    struct queue *queue;
    pthread_t thread;
    uint8_t seen[MANY];
};

static void *consume(void *arg) {
    struct consumer *consumer = arg;
    for (struct task *task; (task = queue_pop(consumer->queue)) != NULL;)
        consumer->seen[task->order]++;
    return NULL;
}

START_TEST(each_task_is_popped_by_exactly_one_thread) {
    struct consumer *consumers = calloc(THREADS, sizeof *consumers);
    struct task *tasks = calloc(MANY, sizeof *tasks);
    struct queue queue;
    ck_assert(consumers && tasks);
    queue_init(&queue);
    for (int i = 0; i < THREADS; i++) {
        consumers[i].queue = &queue;
        ck_assert_int_eq(pthread_create(&consumers[i].thread, NULL, consume, &consumers[i]), 0);
    }
    for (int i = 0; i < MANY; i++) {
        tasks[i].order = (uint64_t)i;
        queue_push(&queue, &tasks[i]);
    }
    queue_close(&queue);
    for (int i = 0; i < THREADS; i++)
        pthread_join(consumers[i].thread, NULL);
    for (int t = 0; t < MANY; t++) {
        int times = 0;
        for (int i = 0; i < THREADS; i++)
            times += consumers[i].seen[t];
        ck_assert_int_eq(times, 1);
    }
    queue_destroy(&queue);
    free(tasks);
    free(consumers);
}
END_TEST

/* --- the pipeline's bookkeeping --- */

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

/* --- buffers --- */

START_TEST(a_buffer_is_wiped_before_another_gets_it) {
    struct buffer *buffer, *again;
    ck_assert_int_eq(buffers_take(pipeline.buffers, 5000, &buffer, &error), ERR_NONE);
    memset(buffer->bytes, 0xaa, 5000);
    buffer->used = 5000;
    uint8_t *bytes = buffer->bytes;
    buffers_give(pipeline.buffers, buffer);
    for (int i = 0; i < 5000; i++)
        ck_assert_uint_eq(bytes[i], 0);
    ck_assert_int_eq(buffers_take(pipeline.buffers, 4000, &again, &error), ERR_NONE);
    ck_assert_ptr_eq(again->bytes, bytes); /* reused, not allocated again */
    buffers_give(pipeline.buffers, again);
}
END_TEST

enum { GRAIN = 64 << 10 };

START_TEST(a_buffer_that_fits_is_used_before_one_is_made) {
    struct buffer *a, *b, *c;
    ck_assert_int_eq(buffers_take(pipeline.buffers, 100, &a, &error), ERR_NONE);
    ck_assert_int_eq(buffers_take(pipeline.buffers, 1000000, &b, &error), ERR_NONE);
    ck_assert_uint_ge(b->capacity, 1000000);
    ck_assert_int_eq(buffers_take(pipeline.buffers, 1, &c, &error), ERR_NONE);
    ck_assert_ptr_null(c); /* both are taken: wait */
    size_t used = pipeline.host.used;
    buffers_give(pipeline.buffers, a);
    buffers_give(pipeline.buffers, b);
    ck_assert_int_eq(buffers_take(pipeline.buffers, 10, &c, &error), ERR_NONE);
    ck_assert_ptr_eq(c, a); /* the smaller one */
    buffers_give(pipeline.buffers, c);
    ck_assert_uint_eq(pipeline.host.used, used);
}
END_TEST

START_TEST(free_buffers_make_room_for_one_that_is_needed) {
    struct buffer *a, *b;
    ck_assert_int_eq(buffers_prepare(pipeline.buffers, 1 << 20, 2, &error), ERR_NONE);
    ck_assert_uint_eq(buffers_made(pipeline.buffers, 1 << 20), 2);
    ck_assert_int_eq(buffers_take(pipeline.buffers, 1, &a, &error), ERR_NONE);
    ck_assert_int_eq(buffers_take(pipeline.buffers, (1 << 20) + GRAIN, &b, &error), ERR_NONE);
    ck_assert_ptr_null(b); /* `a` leaves no room for it */
    buffers_give(pipeline.buffers, a);
    ck_assert_int_eq(buffers_take(pipeline.buffers, (1 << 20) + GRAIN, &b, &error), ERR_NONE);
    ck_assert_ptr_nonnull(b);
    buffers_give(pipeline.buffers, b);
    ck_assert_uint_le(budget_peak(&pipeline.host), 2 << 20);
}
END_TEST

START_TEST(what_never_fits_is_refused_and_not_waited_for) {
    struct buffer *a;
    ck_assert_int_eq(buffers_take(pipeline.buffers, (2 << 20) + 1, &a, &error), ERR_HOST_MEMORY);
    ck_assert_ptr_nonnull(strstr(error.text, "--host-memory"));
    ck_assert_int_eq(buffers_prepare(pipeline.buffers, SIZE_MAX, 1, &error), ERR_HOST_MEMORY);
    ck_assert_int_eq(buffers_prepare(pipeline.buffers, (1 << 20) + 1, 2, &error), ERR_NONE);
    ck_assert_uint_eq(buffers_made(pipeline.buffers, 1), 1); /* as many as fit */
}
END_TEST

/* --- leases --- */

START_TEST(a_step_past_its_deadline_is_found) {
    struct lease first = {.job = 1, .partition = 2}, second = {.job = 3, .partition = 4};
    struct lease_overdue overdue;
    leases_add(pipeline.leases, &first);
    leases_add(pipeline.leases, &second);
    lease_step(&first, "queue_wait", LEASE_NO_DEADLINE);
    lease_step(&second, "verify", INT64_C(1000000000));
    int64_t now = monotonic_ns();
    ck_assert(!leases_overdue(pipeline.leases, now, &overdue));
    ck_assert(leases_overdue(pipeline.leases, now + INT64_C(2000000000), &overdue));
    ck_assert_int_eq(overdue.job, 3);
    ck_assert_int_eq(overdue.partition, 4);
    ck_assert_str_eq(overdue.step, "verify");
    leases_remove(pipeline.leases, &second);
    ck_assert(!leases_overdue(pipeline.leases, INT64_MAX - 1, &overdue));
    leases_remove(pipeline.leases, &first);
}
END_TEST

START_TEST(a_lease_whose_outcome_is_known_is_not_lost_by_being_ended) {
    struct lease leases[3];
    struct uuid tokens[3];
    int64_t jobs[3], partitions[3];
    struct lease_loss loss;
    memset(leases, 0, sizeof leases);
    for (size_t i = 0; i < 3; i++) {
        leases[i].token.bytes[0] = (uint8_t)(i + 1);
        leases[i].job = (int64_t)i;
        leases[i].partition = (int32_t)i + 10;
        lease_step(&leases[i], "prove", LEASE_NO_DEADLINE);
        leases_add(pipeline.leases, &leases[i]);
    }
    ck_assert_uint_eq(leases_list(pipeline.leases, false, jobs, partitions, tokens, 3), 3);
    lease_record(&leases[1]); /* between the question and the answer */
    ck_assert(leases_lose(pipeline.leases, &leases[0].token, LEASE_CANCELLED, &loss));
    ck_assert(loss.job == 0 && loss.partition == 10 && strcmp(loss.step, "prove") == 0);
    ck_assert(!leases_lose(pipeline.leases, &leases[0].token, LEASE_CANCELLED, &loss));
    ck_assert(!leases_lose(pipeline.leases, &leases[1].token, LEASE_TAKEN, &loss));
    ck_assert(lease_is_lost(&leases[0]));
    ck_assert(!lease_is_lost(&leases[1]));
    ck_assert(!lease_is_lost(&leases[2]));
    ck_assert_uint_eq(leases_list(pipeline.leases, false, jobs, partitions, tokens, 3), 1);
    ck_assert(jobs[0] == 2 && partitions[0] == 12);
    ck_assert_uint_eq(leases_list(pipeline.leases, true, jobs, partitions, tokens, 3),
                      3); /* all are renewed */
    for (size_t i = 0; i < 3; i++)
        leases_remove(pipeline.leases, &leases[i]);
}
END_TEST

static bool is_readable(int fd) {
    struct pollfd poll_fd = {fd, POLLIN, 0};
    return poll(&poll_fd, 1, 0) > 0;
}

START_TEST(who_watches_a_lease_hears_that_it_is_lost_or_that_all_is_over) {
    struct lease leases[2];
    struct lease_loss loss;
    memset(leases, 0, sizeof leases);
    for (size_t i = 0; i < 2; i++) {
        leases[i].token.bytes[0] = (uint8_t)(i + 1);
        leases_add(pipeline.leases, &leases[i]);
    }
    int first = lease_watch(pipeline.leases, &leases[0]);
    int second = lease_watch(pipeline.leases, &leases[1]);
    ck_assert(first >= 0 && second >= 0 && !is_readable(first));
    ck_assert(leases_lose(pipeline.leases, &leases[0].token, LEASE_TAKEN, &loss));
    ck_assert(is_readable(first) && !is_readable(second));
    pipeline_stop(&pipeline);
    ck_assert(is_readable(second));
    lease_unwatch(pipeline.leases, &leases[0]);
    first = lease_watch(pipeline.leases, &leases[0]); /* too late to watch */
    ck_assert(is_readable(first));
    for (size_t i = 0; i < 2; i++) {
        lease_unwatch(pipeline.leases, &leases[i]);
        leases_remove(pipeline.leases, &leases[i]);
    }
}
END_TEST

int main(void) {
    const TTest *const *const queues[] = {&the_lowest_claim_goes_first,
                                          &what_is_in_a_closed_queue_can_still_be_popped,
                                          &a_wait_ends_with_a_task_with_the_end_or_with_its_time,
                                          &each_task_is_popped_by_exactly_one_thread};
    const TTest *const *const tasks[] = {
        &a_task_counts_as_ahead_until_it_reaches_the_device_whatever_becomes_of_it,
        &a_file_that_is_not_here_releases_the_partition,
        &a_lost_lease_or_a_stop_ends_a_task,
        &the_first_fault_counts_and_stops_the_prover,
        &a_buffer_is_wiped_before_another_gets_it,
        &a_buffer_that_fits_is_used_before_one_is_made,
        &free_buffers_make_room_for_one_that_is_needed,
        &what_never_fits_is_refused_and_not_waited_for,
        &a_step_past_its_deadline_is_found,
        &a_lease_whose_outcome_is_known_is_not_lost_by_being_ended,
        &who_watches_a_lease_hears_that_it_is_lost_or_that_all_is_over};
    Suite *suite = suite_create("queues");
    (void)add_tests(suite, "queues", NULL, NULL, queues, sizeof queues / sizeof *queues);
    (void)add_tests(suite, "tasks", open_pipeline, close_pipeline, tasks,
                    sizeof tasks / sizeof *tasks);
    return run_suite(suite);
}
