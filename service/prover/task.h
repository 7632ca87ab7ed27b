/* A task: one claimed partition on its way through the stages of a prover (pipeline.h).
 *
 * It belongs to one stage at a time: the one that popped it from a queue, until it pushes it to the
 * next queue.
 */
#ifndef PROVERQ_TASK_H
#define PROVERQ_TASK_H

#include "gpu/proof.h"
#include "gpu/prover.h"
#include "service/db/db.h"
#include "service/prover/buffers.h"
#include "service/prover/keyring.h"
#include "service/prover/leases.h"
#include "service/prover/timing.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The rows of one claim, shared by the tasks that it made; the last one frees them. */
struct claim_rows {
    struct db_result *rows;
    atomic_int users;
};
void claim_rows_release(struct claim_rows *rows); /* NULL is allowed */

enum outcome {
    OUTCOME_PROOF,   /* complete it */
    OUTCOME_FAILURE, /* fail it with `error` */
    OUTCOME_RELEASE, /* give it back unspent: `error` says why, if it says anything */
    OUTCOME_DROP,    /* its lease has ended: there is nothing to tell */
};

struct task {
    struct task *next; /* in a queue */
    uint64_t order;    /* claims count up: the lowest goes first */
    bool is_ahead;     /* it counts as waiting for the device */

    int64_t job;
    int32_t partition, attempt;
    struct loaded_circuit *circuit; /* the keyring's */
    bool has_key;                   /* and its key stays on the device, until it is recorded */
    struct lease lease;             /* registered from the claim until it is recorded */
    struct claim_rows *claim;       /* until the witness is read */
    const uint8_t *witness;         /* in the claim's rows; of these three, two are NULL */
    size_t witness_bytes;
    const char *path;
    const char *inputs; /* inputs.h */
    bool is_computing;  /* it counts as one whose witness is being computed */

    struct buffer *buffer; /* from the claim until the proof is verified */
    struct wtns *wtns;     /* in the buffer */
    struct scalar *publics;
    struct pending *pending; /* on the device */
    int16_t gpu_worker;      /* the worker that put it there */

    struct proof proof; /* OUTCOME_PROOF: verified */
    enum outcome outcome;
    struct error error;
    bool is_repeated; /* the database has been told before; its answer was lost */
    enum step step;   /* in hand, see step.h */
    int64_t step_ns;  /* when it began */
    struct timing timing;
    bool is_timed; /* the database has its steps */
};

/* Drops the witness: the buffer is wiped and free for another task. */
void task_drop_witness(struct task *task, struct buffers *buffers);

#endif
