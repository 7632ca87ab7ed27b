/* From a witness to the scalars of the H sum, on the GPU, for either curve.
 *
 *     matvec      a = A*w, b = B*w, c = a*b at the powers of w_N, in bit-reversed order
 *     transform   to the odd coset (ntt.cuh), then h = a*b - c there, plain, in bit-reversed order
 *
 * Nothing is permuted on the way: the H bases are put in bit-reversed order when a key is loaded.
 * What a key and a slot need is laid out by the functions here (arena.cuh); after a dry run the
 * structs hold no pointers.
 */
#ifndef PROVERQ_CUDA_QUOTIENT_CUH
#define PROVERQ_CUDA_QUOTIENT_CUH

#include "gpu/cuda/arena.cuh"

extern "C" {
#include "gpu/cuda/matvec_plan.h"
}

struct quotient_key {
    enum curve_id curve;
    unsigned log_domain;
    uint32_t n_terms;
    struct matvec_part part[2];
    struct matvec_segment *segments;
    uint32_t n_segments;
    uint32_t *signals;
    struct scalar *values;
    struct scalar *twiddles;
};

struct quotient_scratch {
    struct scalar *sums, *a, *b, *c;
};

/* The largest domain: x^N + 1 needs a root of order 2N in either field. */
enum { QUOTIENT_MAX_LOG_DOMAIN = 27 };

/* ERR_UNSUPPORTED when the domain is larger than QUOTIENT_MAX_LOG_DOMAIN. */
MUST_USE enum err quotient_key_layout(struct arena *arena, const struct zkey *zkey,
                                      struct quotient_key *out, struct error *error);
void quotient_scratch_layout(struct arena *arena, const struct zkey *zkey,
                             struct quotient_scratch *out);

/* Fills a key's memory; returns when it is filled. Sorts with all threads of the shared pool. */
MUST_USE enum err quotient_key_fill(struct quotient_key *key, const struct zkey *zkey,
                                    cudaStream_t stream, struct error *error);

/* `witness` is in device memory, plain. */
MUST_USE enum err quotient_matvec(const struct quotient_key *key,
                                  const struct quotient_scratch *scratch,
                                  const struct scalar *witness, cudaStream_t stream,
                                  struct error *error);
/* Leaves h at scratch->a. */
MUST_USE enum err quotient_transform(const struct quotient_key *key,
                                     const struct quotient_scratch *scratch, cudaStream_t stream,
                                     struct error *error);

#endif
