/* Whether a database has the schema that this program needs. */
#ifndef PROVERQ_SCHEMA_CHECK_H
#define PROVERQ_SCHEMA_CHECK_H

#include "service/schema/schema.h"

/* For the daemons, before they work: ERR_SCHEMA, saying what to run, when the schema is missing, is
 * older than this program, has no functions and views, or has a breaking migration that this program does not know. Only logs a
 * warning when functions and views are another version's, or a migration was changed after it ran:
 * the work goes on, and `proverq migrate` refuses. */
MUST_USE enum err schema_check(struct db *db, struct error *error);

/* Whether the functions and views in the database are this program's. */
MUST_USE enum err schema_code_is_ours(const struct schema *schema, bool *out, struct error *error);

#endif
