/* Transforms and the quotient against their definitions, computed with GMP. */
#include "gpu/cpu/cpu_curve.h"
#include "tests/gpu/small_field.h"
#include "tests/gpu/suite.h"

#include <gmp.h>
#include <stdlib.h>
#include <string.h>

static gmp_randstate_t rng;
static const char *const isas[] = {"portable", "adx"};
static struct pool *pools[3]; /* the caller alone, two threads, three */

static void scalar_set(struct scalar *out, const mpz_t x) {
    memset(out, 0, sizeof *out);
    mpz_export(out->le, NULL, -1, 1, 0, 0, x);
}

static void scalar_get(mpz_t out, const struct scalar *x) {
    mpz_import(out, SCALAR_BYTES, -1, 1, 0, 0, x->le);
}

static mpz_t *numbers_new(size_t n) {
    mpz_t *x = calloc(n, sizeof *x);
    ck_assert_ptr_nonnull(x);
    for (size_t i = 0; i < n; i++)
        mpz_init(x[i]);
    return x;
}

static void numbers_free(mpz_t *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        mpz_clear(x[i]);
    free(x);
}

static void modulus(mpz_t r, const struct cpu_curve *curve) {
    mpz_import(r, SCALAR_BYTES, -1, 1, 0, 0, curve->info->r);
}

/* snarkjs's root of order 2^log_n: 5^((r-1)/2^log_n). */
static void root_of_unity(mpz_t w, unsigned log_n, const mpz_t r) {
    mpz_t e;
    mpz_init(e);
    mpz_sub_ui(e, r, 1);
    mpz_tdiv_q_2exp(e, e, log_n);
    mpz_set_ui(w, 5);
    mpz_powm(w, w, e, r);
    mpz_clear(e);
}

/* The polynomial with these coefficients at x, by Horner's rule. */
static void evaluate(mpz_t y, mpz_t *coefficients, size_t n, const mpz_t x, const mpz_t r) {
    mpz_set_ui(y, 0);
    while (n-- > 0) {
        mpz_mul(y, y, x);
        mpz_add(y, y, coefficients[n]);
        mpz_mod(y, y, r);
    }
}

static void for_each_table(void (*test)(const struct cpu_curve *)) {
    for (int id = 0; id < CURVE_COUNT; id++)
        for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
            const struct cpu_curve *curve = cpu_curve_isa((enum curve_id)id, isas[i]);
            if (curve) test(curve);
        }
}

/* Value k is the polynomial at w^k, for `samples` of the k; and the inverse goes back. */
static void check_transform(const struct cpu_curve *curve, unsigned log_n, size_t samples,
                            struct pool *pool) {
    size_t n = (size_t)1 << log_n;
    struct scalar *before = calloc(n, sizeof *before), *values = calloc(n, sizeof *values), want;
    mpz_t *x = numbers_new(n), r, w, point, y;
    struct error error;
    ck_assert(before && values);
    mpz_inits(r, w, point, y, NULL);
    modulus(r, curve);
    root_of_unity(w, log_n, r);
    for (size_t i = 0; i < n; i++) {
        mpz_urandomm(x[i], rng, r);
        scalar_set(&before[i], x[i]);
    }
    memcpy(values, before, n * sizeof *values);
    ck_assert_int_eq(curve->ntt(pool, values, log_n, false, &error), ERR_NONE);
    for (size_t s = 0; s < samples; s++) {
        size_t k = samples == n ? s : (size_t)gmp_urandomm_ui(rng, n);
        mpz_powm_ui(point, w, k, r);
        evaluate(y, x, n, point, r);
        scalar_set(&want, y);
        ck_assert_msg(memcmp(&want, &values[k], sizeof want) == 0, "%s %s 2^%u, value %zu",
                      curve->info->name, curve->isa, log_n, k);
    }
    ck_assert_int_eq(curve->ntt(pool, values, log_n, true, &error), ERR_NONE);
    ck_assert_mem_eq(values, before, n * sizeof *values);
    mpz_clears(r, w, point, y, NULL);
    numbers_free(x, n);
    free(before);
    free(values);
}

