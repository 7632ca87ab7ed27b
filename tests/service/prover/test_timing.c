/* What is recorded of when steps ran. */
#include "gpu/monotonic.h"
#include "service/prover/timing.h"
#include "tests/gpu/suite.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

START_TEST(steps_tile_the_time_between_them) {
    struct timing timing = {.n = 0};
    int64_t start = monotonic_ns(), at = start;
    at = timing_end(&timing, STEP_READ_WITNESS, 10, at);
    at = timing_end(&timing, STEP_CHECK_WITNESS, 11, at);
    ck_assert_uint_eq(timing.n, 2);
    ck_assert_int_eq(timing.spans[0].start_ns, start);
    ck_assert_int_eq(timing.spans[1].start_ns,
                     timing.spans[0].start_ns + timing.spans[0].duration_ns);
    ck_assert_int_eq(timing.spans[1].start_ns + timing.spans[1].duration_ns, at);
    ck_assert_int_eq(timing.spans[1].worker, 11);
}
END_TEST

START_TEST(columns_are_microseconds_of_wall_clock_time) {
    struct timing timing = {.n = 0};
    struct timing_columns columns;
    timing_add(&timing, STEP_NTT, 20, 5000000, 5000000 + 1234567);
    timing_to_columns(&timing, INT64_C(1796000000000000000), &columns);
    ck_assert_uint_eq(columns.n, 1);
    ck_assert_int_eq(columns.steps[0], 52);
    ck_assert_int_eq(columns.workers[0], 20);
    ck_assert_int_eq(columns.started_us[0], INT64_C(1796000000005000));
    ck_assert_int_eq(columns.durations_us[0], 1234);
}
END_TEST

START_TEST(a_monotonic_time_is_now_on_the_wall_clock) {
    struct timing timing = {.n = 0};
    struct timing_columns columns;
    struct timespec wall;
    timing_add(&timing, STEP_CLAIM, 0, monotonic_ns(), monotonic_ns());
    timing_to_columns(&timing, timing_wall_offset(), &columns);
    clock_gettime(CLOCK_REALTIME, &wall);
    int64_t now_us = (int64_t)wall.tv_sec * 1000000 + wall.tv_nsec / 1000;
    ck_assert_int_le(llabs(now_us - columns.started_us[0]), 1000000);
}
END_TEST

START_TEST(more_steps_than_fit_are_dropped) {
    struct timing timing = {.n = 0};
    for (int i = 0; i < TIMING_MAX + 5; i++)
        timing_add(&timing, STEP_CLAIM, 0, i, i + 1);
    ck_assert_uint_eq(timing.n, TIMING_MAX);
    ck_assert_int_eq(timing.spans[TIMING_MAX - 1].start_ns, TIMING_MAX - 1);
}
END_TEST

START_TEST(an_attempt_with_every_step_fits) {
    int steps = 0;
#define X(constant, id, name, description) steps++;
    STEP_TABLE(X)
#undef X
    ck_assert_int_le(steps, TIMING_MAX);
}
END_TEST

START_TEST(every_step_of_the_prover_library_has_its_name_here) {
    for (int i = 0; i < PROVE_STEP_COUNT; i++)
        ck_assert_str_eq(step_name(step_of_prove((enum prove_step)i)),
                         prove_step_name((enum prove_step)i));
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&steps_tile_the_time_between_them,
                                         &columns_are_microseconds_of_wall_clock_time,
                                         &a_monotonic_time_is_now_on_the_wall_clock,
                                         &more_steps_than_fit_are_dropped,
                                         &an_attempt_with_every_step_fits,
                                         &every_step_of_the_prover_library_has_its_name_here};
    return run_tests("timing", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
