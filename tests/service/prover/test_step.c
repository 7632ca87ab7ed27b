/* A step's boundary: the deadline and the evidence that follow from one statement. */
#include "gpu/monotonic.h"
#include "service/prover/step.h"
#include "tests/gpu/suite.h"

#include <string.h>

#define LIMIT_NS INT64_C(1000000000)

static struct error error;
static struct leases *leases;
static struct task task, other;

static void setup(void) {
    memset(&task, 0, sizeof task);
    memset(&other, 0, sizeof other);
    ck_assert_int_eq(leases_open(&leases, &error), ERR_NONE);
}

static void teardown(void) {
    leases_close(leases);
}

static void is_span(const struct task *of, size_t i, enum step step, int16_t worker) {
    ck_assert_uint_gt(of->timing.n, i);
    ck_assert_int_eq(of->timing.spans[i].step, step);
    ck_assert_int_eq(of->timing.spans[i].worker, worker);
}

static int64_t end_of(const struct timing_span *span) {
    return span->start_ns + span->duration_ns;
}

START_TEST(steps_that_follow_each_other_meet) {
    int64_t before = monotonic_ns();
    step_begin(&task, STEP_SYNTHESIS_WAIT, LEASE_NO_DEADLINE);
    step_next(&task, 100, STEP_READ_WITNESS, LIMIT_NS);
    step_next(&task, 100, STEP_CHECK_WITNESS, LIMIT_NS);
    int64_t end = step_end(&task, 101);
    ck_assert_uint_eq(task.timing.n, 3);
    is_span(&task, 0, STEP_SYNTHESIS_WAIT, 100);
    is_span(&task, 1, STEP_READ_WITNESS, 100);
    is_span(&task, 2, STEP_CHECK_WITNESS, 101);
    ck_assert_int_ge(task.timing.spans[0].start_ns, before);
    ck_assert_int_eq(end_of(&task.timing.spans[0]), task.timing.spans[1].start_ns);
    ck_assert_int_eq(end_of(&task.timing.spans[1]), task.timing.spans[2].start_ns);
    ck_assert_int_eq(end_of(&task.timing.spans[2]), end);
}
END_TEST

START_TEST(a_step_begins_and_ends_at_moments_that_are_given) {
    step_begin_at(&task, STEP_MEMORY_WAIT, LEASE_NO_DEADLINE, 1000);
    step_end_at(&task, 0, 3500);
    is_span(&task, 0, STEP_MEMORY_WAIT, 0);
    ck_assert_int_eq(task.timing.spans[0].start_ns, 1000);
    ck_assert_int_eq(task.timing.spans[0].duration_ns, 2500);
}
END_TEST

START_TEST(a_step_that_has_not_ended_is_not_recorded) {
    step_begin(&task, STEP_CHECK_WITNESS, LIMIT_NS);
    step_begin(&task, STEP_RECORD, LEASE_NO_DEADLINE);
    step_end(&task, 40);
    ck_assert_uint_eq(task.timing.n, 1);
    is_span(&task, 0, STEP_RECORD, 40);
}
END_TEST

START_TEST(several_tasks_end_a_step_at_one_moment) {
    struct task *both[] = {&task, &other};
    step_begin_at(&task, STEP_RECORD, LEASE_NO_DEADLINE, 1000);
    step_begin_at(&other, STEP_RECORD, LEASE_NO_DEADLINE, 2000);
    step_end_all(both, 2, 40);
    is_span(&task, 0, STEP_RECORD, 40);
    is_span(&other, 0, STEP_RECORD, 40);
    ck_assert_int_eq(end_of(&task.timing.spans[0]), end_of(&other.timing.spans[0]));
}
END_TEST

START_TEST(the_lease_has_the_steps_name_and_deadline_until_another_begins) {
    struct lease_overdue overdue;
    leases_add(leases, &task.lease);
    step_begin_at(&task, STEP_VERIFY, LIMIT_NS, 0); /* the limit counts from now */
    int64_t now = monotonic_ns();
    ck_assert(!leases_overdue(leases, now, &overdue));
    ck_assert(leases_overdue(leases, now + 2 * LIMIT_NS, &overdue));
    ck_assert_str_eq(overdue.work, "verify");
    step_end(&task, 30);
    ck_assert(leases_overdue(leases, now + 2 * LIMIT_NS, &overdue));
    step_next(&task, 30, STEP_RECORD, LEASE_NO_DEADLINE);
    ck_assert(!leases_overdue(leases, INT64_MAX - 1, &overdue));
    leases_remove(leases, &task.lease);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &steps_that_follow_each_other_meet, &a_step_begins_and_ends_at_moments_that_are_given,
        &a_step_that_has_not_ended_is_not_recorded, &several_tasks_end_a_step_at_one_moment,
        &the_lease_has_the_steps_name_and_deadline_until_another_begins};
    return run_tests("step", setup, teardown, tests, sizeof tests / sizeof *tests);
}