static void check_small(const struct cpu_curve *curve) {
    for (unsigned log_n = 0; log_n <= 6; log_n++)
        check_transform(curve, log_n, (size_t)1 << log_n, NULL);
}

START_TEST(small_transforms_are_the_definition) {
    for_each_table(check_small);
}
END_TEST

static void check_large(const struct cpu_curve *curve) {
    for (unsigned log_n = 12; log_n <= 15; log_n++)
        for (size_t p = 0; p < sizeof pools / sizeof *pools; p++)
            check_transform(curve, log_n, 3, pools[p]);
}

START_TEST(large_transforms_agree_at_random_points_and_go_back) {
    for_each_table(check_large);
}
END_TEST

START_TEST(a_transform_beyond_the_field_is_refused) {
    struct error error;
    struct scalar value = {{1}};
    ck_assert_int_eq(cpu_curve(CURVE_BN254)->ntt(NULL, &value, 29, false, &error), ERR_UNSUPPORTED);
    ck_assert_int_eq(cpu_curve(CURVE_BLS12_381)->ntt(NULL, &value, 33, false, &error),
                     ERR_UNSUPPORTED);
}
END_TEST

/* --- the quotient --- */

/* A key with random coefficients and a witness; a and b are its rows' values by GMP. */
struct instance {
    struct zkey zkey;
    uint8_t *coefficients;
    struct scalar *witness;
    mpz_t *a, *b;
    mpz_t r;
};

enum { N_VARS = 37 };

static void put_u32(uint8_t *p, size_t x) {
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(x >> (8 * i));
}

static void add_entry(struct instance *s, size_t i, const mpz_t coefficient, const mpz_t *w) {
    size_t matrix = gmp_urandomm_ui(rng, 2), signal = gmp_urandomm_ui(rng, N_VARS);
    size_t row = gmp_urandomm_ui(rng, s->zkey.domain_size);
    uint8_t *packed = s->coefficients + i * ZKEY_COEFFICIENT_BYTES;
    mpz_t *sum = matrix == 0 ? &s->a[row] : &s->b[row], value;
    struct scalar bytes;
    put_u32(packed, matrix);
    put_u32(packed + 4, row);
    put_u32(packed + 8, signal);
    mpz_init(value);
    mpz_mul_2exp(value, coefficient, 512); /* R^2 */
    mpz_mod(value, value, s->r);
    scalar_set(&bytes, value);
    memcpy(packed + 12, &bytes, sizeof bytes);
    mpz_addmul(*sum, coefficient, w[signal]);
    mpz_mod(*sum, *sum, s->r);
    mpz_clear(value);
}

static void instance_init(struct instance *s, const struct cpu_curve *curve, unsigned log_n) {
    size_t n = (size_t)1 << log_n, n_entries = 3 * n;
    mpz_t *w = numbers_new(N_VARS), coefficient;
    memset(s, 0, sizeof *s);
    mpz_inits(s->r, coefficient, NULL);
    modulus(s->r, curve);
    s->a = numbers_new(n);
    s->b = numbers_new(n);
    s->witness = calloc(N_VARS, sizeof *s->witness);
    s->coefficients = calloc(n_entries, ZKEY_COEFFICIENT_BYTES);
    ck_assert(s->witness && s->coefficients);
    for (size_t i = 0; i < N_VARS; i++) {
        if (i % 3 == 0)
            mpz_set_ui(w[i], i % 2);
        else
            mpz_urandomm(w[i], rng, s->r);
        scalar_set(&s->witness[i], w[i]);
    }
    s->zkey = (struct zkey){.curve = curve->info,
                            .n_vars = N_VARS,
                            .domain_size = (uint32_t)n,
                            .log_domain = log_n,
                            .n_coefficients = (uint32_t)n_entries,
                            .coefficients = s->coefficients};
    for (size_t i = 0; i < n_entries; i++) {
        mpz_urandomm(coefficient, rng, s->r);
        add_entry(s, i, coefficient, (const mpz_t *)w);
    }
    mpz_clear(coefficient);
    numbers_free(w, N_VARS);
}

