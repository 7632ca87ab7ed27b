/* The stages of a prover, a file each, named after it: what runs in their threads.
 *
 * Each takes a struct stage_thread. A stage ends when its queue is closed and empty; the dispatcher
 * and the loader end when the pipeline stops, the heartbeat when `heartbeat_stop` is readable.
 */
#ifndef PROVERQ_STAGES_H
#define PROVERQ_STAGES_H

#include "service/prover/pipeline.h"

struct stage_thread {
    struct pipeline *pipeline;
    int16_t worker; /* what proverq.timing calls it */
    pthread_t thread;
};

typedef void *stage_main(void *stage_thread);

stage_main loader_main;     /* fetches, checks and loads circuits that are wanted */
stage_main dispatcher_main; /* claims partitions in order */
stage_main synthesis_main;  /* gets a partition's witness */
stage_main gpu_worker_main; /* proves it on the device */
stage_main verify_main;     /* host tail, then the proof is verified */
stage_main record_main;     /* writes what became of it into the database */
stage_main heartbeat_main;  /* renews the leases meanwhile */

/* The longest time that a proof may take, after which the process is taken to hang. */
int64_t prove_limit_ns(bool is_cpu, const struct zkey *zkey);

/* The statements that a stage runs on its connection: give them to db_open. */
struct stage_statements {
    const struct db_statement *const *list;
    size_t n;
};
extern const struct stage_statements loader_statements, dispatcher_statements, record_statements,
    heartbeat_statements;

#endif
