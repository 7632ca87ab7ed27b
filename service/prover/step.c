#include "service/prover/step.h"

void step_begin_at(struct task *task, enum step step, int64_t limit_ns, int64_t at_ns) {
    task->step = step;
    task->step_ns = at_ns;
    lease_limit(&task->lease, step_name(step), limit_ns);
}

void step_begin(struct task *task, enum step step, int64_t limit_ns) {
    step_begin_at(task, step, limit_ns, timing_start(step));
}

void step_end_at(struct task *task, int16_t worker, int64_t at_ns) {
    timing_add(&task->timing, task->step, worker, task->step_ns, at_ns);
}

int64_t step_end(struct task *task, int16_t worker) {
    int64_t now = timing_stop(task->step);
    step_end_at(task, worker, now);
    return now;
}

void step_end_all(struct task **tasks, int n, int16_t worker) {
    int64_t now = timing_stop(tasks[0]->step);
    for (int i = 0; i < n; i++)
        step_end_at(tasks[i], worker, now);
}

void step_next(struct task *task, int16_t worker, enum step step, int64_t limit_ns) {
    step_begin_at(task, step, limit_ns, step_end(task, worker));
}
