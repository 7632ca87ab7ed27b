#include "service/schema/check.h"

#include "service/common/log.h"
#include "service/schema/plan.h"

#include <stdlib.h>
#include <string.h>

enum err schema_code_is_ours(const struct schema *schema, bool *out, struct error *error) {
    struct code *code = NULL;
    enum err rc = code_load(&code, error);
    if (!rc) *out = strcmp(code->digest, schema->code_digest) == 0;
    free(code);
    return rc;
}

/* A breaking migration that this program does not know. */
static enum err check_unknown(const struct migrations *all, const struct schema *schema,
                              struct error *error) {
    for (size_t i = 0; i < schema->n; i++)
        if (schema->rows[i].is_breaking && !migrations_find(all, schema->rows[i].version))
            return plan_newer_schema(all, schema, error);
    return ERR_NONE;
}

/* What this program does needs all its tables; so that even one that breaks nothing is needed. */
static enum err check_missing(const struct migrations *all, const struct schema *schema,
                              struct error *error) {
    for (size_t i = 0; i < all->n; i++)
        if (!schema_find(schema, all->item[i].version))
            return error_set(error, ERR_SCHEMA, "the schema lacks %s; run: proverq migrate up",
                             all->item[i].up->path);
    if (!*schema->code_digest)
        return error_set(error, ERR_SCHEMA,
                         "the schema has no functions and views, as after `proverq migrate down`; "
                         "run: proverq migrate up");
    return ERR_NONE;
}

static enum err warn_of_differences(const struct migrations *all, const struct schema *schema,
                                    struct error *error) {
    const struct migration *changed = schema_changed(schema, all);
    struct error difference;
    bool is_ours = false;
    enum err rc;
    TRY(schema_code_is_ours(schema, &is_ours, error));
    if (!is_ours)
        log_warn("functions and views in the database are another version's",
                 log_text("do", "proverq migrate up, unless a newer proverq made them"));
    if (changed && plan_changed_file(schema, changed, &difference))
        log_warn("a migration is not the one that ran", log_text("difference", difference.text));
fail:
    return rc;
}

enum err schema_check(struct db *db, struct error *error) {
    struct migrations *all = NULL;
    struct schema schema = {0};
    enum err rc;
    TRY(migrations_load(&all, error));
    TRY(schema_read(db, &schema, error));
    if (schema.version == 0)
        TRY(error_set(error, ERR_SCHEMA,
                      "the database has no schema proverq; run: proverq migrate up"));
    TRY(check_unknown(all, &schema, error));
    TRY(check_missing(all, &schema, error));
    TRY(warn_of_differences(all, &schema, error));
fail:
    schema_free(&schema);
    free(all);
    return rc;
}
