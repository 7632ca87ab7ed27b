/* The database module against a real PostgreSQL. */
#include "service/db/db.h"
#include "tests/service/database.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static struct error error;

START_TEST(numbers_keep_their_value) {
    static const int64_t values[] = {0, 1, -1, INT16_MAX, INT16_MIN};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct db_result *rows =
            query("select $1::int2, $2::int4, $3::int8, $3::int8 < 0, $2::int4::text", "sil",
                  "silbt", DB_PARAMS(db_int(values[i]), db_int(values[i]), db_int(values[i])));
        for (int column = 0; column < 3; column++)
            ck_assert_int_eq(db_get_int(rows, 0, column), values[i]);
        ck_assert(db_get_bool(rows, 0, 3) == (values[i] < 0));
        ck_assert_int_eq(strtol(db_get_text(rows, 0, 4), NULL, 10), values[i]);
        db_free(rows);
    }
    struct db_result *rows = query("select $1::int8, $2::int8", "ll", "ll",
                                   DB_PARAMS(db_int(INT64_MAX), db_int(INT64_MIN)));
    ck_assert_int_eq(db_get_int(rows, 0, 0), INT64_MAX);
    ck_assert_int_eq(db_get_int(rows, 0, 1), INT64_MIN);
    db_free(rows);
}
END_TEST

START_TEST(a_number_too_wide_is_refused) {
    ck_assert_int_eq(
        db_query(db, "select $1::int2", "s", "s", DB_PARAMS(db_int(32768)), NULL, &error),
        ERR_INTERNAL);
    ck_assert_int_eq(db_query(db, "select $1::bool", "b", "b", DB_PARAMS(db_int(2)), NULL, &error),
                     ERR_INTERNAL);
    ck_assert_int_eq(number("select 7::int8"), 7);
}
END_TEST

START_TEST(bytes_text_uuid_and_json_keep_their_value) {
    uint8_t bytes[256];
    struct uuid id;
    size_t n;
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    ck_assert_int_eq(uuid_random(&id, &error), ERR_NONE);
    struct db_result *rows =
        query("select $1::bytea, $2::text, $3::uuid, $3::uuid::text, ($4::jsonb->>'a')::text",
              "xtuj", "xtutt",
              DB_PARAMS(db_bytes(bytes, sizeof bytes), db_text("naïve"), db_uuid(&id),
                        db_text("{\"a\": \"b\"}")));
    const uint8_t *back = db_get_bytes(rows, 0, 0, &n);
    ck_assert_uint_eq(n, sizeof bytes);
    ck_assert_mem_eq(back, bytes, n);
    ck_assert_str_eq(db_get_text(rows, 0, 1), "naïve");
    struct uuid id_back = db_get_uuid(rows, 0, 2), id_parsed;
    ck_assert(uuid_equal(&id, &id_back));
    ck_assert_int_eq(uuid_parse(db_get_text(rows, 0, 3), &id_parsed, &error), ERR_NONE);
    ck_assert(uuid_equal(&id, &id_parsed));
    ck_assert_str_eq(db_get_text(rows, 0, 4), "b");
    db_free(rows);
}
END_TEST

START_TEST(nulls_are_told_apart) {
    struct db_result *rows = query("select $1::text, $2::bytea, $3::int8, ''::text", "txl", "txlt",
                                   DB_PARAMS(db_text(NULL), db_bytes(NULL, 0), db_null()));
    for (int column = 0; column < 3; column++)
        ck_assert(db_is_null(rows, 0, column));
    ck_assert(!db_is_null(rows, 0, 3));
    ck_assert_int_eq(db_get_int(rows, 0, 2), 0);
    db_free(rows);
}
END_TEST

START_TEST(arrays_keep_their_items) {
    static const int16_t small[] = {-1, 0, 7};
    static const int32_t middle[] = {INT32_MIN, 0, INT32_MAX};
    static const int64_t large[] = {INT64_MIN, 0, INT64_MAX};
    static const int64_t times[] = {0, 1000000, INT64_C(1796000000123456)};
    struct uuid ids[2] = {{{1}}, {{2}}};
    struct db_result *rows =
        query("select $1::int2[]::text, $2::int8[]::text, $3::uuid[]::text, "
              "array(select (extract(epoch from t) * 1000000)::int8 from unnest($4::timestamptz[]) "
              "t)::text",
              "SLUZ", "tttt",
              DB_PARAMS(db_int2_array(small, 3), db_int8_array(large, 3), db_uuid_array(ids, 2),
                        db_time_array(times, 3)));
    ck_assert_str_eq(db_get_text(rows, 0, 0), "{-1,0,7}");
    ck_assert_str_eq(db_get_text(rows, 0, 1), "{-9223372036854775808,0,9223372036854775807}");
    ck_assert_str_eq(db_get_text(rows, 0, 2),
                     "{01000000-0000-0000-0000-000000000000,02000000-0000-0000-0000-000000000000}");
    ck_assert_str_eq(db_get_text(rows, 0, 3), "{0,1000000,1796000000123456}");
    db_free(rows);
    rows = query("select $1::int4[]::text", "I", "t", DB_PARAMS(db_int4_array(middle, 3)));
    ck_assert_str_eq(db_get_text(rows, 0, 0), "{-2147483648,0,2147483647}");
    db_free(rows);
    rows = query("select cardinality($1::int8[])", "L", "i", DB_PARAMS(db_int8_array(large, 0)));
    ck_assert_int_eq(db_get_int(rows, 0, 0), 0);
    db_free(rows);
}
END_TEST

