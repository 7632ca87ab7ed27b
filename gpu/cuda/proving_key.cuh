/* A proving key in device memory.
 *
 * The four sums over the witness share one shape, so one sorted list of digits serves them all; C is
 * kept with infinity for the public signals that it lacks. The H bases are in bit-reversed order,
 * as quotient.cuh leaves their scalars, and have the same windows and bucket sets as C, so that both sums
 * fill the same buckets.
 */
#ifndef PROVERQ_CUDA_PROVING_KEY_CUH
#define PROVERQ_CUDA_PROVING_KEY_CUH

#include "gpu/cuda/arena.cuh"
#include "gpu/cuda/msm.cuh"
#include "gpu/cuda/quotient.cuh"

extern "C" {
#include "gpu/zkey.h"
}

struct proving_key {
    struct msm_shape witness, h; /* of A, B1, B2, C, and of H */
    void *a, *b1, *b2, *c, *h_table;
    uint32_t *b_mask;    /* bit i: B_i is not infinite in both groups */
    uint32_t *b_counted; /* how many bits are set */
    bool b_sparse;       /* enough infinities in B for a list of its own */
    struct quotient_key quotient;
};

/* The key's part of device memory, with up to max_tables multiples of every base. */
MUST_USE enum err proving_key_layout(struct arena *arena, const struct zkey *zkey,
                                     unsigned max_tables, struct proving_key *out,
                                     struct error *error);

/* Memory that proving_key_fill needs beside it. */
size_t proving_key_work_bytes(const struct proving_key *key);

/* Uploads and precomputes; returns when all is done. */
MUST_USE enum err proving_key_fill(struct proving_key *key, const struct zkey *zkey, void *work,
                                   cudaStream_t stream, struct error *error);

#endif
