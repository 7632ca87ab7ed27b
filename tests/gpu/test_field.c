/* The CPU's field arithmetic against GMP: both curves, both fields, every instruction set. */
#include "tests/gpu/arith.h"

#include "gpu/cpu/cpu_curve.h"
#include "tests/gpu/suite.h"

#include <gmp.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = COORD_BYTES, N_RANDOM = 200, N_EDGE = 8 };

static gmp_randstate_t rng;

struct number {
    uint8_t le[MAX_BYTES];
};

static void to_bytes(uint8_t *le, size_t n, const mpz_t x) {
    memset(le, 0, n);
    mpz_export(le, NULL, -1, 1, 0, 0, x);
}

static void from_bytes(mpz_t x, const uint8_t *le, size_t n) {
    mpz_import(x, n, -1, 1, 0, 0, le);
}

static void modulus_of(mpz_t q, const struct arith *arith, const struct field_access *field) {
    const struct curve_info *info = curve_info(arith->id);
    from_bytes(q, field == &arith->fr ? info->r : info->q, field->bytes);
}

/* 0, 1, 2, q-1, q-2, (q-1)/2, (q+1)/2 and 2^(8*bytes-8) mod q, then random ones. */
static void choose(mpz_t x, int i, const mpz_t q, size_t bytes) {
    mpz_set_ui(x, 0);
    if (i == 1 || i == 2) mpz_set_ui(x, (unsigned long)i);
    if (i == 3 || i == 4) mpz_sub_ui(x, q, (unsigned long)(i - 2));
    if (i == 5 || i == 6) {
        mpz_add_ui(x, q, i == 6);
        mpz_tdiv_q_2exp(x, x, 1);
    }
    if (i == 7) {
        mpz_setbit(x, 8 * bytes - 8);
        mpz_mod(x, x, q);
    }
    if (i >= N_EDGE) mpz_urandomm(x, rng, q);
}

static void expected(mpz_t z, enum field_op op, const mpz_t x, const mpz_t y, const mpz_t q) {
    if (op == OP_ADD) mpz_add(z, x, y);
    if (op == OP_SUB) mpz_sub(z, x, y);
    if (op == OP_MUL) mpz_mul(z, x, y);
    if (op == OP_NEG) mpz_neg(z, x);
    if (op == OP_DBL) mpz_mul_ui(z, x, 2);
    if (op == OP_SQR) mpz_mul(z, x, x);
    if (op == OP_INV && !mpz_invert(z, x, q)) mpz_set_ui(z, 0);
    mpz_mod(z, z, q);
}

static void check_pair(const struct field_access *field, const mpz_t x, const mpz_t y,
                       const mpz_t q) {
    struct number a, b, want, got;
    mpz_t z;
    mpz_init(z);
    to_bytes(a.le, field->bytes, x);
    to_bytes(b.le, field->bytes, y);
    for (enum field_op op = 0; op < OP_COUNT; op++) {
        expected(z, op, x, y, q);
        to_bytes(want.le, field->bytes, z);
        for (int alias = 0; alias < 3; alias++) {
            field->apply(op, a.le, b.le, alias, got.le);
            if (memcmp(got.le, want.le, field->bytes) != 0)
                ck_abort_msg("%s: op %d, alias %d is wrong for %s", field->name, (int)op, alias,
                             mpz_get_str(NULL, 10, x));
        }
    }
    mpz_clear(z);
}

static void check_ops(const struct arith *arith, const struct field_access *field) {
    mpz_t q, x, y;
    mpz_inits(q, x, y, NULL);
    modulus_of(q, arith, field);
    for (int i = 0; i < N_EDGE; i++)
        for (int j = 0; j < N_EDGE; j++) {
            choose(x, i, q, field->bytes);
            choose(y, j, q, field->bytes);
            check_pair(field, x, y, q);
        }
    for (int i = 0; i < N_RANDOM; i++) {
        choose(x, N_EDGE, q, field->bytes);
        choose(y, N_EDGE + i % 2 == N_EDGE ? N_EDGE : i % N_EDGE, q, field->bytes);
        check_pair(field, x, y, q);
    }
    mpz_clears(q, x, y, NULL);
}

START_TEST(operations_agree_with_gmp) {
    for (const struct arith *const *t = arith_tables(); *t; t++) {
        check_ops(*t, &(*t)->fr);
        check_ops(*t, &(*t)->fq);
    }
}
END_TEST

