/* Device memory without surprises: sizes planned by a dry run of the layout code, one allocation,
 * errors of the runtime as values.
 *
 * A layout function takes everything from a `struct arena`. With base NULL it only counts, so the
 * same function gives the size and, run again over memory of that size, the pointers:
 *
 *     struct arena plan = {};
 *     layout(&plan, ...);                        // plan.used is the size
 *     TRY(device_memory(plan.used, &base, error));
 *     struct arena real = {.base = base};
 *     layout(&real, ...);
 *
 * The idea of sizing memory by a dry run is era-bellman-cuda's.
 */
#ifndef PROVERQ_CUDA_ARENA_CUH
#define PROVERQ_CUDA_ARENA_CUH

#include <cuda_runtime.h>

#include <stddef.h>
#include <stdint.h>

extern "C" {
#include "gpu/error.h"
}

enum { ARENA_ALIGN = 256 };

struct arena {
    uint8_t *base; /* NULL: a dry run */
    size_t used;   /* SIZE_MAX once a size did not fit in size_t */
};

/* Room for `count` elements of `size` bytes, aligned to ARENA_ALIGN; NULL in a dry run. */
inline void *arena_take_bytes(struct arena *arena, size_t count, size_t size) {
    size_t bytes, end;
    size_t begin = (arena->used + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    if (begin < arena->used || __builtin_mul_overflow(count, size, &bytes) ||
        __builtin_add_overflow(begin, bytes, &end)) {
        arena->used = SIZE_MAX;
        return NULL;
    }
    arena->used = end;
    return arena->base == NULL ? NULL : arena->base + begin;
}

template <typename T> inline T *arena_take(struct arena *arena, size_t count) {
    return static_cast<T *>(arena_take_bytes(arena, count, sizeof(T)));
}

/* Maps a result of the runtime: cudaSuccess is ERR_NONE, lack of memory is ERR_DEVICE_MEMORY, all
 * else is ERR_DEVICE_FAULT, with a text that says whether the process must end (an error that the
 * context keeps, "sticky"). `what` is what was tried: "copying the witness". */
MUST_USE enum err cuda_result(cudaError_t result, const char *what, struct error *error);

/* The result of launching the kernels since the last call. */
MUST_USE enum err cuda_launched(const char *what, struct error *error);

/* Memory of the current device, and pinned host memory (zeroed, kept out of core dumps). */
MUST_USE enum err device_memory(size_t bytes, void **out, struct error *error);
void device_memory_free(void *memory);
MUST_USE enum err pinned_memory(size_t bytes, void **out, struct error *error);
void pinned_memory_free(void *memory);

/* Makes the nth (from 1) next call of device_memory, pinned_memory or allocation_point fail as if
 * the device were out of memory; 0 ends that. For tests. */
void allocation_fail(unsigned nth);

/* How many calls there were since allocation_fail. */
unsigned allocation_count(void);

/* To be called before the runtime allocates something that is no plain memory (streams, events). */
MUST_USE enum err allocation_point(const char *what, struct error *error);

#endif
