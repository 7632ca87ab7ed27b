#include "service/common/uuid.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

enum { TEXT_LENGTH = UUID_TEXT_BYTES - 1 };

enum err uuid_random(struct uuid *out, struct error *error) {
    if (getrandom(out->bytes, sizeof out->bytes, 0) != (ssize_t)sizeof out->bytes)
        return error_set(error, ERR_INTERNAL, "getrandom: %s", strerror(errno));
    out->bytes[6] = (uint8_t)((out->bytes[6] & 0x0f) | 0x40);
    out->bytes[8] = (uint8_t)((out->bytes[8] & 0x3f) | 0x80);
    return ERR_NONE;
}

static bool is_dash(size_t position) {
    return position == 8 || position == 13 || position == 18 || position == 23;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

enum err uuid_parse(const char *text, struct uuid *out, struct error *error) {
    size_t n = 0;
    if (strlen(text) != TEXT_LENGTH) goto bad;
    for (size_t i = 0; i < TEXT_LENGTH; i++) {
        if (is_dash(i)) {
            if (text[i] != '-') goto bad;
            continue;
        }
        int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);
        if (high < 0 || low < 0) goto bad;
        out->bytes[n++] = (uint8_t)(high << 4 | low);
        i++;
    }
    return ERR_NONE;
bad:
    return error_set(error, ERR_USAGE, "'%.40s' is not a UUID", text);
}

void uuid_format(const struct uuid *uuid, char out[UUID_TEXT_BYTES]) {
    static const char hex[] = "0123456789abcdef";
    size_t n = 0;
    for (size_t i = 0; i < sizeof uuid->bytes; i++) {
        if (is_dash(n)) out[n++] = '-';
        out[n++] = hex[uuid->bytes[i] >> 4];
        out[n++] = hex[uuid->bytes[i] & 15];
    }
    out[n] = '\0';
}

bool uuid_equal(const struct uuid *a, const struct uuid *b) {
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}
