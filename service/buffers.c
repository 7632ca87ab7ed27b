#include "service/buffers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct buffers {
    pthread_mutex_t mutex;
    struct device *device;
    size_t n;
    struct buffer items[];
};

enum err buffers_open(struct device *device, size_t n, struct buffers **out, struct error *error) {
    struct buffers *buffers = calloc(1, sizeof *buffers + n * sizeof *buffers->items);
    if (!buffers) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    pthread_mutex_init(&buffers->mutex, NULL);
    buffers->device = device;
    buffers->n = n;
    *out = buffers;
    return ERR_NONE;
}

void buffers_close(struct buffers *buffers) {
    if (!buffers) return;
    for (size_t i = 0; i < buffers->n; i++)
        if (buffers->items[i].bytes) device_host_free(buffers->device, buffers->items[i].bytes);
    pthread_mutex_destroy(&buffers->mutex);
    free(buffers);
}

size_t buffers_free_count(struct buffers *buffers) {
    size_t n = 0;
    pthread_mutex_lock(&buffers->mutex);
    for (size_t i = 0; i < buffers->n; i++)
        n += !buffers->items[i].is_taken;
    pthread_mutex_unlock(&buffers->mutex);
    return n;
}

/* Only whole pages can be kept out of a core dump; the rest of the first and last one stays in. */
static void keep_out_of_core_dumps(const uint8_t *bytes, size_t n, int advice) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)bytes + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)bytes + n) / page * page;
    if (end > begin) (void)madvise((void *)begin, end - begin, advice);
}

/* The buffer that fits best: the smallest that is large enough, else the largest. */
static struct buffer *choose(struct buffers *buffers, size_t bytes) {
    struct buffer *best = NULL;
    for (size_t i = 0; i < buffers->n; i++) {
        struct buffer *buffer = &buffers->items[i];
        if (buffer->is_taken) continue;
        bool fits = buffer->capacity >= bytes;
        bool best_fits = best && best->capacity >= bytes;
        if (!best || (fits && !best_fits) ||
            (fits == best_fits && (buffer->capacity < best->capacity) == fits))
            best = buffer;
    }
    return best;
}

static enum err grow(struct device *device, struct buffer *buffer, size_t bytes,
                     struct error *error) {
    void *memory = NULL;
    enum err rc;
    if (buffer->bytes) {
        keep_out_of_core_dumps(buffer->bytes, buffer->capacity, MADV_DODUMP);
        device_host_free(device, buffer->bytes);
        buffer->bytes = NULL;
        buffer->capacity = 0;
    }
    TRY(device_host_alloc(device, bytes, &memory, error));
    buffer->bytes = memory;
    buffer->capacity = bytes;
    keep_out_of_core_dumps(buffer->bytes, bytes, MADV_DONTDUMP);
fail:
    return rc;
}

enum err buffers_take(struct buffers *buffers, size_t bytes, struct buffer **out,
                      struct error *error) {
    enum err rc = ERR_NONE;
    pthread_mutex_lock(&buffers->mutex);
    struct buffer *buffer = choose(buffers, bytes);
    if (buffer) buffer->is_taken = true;
    pthread_mutex_unlock(&buffers->mutex);
    if (!buffer) return error_set(error, ERR_INTERNAL, "no witness buffer is free");
    buffer->used = 0;
    if (buffer->capacity < bytes) TRY(grow(buffers->device, buffer, bytes, error));
    *out = buffer;
    return ERR_NONE;
fail:
    buffers_give(buffers, buffer);
    return rc;
}

void buffers_give(struct buffers *buffers, struct buffer *buffer) {
    if (!buffer) return;
    if (buffer->used) explicit_bzero(buffer->bytes, buffer->used);
    buffer->used = 0;
    pthread_mutex_lock(&buffers->mutex);
    buffer->is_taken = false;
    pthread_mutex_unlock(&buffers->mutex);
}
