/* The database's schema: bringing it to the version that this program needs, or back to an earlier
 * one, and seeing whether it has that.
 *
 * Migrations are migrations/NNNN_name.{up,down}.sql, compiled in (service/schema/migrations.h); each
 * leaves its own row in proverq.schema_migration, so that any tool may run them. Any number of
 * hosts may migrate at once (service/schema/run.h). Functions and views (sql/) have no versions:
 * they are replaced as a whole after the migrations, by those that belong to the version. A
 * migration marked `breaking` makes older programs refuse to start; others do not.
 *
 * The commands print what they did, a line each, to standard output.
 */
#ifndef PROVERQ_COMMANDS_MIGRATE_H
#define PROVERQ_COMMANDS_MIGRATE_H

#include "gpu/error.h"
#include "service/common/options.h"

/* migrate up [VERSION]: applies what is missing up to VERSION (the newest), in order, then its
 * functions and views. ERR_SCHEMA when a newer program has migrated this database, or when a file
 * was changed after it ran there. */
MUST_USE enum err migrate_up(const struct options *options, struct error *error);

/* migrate down VERSION: takes back what is above VERSION, the newest first, and brings its
 * functions and views back. 0 removes the schema and all that is in it. */
MUST_USE enum err migrate_down(const struct options *options, struct error *error);

/* migrate to VERSION: up or down, as needed. */
MUST_USE enum err migrate_to(const struct options *options, struct error *error);

/* migrate plan [VERSION]: what `migrate to` would do; changes nothing. */
MUST_USE enum err migrate_plan(const struct options *options, struct error *error);

/* migrate status: every migration known here or there, and whether functions and views are ours. */
MUST_USE enum err migrate_status(const struct options *options, struct error *error);

/* migrate export DIR: the same as files for another tool (service/commands/migrate_export.c). */
MUST_USE enum err migrate_export(const struct options *options, struct error *error);

#endif
