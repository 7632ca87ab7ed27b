/* A worker's life, tiled: no time between its steps, none left over, none twice. */
#include "gpu/monotonic.h"
#include "service/prover/timeline.h"
#include "tests/gpu/suite.h"

#include <string.h>

static struct timeline_log made;
static struct timeline_row rows[TIMELINE_LOG_MAX];

static void setup(void) {
    timeline_log_init(&made);
}

static void teardown(void) {
    timeline_log_destroy(&made);
}

START_TEST(steps_meet_wherever_their_rows_go) {
    struct timing timing = {.n = 0};
    struct timeline timeline;
    timeline_begin(&timeline, &made, 20, STEP_IDLE);
    int64_t picked = timeline_next(&timeline, STEP_PICK_UP);
    timeline_take(&timeline, 7, 3, 1, &timing);
    timeline_next(&timeline, STEP_SLOT_WAIT);
    timeline_next_at(&timeline, STEP_LAUNCH, monotonic_ns());
    int64_t handed = timeline_next(&timeline, STEP_HAND_OVER);
    timeline_take(&timeline, 7, 3, 1, NULL);
    timeline_next(&timeline, STEP_IDLE);
    timeline_take(&timeline, -1, 0, 0, NULL);
    timeline_end(&timeline);

    ck_assert_uint_eq(timing.n, 3);
    ck_assert_int_eq(timing.spans[0].step, STEP_PICK_UP);
    ck_assert_int_eq(timing.spans[0].start_ns, picked);
    for (size_t i = 1; i < timing.n; i++)
        ck_assert_int_eq(timing.spans[i].start_ns,
                         timing.spans[i - 1].start_ns + timing.spans[i - 1].duration_ns);
    ck_assert_int_eq(timing.spans[2].start_ns + timing.spans[2].duration_ns, handed);

    ck_assert_uint_eq(timeline_log_copy(&made, rows, TIMELINE_LOG_MAX), 3);
    ck_assert_int_eq(rows[0].span.step, STEP_IDLE);
    ck_assert_int_eq(rows[0].job, -1);
    ck_assert_int_eq(rows[0].span.start_ns + rows[0].span.duration_ns, picked);
    ck_assert_int_eq(rows[1].span.step, STEP_HAND_OVER);
    ck_assert_int_eq(rows[1].job, 7);
    ck_assert_int_eq(rows[1].partition, 3);
    ck_assert_int_eq(rows[1].span.start_ns, handed);
    ck_assert_int_eq(rows[2].span.step, STEP_IDLE);
    ck_assert_int_eq(rows[2].job, -1);
    ck_assert_int_eq(rows[2].span.start_ns, rows[1].span.start_ns + rows[1].span.duration_ns);
}
END_TEST

START_TEST(a_moment_before_the_step_in_hand_is_its_start) {
    struct timeline timeline;
    timeline_begin(&timeline, &made, 20, STEP_SLOT_WAIT);
    int64_t since = timeline.since_ns;
    timeline_next_at(&timeline, STEP_LAUNCH, since - 1000);
    timeline_end(&timeline);
    ck_assert_uint_eq(timeline_log_copy(&made, rows, TIMELINE_LOG_MAX), 2);
    ck_assert_int_eq(rows[0].span.duration_ns, 0);
    ck_assert_int_eq(rows[1].span.start_ns, since);
}
END_TEST

START_TEST(rows_stay_until_they_are_dropped) {
    struct timeline_row row = {.span = {STEP_IDLE, 20, 0, 1}, .job = -1};
    for (int i = 0; i < 5; i++) {
        row.span.start_ns = i;
        timeline_log_add(&made, &row);
    }
    ck_assert_uint_eq(timeline_log_copy(&made, rows, 3), 3);
    ck_assert_uint_eq(timeline_log_copy(&made, rows, 3), 3);
    ck_assert_uint_eq(timeline_log_drop(&made, 3), 0);
    ck_assert_uint_eq(timeline_log_copy(&made, rows, 3), 2);
    ck_assert_int_eq(rows[0].span.start_ns, 3);
}
END_TEST

START_TEST(rows_without_room_are_counted) {
    struct timeline_row row = {.span = {STEP_IDLE, 20, 0, 1}, .job = -1};
    for (int i = 0; i < TIMELINE_LOG_MAX + 7; i++)
        timeline_log_add(&made, &row);
    ck_assert_uint_eq(timeline_log_copy(&made, rows, TIMELINE_LOG_MAX), TIMELINE_LOG_MAX);
    ck_assert_uint_eq(timeline_log_drop(&made, TIMELINE_LOG_MAX), 7);
    ck_assert_uint_eq(timeline_log_drop(&made, 0), 0);
}
END_TEST

START_TEST(a_refused_attempt_leaves_what_its_worker_did) {
    struct timing timing = {.n = 0};
    timing_add(&timing, STEP_CLAIM, 0, 0, 10);
    timing_add(&timing, STEP_PICK_UP, 20, 10, 20);
    timing_add(&timing, STEP_MSM_A, 20, 20, 30);
    timing_add(&timing, STEP_DEVICE_WAIT, 20, 20, 40);
    timeline_log_keep(&made, &timing, 5, 1, 2);
    ck_assert_uint_eq(timeline_log_copy(&made, rows, TIMELINE_LOG_MAX), 2);
    ck_assert_int_eq(rows[0].span.step, STEP_PICK_UP);
    ck_assert_int_eq(rows[1].span.step, STEP_DEVICE_WAIT);
    ck_assert_int_eq(rows[1].job, 5);
    ck_assert_int_eq(rows[1].attempt, 2);
}
END_TEST

START_TEST(rounded_to_microseconds_steps_still_meet) {
    struct timing timing = {.n = 0};
    struct timing_columns columns;
    int64_t at = 1234567;
    for (int i = 0; i < 20; i++) {
        timing_add(&timing, STEP_IDLE, 20, at, at + 700 + 311 * i);
        at += 700 + 311 * i;
    }
    timing_to_columns(&timing, INT64_C(1796000000000000123), &columns);
    for (size_t i = 1; i < columns.n; i++)
        ck_assert_int_eq(columns.started_us[i],
                         columns.started_us[i - 1] + columns.durations_us[i - 1]);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&steps_meet_wherever_their_rows_go,
                                         &a_moment_before_the_step_in_hand_is_its_start,
                                         &rows_stay_until_they_are_dropped,
                                         &rows_without_room_are_counted,
                                         &a_refused_attempt_leaves_what_its_worker_did,
                                         &rounded_to_microseconds_steps_still_meet};
    return run_tests("timeline", setup, teardown, tests, sizeof tests / sizeof *tests);
}
