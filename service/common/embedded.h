/* The SQL files, compiled in: service/common/embed.sh makes a symbol of each (sql/statements/claim.sql is
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
extern const struct embedded_file embedded_sql[];        /* sql/ itself: grants, drop_code */
extern const struct embedded_file embedded_statements[]; /* sql/statements/ */

/* service/calculator/calculator_glue.inc, which is C. */
extern const char *const embedded_calculator_glue;

/* The file called `name` in a table, or NULL. */
static inline const struct embedded_file *embedded_find(const struct embedded_file *table,
                                                        const char *name) {
    for (; table->path; table++)
        if (strcmp(table->name, name) == 0) return table;
    return NULL;
}

#endif
