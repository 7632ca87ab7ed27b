/* What a database has of the schema, as its table proverq.schema_migration says. */
#ifndef PROVERQ_SCHEMA_SCHEMA_H
#define PROVERQ_SCHEMA_SCHEMA_H

#include "service/db/db.h"
#include "service/schema/migrations.h"

struct schema_row {
    int version;
    bool is_breaking;
    char name[60], applied_at[40];
    char checksum[DIGEST_HEX_BYTES];
};

struct schema {
    size_t n;
    struct schema_row *rows;            /* by version */
    int version;                        /* the newest; 0: there is no schema */
    char code_digest[DIGEST_HEX_BYTES]; /* of the functions and views; "": there are none */
};

MUST_USE enum err schema_read(struct db *db, struct schema *out, struct error *error);
void schema_free(struct schema *schema); /* what was never read may be freed if it is all zero */

const struct schema_row *schema_find(const struct schema *schema, int version); /* or NULL */

/* The first migration whose file, when it ran here, was not the one that this program has; NULL:
 * none. */
const struct migration *schema_changed(const struct schema *schema, const struct migrations *all);

#endif
