#include "gpu/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    enum error_class class;
    bool retry;
} table[] = {
#define X(code, name, class, retry, meaning) [code] = {name, ERROR_CLASS_##class, retry},
    ERROR_TABLE(X)
#undef X
};

enum err error_set(struct error *error, enum err code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    error->code = code;
    (void)vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return code;
}

static void append(struct error *error, const char *text) {
    size_t at = strlen(error->text), room = sizeof error->text - 1 - at, n = strlen(text);
    if (n > room) n = room;
    memcpy(error->text + at, text, n);
    error->text[at + n] = 0;
}

enum err error_prefix(struct error *error, const char *format, ...) {
    char old[sizeof error->text];
    memcpy(old, error->text, sizeof old);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    append(error, ": ");
    append(error, old);
    return error->code;
}

const char *error_name(enum err code) {
    return table[code].name;
}

enum err error_by_name(const char *name, size_t n) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strlen(table[i].name) == n && memcmp(table[i].name, name, n) == 0) return (enum err)i;
    return ERR_INTERNAL;
}

enum error_class error_class(enum err code) {
    return table[code].class;
}

bool error_retryable(enum err code) {
    return table[code].retry;
}
