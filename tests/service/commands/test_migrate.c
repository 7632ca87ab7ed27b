/* Migrations against a real PostgreSQL. */
#include "service/commands/migrate.h"
#include "service/common/embedded.h"
#include "service/prover/steps.h"
#include "service/schema/check.h"
#include "tests/service/database.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct error error;

static struct options options_of(const char *const *argument) {
    return (struct options){.database = test_dsn(),
                            .listen_database = "",
                            .arguments = argument,
                            .n_arguments = argument ? 1 : 0};
}

static enum err up(void) {
    struct options options = options_of(NULL);
    return migrate_up(&options, &error);
}

static enum err down(const char *version) {
    struct options options = options_of(&version);
    return migrate_down(&options, &error);
}

static enum err plan(const char *version) {
    struct options options = options_of(version ? &version : NULL);
    return migrate_plan(&options, &error);
}

static bool is_there(const char *object) {
    char sql[200];
    (void)snprintf(sql, sizeof sql, "select (to_regclass('%s') is not null)::int::int8", object);
    return number(sql) == 1;
}

static void setup(void) {
    open_db();
    script("drop schema if exists proverq, proverq_private cascade");
}

/* The migrations that are compiled in, and the newest one's number, as text. */
static int known(char newest[16]) {
    const struct embedded_file *file = embedded_migrations;
    int n = 0;
    for (; file->path; file++, n++)
        (void)snprintf(newest, 16, "%d", (int)strtol(file->name, NULL, 10));
    return n / 2; /* up and down */
}

START_TEST(up_makes_what_the_daemons_need) {
    char newest[16];
    CHECK_ERR(schema_check(db, &error), ERR_SCHEMA, "run: proverq migrate up");
    CHECK_OK(up());
    CHECK_OK(schema_check(db, &error));
    ck_assert(is_there("proverq.job") && is_there("proverq.jobs"));
    ck_assert_int_eq(number("select count(*) from proverq.schema_migration"), known(newest));
}
END_TEST

START_TEST(up_again_keeps_the_data) {
    CHECK_OK(up());
    script("insert into proverq_private.artefact values (sha256('z'), 'zkey', 1, 'z')");
    CHECK_OK(up());
    ck_assert_int_eq(number("select count(*) from proverq_private.artefact"), 1);
}
END_TEST

START_TEST(up_repairs_functions_and_views) {
    CHECK_OK(up());
    script("drop view proverq.jobs; drop function proverq.why(bigint)");
    CHECK_OK(up());
    ck_assert(is_there("proverq.jobs"));
    ck_assert_int_eq(number("select count(*) from pg_proc where proname = 'why'"), 1);
}
END_TEST

START_TEST(down_to_0_removes_everything) {
    CHECK_OK(up());
    CHECK_OK(plan("0"));
    CHECK_OK(plan(NULL));
    ck_assert(is_there("proverq.jobs"));
    CHECK_OK(down("0"));
    ck_assert_int_eq(number("select count(*) from pg_namespace where nspname ~ '^proverq'"), 0);
    CHECK_OK(down("0"));
    CHECK_OK(up());
    CHECK_OK(schema_check(db, &error));
}
END_TEST

START_TEST(down_to_a_version_that_is_not_below_changes_nothing) {
    char newest[16];
    ck_assert_int_gt(known(newest), 0);
    CHECK_OK(up());
    CHECK_OK(down(newest));
    ck_assert(is_there("proverq.jobs"));
    CHECK_OK(schema_check(db, &error));
}
END_TEST

START_TEST(tables_without_functions_want_migrate_up) {
    CHECK_OK(up());
    CHECK_OK(db_script(db, "drop", code_drop_file()->text, &error));
    ck_assert(is_there("proverq.job") && !is_there("proverq.jobs"));
    CHECK_ERR(schema_check(db, &error), ERR_SCHEMA, "no functions and views");
    CHECK_OK(up());
    CHECK_OK(schema_check(db, &error));
}
END_TEST

START_TEST(a_changed_file_stops_migrate_and_warns_daemons) {
    CHECK_OK(up());
    script("update proverq.schema_migration set checksum = repeat('0', 64) where version = 1");
    CHECK_ERR(up(), ERR_SCHEMA, "another migrations/0001_initial.up.sql");
    CHECK_ERR(down("0"), ERR_SCHEMA, "restore that file");
    CHECK_OK(schema_check(db, &error));
}
END_TEST

START_TEST(a_table_in_use_is_not_waited_for_without_end) {
    CHECK_OK(up());
    script("begin; lock table proverq.job in access share mode");
    CHECK_ERR(down("0"), ERR_DATABASE, "has proverq.job in use: end that transaction");
    script("rollback");
    CHECK_OK(down("0"));
}
END_TEST

START_TEST(versions_that_are_not_there_are_refused) {
    CHECK_ERR(down("2x"), ERR_USAGE, "migration \"2x\" does not exist");
    CHECK_ERR(down("999"), ERR_USAGE, "the newest is ");
    CHECK_ERR(down(""), ERR_USAGE, "migration \"\" does not exist");
    CHECK_ERR(down("-1"), ERR_USAGE, "migration \"-1\" does not exist");
    CHECK_ERR(plan("99999999999999999999"), ERR_USAGE, "does not exist");
}
END_TEST