/* a * b / R, also for b of all ones: the product of a coefficient with any 256-bit number. */
static void check_mul_plain(const struct arith *arith, const struct field_access *field) {
    struct number a, b, want, got;
    mpz_t q, x, y, r_inv;
    mpz_inits(q, x, y, r_inv, NULL);
    modulus_of(q, arith, field);
    mpz_setbit(r_inv, 8 * field->bytes);
    mpz_invert(r_inv, r_inv, q);
    for (int i = 0; i < N_RANDOM; i++) {
        choose(x, i, q, field->bytes);
        mpz_urandomb(y, rng, 8 * field->bytes);
        if (i % 4 == 0) {
            mpz_set_ui(y, 0);
            mpz_setbit(y, 8 * field->bytes);
            mpz_sub_ui(y, y, 1);
        }
        to_bytes(a.le, field->bytes, x);
        to_bytes(b.le, field->bytes, y);
        field->mul_plain(a.le, b.le, got.le);
        mpz_mul(x, x, y);
        mpz_mul(x, x, r_inv);
        mpz_mod(x, x, q);
        to_bytes(want.le, field->bytes, x);
        ck_assert_mem_eq(got.le, want.le, field->bytes);
    }
    mpz_clears(q, x, y, r_inv, NULL);
}

START_TEST(product_with_any_plain_number_is_reduced) {
    for (const struct arith *const *t = arith_tables(); *t; t++) {
        check_mul_plain(*t, &(*t)->fr);
        check_mul_plain(*t, &(*t)->fq);
    }
}
END_TEST

/* The stored limbs are x * R mod q, which is what a zkey holds. */
static void check_form(const struct arith *arith, const struct field_access *field) {
    struct number a, want, got;
    mpz_t q, x;
    mpz_inits(q, x, NULL);
    modulus_of(q, arith, field);
    for (int i = 0; i < 20; i++) {
        choose(x, i, q, field->bytes);
        to_bytes(a.le, field->bytes, x);
        field->montgomery(a.le, got.le);
        mpz_mul_2exp(x, x, 8 * field->bytes);
        mpz_mod(x, x, q);
        to_bytes(want.le, field->bytes, x);
        ck_assert_mem_eq(got.le, want.le, field->bytes);
    }
    mpz_clears(q, x, NULL);
}

START_TEST(montgomery_form_is_times_r) {
    for (const struct arith *const *t = arith_tables(); *t; t++) {
        check_form(*t, &(*t)->fr);
        check_form(*t, &(*t)->fq);
    }
}
END_TEST

static void check_batch(const struct arith *arith, const struct field_access *field, size_t n) {
    uint8_t values[64 * MAX_BYTES];
    struct number before[64], want;
    mpz_t q, x;
    mpz_inits(q, x, NULL);
    modulus_of(q, arith, field);
    for (size_t i = 0; i < n; i++) {
        choose(x, (int)(i * 3 % (N_EDGE + 2)), q, field->bytes);
        to_bytes(before[i].le, field->bytes, x);
        memcpy(values + i * field->bytes, before[i].le, field->bytes);
    }
    field->batch_inv(values, n);
    for (size_t i = 0; i < n; i++) {
        field->apply(OP_INV, before[i].le, before[i].le, 0, want.le);
        ck_assert_mem_eq(values + i * field->bytes, want.le, field->bytes);
    }
    mpz_clears(q, x, NULL);
}

START_TEST(batch_inversion_equals_single_ones_and_keeps_zeros) {
    for (const struct arith *const *t = arith_tables(); *t; t++)
        for (size_t n = 0; n <= 64; n += n < 4 ? 1 : 12) {
            check_batch(*t, &(*t)->fr, n);
            check_batch(*t, &(*t)->fq, n);
        }
}
END_TEST

static void check_range(const struct arith *arith, const struct field_access *field) {
    struct number a;
    mpz_t q, x;
    mpz_inits(q, x, NULL);
    modulus_of(q, arith, field);
    for (int delta = -2; delta <= 2; delta++) {
        mpz_set(x, q);
        if (delta < 0)
            mpz_sub_ui(x, x, (unsigned long)-delta);
        else
            mpz_add_ui(x, x, (unsigned long)delta);
        to_bytes(a.le, field->bytes, x);
        ck_assert_int_eq(field->in_range(a.le), delta < 0);
    }
    memset(a.le, 0xff, sizeof a.le);
    ck_assert(!field->in_range(a.le));
    mpz_clears(q, x, NULL);
}

START_TEST(range_check_ends_below_the_modulus) {
    for (const struct arith *const *t = arith_tables(); *t; t++) {
        check_range(*t, &(*t)->fr);
        check_range(*t, &(*t)->fq);
    }
}
END_TEST

