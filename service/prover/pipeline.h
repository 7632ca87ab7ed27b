/* What the stages of a prover share, and the rules by which a task goes on, is given up or stops.
 *
 *     dispatcher -> synthesis -> gpu -> verify -> record
 *
 * Stages talk only through the queues (queue.h) between them. When something goes wrong, the reason
 * is written into the task (task.h), which then goes straight to record, the only stage that tells
 * the database. The dispatcher alone makes tasks, and only while there is room before the device;
 * the record stage alone ends them.
 */
#ifndef PROVERQ_PIPELINE_H
#define PROVERQ_PIPELINE_H

#include "gpu/error.h"
#include "service/common/options.h"
#include "service/prover/pacing.h"
#include "service/prover/queue.h"
#include "service/prover/task.h"
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

/* What all stages share. */
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

/* --- from the start of the process to its end (pipeline_open.c) --- */

/* Queues and descriptors: enough for pipeline_stop and pipeline_fault. The caller calls
 * pipeline_close in each case. */
MUST_USE enum err pipeline_open(struct pipeline *pipeline, const struct options *options,
                                struct error *error);

/* Device, memory and calculators, as the options say. Makes threads. */
MUST_USE enum err pipeline_equip(struct pipeline *pipeline, struct error *error);

/* No stage may run any more, and the queues must be empty; the connections are the caller's. */
void pipeline_close(struct pipeline *pipeline);

/* The process cannot go on: no more claims, what is in hand is recorded, prover_run fails. */
void pipeline_fault(struct pipeline *pipeline, const struct error *error);

/* No more claims; what has not reached the device is released. */
void pipeline_stop(struct pipeline *pipeline);

/* --- from the beginning of a task to its end --- */

/* The dispatcher has made a task, with a step in hand: it counts, and its lease is renewed from now
 * on. */
void pipeline_begin(struct pipeline *pipeline, struct task *task);

/* The record stage is done with it: frees it. */
void pipeline_end(struct pipeline *pipeline, struct task *task);

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

/* Makes an eventfd readable; and not readable again. */
void wake_up(int fd);
void wake_clear(int fd);

#endif
