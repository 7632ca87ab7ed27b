#include "gpu/cpu/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* One loop is open at a time. Threads join an open loop under the lock and take chunks until none
 * is left; the caller closes it and waits for those that joined, not for those still asleep. */
struct pool {
    pthread_mutex_t turn; /* held by the caller whose loop runs */
    pthread_mutex_t lock; /* of all below but next */
    pthread_cond_t opened, left;
    bool open, stop;
    unsigned joined;
    uint64_t loop; /* counts loops, so that a thread joins each at most once */

    pool_body *body;
    void *arg;
    size_t n, chunk;
    atomic_size_t next;

    unsigned n_threads; /* the caller's included */
    unsigned n_started;
    struct pool_thread {
        struct pool *pool;
        pthread_t handle;
        unsigned worker;
    } * threads;
};

static unsigned usable_processors(void) {
    for (size_t max = 1024; max <= 1 << 20; max *= 2) {
        cpu_set_t *set = CPU_ALLOC(max);
        if (!set) return 1;
        size_t size = CPU_ALLOC_SIZE(max);
        int n = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (n > 0) return (unsigned)n;
    }
    return 1;
}

static void take_chunks(struct pool *pool, unsigned worker) {
    for (;;) {
        size_t begin = atomic_fetch_add(&pool->next, pool->chunk);
        if (begin >= pool->n) return;
        size_t end = pool->n - begin > pool->chunk ? begin + pool->chunk : pool->n;
        pool->body(pool->arg, begin, end, worker);
    }
}

static void *thread_main(void *arg) {
    struct pool_thread *self = arg;
    struct pool *pool = self->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->lock);
    while (!pool->stop) {
        if (!pool->open || pool->loop == seen) {
            pthread_cond_wait(&pool->opened, &pool->lock);
            continue;
        }
        seen = pool->loop;
        pool->joined++;
        pthread_mutex_unlock(&pool->lock);
        take_chunks(pool, self->worker);
        pthread_mutex_lock(&pool->lock);
        if (--pool->joined == 0) pthread_cond_signal(&pool->left);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static enum err start_threads(struct pool *pool, struct error *error) {
    for (unsigned i = 0; i + 1 < pool->n_threads; i++) {
        struct pool_thread *thread = &pool->threads[i];
        thread->pool = pool;
        thread->worker = i + 1;
        int failed = pthread_create(&thread->handle, NULL, thread_main, thread);
        if (failed)
            return error_set(
                error, ERR_HOST_MEMORY,
                "cannot start thread %u of %u: %s; raise the limit on processes or use "
                "fewer threads",
                i + 2, pool->n_threads, strerror(failed));
        pool->n_started++;
    }
    return ERR_NONE;
}

enum err pool_open(unsigned threads, struct pool **out, struct error *error) {
    enum err rc;
    *out = NULL;
    if (threads == 0) threads = usable_processors();
    struct pool *pool = calloc(1, sizeof *pool);
    struct pool_thread *handles = calloc(threads, sizeof *handles);
    if (!pool || !handles) {
        free(pool);
        free(handles);
        return error_set(error, ERR_HOST_MEMORY, "no memory for %u threads", threads);
    }
    pool->threads = handles;
    pool->n_threads = threads;
    pthread_mutex_init(&pool->turn, NULL);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->opened, NULL);
    pthread_cond_init(&pool->left, NULL);
    TRY(start_threads(pool, error));
    *out = pool;
    return ERR_NONE;
fail:
    pool_close(pool);
    return rc;
}

void pool_close(struct pool *pool) {
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->opened);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->n_started; i++)
        pthread_join(pool->threads[i].handle, NULL);
    pthread_cond_destroy(&pool->left);
    pthread_cond_destroy(&pool->opened);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->turn);
    free(pool->threads);
    free(pool);
}

unsigned pool_threads(const struct pool *pool) {
    return pool ? pool->n_threads : 1;
}

static void run_alone(size_t n, size_t chunk, pool_body *body, void *arg) {
    for (size_t begin = 0; begin < n;) {
        size_t end = n - begin > chunk ? begin + chunk : n;
        body(arg, begin, end, 0);
        begin = end;
    }
}

void pool_for(struct pool *pool, size_t n, size_t chunk, pool_body *body, void *arg) {
    if (n == 0) return;
    size_t threads = pool_threads(pool);
    if (chunk == 0) chunk = n / threads + (n % threads != 0);
    if (chunk > n) chunk = n;
    if (!pool) {
        run_alone(n, chunk, body, arg);
        return;
    }
    pthread_mutex_lock(&pool->turn);
    if (chunk == n || pool->n_started == 0) {
        run_alone(n, chunk, body, arg);
        pthread_mutex_unlock(&pool->turn);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->body = body;
    pool->arg = arg;
    pool->n = n;
    pool->chunk = chunk;
    atomic_store(&pool->next, 0);
    pool->loop++;
    pool->open = true;
    pthread_cond_broadcast(&pool->opened);
    pthread_mutex_unlock(&pool->lock);

    take_chunks(pool, 0);

    pthread_mutex_lock(&pool->lock);
    pool->open = false;
    while (pool->joined > 0)
        pthread_cond_wait(&pool->left, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    pthread_mutex_unlock(&pool->turn);
}

static struct pool *shared;

static void open_shared(void) {
    struct error error;
    if (pool_open(0, &shared, &error) != ERR_NONE) shared = NULL;
}

struct pool *pool_shared(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_shared);
    return shared;
}
