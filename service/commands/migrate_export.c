/* `proverq migrate export`: the migrations, functions and views as files of another tool, under the
 * user's own numbers.
 *
 * A unit is what such a tool calls a migration: a way up and a way down. Functions and views are
 * the last unit; its way down drops them. What cannot run in a transaction is a unit of a single
 * statement, as every tool wants it, and its row in proverq.schema_migration is written by the next
 * unit.
 */
#include "service/commands/migrate.h"
#include "service/commands/output.h"
#include "service/schema/migrations.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_BYTES = 200, NUMBER_DIGITS_MAX = 18, PATH_BYTES = 4096 };

struct unit {
    char name[100]; /* proverq_initial */
    char *up, *down;
    const struct migration *migration; /* NULL: functions and views */
    bool is_alone;
};

struct file {
    char name[NAME_BYTES];
    char *text;
};

struct export {
    const struct options *options;
    struct migrations *all;
    int from;
    struct unit *units;
    struct file *files;
    size_t n_units, n_files;
    uint64_t number;
    int width;
};

/* Around the files: while they run an unqualified name means nothing but PostgreSQL's own. The
 * path of before comes back, since a tool may run statements of its own in the same transaction. */
static const char path_set[] =
    "select pg_catalog.set_config('proverq.search_path', "
    "pg_catalog.current_setting('search_path'), true);\n"
    "select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);\n\n";
static const char path_reset[] = "\nselect pg_catalog.set_config('search_path', "
                                 "pg_catalog.current_setting('proverq.search_path'), true);\n";

static const char nothing[] = "select 1; -- nothing is to be done this way\n";

static enum err no_memory(struct error *error) {
    return error_set(error, ERR_HOST_MEMORY, "out of memory");
}

/* --- texts --- */

struct text {
    FILE *stream;
    char *bytes;
    size_t n;
};

static enum err text_begin(struct text *text, struct error *error) {
    *text = (struct text){0};
    text->stream = open_memstream(&text->bytes, &text->n);
    return text->stream ? ERR_NONE : no_memory(error);
}

static enum err text_end(struct text *text, char **out, struct error *error) {
    bool ok = !ferror(text->stream);
    ok = fclose(text->stream) == 0 && ok;
    *out = text->bytes;
    return ok && *out ? ERR_NONE : no_memory(error);
}

static enum err copy_text(const char *from, size_t n, char **out, struct error *error) {
    *out = strndup(from, n);
    return *out ? ERR_NONE : no_memory(error);
}

static enum err guarded(const char *sql, char **out, struct error *error) {
    struct text text;
    enum err rc;
    TRY(text_begin(&text, error));
    (void)fprintf(text.stream, "%s%s%s", path_set, sql, path_reset);
    TRY(text_end(&text, out, error));
fail:
    return rc;
}

/* Functions and views in one text. */
static enum err code_text(char **out, struct error *error) {
    struct code *code = NULL;
    struct text text;
    char sql[512];
    enum err rc;
    TRY(code_load(&code, error));
    TRY(text_begin(&text, error));
    (void)fputs(path_set, text.stream);
    for (size_t i = 0; i < code->n; i++)
        (void)fprintf(text.stream, "%s\n", code->files[i]->text);
    code_digest_sql(code, sql, sizeof sql);
    (void)fprintf(text.stream, "%s%s", sql, path_reset);
    TRY(text_end(&text, out, error));
fail:
    free(code);
    return rc;
}

/* --- units --- */

static struct unit *new_unit(struct export *e, const char *name, const char *suffix) {
    struct unit *unit = &e->units[e->n_units++];
    (void)snprintf(unit->name, sizeof unit->name, "proverq_%s%s", name, suffix);
    return unit;
}

