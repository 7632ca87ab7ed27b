/* A pool of threads that run one loop at a time. */
#ifndef PROVERQ_POOL_H
#define PROVERQ_POOL_H

#include "gpu/error.h"

#include <stddef.h>

struct pool;

/* Called for chunks [begin, end) of the loop, from any thread; `worker` is below
 * pool_threads(pool). */
typedef void pool_body(void *arg, size_t begin, size_t end, unsigned worker);

/* `threads` 0 means one per processor that this process may use. */
MUST_USE enum err pool_open(unsigned threads, struct pool **out, struct error *error);
void pool_close(struct pool *pool);
unsigned pool_threads(const struct pool *pool);

/* Runs body over 0..n in chunks of at most `chunk` (0: n / threads, rounded up), the caller's
 * thread included; returns when all is done. Calls from several threads take turns. A pool of NULL
 * runs all on the caller. Not reentrant from a body. */
void pool_for(struct pool *pool, size_t n, size_t chunk, pool_body *body, void *arg);

/* The process's shared pool for verification, key checks and setup, one thread per processor; never
 * closed. NULL (run on the caller) when threads cannot be made. */
struct pool *pool_shared(void);

#endif
