/* What the tests against a database share. It is that of PROVERQ_TEST_DSN; its schema proverq is
 * removed and made again. Where something here fails, the test fails. */
#ifndef PROVERQ_TESTS_DATABASE_H
#define PROVERQ_TESTS_DATABASE_H

#include "service/db/db.h"
#include "tests/gpu/suite.h"

/* PROVERQ_TEST_DSN. Without it the test fails: what cannot run has not passed. */
const char *test_dsn(void);

/* run_tests, with the schema made anew before the first test. */
int run_database_tests(const char *name, void (*set_up)(void), void (*tear_down)(void),
                       const TTest *const *const *tests, size_t n);

/* The schema, made anew, as `proverq migrate up` makes it; over a connection of its own. */
void new_schema(void);

/* A connection with these statements (NULL: none) and the service's limits of time; db_close it. */
struct db *connect_with(const struct db_statement *const *statements, size_t n);

/* --- the test's connection --- */

/* All below use it. It is open from open_db to close_db, or is another one that the test puts here. */
extern struct db *db;
void open_db(void);
void close_db(void);

/* Empties the tables of work but for a circuit 'c' on BN254 with one public signal and a prover on a
 * CPU. Both have number 1, and so has the next job. */
void reset_rows(void);

/* Statements without parameters. */
void script(const char *format, ...) PRINTF_LIKE(1, 2);

/* db_query; db_free the rows. */
struct db_result *query(const char *sql, const char *params, const char *columns,
                        const struct db_param *values);

/* The first column of the query's first row: a bigint; any type, as text, which the caller frees. */
int64_t number(const char *sql);
char *value(const char *sql);

/* Waits, 20 s at most, until value(sql) is `wanted`. */
void wait_for(const char *sql, const char *wanted);

#endif
