/* What becomes of the records of a device: merged intervals, busy time counted exactly. */
#include "gpu/activity.h"
#include "tests/gpu/suite.h"

#include <stdlib.h>

#define US INT64_C(1000)
#define S  INT64_C(1000000000)

static struct activity *activity;
static struct activity_interval *got;
static size_t n;
static struct error error;

static void setup(void) {
    ck_assert_int_eq(activity_open(&activity, &error), ERR_NONE);
}

static void teardown(void) {
    free(got);
    activity_close(activity);
}

static void add(enum activity_kind kind, int64_t start, int64_t end) {
    activity_add(activity, kind, start, end, end);
}

static void reduce(int64_t until) {
    free(got);
    ck_assert_int_eq(activity_reduce(activity, until, &got, &n, &error), ERR_NONE);
}

static void is(size_t i, enum activity_kind kind, int64_t start, int64_t end, int64_t busy) {
    ck_assert_uint_lt(i, n);
    ck_assert_int_eq(got[i].kind, kind);
    ck_assert_int_eq(got[i].start_ns, start);
    ck_assert_int_eq(got[i].end_ns, end);
    ck_assert_int_eq(got[i].busy_ns, busy);
}

START_TEST(records_that_overlap_are_one_interval_and_count_once) {
    add(ACTIVITY_KERNEL, 100 * US, 200 * US);
    add(ACTIVITY_KERNEL, 150 * US, 170 * US); /* inside */
    add(ACTIVITY_KERNEL, 190 * US, 300 * US);
    add(ACTIVITY_KERNEL, 300 * US, 310 * US); /* meets */
    reduce(S);
    ck_assert_uint_eq(n, 1);
    is(0, ACTIVITY_KERNEL, 100 * US, 310 * US, 210 * US);
}
END_TEST

START_TEST(short_pauses_are_bridged_but_are_not_busy) {
    add(ACTIVITY_KERNEL, 0, 10 * US);
    add(ACTIVITY_KERNEL, 14 * US, 20 * US);
    add(ACTIVITY_KERNEL, 25 * US, 30 * US); /* 5 us later: a gap */
    reduce(S);
    ck_assert_uint_eq(n, 2);
    is(0, ACTIVITY_KERNEL, 0, 20 * US, 16 * US);
    is(1, ACTIVITY_KERNEL, 25 * US, 30 * US, 5 * US);
}
END_TEST

START_TEST(the_order_in_which_records_come_does_not_matter) {
    for (int64_t i = 999; i >= 0; i--)
        add(ACTIVITY_KERNEL, (i * 7 % 1000) * 100 * US, (i * 7 % 1000) * 100 * US + 60 * US);
    reduce(S);
    ck_assert_uint_eq(n, 1000);
    for (size_t i = 0; i < n; i++)
        is(i, ACTIVITY_KERNEL, (int64_t)i * 100 * US, (int64_t)i * 100 * US + 60 * US, 60 * US);
}
END_TEST

START_TEST(kinds_do_not_mix) {
    add(ACTIVITY_KERNEL, 0, 100 * US);
    add(ACTIVITY_COPY, 50 * US, 150 * US);
    reduce(S);
    ck_assert_uint_eq(n, 2);
    is(0, ACTIVITY_KERNEL, 0, 100 * US, 100 * US);
    is(1, ACTIVITY_COPY, 50 * US, 150 * US, 100 * US);
}
END_TEST

START_TEST(a_record_across_the_limit_is_cut_there_and_goes_on) {
    add(ACTIVITY_KERNEL, 100 * US, 300 * US);
    add(ACTIVITY_KERNEL, 250 * US, 400 * US);
    add(ACTIVITY_KERNEL, 500 * US, 600 * US);
    reduce(260 * US);
    ck_assert_uint_eq(n, 1);
    is(0, ACTIVITY_KERNEL, 100 * US, 260 * US, 160 * US);
    reduce(260 * US);
    ck_assert_uint_eq(n, 0);
    ck_assert_ptr_null(got);
    reduce(S);
    ck_assert_uint_eq(n, 2);
    is(0, ACTIVITY_KERNEL, 260 * US, 400 * US, 140 * US);
    is(1, ACTIVITY_KERNEL, 500 * US, 600 * US, 100 * US);
}
END_TEST

/* Whatever the records and the limits: the busy time is that of a bitmap. */
START_TEST(busy_time_is_that_of_a_bitmap) {
    static bool busy[100000];
    int64_t sum = 0, want = 0;
    srand(1);
    for (int i = 0; i < 3000; i++) {
        int start = rand() % 99000, length = rand() % 40;
        add(ACTIVITY_KERNEL, start, start + length);
        for (int t = start; t < start + length; t++)
            busy[t] = true;
    }
    for (int t = 0; t < 100000; t++)
        want += busy[t];
    for (int64_t until = 0; until <= 100000; until += 777) {
        reduce(until + 777);
        for (size_t i = 0; i < n; i++) {
            ck_assert_int_le(got[i].busy_ns, got[i].end_ns - got[i].start_ns);
            sum += got[i].busy_ns;
        }
    }
    ck_assert_int_eq(sum, want);
}
END_TEST

START_TEST(a_late_record_is_told_too) {
    add(ACTIVITY_KERNEL, 100 * US, 200 * US);
    reduce(S);
    add(ACTIVITY_KERNEL, 300 * US, 400 * US);
    reduce(2 * S);
    ck_assert_uint_eq(n, 1);
    is(0, ACTIVITY_KERNEL, 300 * US, 400 * US, 100 * US);
}
END_TEST

START_TEST(times_are_settled_later_when_records_come_later) {
    ck_assert_int_eq(activity_settled(activity, 100 * S), 98 * S);
    activity_add(activity, ACTIVITY_CPU_SPAN, 10 * S, 11 * S, 20 * S);
    ck_assert_int_eq(activity_settled(activity, 100 * S), 80 * S);
}
END_TEST

START_TEST(no_time_is_no_record) {
    add(ACTIVITY_KERNEL, 100, 100);
    add(ACTIVITY_KERNEL, 200, 100);
    reduce(S);
    ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(records_that_nobody_takes_are_dropped_and_counted) {
    for (int64_t i = 0; i < ACTIVITY_PENDING_MAX + 10; i++)
        add(ACTIVITY_COPY, i, i + 1);
    ck_assert_uint_eq(activity_dropped(activity), 10);
    ck_assert_uint_eq(activity_dropped(activity), 0);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&records_that_overlap_are_one_interval_and_count_once,
                                         &short_pauses_are_bridged_but_are_not_busy,
                                         &the_order_in_which_records_come_does_not_matter,
                                         &kinds_do_not_mix,
                                         &a_record_across_the_limit_is_cut_there_and_goes_on,
                                         &busy_time_is_that_of_a_bitmap,
                                         &a_late_record_is_told_too,
                                         &times_are_settled_later_when_records_come_later,
                                         &no_time_is_no_record,
                                         &records_that_nobody_takes_are_dropped_and_counted};
    return run_tests("activity", setup, teardown, tests, sizeof tests / sizeof *tests);
}
