/* A slot: what one proof needs on the device beside its key, and the enqueuing of its work.
 *
 * Three streams, joined by events, nothing else waits:
 *
 *     main      copy in | matvec | transforms |     sort H | sum C + H          | copy out
 *     witness           | digits, sort | sum A | sum B1                         |
 *     g2                               | sum B2                                 |
 *
 * C and H fill the same buckets and come back as one point, which saves a reduction. Priorities
 * among the streams were tried and cost 1 to 3 % (tests/bench/RESULTS.md).
 */
#ifndef PROVERQ_CUDA_SLOT_CUH
#define PROVERQ_CUDA_SLOT_CUH

#include "gpu/cuda/proving_key.cuh"

extern "C" {
#include "gpu/backend.h"
}

struct slot {
    cudaStream_t main, witness, g2;
    /* Without timing; a wait for one of the first two lets the processor go. */
    cudaEvent_t inputs_copied, done, sorted, witness_done, g2_done;
    cudaEvent_t begin[PROVE_STEP_COUNT], end[PROVE_STEP_COUNT]; /* with timing; not FINISH's */

    void *memory; /* of the device */
    size_t bytes;
    uint8_t *results; /* pinned */
    size_t results_bytes;

    struct pending *owner; /* the proof that has the slot, or NULL */
    bool running;          /* all of it is enqueued, `done` included */
    bool collecting;       /* a thread waits for `done` */
};

/* What a key's proof takes in a slot. */
struct slot_need {
    size_t bytes, results_bytes;
};
MUST_USE enum err slot_need(const struct proving_key *key, const struct zkey *zkey,
                            struct slot_need *out, struct error *error);

/* Makes and frees streams and events; a slot that was not opened (all zero) may be closed. */
MUST_USE enum err slot_open(struct slot *slot, struct error *error);
void slot_close(struct slot *slot);

/* Gives an idle slot exactly the memory of `need`; after a failure it has none. */
MUST_USE enum err slot_resize(struct slot *slot, const struct slot_need *need, struct error *error);

/* Enqueues a proof. After a failure the slot's streams are idle again. */
MUST_USE enum err slot_enqueue(struct slot *slot, const struct proving_key *key,
                               const struct zkey *zkey, const struct scalar *witness,
                               struct error *error);

/* The sums in `results` (slot->results, or a copy) after `done`; h is infinity: c has both. */
void slot_sums(const struct proving_key *key, const uint8_t *results, struct proof_sums *out);

/* Fills spans[step] for the PROVE_STEP_FINISH steps that ran on the device, after `done`, with the
 * help of an event that the device reached at anchor_ns. */
MUST_USE enum err slot_spans(const struct slot *slot, cudaEvent_t anchor, int64_t anchor_ns,
                             struct prove_span *spans, struct error *error);

#endif