static enum err add_migration(struct export *e, const struct migration *m, struct error *error) {
    struct unit *unit = new_unit(e, m->name, "");
    enum err rc;
    unit->migration = m;
    unit->is_alone = m->is_alone;
    if (m->is_alone)
        TRY(copy_text(m->up->text, m->record, &unit->up, error));
    else
        TRY(guarded(m->up->text, &unit->up, error));
    TRY(guarded(m->down->text, &unit->down, error));
    if (m->is_alone) {
        unit = new_unit(e, m->name, "_recorded");
        TRY(copy_text(m->up->text + m->record, strlen(m->up->text + m->record), &unit->up, error));
        TRY(copy_text(nothing, strlen(nothing), &unit->down, error));
    }
fail:
    return rc;
}

static enum err add_code(struct export *e, struct error *error) {
    struct unit *unit = new_unit(e, "functions", "");
    const char *drop = code_drop_file()->text;
    enum err rc;
    TRY(code_text(&unit->up, error));
    TRY(guarded(drop, &unit->down, error));
fail:
    return rc;
}

static enum err make_units(struct export *e, struct error *error) {
    enum err rc = ERR_NONE;
    e->units = calloc(2 * e->all->n + 2, sizeof *e->units);
    e->files = calloc(4 * e->all->n + 6, sizeof *e->files);
    if (!e->units || !e->files) return no_memory(error);
    for (const struct migration *m = e->all->item; m < e->all->item + e->all->n; m++)
        if (m->version >= e->from) TRY(add_migration(e, m, error));
    TRY(add_code(e, error));
fail:
    return rc;
}

/* --- the tools' files --- */

static struct file *new_file(struct export *e, const struct unit *unit, const char *suffix) {
    struct file *file = &e->files[e->n_files++];
    (void)snprintf(file->name, sizeof file->name, "%0*" PRIu64 "_%s%s", e->width, e->number,
                   unit->name, suffix);
    return file;
}

static enum err write_pair(struct export *e, const struct unit *unit, struct error *error) {
    enum err rc;
    TRY(copy_text(unit->up, strlen(unit->up), &new_file(e, unit, ".up.sql")->text, error));
    TRY(copy_text(unit->down, strlen(unit->down), &new_file(e, unit, ".down.sql")->text, error));
fail:
    return rc;
}

static enum err write_single(struct export *e, const struct unit *unit, const char *up_mark,
                             const char *down_mark, struct error *error) {
    struct text text;
    enum err rc;
    TRY(text_begin(&text, error));
    (void)fprintf(text.stream, "%s\n%s\n%s\n%s", up_mark, unit->up, down_mark, unit->down);
    TRY(text_end(&text, &new_file(e, unit, ".sql")->text, error));
fail:
    return rc;
}

static enum err write_dbmate(struct export *e, const struct unit *unit, struct error *error) {
    return write_single(e, unit,
                        unit->is_alone ? "-- migrate:up transaction:false" : "-- migrate:up",
                        "-- migrate:down", error);
}

static void put_javascript_string(FILE *stream, const char *text) {
    (void)fputc('"', stream);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') (void)fputc('\\', stream);
        if (*text == '\n')
            (void)fputs("\\n", stream);
        else
            (void)fputc(*text, stream);
    }
    (void)fputc('"', stream);
}

/* Its SQL files always run in a transaction; JavaScript ones may say otherwise. */
static enum err write_javascript(struct export *e, const struct unit *unit, struct error *error) {
    struct text text;
    enum err rc;
    TRY(text_begin(&text, error));
    (void)fputs("exports.up = (pgm) => {\n  pgm.noTransaction();\n  pgm.sql(", text.stream);
    put_javascript_string(text.stream, unit->up);
    (void)fputs(");\n};\nexports.down = (pgm) => {\n  pgm.sql(", text.stream);
    put_javascript_string(text.stream, unit->down);
    (void)fputs(");\n};\n", text.stream);
    TRY(text_end(&text, &new_file(e, unit, ".cjs")->text, error));
fail:
    return rc;
}

static enum err write_node(struct export *e, const struct unit *unit, struct error *error) {
    if (unit->is_alone) return write_javascript(e, unit, error);
    return write_single(e, unit, "-- Up Migration", "-- Down Migration", error);
}

/* --- psql: files under our own numbers, and two that run them in order --- */

