#include "service/calculator/wasm_module.h"
#include "gpu/mapped_file.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { HEAD_BYTES = 8, NAME_MOST = 128, SHOWN_MOST = 60 };

enum section { CUSTOM = 0, IMPORTS = 2, EXPORTS = 7, LAST_SECTION = 13 };

/* --- reading: a cursor that is broken stays so, and gives zeros --- */

struct cursor {
    const uint8_t *at, *end;
    bool is_broken;
};

static size_t left(const struct cursor *c) {
    return c->is_broken ? 0 : (size_t)(c->end - c->at);
}

static uint8_t read_byte(struct cursor *c) {
    if (left(c) > 0) return *c->at++;
    c->is_broken = true;
    return 0;
}

/* LEB128 of at most `bits` bits. */
static uint64_t read_number(struct cursor *c, unsigned bits) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < bits; shift += 7) {
        uint8_t byte = read_byte(c), digit = byte & 0x7f;
        if (bits - shift < 7 && digit >> (bits - shift)) break;
        value |= (uint64_t)digit << shift;
        if (!(byte & 0x80)) return c->is_broken ? 0 : value;
    }
    c->is_broken = true;
    return 0;
}

static uint32_t read_u32(struct cursor *c) {
    return (uint32_t)read_number(c, 32);
}

/* A cursor over the next `n` bytes, which are left behind. */
static struct cursor take(struct cursor *c, size_t n) {
    struct cursor part = {c->at, c->at, true};
    if (n > left(c) || c->is_broken) {
        c->is_broken = true;
        return part;
    }
    c->at += n;
    return (struct cursor){part.at, c->at, false};
}

static struct cursor take_counted(struct cursor *c) {
    return take(c, read_u32(c));
}

/* --- names --- */

struct module {
    const char *path;
    struct error *error;
};

static bool is_allowed(uint8_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '.' || c == '-';
}

/* The first bytes of a name, those that are not printable ASCII as \xNN. */
static void show(const struct cursor *name, char out[4 * SHOWN_MOST + 4]) {
    size_t n = left(name), used = 0;
    for (size_t i = 0; i < n && i < SHOWN_MOST; i++) {
        bool is_plain = name->at[i] >= ' ' && name->at[i] <= '~';
        used += (size_t)snprintf(out + used, 5, is_plain ? "%c" : "\\x%02x", name->at[i]);
    }
    (void)snprintf(out + used, 4, "%s", n > SHOWN_MOST ? "..." : "");
}

static enum err broken(const struct module *module, const char *where) {
    return error_set(module->error, ERR_FORMAT, "%.200s cannot be translated: its %s are malformed",
                     module->path, where);
}

static enum err check_name(const struct module *module, struct cursor *c, const char *of) {
    char shown[4 * SHOWN_MOST + 4];
    struct cursor name = take_counted(c);
    size_t n = left(&name);
    bool is_good = n > 0 && n <= NAME_MOST;
    for (size_t i = 0; i < n && is_good; i++)
        is_good = is_allowed(name.at[i]);
    if (is_good || c->is_broken) return ERR_NONE;
    show(&name, shown);
    return error_set(module->error, ERR_FORMAT,
                     "%.200s cannot be translated: the name \"%s\" of %s is rejected; names have 1 "
                     "to %d letters, digits, '_', '$', '.' and '-'",
                     module->path, shown, of, NAME_MOST);
}

/* --- sections --- */

/* Of a table or memory. */
static void skip_limits(struct cursor *c) {
    enum { HAS_MOST = 1, IS_KNOWN = 7 };
    uint8_t flags = read_byte(c);
    if (flags > IS_KNOWN) c->is_broken = true;
    (void)read_number(c, 64);
    if (flags & HAS_MOST) (void)read_number(c, 64);
}

static void skip_imported(struct cursor *c) {
    enum { FUNCTION, TABLE, MEMORY, GLOBAL, TAG, FUNCREF = 0x70, EXTERNREF = 0x6f };
    uint8_t type;
    switch (read_byte(c)) {
    case FUNCTION:
        (void)read_u32(c);
        break;
    case TABLE:
        type = read_byte(c);
        if (type != FUNCREF && type != EXTERNREF) c->is_broken = true;
        skip_limits(c);
        break;
    case MEMORY:
        skip_limits(c);
        break;
    case GLOBAL:
        (void)take(c, 2);
        break;
    case TAG:
        (void)read_byte(c);
        (void)read_u32(c);
        break;
    default:
        c->is_broken = true;
    }
}

static enum err check_imports(const struct module *module, struct cursor c) {
    enum err rc = ERR_NONE;
    for (uint32_t n = read_u32(&c); n > 0 && !c.is_broken; n--) {
        TRY(check_name(module, &c, "an imported module"));
        TRY(check_name(module, &c, "an import"));
        skip_imported(&c);
    }
    if (c.is_broken || left(&c) > 0) rc = broken(module, "imports");
fail:
    return rc;
}

