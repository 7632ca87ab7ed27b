#include "service/prover/buffers.h"
#include "service/common/faults.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Sizes are whole multiples of this, so that circuits of about the same size share buffers. */
enum { GRAIN_BYTES = 64 << 10 };

/* A place is empty (no capacity), free or taken. `making` is held by who fills or empties places,
 * before `mutex`, under which the flags change; nothing is allocated under `mutex`. */
struct buffers {
    pthread_mutex_t making, mutex;
    struct device *device;
    struct budget *budget;
    size_t n;
    struct buffer items[];
};

enum err buffers_open(struct device *device, struct budget *budget, size_t n, struct buffers **out,
                      struct error *error) {
    struct buffers *buffers = calloc(1, sizeof *buffers + n * sizeof *buffers->items);
    if (!buffers) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    pthread_mutex_init(&buffers->making, NULL);
    pthread_mutex_init(&buffers->mutex, NULL);
    buffers->device = device;
    buffers->budget = budget;
    buffers->n = n;
    *out = buffers;
    return ERR_NONE;
}

/* Only whole pages can be kept out of a core dump; the rest of the first and last one stays in. */
static void keep_out_of_core_dumps(const uint8_t *bytes, size_t n, int advice) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)bytes + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)bytes + n) / page * page;
    if (end > begin) (void)madvise((void *)begin, end - begin, advice);
}

/* --- places: all of this with `making`, and the place taken --- */

static enum err get_memory(struct device *device, size_t bytes, void **out, struct error *error) {
    if (!fault_switch("PROVERQ_PAGEABLE")) return device_host_alloc(device, bytes, out, error);
    *out = calloc(1, bytes);
    return *out ? ERR_NONE : error_set(error, ERR_HOST_MEMORY, "out of memory");
}

static void free_memory(struct device *device, uint8_t *bytes) {
    if (fault_switch("PROVERQ_PAGEABLE"))
        free(bytes);
    else
        device_host_free(device, bytes);
}

static void empty(struct buffers *buffers, struct buffer *buffer) {
    if (!buffer->bytes) return;
    keep_out_of_core_dumps(buffer->bytes, buffer->capacity, MADV_DODUMP);
    free_memory(buffers->device, buffer->bytes);
    budget_give_back(buffers->budget, buffer->capacity);
    buffer->bytes = NULL;
    buffer->capacity = 0;
}

/* ERR_HOST_MEMORY: not now. */
static enum err fill(struct buffers *buffers, struct buffer *buffer, size_t bytes,
                     struct error *error) {
    void *memory = NULL;
    if (!budget_reserve(buffers->budget, bytes))
        return error_set(error, ERR_HOST_MEMORY, "the budget for witnesses is spent");
    enum err rc = get_memory(buffers->device, bytes, &memory, error);
    if (rc != ERR_NONE) {
        budget_give_back(buffers->budget, bytes);
        return rc;
    }
    buffer->bytes = memory;
    buffer->capacity = bytes;
    keep_out_of_core_dumps(buffer->bytes, bytes, MADV_DONTDUMP);
    return ERR_NONE;
}

