#include "gpu/wtns.h"
#include "service/common/faults.h"
#include "service/prover/stages.h"
#include "service/prover/step.h"

#include <string.h>

/* Time that a proof may take on the device, waiting for the one before it included: a base, and
 * so much for each point of the domain. Generous (a dense proof takes some 60 us a point on one
 * core, 1 us on an H200): it is there to end what hangs, not what is slow. */
#define PROVE_LIMIT_NS      INT64_C(120000000000)
#define CPU_NS_PER_POINT    2000000
#define DEVICE_NS_PER_POINT 50000

int64_t prove_limit_ns(bool is_cpu, const struct zkey *zkey) {
    return PROVE_LIMIT_NS +
           (int64_t)zkey->domain_size * (is_cpu ? CPU_NS_PER_POINT : DEVICE_NS_PER_POINT);
}

/* prove_start waits for a slot first, then enqueues; the CPU computes there too. */
static enum err start(struct timeline *timeline, struct task *task, bool is_cpu,
                      struct error *error) {
    const struct scalar *witness = task->wtns->values;
    enum err rc;
    timeline_next(timeline, STEP_SLOT_WAIT);
    TRY(prove_start(task->circuit->key, &witness, 1, &task->pending, error));
    timeline_next_at(timeline, is_cpu ? STEP_COMPUTE : STEP_LAUNCH, prove_slot_ns(task->pending));
fail:
    return rc;
}

/* The steps from pick_up to device_wait have one deadline. */
static enum err prove(const struct stage_thread *self, struct timeline *timeline, struct task *task,
                      struct error *error) {
    bool is_cpu = strcmp(device_name(self->pipeline->device), "cpu") == 0;
    enum err rc;
    task->gpu_worker = self->worker;
    lease_limit(&task->lease, "prove", prove_limit_ns(is_cpu, task->circuit->zkey));
    TRY(fault_device(error));
    TRY(start(timeline, task, is_cpu, error));
    if (is_cpu) return ERR_NONE; /* it has nothing left to wait for */
    timeline_next(timeline, STEP_INPUTS_WAIT);
    TRY(prove_wait_inputs(task->pending, error));
    timeline_next(timeline, STEP_DEVICE_WAIT);
    TRY(prove_wait_device(task->pending, error));
    return ERR_NONE;
fail:
    prove_abandon(task->pending);
    task->pending = NULL;
    return rc;
}

/* A task, or NULL when the stage is over; a worker that waits long is seen to be idle meanwhile. */
static struct task *next_task(struct pipeline *pipeline, struct timeline *timeline) {
    struct task *task;
    while (!queue_pop_within(&pipeline->gpu, TIMELINE_CUT_NS, &task))
        timeline_next(timeline, STEP_IDLE);
    return task;
}

/* What was idle ends, and with it the task's wait. */
static void pick_up(const struct stage_thread *self, struct timeline *timeline, struct task *task) {
    timeline_next_at(timeline, STEP_PICK_UP, step_end(task, self->worker));
    timeline_take(timeline, task->job, task->partition, task->attempt, NULL);
}

/* Nothing more for the task. */
static void go_on(struct timeline *timeline) {
    timeline_next(timeline, STEP_IDLE);
    timeline_take(timeline, -1, 0, 0, NULL);
}

/* From the end of the proof on the task is the next stage's, as soon as it is pushed. */
static void hand_over(struct pipeline *pipeline, struct timeline *timeline, struct task *task,
                      enum err rc, const struct error *error) {
    int64_t at = timeline_next(timeline, STEP_HAND_OVER);
    timeline_take(timeline, task->job, task->partition, task->attempt, NULL);
    if (rc == ERR_NONE) {
        step_begin_at(task, STEP_FINISH_WAIT, LEASE_NO_DEADLINE, at);
        queue_push(&pipeline->verify, task);
    } else {
        if (rc == ERR_DEVICE_FAULT) pipeline_fault(pipeline, error);
        pipeline_give_up(pipeline, task, error);
    }
    go_on(timeline);
}

void *gpu_worker_main(void *arg) {
    struct stage_thread *self = arg;
    struct pipeline *pipeline = self->pipeline;
    struct timeline timeline;
    struct error error;
    timeline_begin(&timeline, &pipeline->timelines, self->worker, STEP_IDLE);
    for (struct task *task; (task = next_task(pipeline, &timeline)) != NULL;) {
        pick_up(self, &timeline, task);
        if (pipeline_is_over(pipeline, task)) {
            go_on(&timeline);
            continue;
        }
        timeline_take(&timeline, task->job, task->partition, task->attempt, &task->timing);
        pipeline_room(pipeline, task);
        enum err rc = prove(self, &timeline, task, &error);
        hand_over(pipeline, &timeline, task, rc, &error);
    }
    timeline_end(&timeline);
    return NULL;
}
