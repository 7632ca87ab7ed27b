#include "service/schema/plan.h"

#include "service/common/version.h"

#include <stdlib.h>

enum err plan_newer_schema(const struct migrations *all, const struct schema *schema,
                           struct error *error) {
    return error_set(error, ERR_SCHEMA,
                     "the schema is at version %d and this program (proverq %s) knows %d: use the "
                     "proverq that migrated it, or a newer one",
                     schema->version, PROVERQ_VERSION, migrations_newest(all));
}

enum err plan_changed_file(const struct schema *schema, const struct migration *m,
                           struct error *error) {
    return error_set(error, ERR_SCHEMA,
                     "version %d of the schema was made by another %s than this program has "
                     "(SHA-256 recorded: %.16s..., here: %.16s...): use the proverq that applied "
                     "it on %s, or restore that file; a released migration never changes",
                     m->version, m->up->path, schema_find(schema, m->version)->checksum,
                     m->checksum, schema_find(schema, m->version)->applied_at);
}

static void add(struct plan *plan, enum plan_kind kind, const struct migration *m) {
    plan->steps[plan->n++] = (struct plan_step){kind, m};
}

static void go_up(const struct migrations *all, const struct schema *schema, struct plan *plan) {
    for (size_t i = 0; i < all->n; i++)
        if (!schema_find(schema, all->item[i].version)) add(plan, PLAN_UP, &all->item[i]);
    add(plan, PLAN_CODE, NULL);
}

static void go_down(const struct migrations *all, const struct schema *schema, struct plan *plan) {
    if (schema->version <= plan->target) return;
    add(plan, PLAN_DROP_CODE, NULL);
    for (size_t i = all->n; i-- > 0;)
        if (all->item[i].version > plan->target && schema_find(schema, all->item[i].version))
            add(plan, PLAN_DOWN, &all->item[i]);
}

enum err plan_make(const struct migrations *all, const struct schema *schema, int target,
                   struct plan **out, struct error *error) {
    const struct migration *changed = schema_changed(schema, all);
    struct plan *plan = NULL;
    enum err rc = ERR_NONE;
    *out = NULL;
    if (schema->version > migrations_newest(all)) return plan_newer_schema(all, schema, error);
    if (changed) return plan_changed_file(schema, changed, error);
    plan = calloc(1, sizeof *plan);
    if (!plan) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    plan->target = target;
    if (target < migrations_newest(all)) {
        go_down(all, schema, plan);
    } else {
        TRY(code_load(&plan->code, error));
        go_up(all, schema, plan);
    }
    *out = plan;
    return ERR_NONE;
fail:
    plan_free(plan);
    return rc;
}

void plan_free(struct plan *plan) {
    if (plan) free(plan->code);
    free(plan);
}

bool plan_is_alone(const struct plan_step *step) {
    return step->kind == PLAN_UP && step->migration->is_alone;
}

size_t plan_group(const struct plan *plan, size_t first) {
    size_t n = 1;
    if (first >= plan->n) return 0;
    if (plan_is_alone(&plan->steps[first])) return 1;
    while (first + n < plan->n && !plan_is_alone(&plan->steps[first + n]))
        n++;
    return n;
}
