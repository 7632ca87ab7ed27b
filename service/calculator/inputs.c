#include "service/calculator/inputs.h"

#include <stdlib.h>
#include <string.h>

enum { DIGITS_MAX = 80, LIMBS = 5 /* 80 hexadecimal digits */, BITS = 64 * LIMBS };

/* --- numbers --- */

struct wide {
    uint64_t limb[LIMBS];
};

static int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 16;
}

/* wide = wide * base + digit; 80 digits of base 16 fit. */
static void add_digit(struct wide *wide, unsigned base, unsigned digit) {
    uint64_t carry = digit;
    for (size_t i = 0; i < LIMBS; i++) {
        unsigned __int128 t = (unsigned __int128)wide->limb[i] * base + carry;
        wide->limb[i] = (uint64_t)t;
        carry = (uint64_t)(t >> 64);
    }
}

static bool is_below(const struct wide *a, const struct wide *b) {
    for (size_t i = LIMBS; i-- > 0;)
        if (a->limb[i] != b->limb[i]) return a->limb[i] < b->limb[i];
    return false;
}

static void subtract(struct wide *a, const struct wide *b) {
    uint64_t borrow = 0;
    for (size_t i = 0; i < LIMBS; i++) {
        unsigned __int128 t = (unsigned __int128)a->limb[i] - b->limb[i] - borrow;
        a->limb[i] = (uint64_t)t;
        borrow = (uint64_t)(t >> 64) & 1;
    }
}

static void shift_in(struct wide *a, uint64_t bit) {
    for (size_t i = 0; i < LIMBS; i++) {
        uint64_t out = a->limb[i] >> 63;
        a->limb[i] = a->limb[i] << 1 | bit;
        bit = out;
    }
}

static void reduce(struct wide *value, const struct wide *prime) {
    struct wide rest = {{0}};
    if (is_below(value, prime)) return;
    for (unsigned i = BITS; i-- > 0;) {
        shift_in(&rest, value->limb[i / 64] >> (i % 64) & 1);
        if (!is_below(&rest, prime)) subtract(&rest, prime);
    }
    *value = rest;
}

static bool is_zero(const struct wide *a) {
    static const struct wide zero;
    return memcmp(a, &zero, sizeof zero) == 0;
}

static struct wide wide_from_le(const uint8_t *le) {
    struct wide wide = {{0}};
    for (size_t i = 0; i < SCALAR_BYTES; i++)
        wide.limb[i / 8] |= (uint64_t)le[i] << (i % 8 * 8);
    return wide;
}

/* False: no number of this form. */
static bool number(const char *text, size_t n, const struct wide *prime, struct scalar *out) {
    struct wide value = {{0}};
    bool negative = n > 0 && *text == '-';
    text += negative;
    n -= negative;
    bool hex = n > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    unsigned base = hex ? 16 : 10;
    text += hex ? 2 : 0;
    n -= hex ? 2 : 0;
    if (n == 0 || n > DIGITS_MAX) return false;
    for (size_t i = 0; i < n; i++) {
        unsigned digit = (unsigned)digit_of(text[i]);
        if (digit >= base) return false;
        add_digit(&value, base, digit);
    }
    reduce(&value, prime);
    if (negative && !is_zero(&value)) {
        struct wide positive = value;
        value = *prime;
        subtract(&value, &positive);
    }
    for (size_t i = 0; i < SCALAR_BYTES; i++)
        out->le[i] = (uint8_t)(value.limb[i / 8] >> (i % 8 * 8));
    return true;
}

/* --- lines --- */

uint64_t inputs_hash(const char *text) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* How many lines there are, and how many values at most. */
static void count(const char *text, size_t size, size_t *lines, size_t *spaces) {
    *lines = *spaces = 0;
    for (size_t i = 0; i < size; i++) {
        *lines += text[i] == '\n';
        *spaces += text[i] == ' ';
    }
}

static enum err parse_line(char *line, const struct wide *prime, struct inputs *out,
                           struct error *error) {
    struct input *signal = &out->signals[out->n];
    char *at = strchr(line, ' ');
    signal->name = line;
    signal->values = out->values + out->n_values;
    if (at) *at++ = '\0';
    if (!*line) return error_set(error, ERR_INPUT, "an input signal has no name");
    signal->hash = inputs_hash(line);
    while (at) {
        char *next = strchr(at, ' ');
        size_t n = next ? (size_t)(next - at) : strlen(at);
        if (!number(at, n, prime, &out->values[out->n_values]))
            return error_set(error, ERR_INPUT,
                             "signal \"%.100s\", value %zu: '%.*s' is no integer of at most %d "
                             "digits",
                             line, signal->n, n < 90 ? (int)n : 90, at, DIGITS_MAX);
        out->n_values++;
        signal->n++;
        at = next ? next + 1 : NULL;
    }
    out->n++;
    return ERR_NONE;
}

static enum err allocate(const char *text, size_t size, struct inputs *out, struct error *error) {
    size_t lines, spaces;
    count(text, size, &lines, &spaces);
    out->text = malloc(size + 1);
    out->signals = calloc(lines + 1, sizeof *out->signals);
    out->values = calloc(spaces + 1, sizeof *out->values);
    if (!out->text || !out->signals || !out->values)
        return error_set(error, ERR_HOST_MEMORY, "out of memory for %zu bytes of inputs", size);
    memcpy(out->text, text, size);
    out->text[size] = '\0';
    return ERR_NONE;
}

enum err inputs_parse(const char *text, size_t size, const uint8_t prime[SCALAR_BYTES],
                      struct inputs *out, struct error *error) {
    struct wide modulus = wide_from_le(prime);
    enum err rc;
    *out = (struct inputs){.n = 0};
    TRY(allocate(text, size, out, error));
    if (strlen(out->text) != size) TRY(error_set(error, ERR_INPUT, "the inputs have a NUL"));
    for (char *line = out->text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        TRY(parse_line(line, &modulus, out, error));
    }
    return ERR_NONE;
fail:
    inputs_free(out);
    return rc;
}

void inputs_free(struct inputs *inputs) {
    if (inputs->values) explicit_bzero(inputs->values, inputs->n_values * sizeof *inputs->values);
    free(inputs->text);
    free(inputs->signals);
    free(inputs->values);
    *inputs = (struct inputs){.n = 0};
}
