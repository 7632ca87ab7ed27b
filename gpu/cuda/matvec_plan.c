#include "gpu/cuda/matvec_plan.h"

#include <stdlib.h>
#include <string.h>

/* What the threads share: first the number of terms of each row (A's rows, then B's), then the place
 * of the row's next term. */
struct sorting {
    const struct zkey *zkey;
    uint32_t *cursor;
    struct matvec_plan *plan;
};

static uint32_t u32_le(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static size_t row_of(const struct zkey *zkey, const uint8_t *term) {
    return (u32_le(term) == 0 ? 0 : zkey->domain_size) + (size_t)u32_le(term + 4);
}

static void count_terms(void *arg, size_t begin, size_t end, unsigned worker) {
    const struct sorting *s = arg;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        const uint8_t *term = s->zkey->coefficients + i * ZKEY_COEFFICIENT_BYTES;
        (void)__atomic_fetch_add(&s->cursor[row_of(s->zkey, term)], 1, __ATOMIC_RELAXED);
    }
}

static void place_terms(void *arg, size_t begin, size_t end, unsigned worker) {
    const struct sorting *s = arg;
    (void)worker;
    for (size_t i = begin; i < end; i++) {
        const uint8_t *term = s->zkey->coefficients + i * ZKEY_COEFFICIENT_BYTES;
        uint32_t *cursor = &s->cursor[row_of(s->zkey, term)];
        uint32_t at = __atomic_fetch_add(cursor, 1, __ATOMIC_RELAXED);
        s->plan->signals[at] = u32_le(term + 8);
        memcpy(s->plan->values[at].le, term + 12, SCALAR_BYTES);
    }
}

static uint32_t reversed(uint32_t i, unsigned bits) {
    uint32_t r = 0;
    for (unsigned b = 0; b < bits; b++)
        r |= (i >> b & 1) << (bits - 1 - b);
    return r;
}

static void cut_long_row(struct matvec_plan *plan, struct matvec_part *part, uint32_t begin,
                         uint32_t terms, uint32_t out) {
    struct matvec_long_row *row = &part->long_rows[part->n_long_rows++];
    *row = (struct matvec_long_row){.begin = plan->n_segments, .out = out};
    for (uint32_t done = 0; done < terms; done += MATVEC_SEGMENT) {
        uint32_t left = terms - done;
        plan->segments[plan->n_segments++] = (struct matvec_segment){
            .begin = begin + done, .terms = left < MATVEC_SEGMENT ? left : MATVEC_SEGMENT};
        row->segments++;
    }
}

/* Gives every row of one matrix its place, longest first; turns counts into cursors. */
static void place_rows(struct matvec_plan *plan, struct matvec_part *part, uint32_t *cursor,
                       const struct zkey *zkey, uint32_t *next_term) {
    uint32_t of_length[MATVEC_SHORT + 1] = {0}, next_row[MATVEC_SHORT + 1];
    uint32_t first_term[MATVEC_SHORT + 1];
    for (uint32_t row = 0; row < zkey->domain_size; row++)
        if (cursor[row] <= MATVEC_SHORT) of_length[cursor[row]]++;
    for (uint32_t terms = MATVEC_SHORT + 1; terms-- > 0;) {
        next_row[terms] = part->n_rows;
        first_term[terms] = *next_term;
        part->n_rows += of_length[terms];
        *next_term += terms * of_length[terms];
    }
    for (uint32_t row = 0; row < zkey->domain_size; row++) {
        uint32_t terms = cursor[row], out = reversed(row, zkey->log_domain);
        if (terms > MATVEC_SHORT) {
            cut_long_row(plan, part, *next_term, terms, out);
            cursor[row] = *next_term;
            *next_term += terms;
        } else {
            part->rows[next_row[terms]++] =
                (struct matvec_row){.begin = first_term[terms], .terms = terms, .out = out};
            cursor[row] = first_term[terms];
            first_term[terms] += terms;
        }
    }
}

static bool allocate(struct matvec_plan *plan, const struct zkey *zkey) {
    size_t n = zkey->domain_size, terms = zkey->n_coefficients;
    bool good = true;
    for (int m = 0; m < 2; m++) {
        plan->part[m].rows = calloc(n, sizeof *plan->part[m].rows);
        plan->part[m].long_rows =
            calloc(matvec_most_long_rows(plan->n_terms) + 1, sizeof *plan->part[m].long_rows);
        good = good && plan->part[m].rows != NULL && plan->part[m].long_rows != NULL;
    }
    plan->segments = calloc(matvec_most_segments(plan->n_terms) + 1, sizeof *plan->segments);
    plan->signals = malloc((terms + 1) * sizeof *plan->signals);
    plan->values = malloc((terms + 1) * sizeof *plan->values);
    return good && plan->segments != NULL && plan->signals != NULL && plan->values != NULL;
}

enum { CHUNK = 1 << 14 };

enum err matvec_plan_make(const struct zkey *zkey, struct pool *pool, struct matvec_plan *out,
                          struct error *error) {
    *out = (struct matvec_plan){.n_terms = zkey->n_coefficients};
    struct sorting s = {.zkey = zkey, .plan = out};
    s.cursor = calloc(2 * (size_t)zkey->domain_size, sizeof *s.cursor);
    if (s.cursor == NULL || !allocate(out, zkey)) {
        free(s.cursor);
        return error_set(error, ERR_HOST_MEMORY,
                         "no memory to sort the key's %u coefficients; give this process more",
                         zkey->n_coefficients);
    }
    pool_for(pool, zkey->n_coefficients, CHUNK, count_terms, &s);
    uint32_t next_term = 0;
    for (int m = 0; m < 2; m++)
        place_rows(out, &out->part[m], s.cursor + (size_t)m * zkey->domain_size, zkey, &next_term);
    pool_for(pool, zkey->n_coefficients, CHUNK, place_terms, &s);
    free(s.cursor);
    return ERR_NONE;
}

void matvec_plan_free(struct matvec_plan *plan) {
    for (int m = 0; m < 2; m++) {
        free(plan->part[m].rows);
        free(plan->part[m].long_rows);
    }
    free(plan->segments);
    free(plan->signals);
    free(plan->values);
    *plan = (struct matvec_plan){0};
}