static void instance_free(struct instance *s) {
    numbers_free(s->a, s->zkey.domain_size);
    numbers_free(s->b, s->zkey.domain_size);
    mpz_clear(s->r);
    free(s->witness);
    free(s->coefficients);
}

/* Coefficients of the polynomial with these values on the powers of w, by the definition. */
static mpz_t *interpolate(mpz_t *values, size_t n, const mpz_t w, const mpz_t r) {
    mpz_t *x = numbers_new(n), inverse, point;
    mpz_inits(inverse, point, NULL);
    for (size_t i = 0; i < n; i++) {
        mpz_powm_ui(point, w, (n - i) % n, r);
        evaluate(x[i], values, n, point, r);
        mpz_set_ui(inverse, n);
        mpz_invert(inverse, inverse, r);
        mpz_mul(x[i], x[i], inverse);
        mpz_mod(x[i], x[i], r);
    }
    mpz_clears(inverse, point, NULL);
    return x;
}

/* h[i] must be A(x) B(x) - C(x) at x = shift * w^i. */
static void check_values(struct instance *s, const struct scalar *h, const mpz_t shift) {
    size_t n = s->zkey.domain_size;
    mpz_t *c = numbers_new(n), w, x, ya, yb, yc, got;
    mpz_inits(w, x, ya, yb, yc, got, NULL);
    root_of_unity(w, s->zkey.log_domain, s->r);
    for (size_t i = 0; i < n; i++)
        mpz_mul(c[i], s->a[i], s->b[i]);
    mpz_t *pa = interpolate(s->a, n, w, s->r), *pb = interpolate(s->b, n, w, s->r),
          *pc = interpolate(c, n, w, s->r);
    for (size_t i = 0; i < n; i++) {
        mpz_powm_ui(x, w, i, s->r);
        mpz_mul(x, x, shift);
        mpz_mod(x, x, s->r);
        evaluate(ya, pa, n, x, s->r);
        evaluate(yb, pb, n, x, s->r);
        evaluate(yc, pc, n, x, s->r);
        mpz_mul(ya, ya, yb);
        mpz_sub(ya, ya, yc);
        mpz_mod(ya, ya, s->r);
        scalar_get(got, &h[i]);
        ck_assert_msg(mpz_cmp(got, ya) == 0, "%s, n = %zu, h[%zu]", s->zkey.curve->name, n, i);
    }
    mpz_clears(w, x, ya, yb, yc, got, NULL);
    numbers_free(c, n);
    numbers_free(pa, n);
    numbers_free(pb, n);
    numbers_free(pc, n);
}

static void check_quotient(const struct cpu_curve *curve) {
    for (unsigned log_n = 1; log_n <= 7; log_n++) {
        struct instance s;
        struct matrix *matrix;
        struct error error;
        int64_t matvec_ns = -1, ntt_ns = -1;
        instance_init(&s, curve, log_n);
        struct scalar *h = calloc(s.zkey.domain_size, sizeof *h);
        ck_assert_ptr_nonnull(h);
        ck_assert_int_eq(matrix_index(&s.zkey, &matrix, &error), ERR_NONE);
        ck_assert_int_eq(
            curve->quotient(pools[log_n % 3], matrix, s.witness, h, &matvec_ns, &ntt_ns, &error),
            ERR_NONE);
        ck_assert(matvec_ns >= 0 && ntt_ns >= 0);
        mpz_t shift;
        mpz_init(shift);
        root_of_unity(shift, log_n + 1, s.r);
        check_values(&s, h, shift);
        mpz_clear(shift);
        matrix_free(matrix);
        free(h);
        instance_free(&s);
    }
}

START_TEST(quotient_is_ab_minus_c_on_the_odd_powers) {
    for_each_table(check_quotient);
}
END_TEST

