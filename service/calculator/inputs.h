/* The inputs of a partition, as proverq_private.inputs_text() gives them: a line for each signal, its name
 * and its values, separated by spaces. A value is an integer: decimal or 0x and hexadecimal digits,
 * at most 80, after an optional minus. The database has checked that; it is checked again here.
 */
#ifndef PROVERQ_INPUTS_H
#define PROVERQ_INPUTS_H

#include "gpu/curve.h"
#include "gpu/error.h"

struct input {
    const char *name;
    uint64_t hash;               /* FNV-1a, 64 bits: how circom's calculators know signals */
    const struct scalar *values; /* modulo the prime */
    size_t n;
};

struct inputs {
    struct input *signals;
    size_t n;
    size_t n_values; /* of all signals together */
    char *text;
    struct scalar *values;
};

/* Reads `size` bytes, every value modulo the prime (little-endian, its highest byte not 0; a
 * negative one becomes prime - |value|). ERR_INPUT names the signal. The caller calls inputs_free.
 */
MUST_USE enum err inputs_parse(const char *text, size_t size, const uint8_t prime[SCALAR_BYTES],
                               struct inputs *out, struct error *error);

/* The hash of a signal's name. */
uint64_t inputs_hash(const char *name);

/* Wipes and frees; harmless on zeros. */
void inputs_free(struct inputs *inputs);

#endif
