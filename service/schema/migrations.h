/* What this program has of the schema: migrations, and the functions, views and grants that belong
 * to the newest of them. All of it is compiled in (service/common/embedded.h); nothing here asks a
 * database.
 *
 * A migration's last line records it in proverq.schema_migration, with the breaking mark and the
 * SHA-256 of all lines above (contrib/scripts/seal-migrations.sh writes it). The comment
 * `-- proverq: no transaction` in an up file says that its one statement before that line cannot
 * run in a transaction (CREATE INDEX CONCURRENTLY IF NOT EXISTS).
 *
 * Functions and views have no versions of their own: a program has those of its newest migration,
 * sql/functions/, sql/views/ and sql/grants.sql, in this order.
 */
#ifndef PROVERQ_SCHEMA_MIGRATIONS_H
#define PROVERQ_SCHEMA_MIGRATIONS_H

#include "gpu/error.h"
#include "service/common/embedded.h"

#include <stddef.h>

enum { DIGEST_HEX_BYTES = 65, MIGRATIONS_MAX = 1000, CODE_FILES_MAX = 500 };

struct migration {
    int version;
    char name[60]; /* initial */
    const struct embedded_file *up, *down;
    size_t record; /* where the last line of up->text begins */
    bool is_breaking;
    bool is_alone; /* not in a transaction */
    char checksum[DIGEST_HEX_BYTES];
};

struct code {
    size_t n;
    const struct embedded_file *files[CODE_FILES_MAX]; /* in the order of their application */
    char digest[DIGEST_HEX_BYTES]; /* as proverq_private.code_digest() says which they are */
};

struct migrations {
    size_t n;
    struct migration item[MIGRATIONS_MAX]; /* by version */
};

/* Reads the compiled-in migrations. ERR_INTERNAL for a file without its pair or its last line. The
 * caller frees what it gets. */
MUST_USE enum err migrations_load(struct migrations **out, struct error *error);

const struct migration *migrations_find(const struct migrations *all, int version); /* or NULL */
int migrations_newest(const struct migrations *all);

/* The functions and views of this program. The caller frees what it gets. */
MUST_USE enum err code_load(struct code **out, struct error *error);

/* SQL that takes all functions and views away; SQL that leaves code's digest in the database. */
const struct embedded_file *code_drop_file(void);
void code_digest_sql(const struct code *code, char *sql, size_t size);

#endif
