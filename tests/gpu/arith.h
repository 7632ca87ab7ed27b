/* The static field and point arithmetic of gpu/cpu, made reachable for tests: one table per curve
 * and instruction set (arith_*.c compile the templates once more). Values are plain little-endian
 * bytes of the field's size; results too. */
#ifndef TESTS_ARITH_H
#define TESTS_ARITH_H

#include "gpu/curve.h"

enum field_op { OP_ADD, OP_SUB, OP_NEG, OP_DBL, OP_MUL, OP_SQR, OP_INV, OP_COUNT };

struct field_access {
    const char *name; /* "bn254 fq adx" */
    size_t bytes;
    /* `alias` 1: the result overwrites a; 2: it overwrites b. */
    void (*apply)(enum field_op op, const uint8_t *a, const uint8_t *b, int alias, uint8_t *out);
    void (*mul_plain)(const uint8_t *mont, const uint8_t *any, uint8_t *out_mont);
    void (*montgomery)(const uint8_t *plain, uint8_t *mont);
    void (*batch_inv)(uint8_t *values, size_t n); /* n <= 64 */
    bool (*in_range)(const uint8_t *plain);
    /* `n` products, each of the last: for benchmarks. */
    void (*mul_chain)(size_t n, uint8_t *out);
};

struct arith {
    enum curve_id id;
    const char *isa;
    struct field_access fr, fq;
    /* Fq2 on c0 | c1 of fq.bytes each; op as above. */
    void (*fq2_apply)(enum field_op op, const uint8_t *a, const uint8_t *b, uint8_t *out);
};

/* Those that this processor runs; NULL ends the list. */
const struct arith *const *arith_tables(void);

#endif
