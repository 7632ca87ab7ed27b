/* The database: the only module that knows libpq.
 *
 * A statement is a file sql/statements/NAME.sql, compiled in, and declared where it is used with
 * the types of its parameters and columns. db_open prepares the statements that it is given and
 * compares those types with what the server says, so that bad SQL, or a schema of another version,
 * stops the start and nothing later. Parameters and results travel in binary.
 *
 * Types are a letter each; arrays are for parameters only:
 *
 *     b  bool                                    l  int8           L  int8[]
 *     t  text, varchar, name or an enum          x  bytea          X  bytea[]
 *     v  void, for columns only                  u  uuid           U  uuid[]
 *     s  int2                      S  int2[]     z  timestamptz    Z  timestamptz[]
 *     i  int4                      I  int4[]     j  jsonb          J  jsonb[]
 *
 * jsonb is for parameters only, and given as text.
 *
 * One column is declared by its letter. Several are declared by a table, from which come the
 * constants by which they are read and the declaration, whose names are compared as well:
 *
 *     #define CLAIM_COLUMNS(X) X(CLAIM_JOB, "job_seq", "l") X(CLAIM_PARTITION, "partition_idx", "i")
 *     enum { CLAIM_COLUMNS(DB_COLUMN) };
 *     static const struct db_statement claim = {"claim", "iLii", CLAIM_COLUMNS(DB_COLUMN_TYPE)};
 *     TRY(db_run(db, &claim, DB_PARAMS(db_int(prover), db_int8_array(ids, n), ...), &rows, error));
 *     for (int i = 0; i < db_rows(rows); i++) use(db_get_int(rows, i, CLAIM_JOB));
 *     db_free(rows);
 *
 * Errors: ERR_CONNECTION when the connection is lost, refused or silent (nothing is known of what
 * the statement did; db_reconnect, then decide); ERR_SCHEMA when tables, functions or types are not
 * the ones expected (`proverq migrate up` is the cure); ERR_DATABASE when the server refused the
 * statement (db_sqlstate tells the code). A connection belongs to one thread at a time.
 */
#ifndef PROVERQ_DB_H
#define PROVERQ_DB_H

#include "gpu/error.h"
#include "service/common/uuid.h"

#include <stddef.h>
#include <stdint.h>

struct db;        /* owned by the caller of db_open */
struct db_result; /* owned by the caller of db_run or db_query */

struct db_statement {
    const char *name; /* the file's, without sql/statements/ and .sql */
    const char *params, *columns;
};

/* For a table of columns, see above: the index of each, and the declaration of all. */
#define DB_COLUMN(constant, name, type)      constant,
#define DB_COLUMN_TYPE(constant, name, type) type " " name ","

enum { DB_STATEMENT_TIMEOUT_MS = 60000, DB_LOCK_TIMEOUT_MS = 20000, DB_APPLICATION_BYTES = 128 };

struct db_settings {
    const char *conninfo; /* libpq's: "", key=value, service=..., or a URI, of one host or several;
                           * never logged; copied */
    char application[DB_APPLICATION_BYTES];         /* fallback for application_name */
    uint32_t statement_timeout_ms, lock_timeout_ms; /* 0: none */
    const struct db_statement *const *statements;   /* live as long as the connection */
    size_t n_statements;
};

/* The settings of all connections of the service: the timeouts above, and an application name:
 * "proverq ROLE" for commands; for processes that run all the time "proverq ROLE DEVICE@HOST", or
 * "proverq ROLE HOST" if `device` is NULL. The alerts (sql/functions) search for these names. */
struct db_settings db_settings_for(const char *conninfo, const char *role,
                                   const struct db_statement *const *statements, size_t n);
struct db_settings db_settings_for_daemon(const char *conninfo, const char *role,
                                          const char *device,
                                          const struct db_statement *const *statements, size_t n);

/* Connects, sets the timeouts and prepares the statements. Of several hosts, one that takes no
 * writes counts as not reachable (unless the string has a target_session_attrs).
 *
 * A pooler between us and the server is noticed. It may lend a session for one transaction only, so
 * nothing is prepared there or set for longer: each statement brings its text and its timeouts. */
MUST_USE enum err db_open(const struct db_settings *settings, struct db **out, struct error *error);

/* The same for a process that may be started before its database: while that cannot be reached, or
 * takes no writes because it is a standby, it waits, as db_reconnect does, until `wake_fd` (-1:
 * none) becomes readable. */
MUST_USE enum err db_open_patiently(const struct db_settings *settings, int wake_fd,
                                    struct db **out, struct error *error);
void db_close(struct db *db); /* NULL may be closed */

bool db_is_connected(const struct db *db);

/* A pooler is between us and the server. */
bool db_is_pooled(const struct db *db);

/* Connects again, with waits that grow from 0.1 s to 10 s and jitter (from call to call, too, and
 * while connections are lost as soon as they are made), until it works or `wake_fd` (-1: none)
 * becomes readable: ERR_CONNECTION with the last reason. Statements are prepared again, and
 * channels listened to first. ERR_SCHEMA ends it too. */
MUST_USE enum err db_reconnect(struct db *db, int wake_fd, struct error *error);

/* The same, but for `limit_ms` at most (an attempt under way may take some seconds more). */
MUST_USE enum err db_reconnect_within(struct db *db, int wake_fd, uint32_t limit_ms,
                                      struct error *error);

