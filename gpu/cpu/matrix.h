/* The matrices A and B of a proving key, by rows: an index over the key's coefficient section, which
 * comes in any order. What is in that order already (snarkjs writes it so) needs only the rows'
 * starts. */
#ifndef PROVERQ_MATRIX_H
#define PROVERQ_MATRIX_H

#include "gpu/error.h"
#include "gpu/zkey.h"

#include <string.h>

enum matrix_id { MATRIX_A, MATRIX_B };

struct matrix {
    const struct zkey *zkey;
    uint32_t *starts; /* 2 * domain_size + 1: of A's row 0, B's row 0, A's row 1, ... */
    uint32_t *order;  /* n_coefficients: entries by row, or NULL for the file's own order */
};

/* Indexes the key's coefficients; the key must stay open. The caller frees it; NULL may be freed. */
MUST_USE enum err matrix_index(const struct zkey *zkey, struct matrix **out, struct error *error);
void matrix_free(struct matrix *matrix);

/* Bytes that matrix_index allocates for this key. */
size_t matrix_bytes(const struct zkey *zkey);

struct matrix_entry {
    uint32_t signal;
    const uint8_t *value; /* SCALAR_BYTES; see zkey.h */
};

/* Entries of a row are k with matrix_first(m, id, row) <= k < matrix_last(m, id, row). */
static inline uint32_t matrix_first(const struct matrix *m, enum matrix_id id, size_t row) {
    return m->starts[2 * row + id];
}
static inline uint32_t matrix_last(const struct matrix *m, enum matrix_id id, size_t row) {
    return m->starts[2 * row + id + 1];
}

static inline struct matrix_entry matrix_entry(const struct matrix *m, uint32_t k) {
    uint32_t at = m->order ? m->order[k] : k;
    const uint8_t *packed = m->zkey->coefficients + (size_t)at * ZKEY_COEFFICIENT_BYTES;
    const uint8_t *s = packed + 8;
    return (struct matrix_entry){
        .signal =
            (uint32_t)s[0] | (uint32_t)s[1] << 8 | (uint32_t)s[2] << 16 | (uint32_t)s[3] << 24,
        .value = packed + 12,
    };
}

#endif
