#include "service/prover/pipeline.h"
#include "gpu/monotonic.h"
#include "service/common/log.h"
#include "service/prover/step.h"

#include <stdlib.h>
#include <sys/eventfd.h>

void wake_up(int fd) {
    (void)eventfd_write(fd, 1); /* fails only when it is readable already */
}

void wake_clear(int fd) {
    eventfd_t count;
    (void)eventfd_read(fd, &count); /* it is non-blocking; nothing to read is fine */
}

void pipeline_begin(struct pipeline *pipeline, struct task *task) {
    atomic_fetch_add(&pipeline->in_hand, 1);
    atomic_fetch_add(&pipeline->ahead, 1);
    task->is_ahead = true;
    task->is_computing = task->inputs != NULL;
    if (task->is_computing) atomic_fetch_add(&pipeline->computing, 1);
    leases_add(pipeline->leases, &task->lease);
}

void pipeline_end(struct pipeline *pipeline, struct task *task) {
    leases_remove(pipeline->leases, &task->lease);
    atomic_fetch_sub(&pipeline->in_hand, 1);
    wake_up(pipeline->dispatcher_wake);
    free(task->publics);
    free(task);
}

/* From the beginning of the first of these steps to the end of the last; -1 without any. */
static int64_t took(const struct timing *timing, enum step first, enum step last) {
    int64_t start = INT64_MAX, end = INT64_MIN;
    for (size_t i = 0; i < timing->n; i++) {
        const struct timing_span *span = &timing->spans[i];
        if (span->step < first || span->step > last) continue;
        if (span->start_ns < start) start = span->start_ns;
        if (span->start_ns + span->duration_ns > end) end = span->start_ns + span->duration_ns;
    }
    return end < start ? -1 : end - start;
}

void pipeline_room(struct pipeline *pipeline, struct task *task) {
    if (!task->is_ahead) return;
    if (took(&task->timing, STEP_COMPUTE_WITNESS, STEP_COMPUTE_WITNESS) < 0) /* those come on top */
        pacing_synthesized(&pipeline->pacing,
                           took(&task->timing, STEP_READ_WITNESS, STEP_CHECK_WITNESS));
    task->is_ahead = false;
    atomic_fetch_sub(&pipeline->ahead, 1);
    wake_up(pipeline->dispatcher_wake);
}

void pipeline_computed(struct pipeline *pipeline, struct task *task) {
    if (!task->is_computing) return;
    task->is_computing = false;
    atomic_fetch_sub(&pipeline->computing, 1);
}

static void to_record(struct pipeline *pipeline, struct task *task, enum outcome outcome) {
    task->outcome = outcome;
    task_drop_witness(task, pipeline->buffers);
    if (task->has_key) keyring_leave(pipeline->keyring, task->circuit);
    task->has_key = false;
    pipeline_computed(pipeline, task);
    pipeline_room(pipeline, task);
    wake_up(pipeline->dispatcher_wake); /* a buffer is free, and perhaps a key */
    lease_record(&task->lease);
    step_begin(task, STEP_RECORD, LEASE_NO_DEADLINE);
    queue_push(&pipeline->record, task);
}

/* Proofs overlap on a device with slots: a busy one gives a proof in half of the time that one
 * takes there. */
void pipeline_proved(struct pipeline *pipeline, struct task *task) {
    pacing_proved(&pipeline->pacing,
                  took(&task->timing, STEP_COPY_IN, STEP_COPY_OUT) / PROVE_SLOTS);
    to_record(pipeline, task, OUTCOME_PROOF);
}

void pipeline_give_up(struct pipeline *pipeline, struct task *task, const struct error *error) {
    task->error = *error;
    to_record(pipeline, task, error->code == ERR_ABSENT ? OUTCOME_RELEASE : OUTCOME_FAILURE);
}

bool pipeline_is_lost(struct pipeline *pipeline, struct task *task) {
    enum lease_fate fate = atomic_load(&task->lease.fate);
    if (fate == LEASE_VALID) return false;
    error_set(&task->error, ERR_LOST_LEASE, "%s", lease_fate_meaning(fate));
    to_record(pipeline, task, OUTCOME_DROP);
    return true;
}

bool pipeline_is_over(struct pipeline *pipeline, struct task *task) {
    if (pipeline_is_lost(pipeline, task)) return true;
    if (!atomic_load(&pipeline->stopping)) return false;
    error_set(&task->error, ERR_NONE, "the prover is stopping");
    to_record(pipeline, task, OUTCOME_RELEASE);
    return true;
}

void pipeline_stop(struct pipeline *pipeline) {
    int64_t not_yet = 0;
    atomic_compare_exchange_strong(&pipeline->stopped_ns, &not_yet, monotonic_ns());
    atomic_store(&pipeline->stopping, true);
    wake_up(pipeline->stop_fd);
    wake_up(pipeline->dispatcher_wake);
    wake_up(pipeline->loader_wake);
    if (pipeline->leases) leases_wake(pipeline->leases); /* witnesses that are being computed */
}

void pipeline_fault(struct pipeline *pipeline, const struct error *error) {
    pthread_mutex_lock(&pipeline->fault_mutex);
    if (pipeline->fault.code == ERR_NONE) {
        pipeline->fault = *error;
        log_error("this prover cannot go on", log_text("code", error_name(error->code)),
                  log_text("error", error->text));
    }
    pthread_mutex_unlock(&pipeline->fault_mutex);
    pipeline_stop(pipeline);
}
