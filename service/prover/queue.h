/* A queue of tasks between two stages: ordered, blocking, and without a bound of its own.
 *
 * It owns the tasks that are in it, and uses two of their fields: `order`, by which they leave it,
 * and `next`, which links them. Any thread may push and pop.
 */
#ifndef PROVERQ_QUEUE_H
#define PROVERQ_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct task;

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct task *first; /* by order */
    bool is_closed;
};

void queue_init(struct queue *queue);
void queue_destroy(struct queue *queue); /* it must be empty */

/* Takes the task over. Never blocks: the dispatcher bounds the number of tasks. */
void queue_push(struct queue *queue, struct task *task);

/* Waits for a task and takes the one with the lowest order; NULL once it is closed and empty. */
struct task *queue_pop(struct queue *queue);

/* The same, but waits for `ns` at most: false when nothing came. */
bool queue_pop_within(struct queue *queue, int64_t ns, struct task **out);

/* What is in it can still be popped; nothing may be pushed any more. */
void queue_close(struct queue *queue);

#endif
