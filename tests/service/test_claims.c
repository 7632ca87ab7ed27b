/* Bounds of claims: when they are used, and that nothing stays hidden below them. */
#include "service/claims.h"
#include "service/migrate.h"
#include "service/timing.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
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

static struct db *db;
static int64_t circuit;

static void must(enum err rc) {
    ck_assert_msg(rc == ERR_NONE, "%s", error.text);
}

static void sql(const char *text) {
    must(db_script(db, "test", text, &error));
}

static void setup(void) {
    static const struct db_statement *const statements[] = {&claims_statement};
    struct db_settings settings = {.conninfo = getenv("PROVERQ_TEST_DSN"),
                                   .application = "test_claims",
                                   .statements = statements,
                                   .n_statements = 1};
    struct db_result *rows = NULL;
    forget();
    must(migrate_up(&(struct options){.database = getenv("PROVERQ_TEST_DSN")}, &error));
    must(db_open(&settings, &db, &error));
    sql("truncate proverq.artefact, proverq.prover, proverq.job restart identity cascade;"
        "insert into proverq.artefact values (sha256('z'), 'zkey', 1, 'z');"
        "insert into proverq.circuit (name, version, sha256, curve, n_vars, n_public, log_domain, "
        "zkey, vkey) values ('c', 1, sha256('c'), 'bn128', 2, 1, 1, sha256('z'), '{}');"
        "insert into proverq.prover (instance, host, pid, device) values (gen_random_uuid(), 'h', "
        "1, 'cpu');"
        "select proverq.enqueue_path('c', array_fill('w'::text, array[20]))");
    must(db_query(db, "select max(circuit_id) from proverq.circuit", "", "l", DB_NO_PARAMS, &rows,
                  &error));
    circuit = db_get_int(rows, 0, 0);
    db_free(rows);
}

static void teardown(void) {
    sql("truncate proverq.artefact, proverq.prover, proverq.job cascade");
    db_close(db);
}

/* "job/partition" of what is claimed, separated by spaces. */
static const char *take(int most, bool is_poll) {
    static char text[400];
    struct claims_wish wish = {1, &circuit, 1, 60000, most, is_poll};
    struct db_result *rows = NULL;
    text[0] = '\0';
    must(claims_take(&claims, db, &wish, &rows, &error));
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
    claims.full_at_ns = timing_now();
    ck_assert(claims_is_bounded(&claims, timing_now()));
}

START_TEST(a_scan_with_bounds_goes_on_behind_the_last) {
    ck_assert_str_eq(take(2, false), "1/0 1/1");
    sql("update proverq.partition set state = 'ready', token = null, lease_until = null "
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
    sql("update proverq.partition set state = 'ready', token = null, lease_until = null "
        "where partition_idx in (3, 4)");
    claims.full_ns = MS * 5;
    claims.full_at_ns = timing_now() - MS * 46;
    ck_assert_str_eq(take(1, false), "1/3");
    be_slow();
    ck_assert_str_eq(take(2, false), "1/4 1/10");
}
END_TEST

START_TEST(higher_priorities_are_seen_at_once) {
    ck_assert_str_eq(take(1, false), "1/0");
    sql("select proverq.enqueue_path('c', '{w}', 5)");
    be_slow();
    ck_assert_str_eq(take(2, false), "2/0 1/1");
}
END_TEST

/* The first job's number is the lower one, and its transaction ends when the second is claimed. */
START_TEST(a_lower_sequence_that_commits_late_is_found) {
    struct db *late = NULL;
    struct db_settings settings = {.conninfo = getenv("PROVERQ_TEST_DSN"), .application = "late"};
    must(db_open(&settings, &late, &error));
    must(db_script(late, "test", "begin; select proverq.enqueue_path('c', '{w}')", &error));
    sql("select proverq.enqueue_path('c', '{w}')");
    (void)take(20, false);
    ck_assert_str_eq(take(1, false), "3/0");
    must(db_script(late, "test", "commit", &error));
    db_close(late);
    be_slow();
    ck_assert_str_eq(take(1, false), "2/0");
}
END_TEST

/* Nobody said that there is work: then a scan with bounds is enough until another is due. */
START_TEST(a_poll_looks_below_when_a_full_scan_is_due) {
    (void)take(20, false);
    sql("update proverq.partition set state = 'ready', token = null, lease_until = null "
        "where partition_idx = 0");
    be_slow();
    ck_assert_str_eq(take(1, true), "");
    claims.full_at_ns = timing_now() - 9 * claims.full_ns;
    ck_assert_str_eq(take(1, true), "1/0");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("claims");
    TCase *bounds = tcase_create("bounds");
    tcase_add_checked_fixture(bounds, forget, NULL);
    tcase_add_test(bounds, bounds_are_used_only_after_a_slow_scan);
    tcase_add_test(bounds, without_a_bound_there_is_nothing_to_use);
    tcase_add_test(bounds, scans_without_bounds_take_a_tenth_of_the_time);
    tcase_add_test(bounds, bounds_that_save_nothing_are_not_used_again);
    tcase_add_test(bounds, each_circuit_and_priority_has_the_last_key_that_was_seen);
    tcase_add_test(bounds, when_there_are_too_many_the_oldest_goes);
    suite_add_tcase(suite, bounds);
    if (getenv("PROVERQ_TEST_DSN")) {
        TCase *database = tcase_create("database");
        tcase_add_checked_fixture(database, setup, teardown);
        tcase_set_timeout(database, 60);
        tcase_add_test(database, a_scan_with_bounds_goes_on_behind_the_last);
        tcase_add_test(database, a_scan_that_is_due_sees_what_is_below_and_goes_on_there);
        tcase_add_test(database, higher_priorities_are_seen_at_once);
        tcase_add_test(database, a_lower_sequence_that_commits_late_is_found);
        tcase_add_test(database, a_poll_looks_below_when_a_full_scan_is_due);
        suite_add_tcase(suite, database);
    } else {
        puts("test_claims: without PROVERQ_TEST_DSN, only what needs no database");
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