void buffers_close(struct buffers *buffers) {
    if (!buffers) return;
    for (size_t i = 0; i < buffers->n; i++)
        empty(buffers, &buffers->items[i]);
    pthread_mutex_destroy(&buffers->mutex);
    pthread_mutex_destroy(&buffers->making);
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

size_t buffers_made(struct buffers *buffers, size_t bytes) {
    size_t n = 0;
    pthread_mutex_lock(&buffers->mutex);
    for (size_t i = 0; i < buffers->n; i++)
        n += buffers->items[i].capacity >= bytes && buffers->items[i].bytes;
    pthread_mutex_unlock(&buffers->mutex);
    return n;
}

/* The smallest free one of at least `bytes`; with 0, an empty place. Marked as taken. */
static struct buffer *take_free(struct buffers *buffers, size_t bytes) {
    struct buffer *best = NULL;
    pthread_mutex_lock(&buffers->mutex);
    for (size_t i = 0; i < buffers->n; i++) {
        struct buffer *buffer = &buffers->items[i];
        if (buffer->is_taken || (bytes ? buffer->capacity < bytes : buffer->capacity > 0)) continue;
        if (!best || buffer->capacity < best->capacity) best = buffer;
    }
    if (best) best->is_taken = true;
    pthread_mutex_unlock(&buffers->mutex);
    return best;
}

/* Whether there is a buffer, taken or free, beside an empty place. */
static bool any_but(struct buffers *buffers, const struct buffer *place) {
    bool any = false;
    pthread_mutex_lock(&buffers->mutex);
    for (size_t i = 0; i < buffers->n; i++) {
        const struct buffer *buffer = &buffers->items[i];
        any = any || (buffer != place && (buffer->is_taken || buffer->capacity > 0));
    }
    pthread_mutex_unlock(&buffers->mutex);
    return any;
}

static void set_free(struct buffers *buffers, struct buffer *buffer) {
    pthread_mutex_lock(&buffers->mutex);
    buffer->is_taken = false;
    pthread_mutex_unlock(&buffers->mutex);
}

void buffers_give(struct buffers *buffers, struct buffer *buffer) {
    if (!buffer) return;
    if (buffer->used) explicit_bzero(buffer->bytes, buffer->used);
    buffer->used = 0;
    set_free(buffers, buffer);
}

/* --- sizes --- */

/* ERR_HOST_MEMORY when a buffer of `bytes` can never be had. */
static enum err whole_size(const struct buffers *buffers, size_t bytes, size_t *whole,
                           struct error *error) {
    if (bytes <= SIZE_MAX - GRAIN_BYTES)
        *whole = (bytes + GRAIN_BYTES - 1) / GRAIN_BYTES * GRAIN_BYTES;
    if (bytes <= SIZE_MAX - GRAIN_BYTES && *whole <= buffers->budget->limit) return ERR_NONE;
    return error_set(error, ERR_HOST_MEMORY,
                     "a witness of %zu bytes does not fit in the %zu bytes for witnesses; give the "
                     "prover more with --host-memory",
                     bytes, buffers->budget->limit);
}

enum err buffers_prepare(struct buffers *buffers, size_t bytes, size_t n, struct error *error) {
    enum err rc;
    size_t whole = 0;
    struct error remark;
    TRY(whole_size(buffers, bytes, &whole, error));
    pthread_mutex_lock(&buffers->making);
    while (buffers_made(buffers, bytes) < n) {
        struct buffer *place = take_free(buffers, 0);
        if (!place) break;
        enum err filled = fill(buffers, place, whole, &remark);
        set_free(buffers, place);
        if (filled != ERR_NONE) break; /* what is missing may be had later */
    }
    pthread_mutex_unlock(&buffers->making);
fail:
    return rc;
}

/* With `making`: gives up free buffers, all of which are too small, until a place of `whole` bytes
 * can be filled. */
static enum err make_room(struct buffers *buffers, size_t whole, struct buffer **out,
                          struct error *error) {
    struct buffer *place = take_free(buffers, 0);
    enum err rc = ERR_HOST_MEMORY;
    *out = NULL;
    for (struct buffer *small;;) {
        if (place && (rc = fill(buffers, place, whole, error)) == ERR_NONE) {
            *out = place;
            return ERR_NONE;
        }
        if (place && rc != ERR_HOST_MEMORY && rc != ERR_DEVICE_MEMORY) break;
        if (!(small = take_free(buffers, 1))) break;
        if (small->capacity >= whole) { /* it was given back meanwhile */
            if (place) set_free(buffers, place);
            *out = small;
            return ERR_NONE;
        }
        empty(buffers, small);
        if (place)
            set_free(buffers, small);
        else
            place = small;
    }
    bool others = any_but(buffers, place);
    if (place) set_free(buffers, place);
    if (others && (rc == ERR_HOST_MEMORY || rc == ERR_DEVICE_MEMORY)) return ERR_NONE; /* wait */
    return rc;
}

enum err buffers_take(struct buffers *buffers, size_t bytes, struct buffer **out,
                      struct error *error) {
    enum err rc;
    size_t whole = 0;
    TRY(whole_size(buffers, bytes, &whole, error));
    if ((*out = take_free(buffers, bytes ? bytes : 1))) return ERR_NONE;
    pthread_mutex_lock(&buffers->making);
    *out = take_free(buffers, bytes ? bytes : 1); /* the loader may have made one */
    if (!*out) rc = make_room(buffers, whole, out, error);
    pthread_mutex_unlock(&buffers->making);
fail:
    return rc;
}
