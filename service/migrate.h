/* The database's schema: bringing it to the version that this program needs, and seeing whether it
 * has that.
 *
 * Migrations are migrations/NNNN_name.{up,down}.sql, compiled in. Each runs in one transaction,
 * under an advisory lock, and leaves its own row in proverq.schema_migration; so that any number of
 * hosts may migrate at once. Functions and views (sql/functions/, sql/views/, then sql/grants.sql)
 * have no versions: they are replaced as a whole after the migrations. A migration marked
 * `breaking` makes older programs refuse to start; others do not.
 *
 * The commands print what they did, a line each, to standard output.
 */
#ifndef PROVERQ_MIGRATE_H
#define PROVERQ_MIGRATE_H

#include "gpu/error.h"
#include "service/db.h"
#include "service/options.h"

/* migrate up [VERSION]: applies what is missing up to VERSION (the newest), in order; at the newest
 * version, functions and views too. ERR_SCHEMA when a newer program has migrated this database. */
MUST_USE enum err migrate_up(const struct options *options, struct error *error);

/* migrate down VERSION: takes back what is above VERSION, the newest first. 0 removes the schema
 * and all that is in it. */
MUST_USE enum err migrate_down(const struct options *options, struct error *error);

/* migrate status: every migration known here or there, and whether functions and views are ours. */
MUST_USE enum err migrate_status(const struct options *options, struct error *error);

/* For the daemons, before they work: ERR_SCHEMA, saying what to run, when the schema is missing, is
 * older than this program, or has a breaking migration that this program does not know. Logs a
 * warning when functions and views are another version's. */
MUST_USE enum err migrate_check(struct db *db, struct error *error);

#endif