static void name_for_psql(const struct unit *unit, const char *suffix, char name[NAME_BYTES]) {
    if (unit->migration)
        (void)snprintf(name, NAME_BYTES, "%04d_%s%s", unit->migration->version,
                       unit->migration->name, suffix);
    else
        (void)snprintf(name, NAME_BYTES, "%s%s", unit->name + strlen("proverq_"), suffix);
}

static enum err write_psql(struct export *e, const struct unit *unit, struct error *error) {
    struct file *up = &e->files[e->n_files++], *down = &e->files[e->n_files++];
    enum err rc;
    name_for_psql(unit, ".up.sql", up->name);
    name_for_psql(unit, ".down.sql", down->name);
    TRY(copy_text(unit->up, strlen(unit->up), &up->text, error));
    TRY(copy_text(unit->down, strlen(unit->down), &down->text, error));
fail:
    return rc;
}

static bool any_alone(const struct export *e) {
    for (size_t i = 0; i < e->n_units; i++)
        if (e->units[i].is_alone) return true;
    return false;
}

static enum err write_psql_order(struct export *e, bool is_up, struct error *error) {
    struct file *file = &e->files[e->n_files++];
    const char *suffix = is_up ? ".up.sql" : ".down.sql";
    struct text text;
    char name[NAME_BYTES];
    enum err rc;
    (void)snprintf(file->name, sizeof file->name, is_up ? "up.sql" : "down.sql");
    TRY(text_begin(&text, error));
    (void)fprintf(text.stream, "-- psql -X %s-v ON_ERROR_STOP=1 -f %s\n",
                  is_up && any_alone(e) ? "" : "-1 ", file->name);
    (void)fputs("set client_min_messages = warning;\n", text.stream);
    for (size_t i = 0; i < e->n_units; i++) {
        name_for_psql(&e->units[is_up ? i : e->n_units - 1 - i], suffix, name);
        (void)fprintf(text.stream, "\\ir %s\n", name);
    }
    TRY(text_end(&text, &file->text, error));
fail:
    return rc;
}

/* --- what each tool is told --- */

static const struct tool {
    const char *name;
    enum err (*write)(struct export *, const struct unit *, struct error *);
    const char *before, *after; /* DIR, in the command that runs the files */
    const char *advice;
} tools[] = {
    {"golang-migrate", write_pair, "migrate -path", "-database 'postgres://...' up",
     "It keeps its list in a table schema_migrations, as dbmate does. Name another beside one, "
     "with "
     "its schema: '...?x-migrations-table=\"public\".\"proverq_migrations\""
     "&x-migrations-table-quoted=1'.\n"},
    {"dbmate", write_dbmate, "dbmate --no-dump-schema --migrations-dir", "migrate",
     "It keeps its list in a table schema_migrations, as golang-migrate does. Name another beside "
     "one, with its schema: --migrations-table public.proverq_migrations.\n"},
    {"node-pg-migrate", write_node, "node-pg-migrate --migrations-dir", "up",
     "It keeps its list in the table public.pgmigrations; --migrations-table names another.\n"},
    {"psql", write_psql, "cd", "&& psql -X -1 -v ON_ERROR_STOP=1 -f up.sql",
     "If a file cannot run in a transaction, the first line of up.sql says it without -1.\n"},
};

static const struct tool *find_tool(const char *name) {
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
        if (strcmp(tools[i].name, name) == 0) return &tools[i];
    return NULL;
}

static enum err make_files(struct export *e, const struct tool *tool, struct error *error) {
    enum err rc = ERR_NONE;
    for (size_t i = 0; i < e->n_units; i++, e->number++)
        TRY(tool->write(e, &e->units[i], error));
    if (tool->write == write_psql) {
        TRY(write_psql_order(e, true, error));
        TRY(write_psql_order(e, false, error));
    }
fail:
    return rc;
}

/* --- the folder --- */

