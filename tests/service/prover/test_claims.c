/* Bounds of claims: when they are used, and that nothing stays hidden below them. */
#include "gpu/monotonic.h"
#include "service/prover/claims.h"
#include "service/prover/timing.h"
#include "tests/service/database.h"

#include <stdio.h>
#include <string.h>

static const int64_t MS = 1000000;

static struct error error;
static struct claims claims;

/* --- when they are used --- */

static void forget(void) {
    memset(&claims, 0, sizeof claims);
}

START_TEST(bounds_are_used_only_after_a_slow_scan) {
    ck_assert(!claims_is_bounded(&claims, 0));
    claims_saw(&claims, 1, 0, 10, 0);
    claims_scanned(&claims, false, 100 * MS, 104 * MS);
    ck_assert(!claims_is_bounded(&claims, 104 * MS));
    claims_scanned(&claims, false, 100 * MS, 120 * MS);
    ck_assert(claims_is_bounded(&claims, 120 * MS));
}
END_TEST

START_TEST(without_a_bound_there_is_nothing_to_use) {
    claims_scanned(&claims, false, 0, 500 * MS);
    ck_assert(!claims_is_bounded(&claims, 500 * MS));
}
END_TEST

START_TEST(scans_without_bounds_take_a_tenth_of_the_time) {
    claims_saw(&claims, 1, 0, 10, 0);
    int64_t now = 0, full = 0;
    while (now < 60000 * MS) {
        bool bounded = claims_is_bounded(&claims, now);
        int64_t took = bounded ? MS : 200 * MS;
        claims_scanned(&claims, bounded, now, now + took);
        now += took;
        if (!bounded) full += took;
    }
    ck_assert_int_le(full, now / 10 + 200 * MS);
    ck_assert_int_ge(full, now / 20);
}
END_TEST

START_TEST(bounds_that_save_nothing_are_not_used_again) {
    claims_saw(&claims, 1, 0, 10, 0);
    claims_scanned(&claims, false, 0, 50 * MS);
    claims_scanned(&claims, true, 50 * MS, 95 * MS); /* the network is slow */
    ck_assert(!claims_is_bounded(&claims, 95 * MS));
}
END_TEST

START_TEST(each_circuit_and_priority_has_the_last_key_that_was_seen) {
    claims_saw(&claims, 1, 0, 10, 0);
    claims_saw(&claims, 1, 5, 11, 2);
    claims_saw(&claims, 2, 0, 7, 1);
    claims_saw(&claims, 1, 0, 10, 3);
    claims_saw(&claims, 1, 5, 4, 0); /* it was below the bound: more may follow there */
    ck_assert_int_eq(claims.n, 3);
    ck_assert(claims.jobs[0] == 10 && claims.partitions[0] == 3);
    ck_assert(claims.jobs[1] == 4 && claims.partitions[1] == 0);
    ck_assert(claims.circuits[2] == 2 && claims.jobs[2] == 7);
}
END_TEST

START_TEST(when_there_are_too_many_the_oldest_goes) {
    for (int i = 0; i <= CLAIMS_BOUNDS; i++)
        claims_saw(&claims, i, 0, 10, 0);
    ck_assert_int_eq(claims.n, CLAIMS_BOUNDS);
    ck_assert_int_eq(claims.circuits[0], 1);
    ck_assert_int_eq(claims.circuits[CLAIMS_BOUNDS - 1], CLAIMS_BOUNDS);
}
END_TEST

/* --- against the database --- */

static const int64_t circuit = 1;

static void setup(void) {
    static const struct db_statement *const statements[] = {&claims_statement};
    forget();
    db = connect_with(statements, 1);
    reset_rows();
    script("select proverq.enqueue_path('c', array_fill('w'::text, array[20]))");
}

/* "job/partition" of what is claimed, separated by spaces. */
static const char *take(int most, bool is_poll) {
    static char text[400];
    struct claims_wish wish = {1, &circuit, 1, 60000, most, is_poll};
    struct db_result *rows = NULL;
    text[0] = '\0';
    CHECK_OK(claims_take(&claims, db, &wish, &rows, &error));
    for (int i = 0; i < db_rows(rows); i++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s%lld/%lld", n ? " " : "",
                 (long long)db_get_int(rows, i, 0), (long long)db_get_int(rows, i, 1));
    }
    db_free(rows);
    return text;
}