START_TEST(a_newer_schema_is_left_alone) {
    CHECK_OK(up());
    script("insert into proverq.schema_migration values (9000, 'later', false, now(), repeat('0', "
           "64))");
    CHECK_OK(schema_check(db, &error));
    CHECK_ERR(up(), ERR_SCHEMA, "version 9000");
    CHECK_ERR(down("0"), ERR_SCHEMA, "version 9000");
    script("update proverq.schema_migration set breaking = true where version = 9000");
    CHECK_ERR(schema_check(db, &error), ERR_SCHEMA, "or a newer one");
    ck_assert(is_there("proverq.job"));
}
END_TEST

START_TEST(a_schema_that_lacks_a_migration_is_refused) {
    CHECK_OK(up());
    script("update proverq.schema_migration set version = 0, breaking = false "
           "where version = 1");
    CHECK_ERR(schema_check(db, &error), ERR_SCHEMA, "run: proverq migrate up");
}
END_TEST

START_TEST(a_migration_that_fails_leaves_nothing) {
    script("create schema proverq; create table proverq.partition (mine int)");
    CHECK_ERR(up(), ERR_DATABASE, "migrations/0001_initial.up.sql");
    ck_assert_ptr_nonnull(strstr(error.text, "\"partition\" already exists"));
    ck_assert(!is_there("proverq.job") && is_there("proverq.partition"));
}
END_TEST

START_TEST(a_view_of_somebody_else_stops_down) {
    CHECK_OK(up());
    script("create view public.test_migrate as select * from proverq.jobs");
    CHECK_ERR(down("0"), ERR_DATABASE, "depend");
    ck_assert(is_there("public.test_migrate") && is_there("proverq.job"));
    script("drop view public.test_migrate");
}
END_TEST

START_TEST(status_answers_in_every_state) {
    struct options options = options_of(NULL);
    CHECK_OK(migrate_status(&options, &error));
    CHECK_OK(up());
    CHECK_OK(migrate_status(&options, &error));
    options.database = "host=/nonexistent";
    ck_assert_int_eq(migrate_status(&options, &error), ERR_CONNECTION);
}
END_TEST

static void *up_thread(void *unused) {
    struct options options = options_of(NULL);
    struct error *own = calloc(1, sizeof *own);
    (void)unused;
    if (own && migrate_up(&options, own) == ERR_NONE) own->text[0] = '\0';
    return own;
}

START_TEST(several_at_once_migrate_once) {
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, up_thread, NULL), 0);
    for (size_t i = 0; i < 4; i++) {
        void *result;
        ck_assert_int_eq(pthread_join(threads[i], &result), 0);
        struct error *own = result;
        ck_assert_ptr_nonnull(own);
        ck_assert_str_eq(own->text, "");
        free(own);
    }
    CHECK_OK(schema_check(db, &error));
}
END_TEST

START_TEST(the_table_of_steps_is_the_list_in_steps_h) {
    static const struct {
        int id;
        const char *name, *description;
    } steps[] = {
#define X(constant, id, name, description) {id, name, description},
        STEP_TABLE(X)
#undef X
    };
    enum { STEPS = sizeof steps / sizeof *steps };
    CHECK_OK(up());
    struct db_result *rows = query("select step, name, description from proverq.step order by step",
                                   "", "stt", DB_NO_PARAMS);
    ck_assert_int_eq(db_rows(rows), STEPS);
    for (int i = 0; i < STEPS; i++) {
        ck_assert_int_eq(db_get_int(rows, i, 0), steps[i].id);
        ck_assert_str_eq(db_get_text(rows, i, 1), steps[i].name);
        ck_assert_str_eq(db_get_text(rows, i, 2), steps[i].description);
    }
    db_free(rows);
}
END_TEST

START_TEST(every_step_of_the_prover_library_is_in_steps_h) {
    static const struct {
        enum prove_step step;
        const char *name;
    } steps[] = {
#define X(id, name, meaning) {id, name},
        PROVE_STEP_TABLE(X)
#undef X
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        ck_assert_str_eq(step_name(step_of_prove(steps[i].step)), steps[i].name);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&up_makes_what_the_daemons_need,
                                         &up_again_keeps_the_data,
                                         &up_repairs_functions_and_views,
                                         &down_to_0_removes_everything,
                                         &down_to_a_version_that_is_not_below_changes_nothing,
                                         &tables_without_functions_want_migrate_up,
                                         &a_changed_file_stops_migrate_and_warns_daemons,
                                         &a_table_in_use_is_not_waited_for_without_end,
                                         &versions_that_are_not_there_are_refused,
                                         &a_newer_schema_is_left_alone,
                                         &a_schema_that_lacks_a_migration_is_refused,
                                         &a_migration_that_fails_leaves_nothing,
                                         &a_view_of_somebody_else_stops_down,
                                         &status_answers_in_every_state,
                                         &several_at_once_migrate_once,
                                         &the_table_of_steps_is_the_list_in_steps_h,
                                         &every_step_of_the_prover_library_is_in_steps_h};
    return run_tests("migrate", setup, close_db, tests, sizeof tests / sizeof *tests);
}