/* --- parameters: they point to the caller's memory --- */
enum db_kind { DB_NULL, DB_INT, DB_TEXT, DB_BYTES, DB_UUID, DB_ARRAY, DB_ITEMS };

struct db_param {
    enum db_kind kind;
    int64_t number;
    const void *data;
    size_t n;          /* bytes, or elements of an array */
    size_t item_bytes; /* of an array's element in memory */
};

/* An element of jsonb[] (text without its NUL) or bytea[]; `data` of NULL is SQL's NULL. */
struct db_item {
    const void *data;
    size_t n;
};

#define DB_PARAMS(...) ((const struct db_param[]){__VA_ARGS__})
#define DB_NO_PARAMS   NULL

static inline struct db_param db_null(void) {
    return (struct db_param){.kind = DB_NULL};
}
/* For b, s, i, l and z (microseconds since 1970-01-01 UTC). A number that the type cannot hold is
 * ERR_INTERNAL. */
static inline struct db_param db_int(int64_t number) {
    return (struct db_param){.kind = DB_INT, .number = number};
}
/* For t and j; NULL is SQL's NULL. */
struct db_param db_text(const char *text);
/* For x; `bytes` of NULL is SQL's NULL. */
static inline struct db_param db_bytes(const void *bytes, size_t n) {
    return (struct db_param){.kind = bytes ? DB_BYTES : DB_NULL, .data = bytes, .n = n};
}
static inline struct db_param db_uuid(const struct uuid *uuid) {
    return (struct db_param){.kind = DB_UUID, .data = uuid, .n = sizeof *uuid};
}
static inline struct db_param db_int2_array(const int16_t *items, size_t n) {
    return (struct db_param){.kind = DB_ARRAY, .data = items, .n = n, .item_bytes = sizeof *items};
}
static inline struct db_param db_int4_array(const int32_t *items, size_t n) {
    return (struct db_param){.kind = DB_ARRAY, .data = items, .n = n, .item_bytes = sizeof *items};
}
static inline struct db_param db_int8_array(const int64_t *items, size_t n) {
    return (struct db_param){.kind = DB_ARRAY, .data = items, .n = n, .item_bytes = sizeof *items};
}
/* timestamptz[]: microseconds since 1970-01-01 UTC. */
static inline struct db_param db_time_array(const int64_t *items, size_t n) {
    return db_int8_array(items, n);
}
static inline struct db_param db_uuid_array(const struct uuid *items, size_t n) {
    return (struct db_param){.kind = DB_ARRAY, .data = items, .n = n, .item_bytes = sizeof *items};
}

/* For J and X. */
static inline struct db_param db_item_array(const struct db_item *items, size_t n) {
    return (struct db_param){.kind = DB_ITEMS, .data = items, .n = n};
}

/* --- running; `out` may be NULL when the rows do not matter --- */

/* Runs one of the statements that db_open was given, with as many values as it has parameters. */
MUST_USE enum err db_run(struct db *db, const struct db_statement *statement,
                         const struct db_param *values, struct db_result **out,
                         struct error *error);

/* The same for SQL text that is run once. */
MUST_USE enum err db_query(struct db *db, const char *sql, const char *params, const char *columns,
                           const struct db_param *values, struct db_result **out,
                           struct error *error);

/* Runs any number of statements without parameters (a migration); one transaction unless the text
 * has its own. `label` names the text in errors, which give the line. */
MUST_USE enum err db_script(struct db *db, const char *label, const char *sql, struct error *error);

MUST_USE enum err db_begin(struct db *db, struct error *error);
MUST_USE enum err db_commit(struct db *db, struct error *error);
void db_rollback(struct db *db); /* harmless outside a transaction */

/* Five characters: why the last ERR_DATABASE or ERR_SCHEMA happened; "" when unknown. */
const char *db_sqlstate(const struct db *db);

/* The server's version as libpq numbers it: 150020. */
int db_server_version(const struct db *db);

/* --- results; a value of a NULL is 0, "", no bytes --- */
int db_rows(const struct db_result *result);
bool db_is_null(const struct db_result *result, int row, int column);
int64_t db_get_int(const struct db_result *result, int row, int column); /* b, s, i, l, z */
bool db_get_bool(const struct db_result *result, int row, int column);
/* Text and bytes live until db_free. Text ends with a NUL. */
const char *db_get_text(const struct db_result *result, int row, int column);
const uint8_t *db_get_bytes(const struct db_result *result, int row, int column, size_t *n);
struct uuid db_get_uuid(const struct db_result *result, int row, int column);
void db_free(struct db_result *result); /* NULL may be freed; what it held is wiped */

/* --- notifications --- */
enum db_wake { DB_WAKE_TIMEOUT, DB_WAKE_NOTIFIED, DB_WAKE_FD };

/* Listens to a channel, now and after each reconnection. `channel` is a plain constant word. A
 * connection for statements that leads to a pooler does not listen (a warning says so): what a
 * session hears there is lost. One that has no statements is taken to lead past the pooler. */
MUST_USE enum err db_listen(struct db *db, const char *channel, struct error *error);

/* Waits, without a transaction, until a notification has come (all that came are taken), `wake_fd`
 * (-1: none) is readable (it is not read), or `timeout_ms` have passed (-1: never). */
MUST_USE enum err db_wait(struct db *db, int wake_fd, int timeout_ms, enum db_wake *out,
                          struct error *error);

#endif
