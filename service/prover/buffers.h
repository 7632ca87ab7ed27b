/* Witness buffers: memory that the device reads at full speed, within a budget, made before it is
 * needed, reused, and wiped between the partitions of different submitters.
 *
 * They are kept out of core dumps. Making one is slow and holds up the driver (pinned memory), so
 * the loader makes what a circuit needs when it loads it; the dispatcher makes one only when work
 * of different sizes wants other buffers than there are. Any thread may give back.
 */
#ifndef PROVERQ_BUFFERS_H
#define PROVERQ_BUFFERS_H

#include "gpu/prover.h"
#include "service/common/budget.h"

#include <stddef.h>
#include <stdint.h>

struct buffers;

struct buffer {
    uint8_t *bytes;
    size_t capacity;
    size_t used; /* what buffers_give wipes; set by who writes to it */
    bool is_taken;
};

/* At most `n` buffers on `device`, as large together as `budget` allows; both must live longer. */
MUST_USE enum err buffers_open(struct device *device, struct budget *budget, size_t n,
                               struct buffers **out, struct error *error);
void buffers_close(struct buffers *buffers); /* all must be given back; NULL may be closed */

/* How many are free, made or not. */
size_t buffers_free_count(struct buffers *buffers);

/* How many of at least `bytes` have been made. */
size_t buffers_made(struct buffers *buffers, size_t bytes);

/* Makes buffers until there are `n` of at least `bytes`, or the budget is spent, which is no error:
 * nothing that exists is given up for them. ERR_HOST_MEMORY when not one of this size can ever be
 * had. */
MUST_USE enum err buffers_prepare(struct buffers *buffers, size_t bytes, size_t n,
                                  struct error *error);

/* A free buffer of at least `bytes`. When there is none, free ones of other sizes make room for it.
 * *out is NULL when that is not enough: others must be given back first. ERR_HOST_MEMORY when it
 * cannot be had, even alone. */
MUST_USE enum err buffers_take(struct buffers *buffers, size_t bytes, struct buffer **out,
                               struct error *error);

/* Wipes it; NULL is allowed. */
void buffers_give(struct buffers *buffers, struct buffer *buffer);

#endif
