#include "service/schema/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum err query_bool(struct db *db, const char *sql, bool *out, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc;
    TRY(db_query(db, sql, "", "b", DB_NO_PARAMS, &rows, error));
    *out = db_rows(rows) > 0 && db_get_bool(rows, 0, 0);
fail:
    db_free(rows);
    return rc;
}

#define ROW_COLUMNS(X)                                                                             \
    X(ROW_VERSION, "version", "i")                                                                 \
    X(ROW_NAME, "name", "t")                                                                       \
    X(ROW_BREAKING, "breaking", "b")                                                               \
    X(ROW_APPLIED_AT, "applied_at", "t")                                                           \
    X(ROW_CHECKSUM, "checksum", "t")
enum { ROW_COLUMNS(DB_COLUMN) };

static enum err read_rows(struct db *db, struct schema *out, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc;
    TRY(db_query(
        db,
        "select version, name, breaking, date_trunc('second', applied_at)::text as applied_at, "
        "checksum from proverq.schema_migration order by version",
        "", ROW_COLUMNS(DB_COLUMN_TYPE), DB_NO_PARAMS, &rows, error));
    int n = db_rows(rows);
    out->rows = calloc((size_t)n + 1, sizeof *out->rows);
    if (!out->rows) TRY(error_set(error, ERR_HOST_MEMORY, "out of memory"));
    for (int i = 0; i < n; i++) {
        struct schema_row *row = &out->rows[out->n++];
        row->version = (int)db_get_int(rows, i, ROW_VERSION);
        row->is_breaking = db_get_bool(rows, i, ROW_BREAKING);
        (void)snprintf(row->name, sizeof row->name, "%s", db_get_text(rows, i, ROW_NAME));
        (void)snprintf(row->applied_at, sizeof row->applied_at, "%s",
                       db_get_text(rows, i, ROW_APPLIED_AT));
        (void)snprintf(row->checksum, sizeof row->checksum, "%s",
                       db_get_text(rows, i, ROW_CHECKSUM));
        out->version = row->version;
    }
fail:
    db_free(rows);
    return rc;
}

static enum err read_digest(struct db *db, struct schema *out, struct error *error) {
    struct db_result *rows = NULL;
    bool exists = false;
    enum err rc;
    TRY(query_bool(db,
                   "select exists (select from pg_proc p join pg_namespace n on n.oid = "
                   "p.pronamespace where n.nspname = 'proverq_private' and p.proname = "
                   "'code_digest')",
                   &exists, error));
    if (!exists) return ERR_NONE;
    TRY(db_query(db, "select proverq_private.code_digest()", "", "t", DB_NO_PARAMS, &rows, error));
    if (db_rows(rows) > 0)
        (void)snprintf(out->code_digest, sizeof out->code_digest, "%s", db_get_text(rows, 0, 0));
fail:
    db_free(rows);
    return rc;
}

enum err schema_read(struct db *db, struct schema *out, struct error *error) {
    bool exists = false;
    enum err rc;
    *out = (struct schema){0};
    /* Not to_regclass: it may remember what was there before we were alone. */
    TRY(query_bool(db,
                   "select exists (select from pg_class c join pg_namespace n on n.oid = "
                   "c.relnamespace where n.nspname = 'proverq' and c.relname = 'schema_migration')",
                   &exists, error));
    if (!exists) return ERR_NONE;
    TRY(read_rows(db, out, error));
    TRY(read_digest(db, out, error));
fail:
    if (rc) schema_free(out);
    return rc;
}

void schema_free(struct schema *schema) {
    free(schema->rows);
    *schema = (struct schema){0};
}

const struct schema_row *schema_find(const struct schema *schema, int version) {
    for (size_t i = 0; i < schema->n; i++)
        if (schema->rows[i].version == version) return &schema->rows[i];
    return NULL;
}

const struct migration *schema_changed(const struct schema *schema, const struct migrations *all) {
    for (const struct migration *m = all->item; m < all->item + all->n; m++) {
        const struct schema_row *row = schema_find(schema, m->version);
        if (row && strcmp(row->checksum, m->checksum) != 0) return m;
    }
    return NULL;
}
