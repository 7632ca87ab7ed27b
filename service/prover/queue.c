#include "service/prover/queue.h"
#include "gpu/monotonic.h"
#include "service/prover/task.h"

#include <time.h>

void queue_init(struct queue *queue) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    queue->first = NULL;
    queue->is_closed = false;
}

void queue_destroy(struct queue *queue) {
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
}

void queue_push(struct queue *queue, struct task *task) {
    struct task **at = &queue->first;
    pthread_mutex_lock(&queue->mutex);
    while (*at && (*at)->order < task->order)
        at = &(*at)->next;
    task->next = *at;
    *at = task;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

struct task *queue_pop(struct queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    while (!queue->first && !queue->is_closed)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    struct task *task = queue->first;
    if (task) queue->first = task->next;
    pthread_mutex_unlock(&queue->mutex);
    if (task) task->next = NULL;
    return task;
}

bool queue_pop_within(struct queue *queue, int64_t ns, struct task **out) {
    int64_t end = monotonic_ns() + ns;
    struct timespec until = {end / 1000000000, end % 1000000000};
    int status = 0;
    pthread_mutex_lock(&queue->mutex);
    while (!queue->first && !queue->is_closed && status == 0)
        status = pthread_cond_timedwait(&queue->changed, &queue->mutex, &until);
    *out = queue->first;
    if (*out) queue->first = (*out)->next;
    bool is_over = queue->is_closed;
    pthread_mutex_unlock(&queue->mutex);
    if (*out) (*out)->next = NULL;
    return *out || is_over;
}

void queue_close(struct queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    queue->is_closed = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}
