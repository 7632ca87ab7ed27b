#include "gpu/cpu/matrix.h"

#include <stdlib.h>

static uint32_t load_u32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Where entry i belongs: twice its row, plus its matrix. */
static size_t slot_of(const struct zkey *zkey, uint32_t i) {
    const uint8_t *packed = zkey->coefficients + (size_t)i * ZKEY_COEFFICIENT_BYTES;
    return 2 * (size_t)load_u32(packed + 4) + load_u32(packed);
}

static bool is_sorted(const struct zkey *zkey) {
    for (uint32_t i = 1; i < zkey->n_coefficients; i++)
        if (slot_of(zkey, i) < slot_of(zkey, i - 1)) return false;
    return true;
}

static size_t starts_bytes(const struct zkey *zkey) {
    return (2 * (size_t)zkey->domain_size + 1) * sizeof(uint32_t);
}

size_t matrix_bytes(const struct zkey *zkey) {
    size_t order = is_sorted(zkey) ? 0 : (size_t)zkey->n_coefficients * sizeof(uint32_t);
    return sizeof(struct matrix) + starts_bytes(zkey) + order;
}

/* A counting sort; starts become ends on the way and are moved back by one. */
static void sort_entries(struct matrix *m) {
    const struct zkey *zkey = m->zkey;
    size_t n_slots = 2 * (size_t)zkey->domain_size;
    for (uint32_t i = 0; i < zkey->n_coefficients; i++)
        m->starts[slot_of(zkey, i) + 1]++;
    for (size_t slot = 0; slot < n_slots; slot++)
        m->starts[slot + 1] += m->starts[slot];
    if (!m->order) return;
    for (uint32_t i = 0; i < zkey->n_coefficients; i++)
        m->order[m->starts[slot_of(zkey, i)]++] = i;
    memmove(m->starts + 1, m->starts, n_slots * sizeof *m->starts);
    m->starts[0] = 0;
}

enum err matrix_index(const struct zkey *zkey, struct matrix **out, struct error *error) {
    struct matrix *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m) goto no_memory;
    m->zkey = zkey;
    m->starts = calloc(1, starts_bytes(zkey));
    if (!m->starts) goto no_memory;
    if (!is_sorted(zkey)) {
        m->order = calloc((size_t)zkey->n_coefficients + 1, sizeof *m->order);
        if (!m->order) goto no_memory;
    }
    sort_entries(m);
    *out = m;
    return ERR_NONE;
no_memory:
    matrix_free(m);
    return error_set(error, ERR_HOST_MEMORY, "no memory to index %u coefficients",
                     zkey->n_coefficients);
}

void matrix_free(struct matrix *m) {
    if (!m) return;
    free(m->starts);
    free(m->order);
    free(m);
}
