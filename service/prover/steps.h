/* The steps of a partition's life, as rows of proverq.timing name them.
 *
 * An id is stored for ever: it is never changed or used again, and each group has room for more.
 * The table proverq.step holds the same list (migrations/).
 * Steps may overlap: on a CUDA device those of a proof do, and they overlap with what the worker
 * does meanwhile. The steps of one GPU worker never overlap and leave nothing out. */
#ifndef PROVERQ_STEPS_H
#define PROVERQ_STEPS_H

#include "gpu/prover.h"

/* X(constant, id, name, description) */
#define STEP_TABLE(X)                                                                              \
    /* before the device */                                                                        \
    X(STEP_CLAIM, 10, "claim", "the partition is claimed in the database")                         \
    X(STEP_MEMORY_WAIT, 11, "memory_wait", "a witness buffer or room for the key is waited for")   \
    X(STEP_FETCH_KEY, 20, "fetch_key", "the proving key comes from the database into the cache")   \
    X(STEP_CHECK_KEY, 21, "check_key", "every point of the proving key is checked")                \
    X(STEP_LOAD_KEY, 22, "load_key", "the proving key goes to the device")                         \
    X(STEP_FETCH_CALCULATOR, 23, "fetch_calculator",                                               \
      "the compiled calculator comes from the database into the cache")                            \
    X(STEP_SYNTHESIS_WAIT, 29, "synthesis_wait", "the partition waits for a synthesis thread")     \
    X(STEP_READ_WITNESS, 30, "read_witness", "the witness is read from the row or the file")       \
    X(STEP_CHECK_WITNESS, 31, "check_witness", "the witness is checked against the circuit")       \
    X(STEP_COMPUTE_WITNESS, 32, "compute_witness", "the witness is computed from the inputs")      \
    X(STEP_QUEUE_WAIT, 40, "queue_wait", "the witness waits for a GPU worker")                     \
    /* what a GPU worker does: these tile its life */                                              \
    X(STEP_PICK_UP, 41, "pick_up", "a GPU worker has taken the partition")                         \
    X(STEP_SLOT_WAIT, 42, "slot_wait", "the worker waits for a slot on the device")                \
    X(STEP_LAUNCH, 43, "launch", "copies and kernels are enqueued")                                \
    X(STEP_COMPUTE, 44, "compute", "the CPU, being the device, computes the proof's sums")         \
    X(STEP_INPUTS_WAIT, 45, "inputs_wait", "the worker waits until the witness is copied")         \
    X(STEP_DEVICE_WAIT, 46, "device_wait", "the worker waits until the device has done its part")  \
    X(STEP_HAND_OVER, 47, "hand_over", "the partition goes to the verify stage, or is given up")   \
    X(STEP_IDLE, 48, "idle", "the worker waits for a witness")                                     \
    /* on the device: gpu/prover.h */                                                              \
    X(STEP_COPY_IN, 50, "copy_in", "the witness goes to the device")                               \
    X(STEP_MATVEC, 51, "matvec", "A*w and B*w, sparse matrix times witness")                       \
    X(STEP_NTT, 52, "ntt", "the quotient's coefficients: transforms on the odd coset")             \
    X(STEP_MSM_A, 53, "msm_a", "multi-scalar multiplication over A, G1")                           \
    X(STEP_MSM_B1, 54, "msm_b1", "multi-scalar multiplication over B, G1")                         \
    X(STEP_MSM_B2, 55, "msm_b2", "multi-scalar multiplication over B, G2")                         \
    X(STEP_MSM_C, 56, "msm_c", "multi-scalar multiplication over C, G1")                           \
    X(STEP_MSM_H, 57, "msm_h", "multi-scalar multiplication over H, G1")                           \
    X(STEP_COPY_OUT, 58, "copy_out", "the sums come back from the device")                         \
    /* after the device */                                                                         \
    X(STEP_FINISH_WAIT, 60, "finish_wait", "the sums wait for a verify thread")                    \
    X(STEP_FINISH, 70, "finish", "host tail: blinding, affine form")                               \
    X(STEP_VERIFY, 80, "verify", "the proof is verified with the pairing")                         \
    X(STEP_RECORD, 90, "record", "proof and timing wait to be recorded")

enum step {
#define X(constant, id, name, description) constant = (id),
    STEP_TABLE(X)
#undef X
};

/* The step's name; NULL when there is no such step. */
static inline const char *step_name(enum step step) {
    switch (step) {
#define X(constant, id, name, description)                                                         \
    case constant:                                                                                 \
        return name;
        STEP_TABLE(X)
#undef X
    }
    return NULL;
}

/* Whether it is one of those that tile a GPU worker's life. */
static inline bool step_is_workers(enum step step) {
    return step >= STEP_PICK_UP && step <= STEP_IDLE;
}

/* Whether a sleep that the build for tests puts into a step (service/common/faults.h) belongs to its
 * beginning. It belongs to the end of the others; the end of these is no place for it: one statement
 * claims several partitions, the end of a wait for a slot is only known afterwards, and after a
 * hand-over the task is another stage's. */
static inline bool step_sleeps_first(enum step step) {
    return step == STEP_CLAIM || step == STEP_SLOT_WAIT || step == STEP_HAND_OVER;
}

/* What proverq.step says of a step of the prover library. */
static inline enum step step_of_prove(enum prove_step step) {
    switch (step) {
    case PROVE_STEP_COPY_IN:
        return STEP_COPY_IN;
    case PROVE_STEP_MATVEC:
        return STEP_MATVEC;
    case PROVE_STEP_NTT:
        return STEP_NTT;
    case PROVE_STEP_MSM_A:
        return STEP_MSM_A;
    case PROVE_STEP_MSM_B1:
        return STEP_MSM_B1;
    case PROVE_STEP_MSM_B2:
        return STEP_MSM_B2;
    case PROVE_STEP_MSM_C:
        return STEP_MSM_C;
    case PROVE_STEP_MSM_H:
        return STEP_MSM_H;
    case PROVE_STEP_COPY_OUT:
        return STEP_COPY_OUT;
    case PROVE_STEP_FINISH:
    case PROVE_STEP_COUNT:
        break;
    }
    return STEP_FINISH;
}

#endif
