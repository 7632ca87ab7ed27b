#include "gpu/decimal.h"

#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

bool decimal_from_le(const uint8_t *le, size_t n, char out[DECIMAL_MAX + 1]) {
    bool done = false;
    BIGNUM *number = BN_lebin2bn(le, (int)n, NULL);
    char *text = number == NULL ? NULL : BN_bn2dec(number);
    size_t length = text == NULL ? 0 : strlen(text);
    if (text != NULL && length <= DECIMAL_MAX) {
        memcpy(out, text, length + 1);
        done = true;
    }
    OPENSSL_free(text);
    BN_clear_free(number);
    return done;
}

bool decimal_to_le(const char *text, uint8_t *le, size_t n) {
    size_t length = strspn(text, "0123456789");
    if (length == 0 || length > DECIMAL_MAX || text[length] != '\0') return false;
    BIGNUM *number = NULL;
    bool done = BN_dec2bn(&number, text) != 0 && BN_bn2lebinpad(number, le, (int)n) == (int)n;
    BN_clear_free(number);
    return done;
}

/* --- JSON --- */

/* Copies JSON text with its numbers in quotes; `out` has room for 3 * size bytes. */
static size_t quote_numbers(const char *text, size_t size, char *out) {
    size_t n = 0;
    bool in_string = false, in_number = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        bool numeric = !in_string && c != '\0' &&
                       (in_number ? strchr("+-.0123456789eE", c) : strchr("-0123456789", c));
        if (numeric != in_number) out[n++] = '"';
        in_number = numeric;
        out[n++] = c;
        if (in_string && c == '\\' && i + 1 < size)
            out[n++] = text[++i];
        else if (c == '"')
            in_string = !in_string;
    }
    if (in_number) out[n++] = '"';
    return n;
}

enum err json_load_exact(const char *text, size_t size, json_t **out, struct error *error) {
    json_error_t where;
    size_t room;
    if (__builtin_mul_overflow(size, 3, &room))
        return error_set(error, ERR_INPUT, "JSON text of %zu bytes is too long", size);
    char *quoted = malloc(room + 1);
    if (quoted == NULL) return error_set(error, ERR_HOST_MEMORY, "JSON: out of memory");
    *out = json_loadb(quoted, quote_numbers(text, size, quoted),
                      JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &where);
    OPENSSL_cleanse(quoted, room);
    free(quoted);
    if (*out == NULL)
        return error_set(error, ERR_INPUT, "not valid JSON, line %d: %s", where.line, where.text);
    return ERR_NONE;
}

enum err json_number_below(const json_t *value, const uint8_t *modulus, uint8_t *le, size_t n,
                           const char *what, struct error *error) {
    const char *text = json_string_value(value);
    if (text == NULL)
        return error_set(error, ERR_INPUT, "%s: %s, expected a decimal number in a string", what,
                         value == NULL ? "missing" : "not a string");
    if (!decimal_to_le(text, le, n))
        return error_set(error, ERR_INPUT,
                         "%s: \"%.40s\" is not a decimal number without sign, fraction or exponent "
                         "of at most %zu bytes",
                         what, text, n);
    if (!le_less(le, modulus, n))
        return error_set(error, ERR_INPUT, "%s: %.40s... is not below the modulus", what, text);
    return ERR_NONE;
}
