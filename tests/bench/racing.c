/* Partitions that race each other for their memory: service/prover/racing.h. */
#include "service/prover/racing.h"
#include "service/common/faults.h"
#include "service/prover/pipeline.h"
#include "service/prover/step.h"

#include <stdlib.h>
#include <unistd.h>

struct racer {
    struct dispatcher *dispatcher;
    struct task *task;
    racing_try *try;
};

static atomic_int racers;

static void *race(void *arg) {
    struct racer *racer = arg;
    struct task *task = racer->task;
    unsigned seed = (unsigned)task->order;
    (void)usleep((unsigned)rand_r(&seed) % 1000);
    if (!racer->try(racer->dispatcher, task)) {
        step_begin(task, STEP_MEMORY_WAIT, LEASE_NO_DEADLINE);
        do
            (void)usleep((unsigned)rand_r(&seed) % 1000);
        while (!racer->try(racer->dispatcher, task));
    }
    atomic_fetch_sub(&racers, 1);
    free(racer);
    return NULL;
}

bool racing_start(struct dispatcher *dispatcher, struct task *task, racing_try *try) {
    pthread_t thread;
    struct racer *racer = fault_switch("PROVERQ_RACING") ? malloc(sizeof *racer) : NULL;
    if (!racer) return false;
    *racer = (struct racer){dispatcher, task, try};
    atomic_fetch_add(&racers, 1);
    if (pthread_create(&thread, NULL, race, racer) == 0) return pthread_detach(thread) == 0;
    atomic_fetch_sub(&racers, 1);
    free(racer);
    return false;
}

void racing_join(void) {
    while (atomic_load(&racers) > 0)
        (void)usleep(1000);
}
