/* An experiment of the build for tests (PROVERQ_RACING=1, service/common/faults.h): claimed
 * partitions race each other for their memory, so that tests/bench/pipeline.sh can measure what the
 * dispatcher's order is worth. The product has none of it. */
#ifndef PROVERQ_RACING_H
#define PROVERQ_RACING_H

#include <stdbool.h>

struct dispatcher;
struct task;

/* Tries once to send the task on; false: there is no place for it yet. */
typedef bool racing_try(struct dispatcher *dispatcher, struct task *task);

#ifdef PROVERQ_FAULTS

/* Starts a thread that tries until it succeeds, and takes the task over. False: it does not race. */
bool racing_start(struct dispatcher *dispatcher, struct task *task, racing_try *try);

/* Returns when all have succeeded. */
void racing_join(void);

#else

static inline bool racing_start(struct dispatcher *dispatcher, struct task *task, racing_try *try) {
    (void)dispatcher, (void)task, (void)try;
    return false;
}

static inline void racing_join(void) {}

#endif

#endif
