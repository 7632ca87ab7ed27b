#include "gpu/cuda/arena.cuh"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned allocations, failing;

void allocation_fail(unsigned nth) {
    __atomic_store_n(&allocations, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&failing, nth, __ATOMIC_SEQ_CST);
}

unsigned allocation_count(void) {
    return __atomic_load_n(&allocations, __ATOMIC_SEQ_CST);
}

static bool injected(void) {
    unsigned n = __atomic_add_fetch(&allocations, 1, __ATOMIC_SEQ_CST);
    return n == __atomic_load_n(&failing, __ATOMIC_SEQ_CST);
}

static enum err out_of_memory(size_t bytes, const char *what, struct error *error) {
    return error_set(error, ERR_DEVICE_MEMORY,
                     "%s: no room for %zu bytes; free keys or use a device with more memory", what,
                     bytes);
}

enum err cuda_result(cudaError_t result, const char *what, struct error *error) {
    if (result == cudaSuccess) return ERR_NONE;
    (void)cudaGetLastError();
    if (result == cudaErrorMemoryAllocation)
        return error_set(error, ERR_DEVICE_MEMORY, "%s: the device is out of memory", what);
    cudaError_t kept = cudaDeviceSynchronize(); /* what a lost context answers to everything */
    if (kept == cudaSuccess)
        return error_set(error, ERR_DEVICE_FAULT, "%s: %s", what, cudaGetErrorString(result));
    return error_set(error, ERR_DEVICE_FAULT,
                     "%s: %s; the device is lost to this process, which must end", what,
                     cudaGetErrorString(kept));
}

enum err cuda_launched(const char *what, struct error *error) {
    return cuda_result(cudaGetLastError(), what, error);
}

enum err allocation_point(const char *what, struct error *error) {
    return injected() ? out_of_memory(0, what, error) : ERR_NONE;
}

enum err device_memory(size_t bytes, void **out, struct error *error) {
    *out = NULL;
    cudaError_t result = injected() ? cudaErrorMemoryAllocation : cudaMalloc(out, bytes);
    if (result == cudaSuccess) return ERR_NONE;
    (void)cudaGetLastError();
    *out = NULL;
    if (result == cudaErrorMemoryAllocation) return out_of_memory(bytes, "device memory", error);
    return cuda_result(result, "allocating device memory", error);
}

void device_memory_free(void *memory) {
    if (memory != NULL) (void)cudaFree(memory);
}

/* cudaHostAlloc gives whole pages of its own, so that madvise cannot touch a neighbour. */
static void keep_out_of_dumps(void *memory, size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)memory / page * page;
    uintptr_t end = ((uintptr_t)memory + bytes + page - 1) / page * page;
    (void)madvise((void *)begin, end - begin, MADV_DONTDUMP);
}

enum err pinned_memory(size_t bytes, void **out, struct error *error) {
    *out = NULL;
    cudaError_t result =
        injected() ? cudaErrorMemoryAllocation : cudaHostAlloc(out, bytes, cudaHostAllocPortable);
    if (result != cudaSuccess) {
        (void)cudaGetLastError();
        *out = NULL;
        if (result == cudaErrorMemoryAllocation)
            return out_of_memory(bytes, "pinned host memory", error);
        return cuda_result(result, "allocating pinned host memory", error);
    }
    keep_out_of_dumps(*out, bytes);
    memset(*out, 0, bytes);
    return ERR_NONE;
}

void pinned_memory_free(void *memory) {
    if (memory != NULL) (void)cudaFreeHost(memory);
}
