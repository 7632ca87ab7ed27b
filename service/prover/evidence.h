/* What is recorded beside the partitions, in batches, over the record stage's connection: the
 * workers' time without a partition (timeline.h) and when the device was busy (gpu/prover.h).
 */
#ifndef PROVERQ_EVIDENCE_H
#define PROVERQ_EVIDENCE_H

#include "service/prover/pipeline.h"

/* Between two batches. */
#define EVIDENCE_EVERY_NS INT64_C(1000000000)

extern const struct db_statement evidence_workers, evidence_activity;

struct evidence {
    struct pipeline *pipeline;
    int64_t due_ns; /* CLOCK_MONOTONIC */
    /* Taken from the device and not recorded yet. */
    struct activity_interval *intervals;
    size_t n, done;
    int64_t until_ns;
};

void evidence_init(struct evidence *evidence, struct pipeline *pipeline);
void evidence_destroy(struct evidence *evidence);

/* Records what there is when it is time to, or when this is the last call (no worker lives, no
 * proof is under way). After an error what was not recorded is kept for the next call. */
MUST_USE enum err evidence_record(struct evidence *evidence, bool is_last, struct error *error);

#endif
