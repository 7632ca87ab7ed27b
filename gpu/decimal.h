/* Decimal text <-> little-endian numbers, and JSON whose numbers keep all their digits. */
#ifndef PROVERQ_DECIMAL_H
#define PROVERQ_DECIMAL_H

#include "gpu/curve.h"
#include "gpu/error.h"

#include <jansson.h>

enum { DECIMAL_MAX = 116 /* digits of the largest 48-byte number */ };

/* Writes the n-byte number (n <= COORD_BYTES) and a NUL. False when out of memory. */
MUST_USE bool decimal_from_le(const uint8_t *le, size_t n, char out[DECIMAL_MAX + 1]);

/* Reads text that is decimal digits and nothing else into n bytes. False when it is not, when the
 * number needs more than n bytes, or when out of memory. */
MUST_USE bool decimal_to_le(const char *text, uint8_t *le, size_t n);

/* Parses JSON with each number turned into a string of its digits as written, so that none passes
 * through a machine integer or a double. Duplicate keys are refused. ERR_INPUT says where.
 * The caller drops *out with json_decref. */
MUST_USE enum err json_load_exact(const char *text, size_t size, json_t **out, struct error *error);

/* An integer that JSON gave as a string (or that json_load_exact made one), into n bytes and below
 * `modulus`. ERR_INPUT, beginning with `what`, otherwise. */
MUST_USE enum err json_number_below(const json_t *value, const uint8_t *modulus, uint8_t *le,
                                    size_t n, const char *what, struct error *error);

#endif
