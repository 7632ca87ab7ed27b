/* How far ahead of its device a prover claims. */
#include "service/prover/pacing.h"
#include "tests/gpu/suite.h"

static struct pacing pacing;

static void open_pacing(void) {
    pacing_init(&pacing);
}
static void close_pacing(void) {
    pacing_destroy(&pacing);
}

#define MS INT64_C(1000000)

static int depth_after(int64_t claim_ns, int64_t synthesis_ns, int64_t device_ns, int threads) {
    for (int i = 0; i < 100; i++) {
        pacing_claimed(&pacing, claim_ns);
        pacing_synthesized(&pacing, synthesis_ns);
        pacing_proved(&pacing, device_ns);
    }
    return pacing_depth(&pacing, threads);
}

START_TEST(nothing_measured_is_a_fixed_depth) {
    ck_assert_int_eq(pacing_depth(&pacing, 2), PACING_FIRST);
    pacing_claimed(&pacing, MS);
    ck_assert_int_eq(pacing_depth(&pacing, 2), PACING_FIRST);
}
END_TEST

START_TEST(a_slow_device_needs_little_ahead) {
    ck_assert_int_eq(depth_after(MS, 10 * MS, 1000 * MS, 2), PACING_LEAST);
}
END_TEST

START_TEST(a_fast_device_needs_what_is_on_its_way) {
    ck_assert_int_eq(depth_after(2 * MS, 8 * MS, MS, 16), 12); /* 10 proofs in 10 ms, and two */
}
END_TEST

START_TEST(a_synthesis_that_is_slower_than_the_device_is_kept_busy_and_no_more) {
    /* 4 threads make one witness in 25 ms: 4 in their hands, one for the claim, two that are ready */
    ck_assert_int_eq(depth_after(MS, 100 * MS, MS, 4), 7);
}
END_TEST

START_TEST(the_depth_has_bounds) {
    ck_assert_int_eq(depth_after(1000 * MS, 0, 1, 1), PACING_MOST);
    pacing_claimed(&pacing, -1); /* no measurement */
    ck_assert_int_eq(pacing_depth(&pacing, 1), PACING_MOST);
}
END_TEST

START_TEST(the_depth_follows_what_is_measured_last) {
    ck_assert_int_eq(depth_after(MS, MS, 100 * MS, 2), PACING_LEAST);
    ck_assert_int_gt(depth_after(MS, 9 * MS, MS, 10), PACING_LEAST);
    ck_assert_int_eq(depth_after(MS, MS, 100 * MS, 2), PACING_LEAST);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &nothing_measured_is_a_fixed_depth,
        &a_slow_device_needs_little_ahead,
        &a_fast_device_needs_what_is_on_its_way,
        &a_synthesis_that_is_slower_than_the_device_is_kept_busy_and_no_more,
        &the_depth_has_bounds,
        &the_depth_follows_what_is_measured_last};
    return run_tests("pacing", open_pacing, close_pacing, tests, sizeof tests / sizeof *tests);
}
