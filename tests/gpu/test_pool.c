/* The pool: every index once, from workers below pool_threads, one loop at a time. */
#include "gpu/cpu/pool.h"
#include "tests/gpu/suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

enum { MAX_N = 5000, MAX_THREADS = 16 };

struct loop {
    struct pool *pool;
    size_t n, chunk;
    atomic_uint visits[MAX_N];
    atomic_uint busy[MAX_THREADS]; /* bodies that run as this worker */
    atomic_bool wrong;
};

static void visit(void *arg, size_t begin, size_t end, unsigned worker) {
    struct loop *loop = arg;
    bool wrong = begin >= end || end > loop->n || end - begin > loop->chunk ||
                 worker >= pool_threads(loop->pool) || worker >= MAX_THREADS;
    if (wrong) {
        loop->wrong = true;
        return;
    }
    if (atomic_fetch_add(&loop->busy[worker], 1) != 0) loop->wrong = true;
    for (size_t i = begin; i < end; i++)
        atomic_fetch_add(&loop->visits[i], 1);
    atomic_fetch_sub(&loop->busy[worker], 1);
}

static void check_loop(struct pool *pool, size_t n, size_t chunk) {
    static struct loop loop;
    memset(&loop, 0, sizeof loop);
    loop.pool = pool;
    loop.n = n;
    loop.chunk = chunk ? chunk : (n + pool_threads(pool) - 1) / pool_threads(pool);
    pool_for(pool, n, chunk, visit, &loop);
    ck_assert(!loop.wrong);
    for (size_t i = 0; i < MAX_N; i++)
        ck_assert_uint_eq(loop.visits[i], i < n);
}

START_TEST(every_index_once_at_any_size_and_chunk) {
    static const size_t sizes[] = {0, 1, 2, 3, 7, 64, 1000, MAX_N};
    static const size_t chunks[] = {0, 1, 3, 64, MAX_N, SIZE_MAX};
    for (unsigned threads = 0; threads <= 4; threads++) {
        struct pool *pool = NULL; /* 0: the caller alone */
        struct error error;
        if (threads > 0) ck_assert_int_eq(pool_open(threads, &pool, &error), ERR_NONE);
        ck_assert_uint_eq(pool_threads(pool), threads ? threads : 1);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (size_t j = 0; j < sizeof chunks / sizeof *chunks; j++)
                check_loop(pool, sizes[i], chunks[j]);
        pool_close(pool);
    }
}
END_TEST

START_TEST(more_threads_than_processors_work) {
    struct pool *pool;
    struct error error;
    ck_assert_int_eq(pool_open(MAX_THREADS, &pool, &error), ERR_NONE);
    for (int i = 0; i < 300; i++)
        check_loop(pool, (size_t)i, 1 + (size_t)i % 5);
    pool_close(pool);
}
END_TEST

START_TEST(zero_threads_means_the_processors_of_this_process) {
    struct pool *pool;
    struct error error;
    ck_assert_int_eq(pool_open(0, &pool, &error), ERR_NONE);
    ck_assert_uint_ge(pool_threads(pool), 1);
    check_loop(pool, 100, 1);
    pool_close(pool);
    pool_close(NULL);
}
END_TEST

static void add_to(void *arg, size_t begin, size_t end, unsigned worker) {
    (void)worker;
    *(size_t *)arg += end - begin; /* no two loops at once, and here no two bodies */
}

static void *many_loops(void *arg) {
    static size_t total; /* not atomic: only the pool's turns protect it */
    for (int i = 0; i < 2000; i++)
        pool_for(arg, 1, 1, add_to, &total);
    return &total;
}

START_TEST(callers_take_turns) {
    enum { CALLERS = 4 };
    struct pool *pool;
    struct error error;
    pthread_t callers[CALLERS];
    void *total = NULL;
    ck_assert_int_eq(pool_open(2, &pool, &error), ERR_NONE);
    for (int i = 0; i < CALLERS; i++)
        ck_assert_int_eq(pthread_create(&callers[i], NULL, many_loops, pool), 0);
    for (int i = 0; i < CALLERS; i++)
        ck_assert_int_eq(pthread_join(callers[i], &total), 0);
    ck_assert_uint_eq(*(size_t *)total, CALLERS * 2000);
    pool_close(pool);
}
END_TEST

static void add_atomically(void *arg, size_t begin, size_t end, unsigned worker) {
    (void)worker;
    atomic_fetch_add((atomic_size_t *)arg, end - begin);
}

struct stress {
    struct pool *pool;
    atomic_size_t sum;
};

static void *short_loops(void *arg) {
    struct stress *stress = arg;
    for (size_t i = 0; i < 3000; i++)
        pool_for(stress->pool, i % 17, 1, add_atomically, &stress->sum);
    return NULL;
}

START_TEST(short_loops_from_several_threads_lose_nothing) {
    enum { CALLERS = 3 };
    struct stress stress = {0};
    struct error error;
    pthread_t callers[CALLERS];
    size_t want = 0;
    ck_assert_int_eq(pool_open(3, &stress.pool, &error), ERR_NONE);
    for (int i = 0; i < CALLERS; i++)
        ck_assert_int_eq(pthread_create(&callers[i], NULL, short_loops, &stress), 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
    for (size_t i = 0; i < 3000; i++)
        want += CALLERS * (i % 17);
    ck_assert_uint_eq(stress.sum, want);
    pool_close(stress.pool);
}
END_TEST

START_TEST(pools_open_and_close_again_and_again) {
    struct error error;
    for (int i = 0; i < 200; i++) {
        struct pool *pool;
        ck_assert_int_eq(pool_open(3, &pool, &error), ERR_NONE);
        if (i % 2) check_loop(pool, 10, 1);
        pool_close(pool);
    }
}
END_TEST

START_TEST(the_shared_pool_is_one) {
    struct pool *pool = pool_shared();
    ck_assert_ptr_eq(pool, pool_shared());
    check_loop(pool, 100, 3);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&every_index_once_at_any_size_and_chunk,
                                         &more_threads_than_processors_work,
                                         &zero_threads_means_the_processors_of_this_process,
                                         &callers_take_turns,
                                         &short_loops_from_several_threads_lose_nothing,
                                         &pools_open_and_close_again_and_again,
                                         &the_shared_pool_is_one};
    return run_tests("pool", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
