/* What is to be done to bring a database from the version it has to another.
 *
 * Up, to the newest version: the migrations that are missing, then functions and views. Down, to an
 * earlier one: functions and views go, then the migrations above the target are taken back, the
 * newest first. What is left are the target's tables; its functions and views are installed by a
 * program of that version (`proverq migrate up`).
 *
 * All steps together are one transaction, so that programs at work never see half of it: they wait
 * for a moment and go on. Only a migration that cannot run in a transaction stands alone, between
 * two.
 */
#ifndef PROVERQ_SCHEMA_PLAN_H
#define PROVERQ_SCHEMA_PLAN_H

#include "service/schema/schema.h"

enum plan_kind {
    PLAN_UP,        /* migration->up */
    PLAN_DOWN,      /* migration->down */
    PLAN_DROP_CODE, /* functions and views go, before the tables that they hold on to */
    PLAN_CODE,      /* functions, views and grants of this program */
};

struct plan_step {
    enum plan_kind kind;
    const struct migration *migration; /* of PLAN_UP and PLAN_DOWN */
};

enum { PLAN_STEPS_MAX = MIGRATIONS_MAX + 2 };

struct plan {
    int target;
    struct code *code; /* owned; NULL on the way down */
    size_t n;
    struct plan_step steps[PLAN_STEPS_MAX];
};

/* `target` is the newest version, or one that is not above the database's. ERR_SCHEMA when the
 * database was migrated by a newer program, or by other files than this one has. The caller frees
 * what it gets. `all` outlives it. */
MUST_USE enum err plan_make(const struct migrations *all, const struct schema *schema, int target,
                            struct plan **out, struct error *error);
void plan_free(struct plan *plan); /* NULL may be freed */

/* How many steps, from `first` on, run in one transaction; 1 for one that stands alone. */
size_t plan_group(const struct plan *plan, size_t first);
bool plan_is_alone(const struct plan_step *step);

/* Refusals that others need too. */
MUST_USE enum err plan_newer_schema(const struct migrations *all, const struct schema *schema,
                                    struct error *error);
MUST_USE enum err plan_changed_file(const struct schema *schema, const struct migration *m,
                                    struct error *error);

#endif