START_TEST(arrays_of_json_and_bytes_keep_items_and_nulls) {
    static const struct db_item json[] = {{"{\"a\": 1}", 8}, {NULL, 0}, {"[]", 2}};
    static const struct db_item bytes[] = {{"\0\377", 2}, {NULL, 0}, {"", 0}};
    struct db_result *rows = query("select $1::jsonb[]::text, $2::bytea[]::text", "JX", "tt",
                                   DB_PARAMS(db_item_array(json, 3), db_item_array(bytes, 3)));
    ck_assert_str_eq(db_get_text(rows, 0, 0), "{\"{\\\"a\\\": 1}\",NULL,[]}");
    ck_assert_str_eq(db_get_text(rows, 0, 1), "{\"\\\\x00ff\",NULL,\"\\\\x\"}");
    db_free(rows);
    rows = query("select cardinality($1::jsonb[]), array_ndims($2::bytea[]) is null", "JX", "ib",
                 DB_PARAMS(db_item_array(json, 0), db_item_array(bytes, 0)));
    ck_assert_int_eq(db_get_int(rows, 0, 0), 0);
    ck_assert(db_get_bool(rows, 0, 1));
    db_free(rows);
    ck_assert_int_eq(
        db_query(db, "select $1::int8[]", "L", "", DB_PARAMS(db_item_array(json, 1)), NULL, &error),
        ERR_SCHEMA); /* no column was declared */
    ck_assert_int_eq(db_query(db, "select cardinality($1::int8[])", "L", "i",
                              DB_PARAMS(db_item_array(json, 1)), NULL, &error),
                     ERR_INTERNAL);
    ck_assert_int_eq(db_query(db, "select cardinality($1::jsonb[])", "J", "i",
                              DB_PARAMS(db_int8_array(NULL, 0)), NULL, &error),
                     ERR_INTERNAL);
}
END_TEST

START_TEST(types_that_differ_from_the_declared_are_refused) {
    ck_assert_int_eq(db_query(db, "select 1::int4", "", "l", DB_NO_PARAMS, NULL, &error),
                     ERR_SCHEMA);
    ck_assert_int_eq(db_query(db, "select 1::int4", "", "ii", DB_NO_PARAMS, NULL, &error),
                     ERR_SCHEMA);
    ck_assert_int_eq(
        db_query(db, "select $1::int8::text", "i", "t", DB_PARAMS(db_int(1)), NULL, &error),
        ERR_SCHEMA);
    ck_assert_int_eq(db_query(db, "select $1::int8::text", "", "t", DB_NO_PARAMS, NULL, &error),
                     ERR_SCHEMA);
}
END_TEST

#define PAIR_COLUMNS(X) X(PAIR_A, "a", "i") X(PAIR_WHEN, "b_when", "z")
enum { PAIR_COLUMNS(DB_COLUMN) };

static enum err query_pair(const char *sql, struct db_result **out) {
    *out = NULL;
    return db_query(db, sql, "", PAIR_COLUMNS(DB_COLUMN_TYPE), DB_NO_PARAMS, out, &error);
}

START_TEST(several_columns_are_read_by_their_names) {
    struct db_result *rows;
    CHECK_OK(query_pair("select 7::int4 as a, to_timestamp(1) as b_when", &rows));
    ck_assert_int_eq(db_get_int(rows, 0, PAIR_A), 7);
    ck_assert_int_eq(db_get_int(rows, 0, PAIR_WHEN), 1000000);
    db_free(rows);
}
END_TEST

START_TEST(columns_whose_names_differ_from_the_declared_are_refused) {
    struct db_result *rows;
    ck_assert_int_eq(query_pair("select 7::int4 as a, to_timestamp(1) as b", &rows), ERR_SCHEMA);
    ck_assert_ptr_nonnull(strstr(error.text, "column 2 is b, expected b_when"));
    ck_assert_int_eq(query_pair("select to_timestamp(1) as b_when, 7::int4 as a", &rows),
                     ERR_SCHEMA);
    ck_assert_ptr_nonnull(strstr(error.text, "column 1 is b_when, expected a"));
    ck_assert_int_eq(query_pair("select 7::int4 as a", &rows), ERR_SCHEMA);
    ck_assert_ptr_nonnull(strstr(error.text, "1 columns, expected 2"));
    ck_assert_int_eq(query_pair("select 7::int8 as a, to_timestamp(1) as b_when", &rows),
                     ERR_SCHEMA);
    ck_assert_ptr_nonnull(strstr(error.text, "column a has type 20, expected 'i'"));
}
END_TEST

