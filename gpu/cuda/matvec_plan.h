/* The rows of A and B in the order in which the GPU multiplies them by a witness.
 *
 * Most rows have a few terms and get one thread each; rows of equal length stand together so that the
 * threads of a warp end together. A row of more than MATVEC_SHORT terms is cut into segments of at most
 * MATVEC_SEGMENT terms with a warp each, and another warp adds the segments' sums. Terms are
 * stored in that order. A row's place in the result is its bit-reversed number (ntt.cuh).
 */
#ifndef PROVERQ_CUDA_MATVEC_PLAN_H
#define PROVERQ_CUDA_MATVEC_PLAN_H

#include "gpu/cpu/pool.h"
#include "gpu/zkey.h"

enum { MATVEC_SHORT = 32, MATVEC_SEGMENT = 1024 };

struct matvec_row {
    uint32_t begin, terms; /* into signals and values */
    uint32_t out;
};
struct matvec_segment {
    uint32_t begin, terms;
};
struct matvec_long_row {
    uint32_t begin, segments; /* into the segments */
    uint32_t out;
};

struct matvec_part {
    struct matvec_row *rows; /* longest first; rows without terms are here too */
    struct matvec_long_row *long_rows;
    uint32_t n_rows, n_long_rows; /* together the domain's size */
};

struct matvec_plan {
    struct matvec_part part[2]; /* A, B */
    struct matvec_segment *segments;
    uint32_t n_segments;
    uint32_t *signals;     /* n_terms, below the key's n_vars */
    struct scalar *values; /* n_terms, as in the key: coefficient * R^2 */
    uint32_t n_terms;
};

/* The most segments and long rows that `n_terms` terms can make: for sizes known before the key's
 * terms are read. */
static inline size_t matvec_most_long_rows(uint32_t n_terms) {
    return n_terms / (MATVEC_SHORT + 1);
}
static inline size_t matvec_most_segments(uint32_t n_terms) {
    return matvec_most_long_rows(n_terms) + n_terms / MATVEC_SEGMENT;
}

/* Sorts the terms of `zkey` (all of whose indices zkey_open has checked), using all threads of
 * `pool`. ERR_HOST_MEMORY when there is no room. The caller frees the plan, also after a failure. */
MUST_USE enum err matvec_plan_make(const struct zkey *zkey, struct pool *pool,
                                   struct matvec_plan *out, struct error *error);
void matvec_plan_free(struct matvec_plan *plan);

#endif
