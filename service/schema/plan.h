/* What is to be done to bring a database from the version it has to another: first the migrations
 * above the target are taken back, the newest first, then those up to it that are missing are
 * applied, then come functions and views.
 *
 * All steps together are one transaction, so that programs at work never see half of it: they wait
 * for a moment and go on. Only a migration that cannot run in a transaction stands alone, between
 * two.
 */
#ifndef PROVERQ_SCHEMA_PLAN_H
#define PROVERQ_SCHEMA_PLAN_H

#include "service/schema/schema.h"

enum step_kind {
    STEP_UP,        /* migration->up */
    STEP_DOWN,      /* migration->down */
    STEP_DROP_CODE, /* functions and views go, before the tables that they hold on to */
    STEP_CODE,      /* functions, views and grants of the target */
};

struct step {
    enum step_kind kind;
    const struct migration *migration; /* of STEP_UP and STEP_DOWN */
};

enum { STEPS_MAX = MIGRATIONS_MAX + 2 };

struct plan {
    int target;
    struct code *code; /* owned; NULL when the target is 0 */
    size_t n;
    struct step steps[STEPS_MAX];
};

/* ERR_SCHEMA when the database was migrated by a newer program, or by other files than this one
 * has; ERR_USAGE when no code belongs to the target. The caller frees what it gets. `all` outlives
 * it. */
MUST_USE enum err plan_make(const struct migrations *all, const struct schema *schema, int target,
                            struct plan **out, struct error *error);
void plan_free(struct plan *plan); /* NULL may be freed */

/* How many steps, from `first` on, run in one transaction; 1 for one that stands alone. */
size_t plan_group(const struct plan *plan, size_t first);
bool plan_is_alone(const struct step *step);

/* Refusals that others need too. */
MUST_USE enum err plan_newer_schema(const struct migrations *all, const struct schema *schema,
                                    struct error *error);
MUST_USE enum err plan_changed_file(const struct schema *schema, const struct migration *m,
                                    struct error *error);

#endif
