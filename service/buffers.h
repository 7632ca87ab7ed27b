/* Witness buffers: memory that the device reads at full speed, allocated once, reused, and wiped
 * between the partitions of different submitters.
 *
 * They are kept out of core dumps. One thread (the dispatcher) takes and sizes them, any may give
 * them back.
 */
#ifndef PROVERQ_BUFFERS_H
#define PROVERQ_BUFFERS_H

#include "gpu/prover.h"

#include <stddef.h>
#include <stdint.h>

struct buffers;

struct buffer {
    uint8_t *bytes;
    size_t capacity;
    size_t used; /* what buffers_give wipes; set by who writes to it */
    bool is_taken;
};

/* `n` buffers of no size yet on `device`, which must live longer. */
MUST_USE enum err buffers_open(struct device *device, size_t n, struct buffers **out,
                               struct error *error);
void buffers_close(struct buffers *buffers); /* all must be given back; NULL may be closed */

/* How many are free. */
size_t buffers_free_count(struct buffers *buffers);

/* A free buffer of at least `bytes`: one that is too small grows. ERR_HOST_MEMORY when it cannot;
 * ERR_INTERNAL when none is free. */
MUST_USE enum err buffers_take(struct buffers *buffers, size_t bytes, struct buffer **out,
                               struct error *error);

/* Wipes it; NULL is allowed. */
void buffers_give(struct buffers *buffers, struct buffer *buffer);

#endif