START_TEST(refusals_are_classified) {
    ck_assert_int_eq(db_query(db, "select 1/0", "", "i", DB_NO_PARAMS, NULL, &error), ERR_DATABASE);
    ck_assert_str_eq(db_sqlstate(db), "22012");
    ck_assert_int_eq(db_query(db, "select * from proverq_none", "", "", DB_NO_PARAMS, NULL, &error),
                     ERR_SCHEMA);
    ck_assert_ptr_nonnull(strstr(error.text, "proverq migrate up"));
    ck_assert_int_eq(db_query(db, "selekt", "", "", DB_NO_PARAMS, NULL, &error), ERR_DATABASE);
    ck_assert(db_is_connected(db));
}
END_TEST

START_TEST(a_script_names_the_line_of_its_error) {
    ck_assert_int_eq(db_script(db, "x.sql", "select 1;\nselect 2;\nselekt 3;\n", &error),
                     ERR_DATABASE);
    ck_assert_ptr_nonnull(strstr(error.text, "x.sql at line 3"));
    ck_assert_int_eq(
        db_script(db, "x.sql", "create temp table t(a int); insert into t values (1)", &error),
        ERR_NONE);
    ck_assert_int_eq(number("select count(*) from t"), 1);
}
END_TEST

START_TEST(a_rolled_back_transaction_leaves_nothing) {
    ck_assert_int_eq(db_script(db, "x", "create temp table t(a int)", &error), ERR_NONE);
    ck_assert_int_eq(db_begin(db, &error), ERR_NONE);
    ck_assert_int_eq(db_script(db, "x", "insert into t values (1)", &error), ERR_NONE);
    db_rollback(db);
    ck_assert_int_eq(db_begin(db, &error), ERR_NONE);
    ck_assert_int_eq(db_script(db, "x", "insert into t values (2)", &error), ERR_NONE);
    ck_assert_int_eq(db_commit(db, &error), ERR_NONE);
    ck_assert_int_eq(number("select sum(a)::int8 from t"), 2);
}
END_TEST

START_TEST(a_slow_statement_is_stopped) {
    struct db_settings settings = {
        .conninfo = test_dsn(), .application = "test", .statement_timeout_ms = 100};
    struct db *quick = NULL;
    ck_assert_int_eq(db_open(&settings, &quick, &error), ERR_NONE);
    ck_assert_int_eq(db_query(quick, "select pg_sleep(20)", "", "v", DB_NO_PARAMS, NULL, &error),
                     ERR_DATABASE);
    ck_assert_str_eq(db_sqlstate(quick), "57014");
    db_close(quick);
}
END_TEST

static void kill_connection_of(struct db *victim) {
    struct db_result *rows = NULL;
    ck_assert_int_eq(
        db_query(victim, "select pg_backend_pid()", "", "i", DB_NO_PARAMS, &rows, &error),
        ERR_NONE);
    int64_t pid = db_get_int(rows, 0, 0);
    db_free(rows);
    struct db *killer = connect_with(NULL, 0);
    ck_assert_int_eq(db_query(killer, "select pg_terminate_backend($1::int4, 5000)", "i", "b",
                              DB_PARAMS(db_int(pid)), NULL, &error),
                     ERR_NONE);
    db_close(killer);
}

START_TEST(a_lost_connection_is_noticed_and_made_again_with_its_channels) {
    enum db_wake wake;
    ck_assert_int_eq(db_listen(db, "test_db_channel", &error), ERR_NONE);
    kill_connection_of(db);
    ck_assert_int_eq(db_query(db, "select 1", "", "i", DB_NO_PARAMS, NULL, &error), ERR_CONNECTION);
    ck_assert(!db_is_connected(db));
    ck_assert_int_eq(db_query(db, "select 1", "", "i", DB_NO_PARAMS, NULL, &error), ERR_CONNECTION);
    ck_assert_int_eq(db_reconnect(db, -1, &error), ERR_NONE);
    struct db *other = connect_with(NULL, 0);
    ck_assert_int_eq(db_script(other, "x", "notify test_db_channel", &error), ERR_NONE);
    ck_assert_int_eq(db_wait(db, -1, 5000, &wake, &error), ERR_NONE);
    ck_assert_int_eq(wake, DB_WAKE_NOTIFIED);
    db_close(other);
}
END_TEST

