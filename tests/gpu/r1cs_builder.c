#include "tests/gpu/r1cs_builder.h"

#include "gpu/cpu/cpu_curve.h"
#include "gpu/wtns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 31, MAX_TERMS = WORD_BITS, SECTIONS = 3 };

struct term {
    uint32_t wire;
    struct scalar coefficient;
};
struct row {
    size_t n;
    struct term terms[MAX_TERMS];
};

struct builder {
    const struct circuit_spec *spec;
    const struct cpu_curve *ops;
    uint64_t random;       /* state of the generator */
    struct scalar *values; /* of n_vars wires */
    uint32_t n_vars, used; /* wires that have a value */
    FILE *out;
};

/* --- numbers --- */

/* SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t next_random(struct builder *b) {
    uint64_t z = b->random += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static struct scalar small_scalar(uint64_t value) {
    struct scalar s = {{0}};
    for (size_t i = 0; i < sizeof value; i++)
        s.le[i] = (uint8_t)(value >> (8 * i));
    return s;
}

static struct scalar random_scalar(struct builder *b) {
    struct scalar s;
    do {
        for (size_t i = 0; i < SCALAR_BYTES; i += 8) {
            uint64_t word = next_random(b);
            memcpy(s.le + i, &word, sizeof word);
        }
        s.le[SCALAR_BYTES - 1] &= 0x7f;
    } while (!le_less(s.le, b->ops->info->r, SCALAR_BYTES));
    return s;
}

static struct scalar minus_one(const struct builder *b) {
    const struct scalar zero = {{0}}, one = small_scalar(1);
    struct scalar out;
    b->ops->fr_sub(&zero, &one, &out);
    return out;
}

static struct scalar row_value(const struct builder *b, const struct row *row) {
    struct scalar sum = {{0}}, product;
    for (size_t i = 0; i < row->n; i++) {
        b->ops->fr_mul(&row->terms[i].coefficient, &b->values[row->terms[i].wire], &product);
        b->ops->fr_add(&sum, &product, &sum);
    }
    return sum;
}

/* --- the file --- */

static void put_u32(FILE *out, uint32_t value) {
    for (size_t i = 0; i < sizeof value; i++)
        (void)fputc((int)(value >> (8 * i) & 0xff), out);
}

static void put_u64(FILE *out, uint64_t value) {
    put_u32(out, (uint32_t)value);
    put_u32(out, (uint32_t)(value >> 32));
}

static void put_section(FILE *out, uint32_t id, uint64_t length) {
    put_u32(out, id);
    put_u64(out, length);
}

static void put_row(FILE *out, const struct row *row) {
    put_u32(out, (uint32_t)row->n);
    for (size_t i = 0; i < row->n; i++) {
        put_u32(out, row->terms[i].wire);
        (void)fwrite(row->terms[i].coefficient.le, 1, SCALAR_BYTES, out);
    }
}

static void put_header(const struct builder *b) {
    const struct circuit_spec *spec = b->spec;
    uint32_t n_outputs = spec->n_public / 2, n_inputs = spec->n_public - n_outputs;
    (void)fwrite("r1cs", 1, 4, b->out);
    put_u32(b->out, 1);
    put_u32(b->out, SECTIONS);
    put_section(b->out, 1, 4 + SCALAR_BYTES + 4 * 4 + 8 + 4);
    put_u32(b->out, SCALAR_BYTES);
    (void)fwrite(b->ops->info->r, 1, SCALAR_BYTES, b->out);
    put_u32(b->out, b->n_vars);
    put_u32(b->out, n_outputs);
    put_u32(b->out, n_inputs);
    put_u32(b->out, 1);
    put_u64(b->out, b->n_vars);
    put_u32(b->out, spec->n_constraints);
}

static void put_labels(const struct builder *b) {
    put_section(b->out, 3, (uint64_t)b->n_vars * 8);
    for (uint32_t i = 0; i < b->n_vars; i++)
        put_u64(b->out, i);
}

/* --- constraints --- */

/* A wire that the row has already is left out: rows name each wire once, as circom's do. */
static void add_term(struct row *row, uint32_t wire, struct scalar coefficient) {
    for (size_t i = 0; i < row->n; i++)
        if (row->terms[i].wire == wire) return;
    row->terms[row->n++] = (struct term){wire, coefficient};
}

static uint32_t some_wire(struct builder *b) {
    return (uint32_t)(next_random(b) % b->used);
}

static uint32_t first_private(const struct builder *b) {
    return b->spec->n_public + 1;
}

static void put_constraint(const struct builder *b, const struct row *x, const struct row *y,
                           const struct row *z) {
    put_row(b->out, x);
    put_row(b->out, y);
    put_row(b->out, z);
}

/* (c1 last + c2 some + c3) * (c4 last + c5 some) = c6 some + new */
static void put_dense(struct builder *b) {
    struct row x = {0}, y = {0}, z = {0};
    uint32_t last = b->used - 1, new = b->used;
    struct scalar product, rest;
    add_term(&x, last, random_scalar(b));
    add_term(&x, some_wire(b), random_scalar(b));
    add_term(&x, 0, random_scalar(b));
    add_term(&y, last, random_scalar(b));
    add_term(&y, some_wire(b), random_scalar(b));
    add_term(&z, some_wire(b), random_scalar(b));
    const struct scalar a = row_value(b, &x), c = row_value(b, &y);
    b->ops->fr_mul(&a, &c, &product);
    rest = row_value(b, &z);
    b->ops->fr_sub(&product, &rest, &b->values[new]);
    add_term(&z, new, small_scalar(1));
    put_constraint(b, &x, &y, &z);
}

