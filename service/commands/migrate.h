/* The commands that bring a database's schema to the version of this program, or back to an earlier
 * one, and say what it has. They print what they did, a line each, to standard output.
 *
 * Migrations are migrations/NNNN_name.{up,down}.sql, compiled in (service/schema/migrations.h); each
 * leaves its own row in proverq.schema_migration, so that any tool may run them. Any number of
 * hosts may migrate at once (service/schema/run.h). Functions and views (sql/) have no versions:
 * they are replaced as a whole after the migrations, by this program's. A migration marked
 * `breaking` makes older programs refuse to start; others do not.
 */
#ifndef PROVERQ_COMMANDS_MIGRATE_H
#define PROVERQ_COMMANDS_MIGRATE_H

#include "gpu/error.h"
#include "service/common/options.h"

/* migrate up: applies what is missing, in order, then functions and views. ERR_SCHEMA when a newer
 * program has migrated this database, or when a file was changed after it ran there. */
MUST_USE enum err migrate_up(const struct options *options, struct error *error);

/* migrate down VERSION: takes functions and views away, then what is above VERSION, the newest
 * first. The functions and views of VERSION are installed by `migrate up` of its own program. 0
 * removes both schemas and all that is in them. */
MUST_USE enum err migrate_down(const struct options *options, struct error *error);

/* migrate plan [VERSION]: what `migrate up`, or `migrate down VERSION`, would do; changes nothing. */
MUST_USE enum err migrate_plan(const struct options *options, struct error *error);

/* migrate status: every migration known here or there, and whether functions and views are ours. */
MUST_USE enum err migrate_status(const struct options *options, struct error *error);

/* migrate export DIR: the same as files for another tool (migrate_export.c). */
MUST_USE enum err migrate_export(const struct options *options, struct error *error);

#endif