/* (x0 + x1 u) op (y0 + y1 u), u^2 = -1. */
static void fq2_expected(mpz_t z[2], enum field_op op, mpz_t x[2], mpz_t y[2], const mpz_t q) {
    mpz_t t, n;
    mpz_inits(t, n, NULL);
    if (op == OP_MUL || op == OP_SQR) {
        mpz_t *w = op == OP_SQR ? x : y;
        mpz_mul(z[0], x[0], w[0]);
        mpz_submul(z[0], x[1], w[1]);
        mpz_mul(z[1], x[0], w[1]);
        mpz_addmul(z[1], x[1], w[0]);
    } else if (op == OP_INV) {
        mpz_mul(n, x[0], x[0]);
        mpz_addmul(n, x[1], x[1]);
        if (!mpz_invert(n, n, q)) mpz_set_ui(n, 0);
        mpz_mul(z[0], x[0], n);
        mpz_neg(t, x[1]);
        mpz_mul(z[1], t, n);
    } else {
        expected(z[0], op, x[0], y[0], q);
        expected(z[1], op, x[1], y[1], q);
    }
    mpz_mod(z[0], z[0], q);
    mpz_mod(z[1], z[1], q);
    mpz_clears(t, n, NULL);
}

static void check_fq2(const struct arith *arith, int ia, int ib) {
    size_t n = arith->fq.bytes;
    uint8_t a[2 * MAX_BYTES], b[2 * MAX_BYTES], want[2 * MAX_BYTES], got[2 * MAX_BYTES];
    mpz_t q, x[2], y[2], z[2];
    mpz_inits(q, x[0], x[1], y[0], y[1], z[0], z[1], NULL);
    modulus_of(q, arith, &arith->fq);
    for (int i = 0; i < 2; i++) {
        choose(x[i], ia >> 4 * i & 15, q, n);
        choose(y[i], ib >> 4 * i & 15, q, n);
        to_bytes(a + (size_t)i * n, n, x[i]);
        to_bytes(b + (size_t)i * n, n, y[i]);
    }
    for (enum field_op op = 0; op < OP_COUNT; op++) {
        fq2_expected(z, op, x, y, q);
        to_bytes(want, n, z[0]);
        to_bytes(want + n, n, z[1]);
        arith->fq2_apply(op, a, b, got);
        ck_assert_msg(memcmp(got, want, 2 * n) == 0, "%s: fq2 op %d", arith->fq.name, (int)op);
    }
    mpz_clears(q, x[0], x[1], y[0], y[1], z[0], z[1], NULL);
}

START_TEST(quadratic_extension_agrees_with_gmp) {
    for (const struct arith *const *t = arith_tables(); *t; t++)
        for (int i = 0; i < 256; i++) {
            check_fq2(*t, i, 0x88);
            check_fq2(*t, i, 0x33);
            check_fq2(*t, 0x88, i);
        }
}
END_TEST

START_TEST(scalar_table_agrees_with_gmp) {
    for (int id = 0; id < CURVE_COUNT; id++) {
        const struct cpu_curve *curve = cpu_curve((enum curve_id)id);
        struct scalar a, b, got, want;
        mpz_t r, x, y, z;
        mpz_inits(r, x, y, z, NULL);
        from_bytes(r, curve->info->r, SCALAR_BYTES);
        for (int i = 0; i < 100; i++) {
            choose(x, i % 10, r, SCALAR_BYTES);
            choose(y, i / 10, r, SCALAR_BYTES);
            to_bytes(a.le, SCALAR_BYTES, x);
            to_bytes(b.le, SCALAR_BYTES, y);
            void (*const ops[])(const struct scalar *, const struct scalar *,
                                struct scalar *) = {curve->fr_add, curve->fr_sub, curve->fr_mul};
            const enum field_op codes[] = {OP_ADD, OP_SUB, OP_MUL};
            for (int k = 0; k < 3; k++) {
                ops[k](&a, &b, &got);
                expected(z, codes[k], x, y, r);
                to_bytes(want.le, SCALAR_BYTES, z);
                ck_assert_mem_eq(got.le, want.le, SCALAR_BYTES);
            }
            curve->fr_inv(&a, &got);
            expected(z, OP_INV, x, y, r);
            to_bytes(want.le, SCALAR_BYTES, z);
            ck_assert_mem_eq(got.le, want.le, SCALAR_BYTES);
        }
        mpz_clears(r, x, y, z, NULL);
    }
}
END_TEST

static void set_up(void) {
    gmp_randinit_default(rng);
}

static void tear_down(void) {
    gmp_randclear(rng);
}

int main(void) {
    const TTest *const *const tests[] = {
        &operations_agree_with_gmp,          &product_with_any_plain_number_is_reduced,
        &montgomery_form_is_times_r,         &batch_inversion_equals_single_ones_and_keeps_zeros,
        &range_check_ends_below_the_modulus, &quadratic_extension_agrees_with_gmp,
        &scalar_table_agrees_with_gmp};
    return run_tests("field", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