START_TEST(a_connection_lost_while_waiting_ends_the_wait) {
    enum db_wake wake;
    ck_assert_int_eq(db_listen(db, "test_db_channel", &error), ERR_NONE);
    kill_connection_of(db);
    ck_assert_int_eq(db_wait(db, -1, 5000, &wake, &error), ERR_CONNECTION);
}
END_TEST

START_TEST(a_wait_ends_by_time_or_by_its_descriptor) {
    enum db_wake wake;
    int fd = eventfd(0, EFD_CLOEXEC);
    ck_assert_int_eq(db_wait(db, fd, 20, &wake, &error), ERR_NONE);
    ck_assert_int_eq(wake, DB_WAKE_TIMEOUT);
    ck_assert_int_eq(eventfd_write(fd, 1), 0);
    ck_assert_int_eq(db_wait(db, fd, 20000, &wake, &error), ERR_NONE);
    ck_assert_int_eq(wake, DB_WAKE_FD);
    close(fd);
}
END_TEST

START_TEST(a_connection_that_is_lost_at_once_is_not_made_again_at_once) {
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < 5; i++) { /* it waits 0.1, 0.2, 0.4 and 0.8 s, or half of that */
        kill_connection_of(db);
        ck_assert_int_eq(db_query(db, "select 1", "", "i", DB_NO_PARAMS, NULL, &error),
                         ERR_CONNECTION);
        ck_assert_int_eq(db_reconnect(db, -1, &error), ERR_NONE);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    ck_assert_int_ge((end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000,
                     750);
}
END_TEST

static void *wake_later(void *fd) {
    usleep(300000);
    ck_assert_int_eq(eventfd_write(*(int *)fd, 1), 0);
    return NULL;
}

START_TEST(reconnecting_ends_when_it_is_told_to) {
    pthread_t thread;
    int fd = eventfd(0, EFD_CLOEXEC);
    kill_connection_of(db);
    ck_assert_int_eq(db_query(db, "select 1", "", "i", DB_NO_PARAMS, NULL, &error), ERR_CONNECTION);
    setenv("PGOPTIONS", "-c no_such_setting=1", 1); /* the server refuses every connection */
    ck_assert_int_eq(pthread_create(&thread, NULL, wake_later, &fd), 0);
    ck_assert_int_eq(db_reconnect(db, fd, &error), ERR_CONNECTION);
    pthread_join(thread, NULL);
    unsetenv("PGOPTIONS");
    close(fd);
}
END_TEST

START_TEST(an_unreachable_server_is_an_error_at_once) {
    struct db *none = NULL;
    struct db_settings settings = {.conninfo = "host=/nonexistent dbname=x", .application = "test"};
    ck_assert_int_eq(db_open(&settings, &none, &error), ERR_CONNECTION);
    ck_assert_ptr_null(none);
    settings.conninfo = "host=127.0.0.1 port=1 password=geheim";
    ck_assert_int_eq(db_open(&settings, &none, &error), ERR_CONNECTION);
    ck_assert_ptr_null(strstr(error.text, "geheim"));
    settings.conninfo = "nonsense";
    ck_assert_int_eq(db_open(&settings, &none, &error), ERR_CONNECTION);
}
END_TEST

START_TEST(a_statement_that_is_not_compiled_in_stops_the_start) {
    static const struct db_statement none = {"no_such_statement", "", ""};
    static const struct db_statement *const list[] = {&none};
    struct db_settings settings = {
        .conninfo = test_dsn(), .application = "test", .statements = list, .n_statements = 1};
    struct db *made = NULL;
    ck_assert_int_eq(db_open(&settings, &made, &error), ERR_INTERNAL);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &numbers_keep_their_value,
        &a_number_too_wide_is_refused,
        &bytes_text_uuid_and_json_keep_their_value,
        &nulls_are_told_apart,
        &arrays_keep_their_items,
        &arrays_of_json_and_bytes_keep_items_and_nulls,
        &types_that_differ_from_the_declared_are_refused,
        &several_columns_are_read_by_their_names,
        &columns_whose_names_differ_from_the_declared_are_refused,
        &refusals_are_classified,
        &a_script_names_the_line_of_its_error,
        &a_rolled_back_transaction_leaves_nothing,
        &a_slow_statement_is_stopped,
        &a_lost_connection_is_noticed_and_made_again_with_its_channels,
        &a_connection_lost_while_waiting_ends_the_wait,
        &a_connection_that_is_lost_at_once_is_not_made_again_at_once,
        &a_wait_ends_by_time_or_by_its_descriptor,
        &reconnecting_ends_when_it_is_told_to,
        &an_unreachable_server_is_an_error_at_once,
        &a_statement_that_is_not_compiled_in_stops_the_start};
    return run_tests("db", open_db, close_db, tests, sizeof tests / sizeof *tests);
}