static enum err check_exports(const struct module *module, struct cursor c) {
    enum err rc = ERR_NONE;
    for (uint32_t n = read_u32(&c); n > 0 && !c.is_broken; n--) {
        TRY(check_name(module, &c, "an export"));
        (void)read_byte(&c);
        (void)read_u32(&c);
    }
    if (c.is_broken || left(&c) > 0) rc = broken(module, "exports");
fail:
    return rc;
}

/* `depth` 1: pairs of an index and a name; 2: pairs of an index and such a list. */
static enum err check_map(const struct module *module, struct cursor *c, int depth) {
    enum err rc = ERR_NONE;
    for (uint32_t n = read_u32(c); n > 0 && !c->is_broken; n--) {
        (void)read_u32(c);
        TRY(depth > 1 ? check_map(module, c, depth - 1)
                      : check_name(module, c, "the name section"));
    }
fail:
    return rc;
}

static enum err check_name_section(const struct module *module, struct cursor c) {
    enum { MODULE = 0, LOCALS = 2, LABELS = 3, FIELDS = 10 };
    enum err rc = ERR_NONE;
    while (left(&c) > 0) {
        uint8_t kind = read_byte(&c);
        struct cursor part = take_counted(&c);
        bool is_nested = kind == LOCALS || kind == LABELS || kind == FIELDS;
        if (kind == MODULE)
            TRY(check_name(module, &part, "the module"));
        else
            TRY(check_map(module, &part, is_nested ? 2 : 1));
        if (part.is_broken || left(&part) > 0) TRY(broken(module, "names"));
    }
    if (c.is_broken) rc = broken(module, "names");
fail:
    return rc;
}

static enum err check_custom(const struct module *module, struct cursor c) {
    struct cursor peek = c, name = take_counted(&peek);
    enum err rc;
    TRY(check_name(module, &c, "a custom section"));
    if (c.is_broken) TRY(broken(module, "custom sections"));
    if (left(&name) == 4 && memcmp(name.at, "name", 4) == 0) TRY(check_name_section(module, c));
fail:
    return rc;
}

static enum err check_section(const struct module *module, uint8_t id, struct cursor content) {
    switch (id) {
    case CUSTOM:
        return check_custom(module, content);
    case IMPORTS:
        return check_imports(module, content);
    case EXPORTS:
        return check_exports(module, content);
    default:
        return id <= LAST_SECTION ? ERR_NONE : broken(module, "sections");
    }
}

/* Checks a section, and writes it unless it is a custom one. */
static enum err copy_section(const struct module *module, struct cursor *c, FILE *out) {
    const uint8_t *start = c->at;
    uint8_t id = read_byte(c);
    struct cursor content = take_counted(c);
    enum err rc;
    if (c->is_broken) return broken(module, "sections");
    TRY(check_section(module, id, content));
    size_t n = (size_t)(c->at - start);
    if (id != CUSTOM && fwrite(start, 1, n, out) != n)
        TRY(error_set(module->error, ERR_IO, "the module cannot be copied: %s", strerror(errno)));
fail:
    return rc;
}

static enum err copy_module(const struct module *module, struct cursor c, FILE *out) {
    static const uint8_t head[HEAD_BYTES] = {0, 'a', 's', 'm', 1, 0, 0, 0};
    enum err rc = ERR_NONE;
    struct cursor start = take(&c, HEAD_BYTES);
    if (left(&start) != HEAD_BYTES || memcmp(start.at, head, HEAD_BYTES) != 0)
        return error_set(module->error, ERR_FORMAT,
                         "%.200s cannot be translated: it is not WebAssembly of version 1",
                         module->path);
    if (fwrite(head, 1, HEAD_BYTES, out) != HEAD_BYTES)
        return error_set(module->error, ERR_IO, "the module cannot be copied: %s", strerror(errno));
    while (left(&c) > 0)
        TRY(copy_section(module, &c, out));
fail:
    return rc;
}

enum err wasm_module_copy(const char *wasm, const char *out, struct error *error) {
    const struct module module = {wasm, error};
    struct mapped_file *file = NULL;
    FILE *copy = NULL;
    enum err rc;
    TRY(mapped_file_read(wasm, &file, error));
    copy = fopen(out, "wbx");
    if (!copy) TRY(error_set(error, ERR_IO, "%s: %s", out, strerror(errno)));
    const uint8_t *bytes = mapped_file_bytes(file);
    TRY(copy_module(&module, (struct cursor){bytes, bytes + mapped_file_size(file), false}, copy));
fail:
    if (copy && fclose(copy) != 0 && rc == ERR_NONE)
        rc = error_set(error, ERR_IO, "%s: %s", out, strerror(errno));
    mapped_file_close(file);
    return rc;
}
