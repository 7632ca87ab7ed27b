/* The queues between the stages. */
#include "gpu/monotonic.h"
#include "service/prover/queue.h"
#include "service/prover/task.h"
#include "tests/gpu/suite.h"

#include <stdlib.h>
#include <string.h>

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

int main(void) {
    const TTest *const *const tests[] = {&the_lowest_claim_goes_first,
                                         &what_is_in_a_closed_queue_can_still_be_popped,
                                         &a_wait_ends_with_a_task_with_the_end_or_with_its_time,
                                         &each_task_is_popped_by_exactly_one_thread};
    return run_tests("queue", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