START_TEST(without_a_root_of_twice_the_order_the_shift_is_25) {
    for (unsigned log_n = SMALL_TWO_ADICITY - 1; log_n <= SMALL_TWO_ADICITY; log_n++) {
        struct instance s;
        struct matrix *matrix;
        struct error error;
        mpz_t shift;
        instance_init(&s, cpu_curve(CURVE_BN254), log_n);
        struct scalar *h = calloc(s.zkey.domain_size, sizeof *h);
        ck_assert_ptr_nonnull(h);
        ck_assert_int_eq(matrix_index(&s.zkey, &matrix, &error), ERR_NONE);
        ck_assert_int_eq(small_field_quotient(matrix, s.witness, h, &error), ERR_NONE);
        mpz_init_set_ui(shift, 25);
        if (log_n < SMALL_TWO_ADICITY) root_of_unity(shift, log_n + 1, s.r);
        check_values(&s, h, shift);
        mpz_clear(shift);
        matrix_free(matrix);
        free(h);
        instance_free(&s);
    }
}
END_TEST

/* --- the index of the matrices --- */

START_TEST(matrix_rows_hold_their_entries_in_any_file_order) {
    for (int sorted = 0; sorted < 2; sorted++) {
        /* matrix, row, signal */
        static const uint8_t entries[2][5][3] = {
            {{1, 3, 7}, {0, 0, 1}, {0, 3, 2}, {1, 0, 3}, {0, 0, 4}},
            {{0, 0, 1}, {0, 0, 4}, {1, 0, 3}, {0, 3, 2}, {1, 3, 7}},
        };
        uint8_t packed[5 * ZKEY_COEFFICIENT_BYTES] = {0};
        struct zkey zkey = {.domain_size = 4, .n_coefficients = 5, .coefficients = packed};
        struct matrix *m;
        struct error error;
        for (size_t i = 0; i < 5; i++)
            for (size_t field = 0; field < 3; field++)
                packed[i * ZKEY_COEFFICIENT_BYTES + 4 * field] = entries[sorted][i][field];
        ck_assert_int_eq(matrix_index(&zkey, &m, &error), ERR_NONE);
        ck_assert_int_eq(m->order == NULL, sorted);
        ck_assert_uint_eq(matrix_last(m, MATRIX_A, 0) - matrix_first(m, MATRIX_A, 0), 2);
        ck_assert_uint_eq(matrix_entry(m, matrix_first(m, MATRIX_A, 0)).signal, 1);
        ck_assert_uint_eq(matrix_entry(m, matrix_first(m, MATRIX_A, 0) + 1).signal, 4);
        ck_assert_uint_eq(matrix_entry(m, matrix_first(m, MATRIX_B, 0)).signal, 3);
        ck_assert_uint_eq(matrix_first(m, MATRIX_B, 2), matrix_last(m, MATRIX_A, 1));
        ck_assert_uint_eq(matrix_entry(m, matrix_first(m, MATRIX_A, 3)).signal, 2);
        ck_assert_uint_eq(matrix_entry(m, matrix_first(m, MATRIX_B, 3)).signal, 7);
        ck_assert_uint_eq(matrix_last(m, MATRIX_B, 3), 5);
        ck_assert_uint_eq(matrix_bytes(&zkey),
                          sizeof *m + 9 * sizeof(uint32_t) + (sorted ? 0 : 5 * sizeof(uint32_t)));
        matrix_free(m);
    }
}
END_TEST

static void set_up(void) {
    struct error error;
    gmp_randinit_default(rng);
    CHECK_OK(pool_open(2, &pools[1], &error));
    CHECK_OK(pool_open(3, &pools[2], &error));
}

static void tear_down(void) {
    pool_close(pools[1]);
    pool_close(pools[2]);
    gmp_randclear(rng);
}

int main(void) {
    const TTest *const *const tests[] = {&small_transforms_are_the_definition,
                                         &large_transforms_agree_at_random_points_and_go_back,
                                         &a_transform_beyond_the_field_is_refused,
                                         &quotient_is_ab_minus_c_on_the_odd_powers,
                                         &without_a_root_of_twice_the_order_the_shift_is_25,
                                         &matrix_rows_hold_their_entries_in_any_file_order};
    return run_tests("ntt", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
