#include "gpu/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *class_name, *meaning;
    enum error_class class;
    bool retry;
} table[] = {
#define X(code, name, class, retry, meaning)                                                       \
    [code] = {name, #class, meaning, ERROR_CLASS_##class, retry},
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

enum err error_prefix(struct error *error, const char *format, ...) {
    char old[sizeof error->text];
    memcpy(old, error->text, sizeof old);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof error->text)
        (void)snprintf(error->text + n, sizeof error->text - (size_t)n, ": %s", old);
    return error->code;
}

const char *error_name(enum err code) {
    return table[code].name;
}

const char *error_meaning(enum err code) {
    return table[code].meaning;
}

enum error_class error_class(enum err code) {
    return table[code].class;
}

const char *error_class_name(enum err code) {
    return table[code].class_name;
}

bool error_retryable(enum err code) {
    return table[code].retry;
}
