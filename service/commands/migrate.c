#include "service/commands/migrate.h"

#include "service/schema/check.h"
#include "service/schema/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST_SERVER = 150000 };

/* What every command has: this program's migrations, and the database's. */
struct work {
    struct migrations *all;
    struct db *db;
    struct schema schema;
};

static void work_end(struct work *work) {
    schema_free(&work->schema);
    db_close(work->db);
    free(work->all);
}

static enum err work_begin(const struct options *options, struct work *work, struct error *error) {
    struct db_settings settings = db_settings_for(options->database, "migrate", NULL, 0);
    enum err rc;
    settings.statement_timeout_ms = 0; /* a migration may take long */
    TRY(db_open(&settings, &work->db, error));
    if (db_server_version(work->db) < OLDEST_SERVER)
        TRY(error_set(error, ERR_UNSUPPORTED,
                      "the server is PostgreSQL %d; proverq needs 15 or newer",
                      db_server_version(work->db) / 10000));
    TRY(schema_read(work->db, &work->schema, error));
fail:
    return rc;
}

/* The command's argument, which is a version that this program knows, or `fallback`. */
static enum err read_version(const struct options *options, const struct migrations *all,
                             int fallback, int *out, struct error *error) {
    *out = fallback;
    if (options->n_arguments == 0) return ERR_NONE;
    const char *text = options->arguments[0];
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    int newest = migrations_newest(all);
    bool is_number = *text >= '0' && *text <= '9' && !*end && !errno && number <= newest;
    if (!is_number || (number > 0 && !migrations_find(all, (int)number)))
        return error_set(error, ERR_USAGE, "migration \"%s\" does not exist; the newest is %d",
                         text, newest);
    *out = (int)number;
    return ERR_NONE;
}

static void print_version(const struct migrations *all, int version) {
    (void)printf("the schema is at version %d\n", version);
    if (version > 0 && version < migrations_newest(all))
        (void)printf("it has no functions and views now; with the proverq of that version run: "
                     "proverq migrate up\n");
}

enum err migrate_up(const struct options *options, struct error *error) {
    struct work work = {0};
    enum err rc;
    TRY(migrations_load(&work.all, error));
    TRY(work_begin(options, &work, error));
    TRY(migrate_run(work.db, work.all, migrations_newest(work.all), options->lock_wait_ms, error));
    print_version(work.all, migrations_newest(work.all));
fail:
    work_end(&work);
    return rc;
}

/* A target that is not below what the database has needs nothing. */
enum err migrate_down(const struct options *options, struct error *error) {
    struct work work = {0};
    int target;
    enum err rc;
    TRY(migrations_load(&work.all, error));
    TRY(read_version(options, work.all, 0, &target, error));
    TRY(work_begin(options, &work, error));
    if (work.schema.version > target)
        TRY(migrate_run(work.db, work.all, target, options->lock_wait_ms, error));
    else
        target = work.schema.version;
    print_version(work.all, target);
fail:
    work_end(&work);
    return rc;
}

/* --- plan --- */

static void print_step(const struct plan *plan, const struct schema *schema,
                       const struct plan_step *step) {
    const struct migration *m = step->migration;
    const char *breaking =
        m && m->is_breaking ? "  breaking: programs older than it do not start beside it" : "";
    switch (step->kind) {
    case PLAN_UP:
        (void)printf("    %s%s\n", m->up->path, breaking);
        break;
    case PLAN_DOWN:
        (void)printf("    %s\n", m->down->path);
        break;
    case PLAN_DROP_CODE:
        (void)printf("    all functions and views are dropped\n");
        break;
    case PLAN_CODE:
        (void)printf("    functions and views: %zu files%s\n", plan->code->n,
                     strcmp(plan->code->digest, schema->code_digest) == 0
                         ? ", as they are in the database already"
                         : "");
        break;
    }
}

static void print_plan(const struct plan *plan, const struct schema *schema) {
    if (schema->version == plan->target)
        (void)printf("the schema is at version %d\n", plan->target);
    else
        (void)printf("from version %d to %d:\n", schema->version, plan->target);
    for (size_t i = 0, n; (n = plan_group(plan, i)) > 0; i += n) {
        bool is_alone = plan_is_alone(&plan->steps[i]);
        (void)printf("  %s:\n", is_alone ? "on its own, not in a transaction" : "one transaction");
        for (size_t k = i; k < i + n; k++)
            print_step(plan, schema, &plan->steps[k]);
    }
    (void)printf("nothing was changed\n");
}

enum err migrate_plan(const struct options *options, struct error *error) {
    struct work work = {0};
    struct plan *plan = NULL;
    int target;
    enum err rc;
    TRY(migrations_load(&work.all, error));
    TRY(read_version(options, work.all, migrations_newest(work.all), &target, error));
    TRY(work_begin(options, &work, error));
    if (target < migrations_newest(work.all) && target > work.schema.version)
        TRY(error_set(error, ERR_USAGE, "the schema is at version %d; up goes to the newest, %d",
                      work.schema.version, migrations_newest(work.all)));
    TRY(plan_make(work.all, &work.schema, target, &plan, error));
    print_plan(plan, &work.schema);
fail:
    plan_free(plan);
    work_end(&work);
    return rc;
}

/* --- status --- */

static const char *remark(const struct schema_row *row, const struct migration *m) {
    if (!m) return ", unknown to this program";
    if (strcmp(row->checksum, m->checksum) != 0) return ", by another file than this program has";
    return "";
}

static void print_migrations(const struct work *work) {
    for (size_t i = 0; i < work->schema.n; i++) {
        const struct schema_row *row = &work->schema.rows[i];
        (void)printf("%7d  %-24s  applied %s%s%s\n", row->version, row->name, row->applied_at,
                     row->is_breaking ? ", breaking" : "",
                     remark(row, migrations_find(work->all, row->version)));
    }
    for (size_t i = 0; i < work->all->n; i++) {
        const struct migration *m = &work->all->item[i];
        if (!schema_find(&work->schema, m->version))
            (void)printf("%7d  %-24s  missing; run: proverq migrate up\n", m->version, m->name);
    }
}

enum err migrate_status(const struct options *options, struct error *error) {
    struct work work = {0};
    bool is_ours = false;
    enum err rc;
    TRY(migrations_load(&work.all, error));
    TRY(work_begin(options, &work, error));
    (void)printf("version  %-24s  state\n", "name");
    print_migrations(&work);
    if (work.schema.version == 0) goto fail;
    TRY(schema_code_is_ours(&work.schema, &is_ours, error));
    (void)printf("functions and views: %s\n",
                 is_ours ? "of this program" : "not of this program; run: proverq migrate up");
fail:
    work_end(&work);
    return rc;
}