/* A wire whose value is 0 or 1; the first private one is. */
static uint32_t some_bit(struct builder *b) {
    uint32_t first = first_private(b), span = b->used - first;
    for (;;) {
        uint32_t wire = first + (uint32_t)(next_random(b) % span);
        if (b->values[wire].le[0] <= 1 && le_is_zero(b->values[wire].le + 1, SCALAR_BYTES - 1))
            return wire;
    }
}

/* new * (new - 1) = 0 */
static void put_boolean(struct builder *b) {
    struct row x = {0}, y = {0};
    const struct row z = {0};
    b->values[b->used] = small_scalar(next_random(b) & 1);
    add_term(&x, b->used, small_scalar(1));
    add_term(&y, b->used, small_scalar(1));
    add_term(&y, 0, minus_one(b));
    put_constraint(b, &x, &y, &z);
}

/* 2 p * q = p + q - new */
static void put_xor(struct builder *b) {
    struct row x = {0}, y = {0}, z = {0};
    uint32_t p = some_bit(b), q = some_bit(b);
    while (q == p)
        q = some_bit(b);
    b->values[b->used] = small_scalar((uint64_t)(b->values[p].le[0] ^ b->values[q].le[0]));
    add_term(&x, p, small_scalar(2));
    add_term(&y, q, small_scalar(1));
    add_term(&z, p, small_scalar(1));
    add_term(&z, q, small_scalar(1));
    add_term(&z, b->used, minus_one(b));
    put_constraint(b, &x, &y, &z);
}

/* p * q = new */
static void put_and(struct builder *b) {
    struct row x = {0}, y = {0}, z = {0};
    uint32_t p = some_bit(b), q = some_bit(b);
    b->values[b->used] = small_scalar((uint64_t)(b->values[p].le[0] & b->values[q].le[0]));
    add_term(&x, p, small_scalar(1));
    add_term(&y, q, small_scalar(1));
    add_term(&z, b->used, small_scalar(1));
    put_constraint(b, &x, &y, &z);
}

/* (sum 2^i bit_i) * 1 = new, a word */
static void put_word(struct builder *b) {
    struct row x = {0}, y = {0}, z = {0};
    for (size_t i = 0; i < WORD_BITS; i++)
        add_term(&x, some_bit(b), small_scalar((uint64_t)1 << i));
    add_term(&y, 0, small_scalar(1));
    b->values[b->used] = row_value(b, &x);
    add_term(&z, b->used, small_scalar(1));
    put_constraint(b, &x, &y, &z);
}

static void put_bits(struct builder *b, uint32_t i) {
    if (i % 64 == 63)
        put_word(b);
    else if (i % 3 == 0)
        put_boolean(b);
    else if (i % 3 == 1)
        put_xor(b);
    else
        put_and(b);
}

static void put_constraints(struct builder *b) {
    off_t header = ftello(b->out);
    put_section(b->out, 2, 0);
    off_t begin = ftello(b->out);
    for (uint32_t i = 0; i < b->spec->n_constraints; i++) {
        if (b->spec->kind == CIRCUIT_DENSE)
            put_dense(b);
        else
            put_bits(b, i);
        b->used++;
    }
    off_t end = ftello(b->out);
    (void)fseeko(b->out, header, SEEK_SET);
    put_section(b->out, 2, (uint64_t)(end - begin));
    (void)fseeko(b->out, end, SEEK_SET);
}

/* --- the whole --- */

/* Numbers of a sequence of their own: the constraints' stay what they were. */
static void set_other_inputs(struct builder *b) {
    uint64_t constraints = b->random;
    b->random = b->spec->seed ^ b->spec->inputs << 32;
    for (uint32_t i = 1; i < b->used; i++)
        b->values[i] = random_scalar(b);
    b->random = constraints;
}

/* 1, the public signals, and what the chain begins with. */
static void set_inputs(struct builder *b) {
    b->values[0] = small_scalar(1);
    for (uint32_t i = 1; i <= b->spec->n_public; i++)
        b->values[i] = random_scalar(b);
    b->used = first_private(b);
    b->values[b->used++] = b->spec->kind == CIRCUIT_DENSE ? random_scalar(b) : small_scalar(1);
    if (b->spec->kind == CIRCUIT_DENSE && b->spec->inputs) set_other_inputs(b);
}

static enum err write_r1cs(struct builder *b, const char *path, struct error *error) {
    b->out = fopen(path, "wb");
    if (b->out == NULL)
        return error_set(error, ERR_IO, "%s: cannot create: %s", path, strerror(errno));
    set_inputs(b);
    put_header(b);
    put_constraints(b);
    while (b->used < b->n_vars)
        b->values[b->used++] = random_scalar(b);
    put_labels(b);
    bool failed = ferror(b->out) != 0;
    if (fclose(b->out) != 0 || failed)
        return error_set(error, ERR_IO, "%s: cannot write: %s", path, strerror(errno));
    return ERR_NONE;
}

uint32_t circuit_constraints(unsigned log2, uint32_t n_public) {
    return ((uint32_t)1 << log2) - n_public - 1;
}

enum err circuit_write(const struct circuit_spec *spec, const char *r1cs_path,
                       const char *wtns_path, struct error *error) {
    enum err rc;
    struct builder b = {.spec = spec, .ops = cpu_curve(spec->curve), .random = spec->seed};
    b.n_vars = spec->n_public + 2 + spec->n_constraints + spec->n_unused;
    b.values = calloc(b.n_vars, sizeof *b.values);
    if (b.values == NULL) return error_set(error, ERR_HOST_MEMORY, "circuit: out of memory");
    TRY(write_r1cs(&b, r1cs_path, error));
    TRY(wtns_write(wtns_path, b.ops->info, b.values, b.n_vars, error));
fail:
    free(b.values);
    return rc;
}
