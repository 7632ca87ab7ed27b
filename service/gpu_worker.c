#include "gpu/wtns.h"
#include "service/stages.h"

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

static enum err prove(const struct stage_thread *self, struct task *task, struct error *error) {
    const struct scalar *witness = task->wtns->values;
    bool is_cpu = strcmp(device_name(self->pipeline->device), "cpu") == 0;
    enum err rc;
    task->gpu_worker = self->worker;
    lease_step(&task->lease, "prove", prove_limit_ns(is_cpu, task->circuit->zkey));
    TRY(prove_start(task->circuit->key, &witness, 1, &task->pending, error));
    TRY(prove_wait_inputs(task->pending, error));
    TRY(prove_wait_device(task->pending, error));
    return ERR_NONE;
fail:
    prove_abandon(task->pending);
    task->pending = NULL;
    return rc;
}

void *gpu_worker_main(void *arg) {
    struct stage_thread *self = arg;
    struct pipeline *pipeline = self->pipeline;
    struct error error;
    for (struct task *task; (task = queue_pop(&pipeline->gpu)) != NULL;) {
        if (pipeline_is_over(pipeline, task)) continue;
        pipeline_room(pipeline, task);
        enum err rc = prove(self, task, &error);
        if (rc == ERR_NONE) {
            lease_step(&task->lease, "finish", LEASE_NO_DEADLINE);
            queue_push(&pipeline->finish, task);
            continue;
        }
        if (rc == ERR_DEVICE_FAULT) pipeline_fault(pipeline, &error);
        pipeline_give_up(pipeline, task, &error);
    }
    return NULL;
}