static enum err path_of(const char *folder, const struct file *file, char *path, size_t size,
                        struct error *error) {
    int n = snprintf(path, size, "%s/%s", folder, file->name);
    if (n < 0 || (size_t)n >= size)
        return error_set(error, ERR_USAGE, "the path of the folder is too long");
    return ERR_NONE;
}

/* Nothing is written when one of them is there already. */
static enum err check_absent(const struct export *e, const char *folder, struct error *error) {
    char path[PATH_BYTES];
    struct stat status;
    enum err rc = ERR_NONE;
    for (size_t i = 0; i < e->n_files; i++) {
        TRY(path_of(folder, &e->files[i], path, sizeof path, error));
        if (lstat(path, &status) == 0)
            TRY(error_set(error, ERR_IO,
                          "%s exists and is not overwritten: remove it, or choose another "
                          "--start-number or folder",
                          path));
    }
fail:
    return rc;
}

static enum err write_files(const struct export *e, const char *folder, struct error *error) {
    char(*paths)[PATH_BYTES] = calloc(e->n_files, sizeof *paths);
    struct output *outputs = calloc(e->n_files, sizeof *outputs);
    enum err rc = paths && outputs ? ERR_NONE : no_memory(error);
    for (size_t i = 0; i < e->n_files && rc == ERR_NONE; i++) {
        const char *text = e->files[i].text;
        outputs[i] = (struct output){.path = paths[i], .bytes = text, .size = strlen(text)};
        rc = path_of(folder, &e->files[i], paths[i], sizeof paths[i], error);
    }
    if (rc == ERR_NONE) rc = output_write(outputs, e->n_files, error);
    free(outputs);
    free(paths);
    return rc;
}

static enum err fill_folder(const struct export *e, const char *folder, struct error *error) {
    enum err rc;
    if (mkdir(folder, 0755) != 0 && errno != EEXIST)
        return error_set(error, ERR_IO, "%s: %s", folder, strerror(errno));
    TRY(check_absent(e, folder, error));
    TRY(write_files(e, folder, error));
fail:
    return rc;
}

/* --- the command --- */

static enum err read_from(struct export *e, struct error *error) {
    int newest = migrations_newest(e->all);
    e->from = (int)e->options->from;
    if (e->from < 1 || e->from > newest)
        return error_set(error, ERR_USAGE,
                         "--from: there is no version %d to export; the newest is %d", e->from,
                         newest);
    return ERR_NONE;
}

static enum err read_number(struct export *e, struct error *error) {
    const char *text = e->options->start_number;
    size_t n = strlen(text);
    if (n == 0 || n > NUMBER_DIGITS_MAX || strspn(text, "0123456789") != n)
        return error_set(error, ERR_USAGE,
                         "--start-number: \"%.64s\" is not a number of at most %d digits", text,
                         NUMBER_DIGITS_MAX);
    e->number = strtoull(text, NULL, 10);
    e->width = (int)n;
    return ERR_NONE;
}

static void export_free(struct export *e) {
    for (size_t i = 0; i < e->n_units; i++) {
        free(e->units[i].up);
        free(e->units[i].down);
    }
    for (size_t i = 0; i < e->n_files; i++)
        free(e->files[i].text);
    free(e->units);
    free(e->files);
    free(e->all);
}

enum err migrate_export(const struct options *options, struct error *error) {
    struct export e = {.options = options};
    const char *folder = options->arguments[0];
    const struct tool *tool = find_tool(options->format);
    enum err rc;
    if (!tool) return error_set(error, ERR_USAGE, "there is no format %s", options->format);
    TRY(migrations_load(&e.all, error));
    TRY(read_from(&e, error));
    TRY(read_number(&e, error));
    TRY(make_units(&e, error));
    TRY(make_files(&e, tool, error));
    TRY(fill_folder(&e, folder, error));
    (void)printf("%s: versions %d to %d, %zu files for %s\n", folder, e.from,
                 migrations_newest(e.all), e.n_files, tool->name);
    (void)printf("run: %s %s %s\n%s", tool->before, folder, tool->after, tool->advice);
fail:
    export_free(&e);
    return rc;
}
