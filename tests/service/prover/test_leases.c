/* The leases of what is in hand: deadlines, and what becomes of them. */
#include "gpu/monotonic.h"
#include "service/prover/leases.h"
#include "tests/gpu/suite.h"

#include <poll.h>
#include <string.h>

static struct error error;
static struct leases *all;

static void setup(void) {
    ck_assert_int_eq(leases_open(&all, &error), ERR_NONE);
}

static void teardown(void) {
    leases_close(all);
}

START_TEST(a_step_past_its_deadline_is_found) {
    struct lease first = {.job = 1, .partition = 2}, second = {.job = 3, .partition = 4};
    struct lease_overdue overdue;
    leases_add(all, &first);
    leases_add(all, &second);
    lease_limit(&first, "queue_wait", LEASE_NO_DEADLINE);
    lease_limit(&second, "verify", INT64_C(1000000000));
    int64_t now = monotonic_ns();
    ck_assert(!leases_overdue(all, now, &overdue));
    ck_assert(leases_overdue(all, now + INT64_C(2000000000), &overdue));
    ck_assert_int_eq(overdue.job, 3);
    ck_assert_int_eq(overdue.partition, 4);
    ck_assert_str_eq(overdue.work, "verify");
    leases_remove(all, &second);
    ck_assert(!leases_overdue(all, INT64_MAX - 1, &overdue));
    leases_remove(all, &first);
}
END_TEST

START_TEST(a_lease_whose_outcome_is_known_is_not_lost_by_being_ended) {
    struct lease leases[3];
    struct uuid tokens[3];
    int64_t jobs[3], partitions[3];
    struct lease_loss loss;
    memset(leases, 0, sizeof leases);
    for (size_t i = 0; i < 3; i++) {
        leases[i].token.bytes[0] = (uint8_t)(i + 1);
        leases[i].job = (int64_t)i;
        leases[i].partition = (int32_t)i + 10;
        lease_limit(&leases[i], "prove", LEASE_NO_DEADLINE);
        leases_add(all, &leases[i]);
    }
    ck_assert_uint_eq(leases_list(all, false, jobs, partitions, tokens, 3), 3);
    lease_record(&leases[1]); /* between the question and the answer */
    ck_assert(leases_lose(all, &leases[0].token, LEASE_CANCELLED, &loss));
    ck_assert(loss.job == 0 && loss.partition == 10 && strcmp(loss.work, "prove") == 0);
    ck_assert(!leases_lose(all, &leases[0].token, LEASE_CANCELLED, &loss));
    ck_assert(!leases_lose(all, &leases[1].token, LEASE_TAKEN, &loss));
    ck_assert(lease_is_lost(&leases[0]));
    ck_assert(!lease_is_lost(&leases[1]));
    ck_assert(!lease_is_lost(&leases[2]));
    ck_assert_uint_eq(leases_list(all, false, jobs, partitions, tokens, 3), 1);
    ck_assert(jobs[0] == 2 && partitions[0] == 12);
    ck_assert_uint_eq(leases_list(all, true, jobs, partitions, tokens, 3), 3); /* all are renewed */
    for (size_t i = 0; i < 3; i++)
        leases_remove(all, &leases[i]);
}
END_TEST

static bool is_readable(int fd) {
    struct pollfd poll_fd = {fd, POLLIN, 0};
    return poll(&poll_fd, 1, 0) > 0;
}

START_TEST(who_watches_a_lease_hears_that_it_is_lost_or_that_all_is_over) {
    struct lease leases[2];
    struct lease_loss loss;
    memset(leases, 0, sizeof leases);
    for (size_t i = 0; i < 2; i++) {
        leases[i].token.bytes[0] = (uint8_t)(i + 1);
        leases_add(all, &leases[i]);
    }
    int first = lease_watch(all, &leases[0]);
    int second = lease_watch(all, &leases[1]);
    ck_assert(first >= 0 && second >= 0 && !is_readable(first));
    ck_assert(leases_lose(all, &leases[0].token, LEASE_TAKEN, &loss));
    ck_assert(is_readable(first) && !is_readable(second));
    leases_wake(all);
    ck_assert(is_readable(second));
    lease_unwatch(all, &leases[0]);
    first = lease_watch(all, &leases[0]); /* too late to watch */
    ck_assert(is_readable(first));
    for (size_t i = 0; i < 2; i++) {
        lease_unwatch(all, &leases[i]);
        leases_remove(all, &leases[i]);
    }
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &a_step_past_its_deadline_is_found,
        &a_lease_whose_outcome_is_known_is_not_lost_by_being_ended,
        &who_watches_a_lease_hears_that_it_is_lost_or_that_all_is_over};
    return run_tests("leases", setup, teardown, tests, sizeof tests / sizeof *tests);
}