/* As after a scan that read past very many dead entries. */
static void be_slow(void) {
    claims.full_ns = 3600000 * MS;
    claims.full_at_ns = monotonic_ns();
    ck_assert(claims_is_bounded(&claims, monotonic_ns()));
}

START_TEST(a_scan_with_bounds_goes_on_behind_the_last) {
    ck_assert_str_eq(take(2, false), "1/0 1/1");
    script("update proverq.partition set state = 'ready', token = null, lease_until = null "
           "where partition_idx = 0");
    be_slow();
    ck_assert_str_eq(take(2, false), "1/2 1/3");
    be_slow();
    ck_assert_str_eq(take(30, false), "1/4 1/5 1/6 1/7 1/8 1/9 1/10 1/11 1/12 1/13 1/14 1/15 1/16 "
                                      "1/17 1/18 1/19");
    be_slow();
    ck_assert_str_eq(take(30, false), "1/0"); /* nothing was found, so it looked below */
    ck_assert_str_eq(take(30, false), "");
}
END_TEST

START_TEST(a_scan_that_is_due_sees_what_is_below_and_goes_on_there) {
    ck_assert_str_eq(take(10, false), "1/0 1/1 1/2 1/3 1/4 1/5 1/6 1/7 1/8 1/9");
    script("update proverq.partition set state = 'ready', token = null, lease_until = null "
           "where partition_idx in (3, 4)");
    claims.full_ns = MS * 5;
    claims.full_at_ns = monotonic_ns() - MS * 46;
    ck_assert_str_eq(take(1, false), "1/3");
    be_slow();
    ck_assert_str_eq(take(2, false), "1/4 1/10");
}
END_TEST

START_TEST(higher_priorities_are_seen_at_once) {
    ck_assert_str_eq(take(1, false), "1/0");
    script("select proverq.enqueue_path('c', '{w}', 5)");
    be_slow();
    ck_assert_str_eq(take(2, false), "2/0 1/1");
}
END_TEST

/* The first job's number is the lower one, and its transaction ends when the second is claimed. */
START_TEST(a_lower_sequence_that_commits_late_is_found) {
    struct db *late = connect_with(NULL, 0);
    CHECK_OK(db_script(late, "test", "begin; select proverq.enqueue_path('c', '{w}')", &error));
    script("select proverq.enqueue_path('c', '{w}')");
    (void)take(20, false);
    ck_assert_str_eq(take(1, false), "3/0");
    CHECK_OK(db_script(late, "test", "commit", &error));
    db_close(late);
    be_slow();
    ck_assert_str_eq(take(1, false), "2/0");
}
END_TEST

/* Nobody said that there is work: then a scan with bounds is enough until another is due. */
START_TEST(a_poll_looks_below_when_a_full_scan_is_due) {
    (void)take(20, false);
    script("update proverq.partition set state = 'ready', token = null, lease_until = null "
           "where partition_idx = 0");
    be_slow();
    ck_assert_str_eq(take(1, true), "");
    claims.full_at_ns = monotonic_ns() - 9 * claims.full_ns;
    ck_assert_str_eq(take(1, true), "1/0");
}
END_TEST

int main(void) {
    const TTest *const *const bounds[] = {&bounds_are_used_only_after_a_slow_scan,
                                          &without_a_bound_there_is_nothing_to_use,
                                          &scans_without_bounds_take_a_tenth_of_the_time,
                                          &bounds_that_save_nothing_are_not_used_again,
                                          &each_circuit_and_priority_has_the_last_key_that_was_seen,
                                          &when_there_are_too_many_the_oldest_goes};
    const TTest *const *const database[] = {
        &a_scan_with_bounds_goes_on_behind_the_last,
        &a_scan_that_is_due_sees_what_is_below_and_goes_on_there,
        &higher_priorities_are_seen_at_once, &a_lower_sequence_that_commits_late_is_found,
        &a_poll_looks_below_when_a_full_scan_is_due};
    Suite *suite = suite_create("claims");
    (void)add_tests(suite, "bounds", forget, NULL, bounds, sizeof bounds / sizeof *bounds);
    TCase *tcase =
        add_tests(suite, "database", setup, close_db, database, sizeof database / sizeof *database);
    tcase_add_unchecked_fixture(tcase, new_schema, NULL);
    return run_suite(suite);
}
