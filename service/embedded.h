/* The SQL files, compiled in: service/embed.sh makes a symbol of each (sql/statements/claim.sql is
 * sql_statements_claim in the generated file) and these tables, in the order of the paths. */
#ifndef PROVERQ_EMBEDDED_H
#define PROVERQ_EMBEDDED_H

#include <stddef.h>
#include <string.h>

struct embedded_file {
    const char *path; /* sql/statements/claim.sql, migrations/0001_initial.up.sql */
    const char *name; /* claim, 0001_initial.up: the path without its folder and .sql */
    const char *text; /* the whole file, ends with a NUL */
};

/* One table per folder; each ends with an entry of NULLs. */
extern const struct embedded_file embedded_migrations[]; /* migrations/ */
extern const struct embedded_file embedded_functions[];  /* sql/functions/ */
extern const struct embedded_file embedded_views[];      /* sql/views/ */
extern const struct embedded_file embedded_statements[]; /* sql/statements/ */

/* The text of sql/statements/NAME.sql, or NULL when there is no such file. */
static inline const char *embedded_statement(const char *name) {
    for (const struct embedded_file *file = embedded_statements; file->path; file++)
        if (strcmp(file->name, name) == 0) return file->text;
    return NULL;
}

#endif
