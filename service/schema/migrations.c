#include "service/schema/migrations.h"

#include "service/common/version.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGEST_BYTES = 32 };

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

struct piece {
    const char *text;
    size_t n;
};

/* SHA-256 over the pieces in hexadecimal. */
static enum err digest(const struct piece *pieces, size_t n, char out[DIGEST_HEX_BYTES],
                       struct error *error) {
    unsigned char bytes[DIGEST_BYTES];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; ok && i < n; i++)
        ok = EVP_DigestUpdate(context, pieces[i].text, pieces[i].n) == 1;
    ok = ok && EVP_DigestFinal_ex(context, bytes, NULL) == 1;
    EVP_MD_CTX_free(context);
    if (!ok) return error_set(error, ERR_INTERNAL, "libcrypto cannot compute SHA-256");
    for (size_t i = 0; i < DIGEST_BYTES; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", (unsigned)bytes[i]);
    return ERR_NONE;
}

/* --- migrations --- */

static enum err not_sealed(const struct migration *m, struct error *error) {
    return error_set(error, ERR_INTERNAL,
                     "%s does not end with a line `insert into proverq.schema_migration ... "
                     "values (%d, '%s', true or false ...);`",
                     m->up->path, m->version, m->name);
}

/* Reads what the last line says, and the name before it: 0001_initial.up -> initial. */
static enum err read_up_file(struct migration *m, struct error *error) {
    static const char mark[] = "\n-- proverq: no transaction\n";
    static const char record[] = "insert into proverq.schema_migration ";
    const char *from = m->up->name + strspn(m->up->name, "0123456789_"), *text = m->up->text;
    char values[100];
    (void)snprintf(m->name, sizeof m->name, "%.*s", (int)(strlen(from) - strlen(".up")), from);
    for (const char *at = text; (at = strstr(at, record)); at++)
        if (at > text && at[-1] == '\n') m->record = (size_t)(at - text);
    const char *end = strchr(text + m->record, '\n');
    (void)snprintf(values, sizeof values, " values (%d, '%s', ", m->version, m->name);
    const char *breaking = strstr(text + m->record, values);
    if (!m->record || !end || end[1] || !breaking) return not_sealed(m, error);
    m->is_breaking = strncmp(breaking + strlen(values), "true", 4) == 0;
    const char *alone = strstr(text, mark);
    m->is_alone = alone && (size_t)(alone - text) < m->record;
    return digest(&(struct piece){text, m->record}, 1, m->checksum, error);
}

static struct migration *entry_of(struct migrations *all, int version) {
    for (size_t i = 0; i < all->n; i++)
        if (all->item[i].version == version) return &all->item[i];
    if (all->n == MIGRATIONS_MAX) return NULL;
    struct migration *m = &all->item[all->n++];
    m->version = version;
    return m;
}

static int by_version(const void *a, const void *b) {
    const struct migration *m = a, *n = b;
    return (m->version > n->version) - (m->version < n->version);
}

enum err migrations_load(struct migrations **out, struct error *error) {
    struct migrations *all = calloc(1, sizeof *all);
    enum err rc = ERR_NONE;
    *out = NULL;
    if (!all) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    for (const struct embedded_file *file = embedded_migrations; file->path; file++) {
        struct migration *m = entry_of(all, (int)strtol(file->name, NULL, 10));
        if (!m) TRY(error_set(error, ERR_INTERNAL, "too many migrations"));
        if (ends_with(file->name, ".up")) m->up = file;
        if (ends_with(file->name, ".down")) m->down = file;
    }
    qsort(all->item, all->n, sizeof *all->item, by_version);
    for (struct migration *m = all->item; m < all->item + all->n; m++) {
        if (!m->up || !m->down)
            TRY(error_set(error, ERR_INTERNAL, "migration %d lacks its up or down file",
                          m->version));
        TRY(read_up_file(m, error));
    }
    *out = all;
    return ERR_NONE;
fail:
    free(all);
    return rc;
}

const struct migration *migrations_find(const struct migrations *all, int version) {
    for (size_t i = 0; i < all->n; i++)
        if (all->item[i].version == version) return &all->item[i];
    return NULL;
}

int migrations_newest(const struct migrations *all) {
    return all->n ? all->item[all->n - 1].version : 0;
}

/* --- functions and views --- */

static enum err add_file(struct code *code, const struct embedded_file *file, struct error *error) {
    if (code->n == CODE_FILES_MAX) return error_set(error, ERR_INTERNAL, "too many files in sql/");
    code->files[code->n++] = file;
    return ERR_NONE;
}

static enum err add_files(struct code *code, struct error *error) {
    const struct embedded_file *const tables[] = {embedded_functions, embedded_views};
    enum err rc = ERR_NONE;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (const struct embedded_file *file = tables[i]; file->path; file++)
            TRY(add_file(code, file, error));
    TRY(add_file(code, embedded_find(embedded_sql, "grants"), error));
fail:
    return rc;
}

/* Over texts and their NULs, as every release computes it. */
static enum err code_digest(struct code *code, struct error *error) {
    struct piece pieces[CODE_FILES_MAX];
    for (size_t i = 0; i < code->n; i++)
        pieces[i] = (struct piece){code->files[i]->text, strlen(code->files[i]->text) + 1};
    return digest(pieces, code->n, code->digest, error);
}

enum err code_load(struct code **out, struct error *error) {
    struct code *code = calloc(1, sizeof *code);
    enum err rc;
    *out = NULL;
    if (!code) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    TRY(add_files(code, error));
    TRY(code_digest(code, error));
    *out = code;
    return ERR_NONE;
fail:
    free(code);
    return rc;
}

const struct embedded_file *code_drop_file(void) {
    return embedded_find(embedded_sql, "drop_code");
}

void code_digest_sql(const struct code *code, char *sql, size_t size) {
    (void)snprintf(
        sql, size,
        "create or replace function proverq_private.code_digest() returns text language sql "
        "immutable set search_path = pg_catalog, pg_temp as $$ select '%s' $$;\n"
        "comment on function proverq_private.code_digest() is "
        "'Which functions and views these are; of proverq %s.';\n",
        code->digest, PROVERQ_VERSION);
}
