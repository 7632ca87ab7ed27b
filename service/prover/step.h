/* The boundary of a task's step, said once.
 *
 * From one statement follow the deadline of the task's lease (leases.h), the row of evidence
 * (timing.h) and, in the build for tests, the sleep that is wished for there
 * (service/common/faults.h). The name of each is the step's, from steps.h.
 *
 * A task has one step in hand. It stays in hand after it has ended, with its deadline, until another
 * begins. A step that has not ended when the next one begins is not recorded: it has failed.
 *
 * A GPU worker's own steps are those of its timeline (timeline.h); its task's lease has one deadline
 * for all of them.
 */
#ifndef PROVERQ_STEP_H
#define PROVERQ_STEP_H

#include "service/prover/task.h"

/* `step` begins, and may take `limit_ns` from now on (LEASE_NO_DEADLINE: any time). */
void step_begin(struct task *task, enum step step, int64_t limit_ns);

/* The same, but its time counts from `at_ns`, a moment before now. */
void step_begin_at(struct task *task, enum step step, int64_t limit_ns, int64_t at_ns);

/* The step in hand ends, in the hands of `worker`, at the moment that is returned. */
int64_t step_end(struct task *task, int16_t worker);

/* The same, but at `at_ns`, a moment before now. */
void step_end_at(struct task *task, int16_t worker, int64_t at_ns);

/* The same step of all `n` tasks (at least one) ends at one moment. */
void step_end_all(struct task **tasks, int n, int16_t worker);

/* The step in hand ends and `step` begins, at one moment. */
void step_next(struct task *task, int16_t worker, enum step step, int64_t limit_ns);

#endif
