#include "service/common/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 8192 };

static const char *const level_names[] = {"debug", "info", "warn", "error"};
static _Atomic(int) least_level = LOG_LEVEL_INFO;
static _Atomic(int) line_format = LOG_FORMAT_TEXT;
static const char *process_name = "proverq";

struct line {
    bool json, full;
    char bytes[LINE_BYTES];
    size_t used;
};

/* Room for the closing brace and the newline is never given away. */
static void put_char(struct line *line, char c) {
    if (line->used < sizeof line->bytes - 2)
        line->bytes[line->used++] = c;
    else
        line->full = true;
}

static void put_plain(struct line *line, const char *text) {
    for (; *text; text++)
        put_char(line, *text);
}

static bool needs_quotes(const char *text) {
    if (!*text) return true;
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || *text == '"' || *text == '=' || *text == '\\' ||
            *text == 0x7f)
            return true;
    return false;
}

static void put_escaped(struct line *line, char c) {
    char code[8];
    unsigned char u = (unsigned char)c;
    if (c == '"' || c == '\\') {
        put_char(line, '\\');
        put_char(line, c);
    } else if (c == '\n') {
        put_plain(line, "\\n");
    } else if (u < ' ' || u == 0x7f) {
        snprintf(code, sizeof code, "\\u%04x", u);
        put_plain(line, code);
    } else {
        put_char(line, c);
    }
}

static void put_text(struct line *line, const char *text) {
    bool quoted = line->json || needs_quotes(text);
    if (quoted) put_char(line, '"');
    for (size_t i = 0; i < LOG_VALUE_BYTES && text[i]; i++)
        put_escaped(line, text[i]);
    if (quoted) put_char(line, '"');
}

static void put_key(struct line *line, const char *key) {
    if (line->json) {
        put_plain(line, line->used > 1 ? ",\"" : "\"");
        put_plain(line, key);
        put_plain(line, "\":");
    } else {
        put_plain(line, line->used > 0 ? " " : "");
        put_plain(line, key);
        put_plain(line, "=");
    }
}

/* A field that does not fit is left out whole, so that every line can be parsed. */
static void put_field(struct line *line, const struct log_field *field) {
    char number[24];
    size_t before = line->used;
    put_key(line, field->key);
    if (field->text) {
        put_text(line, field->text);
    } else {
        snprintf(number, sizeof number, "%lld", (long long)field->number);
        put_plain(line, number);
    }
    if (line->full) line->used = before;
    line->full = false;
}

static void format_time(char *text, size_t size) {
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t used = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + used, size - used, ".%03dZ", (int)(now.tv_nsec / 1000000));
}

static void write_whole(const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t written = write(STDERR_FILENO, bytes, n);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return; /* nowhere to say it */
        bytes += written;
        n -= (size_t)written;
    }
}

void log_write(enum log_level level, const struct log_field *fields, size_t n) {
    struct line line = {.used = 0};
    char now[40];
    int saved = errno;
    if ((int)level < atomic_load_explicit(&least_level, memory_order_relaxed)) return;
    line.json = atomic_load_explicit(&line_format, memory_order_relaxed) == LOG_FORMAT_JSON;
    if (line.json) put_char(&line, '{');
    format_time(now, sizeof now);
    const struct log_field head[] = {log_text("time", now), log_text("level", level_names[level]),
                                     log_text("process", process_name)};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        put_field(&line, &head[i]);
    for (size_t i = 0; i < n; i++)
        put_field(&line, &fields[i]);
    if (line.json) line.bytes[line.used++] = '}';
    line.bytes[line.used++] = '\n';
    write_whole(line.bytes, line.used);
    errno = saved;
}

void log_set_level(enum log_level level) {
    atomic_store(&least_level, (int)level);
}

void log_set_format(enum log_format format) {
    atomic_store(&line_format, (int)format);
}

void log_set_process(const char *name) {
    process_name = name;
}

bool log_level_by_name(const char *name, enum log_level *out) {
    for (size_t i = 0; i < sizeof level_names / sizeof *level_names; i++)
        if (strcmp(name, level_names[i]) == 0) {
            *out = (enum log_level)i;
            return true;
        }
    return false;
}
