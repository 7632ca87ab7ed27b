/* The handover between the stages of a prover: the only way in which they talk.
 *
 *     dispatcher -> synthesis -> gpu -> verify -> record
 *
 * A task is one claimed partition. It belongs to one stage at a time: whoever popped it, until it
 * is pushed on. What goes wrong is written into the task, which then goes straight to record, the
 * only stage that tells the database. The dispatcher alone makes tasks, and only while there is
 * room before the device; the record stage alone ends them.
 */
#ifndef PROVERQ_PIPELINE_H
#define PROVERQ_PIPELINE_H

#include "gpu/error.h"
#include "gpu/proof.h"
#include "gpu/prover.h"
#include "service/common/options.h"
#include "service/db/db.h"
#include "service/prover/buffers.h"
#include "service/prover/keyring.h"
#include "service/prover/leases.h"
#include "service/prover/pacing.h"
#include "service/prover/timeline.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Threads of a stage; the others have one. There are as many GPU workers as device slots. How many
 * do synthesis is an option. */
enum {
    SYNTHESIS_THREADS_LEAST = 2, /* one may wait for a slow disk */
    SYNTHESIS_THREADS_MOST = 256,
    GPU_THREADS = PROVE_SLOTS,
    VERIFY_THREADS = 4, /* a pairing takes longer than a small proof on a GPU */
};

/* Witness buffers, without those for witnesses that are being computed, one for each thread that
 * does: a task keeps its own until its proof is verified, so that a mismatch can be traced to the
 * witness. As many as could be used at once, and those made before the first claim. */
enum {
    BUFFERS = PACING_MOST + GPU_THREADS + VERIFY_THREADS,
    BUFFERS_FIRST = PACING_FIRST + GPU_THREADS + VERIFY_THREADS,
};

/* Partitions in hand at most, those included that wait to be recorded. */
enum { TASKS_MAX = 64 + SYNTHESIS_THREADS_MOST };

/* What proverq.timing calls a worker: the first thread of a stage, the next ones count on. */
enum {
    WORKER_DISPATCHER = 0,
    WORKER_LOADER = 1,
    WORKER_GPU = 20,
    WORKER_VERIFY = 30,
    WORKER_RECORD = 40,
    WORKER_HEARTBEAT = 50,
    WORKER_SYNTHESIS = 100,
};

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
    int64_t queued_ns;       /* when it was pushed to the queue that it is in, or was in last */

    struct proof proof; /* OUTCOME_PROOF: verified */
    enum outcome outcome;
    struct error error;
    bool is_repeated; /* the database has been told before; its answer was lost */
    struct timing timing;
    bool is_timed; /* the database has its steps */
};

/* Drops the witness: the buffer is wiped and free for another task. */
void task_drop_witness(struct task *task, struct buffers *buffers);

/* --- queues --- */

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct task *first; /* by order */
    bool is_closed;
};

void queue_init(struct queue *queue);
void queue_destroy(struct queue *queue); /* it must be empty */

/* Takes the task over. Never blocks: the dispatcher bounds the number of tasks. */
void queue_push(struct queue *queue, struct task *task);

/* Waits for a task and takes the one with the lowest order; NULL once it is closed and empty. */
struct task *queue_pop(struct queue *queue);

/* The same, but waits for `ns` at most: false when nothing came. */
bool queue_pop_within(struct queue *queue, int64_t ns, struct task **out);

/* What is in it can still be popped; nothing may be pushed any more. */
void queue_close(struct queue *queue);

/* --- what all stages share --- */

struct pipeline {
    const struct options *options;
    struct artefact_places places;
    struct device *device;
    int32_t prover_id;
    struct keyring *keyring;
    struct budget host; /* for witness buffers */
    struct buffers *buffers;
    struct pacing pacing;
    struct leases *leases;
    struct calculators *calculators;
    int synthesis_threads;
    struct queue synthesis, gpu, verify, record;

    atomic_int in_hand;          /* tasks, at most TASKS_MAX */
    atomic_int ahead;            /* those before the device: see pacing.h */
    atomic_int computing;        /* those of them whose witness is to be computed first */
    atomic_bool loaded;          /* the circuits that had work when the prover started */
    atomic_bool stopping;        /* nothing new goes to the device */
    _Atomic(int64_t) stopped_ns; /* since when; 0: it does not stop */
    int stop_fd;                 /* readable for ever once stopping */
    int dispatcher_wake;         /* eventfd: room, a circuit, or stopping */
    int loader_wake;             /* eventfd: look for wanted circuits now, or stopping */
    int heartbeat_stop;          /* eventfd: all leases have ended */

    struct timeline_log timelines; /* of the GPU workers, until they are recorded */

    pthread_mutex_t fault_mutex;
    struct error fault; /* why the process has to end; the first one counts */

    /* Connections: each belongs to the stage that it is named after. */
    struct db *dispatcher_db, *listen_db, *loader_db, *record_db, *heartbeat_db;
};

/* The task is no longer ahead of the device: there is room for another. How long its witness took
 * is known by now. */
void pipeline_room(struct pipeline *pipeline, struct task *task);

/* The task's witness is there, or will not be: there is room for another. */
void pipeline_computed(struct pipeline *pipeline, struct task *task);

/* Sends a task with a verified proof to be recorded. */
void pipeline_proved(struct pipeline *pipeline, struct task *task);

/* Sends a task that cannot go on to be recorded as failed or, when this host lacks a file, given
 * back. */
void pipeline_give_up(struct pipeline *pipeline, struct task *task, const struct error *error);

/* Drops the task and says true when its lease has ended: because its job was cancelled, say. */
bool pipeline_is_lost(struct pipeline *pipeline, struct task *task);

/* Drops it, or gives it back unspent because the process is ending, and says true when there is no
 * use in beginning the next step. */
bool pipeline_is_over(struct pipeline *pipeline, struct task *task);

/* The dispatcher has made a task: it counts, and its lease is renewed from now on. */
void pipeline_begin(struct pipeline *pipeline, struct task *task);

/* The record stage is done with it: frees it. */
void pipeline_end(struct pipeline *pipeline, struct task *task);

/* The process cannot go on: no more claims, what is in hand is recorded, prover_run fails. */
void pipeline_fault(struct pipeline *pipeline, const struct error *error);

/* No more claims; what has not reached the device is released. */
void pipeline_stop(struct pipeline *pipeline);

/* Makes an eventfd readable; and not readable again. */
void wake_up(int fd);
void wake_clear(int fd);

#endif
