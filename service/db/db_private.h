/* What the files of the db module, and their tests, share; nothing else includes this. */
#ifndef PROVERQ_DB_PRIVATE_H
#define PROVERQ_DB_PRIVATE_H

#include "service/db/db.h"

#include <libpq-fe.h>

/* --- where to connect (db_connect.c) ---
 *
 * libpq would go through several hosts by itself, but not when it must not block: then one that is
 * silent is waited for until somebody gives up. So each host is tried by itself. With several, one
 * that does not take writes (a standby) counts as not reachable, unless the user says otherwise. */
struct db_target; /* owned by the caller of db_target_open */

/* Reads the connection string, the service file and the PG* variables: the user's own values win
 * over our defaults. Both strings are copied. The caller closes *out in each case. */
MUST_USE enum err db_target_open(const char *conninfo, const char *application,
                                 struct db_target **out, struct error *error);
void db_target_close(struct db_target *target); /* NULL may be closed */

size_t db_target_hosts(const struct db_target *target);        /* at least 1 */
uint32_t db_target_timeout_ms(const struct db_target *target); /* for each host */

/* Begins to connect to the nth host; NULL: out of memory. The caller owns it. */
PGconn *db_target_start(const struct db_target *target, size_t host);

/* Microseconds from 1970-01-01 to 2000-01-01, where PostgreSQL counts from. */
#define DB_EPOCH_US INT64_C(946684800000000)

struct db_type {
    char letter;
    Oid oid;
    Oid item;          /* of an array's elements; 0 for other types */
    size_t item_bytes; /* on the wire; 0 when it varies */
    bool is_result, is_text;
};

/* The type of a letter, or NULL. */
const struct db_type *db_type(char letter);

/* Whether the server's `oid` is what the letter means. */
bool db_type_matches(const struct db_type *type, Oid oid);

/* Parameters in the form in which libpq takes them. */
enum { DB_PARAMS_MAX = 24 };

struct db_encoded {
    int n;
    const char *values[DB_PARAMS_MAX];
    int lengths[DB_PARAMS_MAX], formats[DB_PARAMS_MAX];
    uint8_t numbers[DB_PARAMS_MAX][8];
    uint8_t *arrays[DB_PARAMS_MAX];
};

/* Encodes a value for each letter of `params`. The caller calls db_encoded_free in each case. */
MUST_USE enum err db_encode(const char *what, const char *params, const struct db_param *values,
                            struct db_encoded *out, struct error *error);
void db_encoded_free(struct db_encoded *encoded);

/* Takes a result over from libpq; its columns are checked against their declaration. */
MUST_USE enum err db_result_make(const char *what, const char *columns, PGresult *rows,
                                 struct db_result **out, struct error *error);

/* Whether a description of columns fits their declaration; ERR_SCHEMA says which does not. */
MUST_USE enum err db_columns_check(const char *what, const char *columns, const PGresult *rows,
                                   struct error *error);

#endif
