/* The log: one line a message, to standard error, in logfmt or as a JSON object.
 *
 *     time=2026-11-30T08:58:00.123Z level=info process=prover msg="partition proved" job=7 us=81234
 *     {"time":"2026-11-30T08:58:00.123Z","level":"info","process":"prover",
 *      "msg":"partition proved","job":7,"us":81234}
 *
 * Values are quoted when they need it and control characters are escaped, so that no text from
 * outside can forge a line. Never hand a secret to it: no password, webhook secret, input, witness
 * or blinding factor. Each line is one write(2); any thread may log.
 */
#ifndef PROVERQ_LOG_H
#define PROVERQ_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

enum { LOG_VALUE_BYTES = 1024 /* a longer value is cut; so that every line stays whole */ };

struct log_field {
    const char *key;  /* a plain word */
    const char *text; /* NULL: `number` is the value */
    int64_t number;
};

static inline struct log_field log_text(const char *key, const char *text) {
    return (struct log_field){.key = key, .text = text ? text : "null"};
}
static inline struct log_field log_number(const char *key, int64_t number) {
    return (struct log_field){.key = key, .number = number};
}

/* log_info("partition proved", log_number("job", 7), log_text("device", "cpu")); fields may be
 * missing. */
#define log_debug(...) LOG_AT(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_info(...)  LOG_AT(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warn(...)  LOG_AT(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_error(...) LOG_AT(LOG_LEVEL_ERROR, __VA_ARGS__)

#define LOG_AT(level, ...) LOG_AT_(level, __VA_ARGS__)
#define LOG_AT_(level, message, ...)                                                               \
    log_write(level, (const struct log_field[]){log_text("msg", message), ##__VA_ARGS__},          \
              sizeof((const struct log_field[]){log_text("msg", message), ##__VA_ARGS__}) /        \
                  sizeof(struct log_field))

/* Writes one line of n fields unless `level` is below the one set. */
void log_write(enum log_level level, const struct log_field *fields, size_t n);

/* Lines below `level` are dropped. The level is info until this is called. */
void log_set_level(enum log_level level);

/* What `process=` says ("prover", "finalizer"...); the text must live as long as the process. Call
 * it before there are threads. */
void log_set_process(const char *name);

void log_set_format(enum log_format format); /* text until this is called */

/* Whether `name` ("debug", "info", "warn" or "error") is a level; puts it in *out. */
bool log_level_by_name(const char *name, enum log_level *out);

#endif
