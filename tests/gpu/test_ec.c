/* Points against the affine group law written out in GMP, over Fq2 for both groups (G1 is the part
 * with no u). */
#include "gpu/cpu/cpu_curve.h"
#include "tests/gpu/suite.h"

#include <gmp.h>
#include <stdlib.h>
#include <string.h>

static gmp_randstate_t rng;
static const char *const isas[] = {"portable", "adx"};

/* --- Fq2 and the curve in GMP --- */

static mpz_t q, r; /* of the curve under test */

/* Values c0 + c1 u are mpz_t[2]. */

static void pair_mul(mpz_t *out, mpz_t *a, mpz_t *b) {
    mpz_t t[2];
    mpz_inits(t[0], t[1], NULL);
    mpz_mul(t[0], a[0], b[0]);
    mpz_submul(t[0], a[1], b[1]);
    mpz_mul(t[1], a[0], b[1]);
    mpz_addmul(t[1], a[1], b[0]);
    mpz_mod(out[0], t[0], q);
    mpz_mod(out[1], t[1], q);
    mpz_clears(t[0], t[1], NULL);
}

static void pair_sub(mpz_t *out, mpz_t *a, mpz_t *b) {
    for (int i = 0; i < 2; i++) {
        mpz_sub(out[i], a[i], b[i]);
        mpz_mod(out[i], out[i], q);
    }
}

static void pair_inv(mpz_t *out, mpz_t *a) {
    mpz_t norm;
    mpz_init(norm);
    mpz_mul(norm, a[0], a[0]);
    mpz_addmul(norm, a[1], a[1]);
    ck_assert(mpz_invert(norm, norm, q) != 0);
    mpz_mul(out[0], a[0], norm);
    mpz_mul(out[1], a[1], norm);
    mpz_neg(out[1], out[1]);
    mpz_mod(out[0], out[0], q);
    mpz_mod(out[1], out[1], q);
    mpz_clear(norm);
}

static void pair_pow(mpz_t *out, mpz_t *a, const mpz_t e) {
    mpz_t base[2], acc[2];
    mpz_inits(base[0], base[1], acc[0], acc[1], NULL);
    mpz_set(base[0], a[0]);
    mpz_set(base[1], a[1]);
    mpz_set_ui(acc[0], 1);
    for (size_t bit = mpz_sizeinbase(e, 2); bit-- > 0;) {
        pair_mul(acc, acc, acc);
        if (mpz_tstbit(e, bit)) pair_mul(acc, acc, base);
    }
    mpz_set(out[0], acc[0]);
    mpz_set(out[1], acc[1]);
    mpz_clears(base[0], base[1], acc[0], acc[1], NULL);
}

static bool pair_eq(mpz_t *a, mpz_t *b) {
    return mpz_cmp(a[0], b[0]) == 0 && mpz_cmp(a[1], b[1]) == 0;
}

/* A square root for q = 3 mod 4 (Adj, Rodriguez-Henriquez, "Square root computation over even
 * extension fields", 2012, algorithm 9); false when there is none. */
static bool pair_sqrt(mpz_t *out, mpz_t *a) {
    mpz_t a1[2], alpha[2], x0[2], check[2];
    mpz_t e;
    mpz_inits(a1[0], a1[1], alpha[0], alpha[1], x0[0], x0[1], check[0], check[1], e, NULL);
    mpz_tdiv_q_2exp(e, q, 2); /* (q-3)/4 */
    pair_pow(a1, a, e);
    pair_mul(x0, a1, a);
    pair_mul(alpha, a1, x0);
    mpz_sub_ui(e, q, 1);
    if (mpz_cmp(alpha[0], e) == 0 && mpz_sgn(alpha[1]) == 0) { /* times u */
        mpz_set(out[0], x0[1]);
        mpz_neg(out[0], out[0]);
        mpz_mod(out[0], out[0], q);
        mpz_set(out[1], x0[0]);
    } else {
        mpz_add_ui(alpha[0], alpha[0], 1);
        mpz_tdiv_q_2exp(e, q, 1);
        pair_pow(alpha, alpha, e);
        pair_mul(out, alpha, x0);
    }
    pair_mul(check, out, out);
    bool found = pair_eq(check, a);
    mpz_clears(a1[0], a1[1], alpha[0], alpha[1], x0[0], x0[1], check[0], check[1], e, NULL);
    return found;
}

struct point {
    mpz_t x[2], y[2]; /* 0, 0 is infinity */
};

static void point_init(struct point *p) {
    mpz_inits(p->x[0], p->x[1], p->y[0], p->y[1], NULL);
}
static void point_clear(struct point *p) {
    mpz_clears(p->x[0], p->x[1], p->y[0], p->y[1], NULL);
}
static void point_set(struct point *out, const struct point *p) {
    for (int i = 0; i < 2; i++) {
        mpz_set(out->x[i], p->x[i]);
        mpz_set(out->y[i], p->y[i]);
    }
}
static bool point_is_zero(const struct point *p) {
    return mpz_sgn(p->x[0]) == 0 && mpz_sgn(p->x[1]) == 0 && mpz_sgn(p->y[0]) == 0 &&
           mpz_sgn(p->y[1]) == 0;
}

/* The slope of p + s for points that are not opposite nor infinity. */
static void point_slope(mpz_t *slope, struct point *p, struct point *s) {
    mpz_t d[2];
    mpz_inits(d[0], d[1], NULL);
    if (pair_eq(p->x, s->x)) {
        pair_mul(slope, p->x, p->x);
        for (int i = 0; i < 2; i++) {
            mpz_mul_ui(slope[i], slope[i], 3);
            mpz_mul_ui(d[i], p->y[i], 2);
        }
    } else {
        pair_sub(slope, s->y, p->y);
        pair_sub(d, s->x, p->x);
    }
    pair_inv(d, d);
    pair_mul(slope, slope, d);
    mpz_clears(d[0], d[1], NULL);
}

static void point_add(struct point *out, struct point *p, struct point *s) {
    struct point sum;
    mpz_t slope[2];
    if (point_is_zero(p) || point_is_zero(s)) {
        point_set(out, point_is_zero(p) ? s : p);
        return;
    }
    point_init(&sum);
    mpz_inits(slope[0], slope[1], NULL);
    if (!pair_eq(p->x, s->x) || pair_eq(p->y, s->y)) {
        point_slope(slope, p, s);
        pair_mul(sum.x, slope, slope);
        pair_sub(sum.x, sum.x, p->x);
        pair_sub(sum.x, sum.x, s->x);
        pair_sub(sum.y, p->x, sum.x);
        pair_mul(sum.y, sum.y, slope);
        pair_sub(sum.y, sum.y, p->y);
    }
    point_set(out, &sum);
    point_clear(&sum);
    mpz_clears(slope[0], slope[1], NULL);
}

static void point_mul(struct point *out, struct point *p, const mpz_t k) {
    struct point acc;
    point_init(&acc);
    for (size_t bit = mpz_sizeinbase(k, 2); bit-- > 0;) {
        point_add(&acc, &acc, &acc);
        if (mpz_tstbit(k, bit)) point_add(&acc, &acc, p);
    }
    point_set(out, &acc);
    point_clear(&acc);
}

/* --- the code under test, one group behind one face --- */

struct group {
    const struct cpu_curve *curve;
    bool g2;
};

union plain {
    struct g1_point g1;
    struct g2_point g2;
};

static void put(uint8_t *le, const mpz_t x) {
    memset(le, 0, COORD_BYTES);
    mpz_export(le, NULL, -1, 1, 0, 0, x);
}

static union plain to_plain(const struct group *g, const struct point *p) {
    union plain out;
    memset(&out, 0, sizeof out);
    for (int i = 0; g->g2 && i < 2; i++) {
        put(out.g2.x[i], p->x[i]);
        put(out.g2.y[i], p->y[i]);
    }
    if (!g->g2) {
        put(out.g1.x, p->x[0]);
        put(out.g1.y, p->y[0]);
    }
    return out;
}

static void get(mpz_t out, const uint8_t *le) {
    mpz_import(out, COORD_BYTES, -1, 1, 0, 0, le);
}

static void from_generator(const struct group *g, struct point *p) {
    for (int i = 0; i < 2; i++) {
        if (g->g2) {
            get(p->x[i], g->curve->g2_generator->x[i]);
            get(p->y[i], g->curve->g2_generator->y[i]);
        }
    }
    if (!g->g2) {
        get(p->x[0], g->curve->g1_generator->x);
        get(p->y[0], g->curve->g1_generator->y);
    }
}

static union plain add(const struct group *g, const union plain *a, const union plain *b) {
    union plain out;
    memset(&out, 0, sizeof out);
    if (g->g2)
        g->curve->g2_add(&a->g2, &b->g2, &out.g2);
    else
        g->curve->g1_add(&a->g1, &b->g1, &out.g1);
    return out;
}

static union plain mul(const struct group *g, const union plain *a, const mpz_t k) {
    union plain out;
    struct scalar scalar = {{0}};
    memset(&out, 0, sizeof out);
    mpz_export(scalar.le, NULL, -1, 1, 0, 0, k);
    if (g->g2)
        g->curve->g2_mul(&a->g2, &scalar, &out.g2);
    else
        g->curve->g1_mul(&a->g1, &scalar, &out.g1);
    return out;
}

static enum point_fault check(const struct group *g, const union plain *p) {
    return g->g2 ? g->curve->g2_check(&p->g2) : g->curve->g1_check(&p->g1);
}

static void to_zkey(const struct group *g, const union plain *p, uint8_t *out) {
    if (g->g2)
        g->curve->g2_to_zkey(&p->g2, out);
    else
        g->curve->g1_to_zkey(&p->g1, out);
}

static union plain from_zkey(const struct group *g, const uint8_t *zkey_form) {
    union plain out;
    memset(&out, 0, sizeof out);
    if (g->g2)
        g->curve->g2_from_zkey(zkey_form, &out.g2);
    else
        g->curve->g1_from_zkey(zkey_form, &out.g1);
    return out;
}

static size_t check_many(const struct group *g, struct pool *pool, const uint8_t *points, size_t n,
                         enum point_fault *fault) {
    return g->g2 ? g->curve->g2_check_many(pool, points, n, fault)
                 : g->curve->g1_check_many(pool, points, n, fault);
}

static size_t zkey_bytes(const struct group *g) {
    return (g->g2 ? 4 : 2) * g->curve->info->n8q;
}

static void for_each_group(void (*test)(const struct group *)) {
    for (int id = 0; id < CURVE_COUNT; id++)
        for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
            for (int g2 = 0; g2 < 2; g2++) {
                struct group g = {cpu_curve_isa((enum curve_id)id, isas[i]), g2};
                if (!g.curve) continue;
                mpz_import(q, COORD_BYTES, -1, 1, 0, 0, g.curve->info->q);
                mpz_import(r, SCALAR_BYTES, -1, 1, 0, 0, g.curve->info->r);
                test(&g);
            }
}

#define SAME(a, b) ck_assert_mem_eq(&(a), &(b), sizeof(union plain))

/* --- the tests --- */

/* Multiples -3 .. 3 of a random point, each with each: doubling, opposites and infinity included. */
static void check_additions(const struct group *g) {
    struct point p, multiples[7], sum;
    mpz_t k;
    mpz_init(k);
    point_init(&p);
    point_init(&sum);
    from_generator(g, &p);
    mpz_urandomm(k, rng, r);
    point_mul(&p, &p, k);
    for (int i = 0; i < 7; i++) {
        point_init(&multiples[i]);
        mpz_set_si(k, i - 3);
        mpz_mod(k, k, r);
        point_mul(&multiples[i], &p, k);
    }
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 7; j++) {
            union plain a = to_plain(g, &multiples[i]), b = to_plain(g, &multiples[j]);
            point_add(&sum, &multiples[i], &multiples[j]);
            union plain want = to_plain(g, &sum), got = add(g, &a, &b);
            SAME(got, want);
        }
    for (int i = 0; i < 7; i++)
        point_clear(&multiples[i]);
    point_clear(&p);
    point_clear(&sum);
    mpz_clear(k);
}

START_TEST(addition_is_the_affine_group_law) {
    for_each_group(check_additions);
}
END_TEST

static void check_multiples(const struct group *g) {
    struct point p, product;
    mpz_t k;
    mpz_init(k);
    point_init(&p);
    point_init(&product);
    from_generator(g, &p);
    union plain generator = to_plain(g, &p);
    for (int i = 0; i < 12; i++) {
        mpz_set_ui(k, (unsigned long)i);
        if (i == 6) mpz_set(k, r);
        if (i == 7) mpz_sub_ui(k, r, 1);
        if (i == 8) mpz_add_ui(k, r, 1);
        if (i == 9) {
            mpz_set_ui(k, 0);
            mpz_setbit(k, 256);
            mpz_sub_ui(k, k, 1);
        }
        if (i >= 10) mpz_urandomm(k, rng, r);
        point_mul(&product, &p, k);
        union plain want = to_plain(g, &product), got = mul(g, &generator, k);
        SAME(got, want);
    }
    point_clear(&p);
    point_clear(&product);
    mpz_clear(k);
}

START_TEST(multiples_by_any_256_bits) {
    for_each_group(check_multiples);
}
END_TEST

/* A random point on the curve; on those with a cofactor it is outside the subgroup. */
static void random_on_curve(const struct group *g, struct point *p) {
    struct point generator;
    mpz_t b[2], t[2];
    point_init(&generator);
    mpz_inits(b[0], b[1], t[0], t[1], NULL);
    from_generator(g, &generator); /* b = y^2 - x^3 */
    pair_mul(b, generator.y, generator.y);
    pair_mul(t, generator.x, generator.x);
    pair_mul(t, t, generator.x);
    pair_sub(b, b, t);
    do {
        mpz_urandomm(p->x[0], rng, q);
        mpz_set_ui(p->x[1], 0);
        if (g->g2) mpz_urandomm(p->x[1], rng, q);
        pair_mul(t, p->x, p->x);
        pair_mul(t, t, p->x);
        for (int i = 0; i < 2; i++) {
            mpz_add(t[i], t[i], b[i]);
            mpz_mod(t[i], t[i], q);
        }
    } while (!pair_sqrt(p->y, t) || (!g->g2 && mpz_sgn(p->y[1]) != 0));
    mpz_clears(b[0], b[1], t[0], t[1], NULL);
    point_clear(&generator);
}

static bool has_cofactor(const struct group *g) {
    return g->g2 || g->curve->info->id == CURVE_BLS12_381;
}

static void check_faults(const struct group *g) {
    struct point p, product;
    point_init(&p);
    point_init(&product);
    union plain zero = to_plain(g, &p);
    ck_assert_int_eq(check(g, &zero), POINT_OK);
    from_generator(g, &p);
    union plain good = to_plain(g, &p), bad = good;
    ck_assert_int_eq(check(g, &good), POINT_OK);
    bad.g1.x[0] ^= 1;
    ck_assert_int_eq(check(g, &bad), POINT_OFF_CURVE);
    for (int i = 0; i < 3; i++) {
        random_on_curve(g, &p);
        point_mul(&product, &p, r);
        ck_assert_int_eq(point_is_zero(&product), !has_cofactor(g));
        union plain any = to_plain(g, &p);
        ck_assert_int_eq(check(g, &any), has_cofactor(g) ? POINT_OFF_SUBGROUP : POINT_OK);
    }
    point_clear(&p);
    point_clear(&product);
}

START_TEST(points_off_the_curve_or_the_subgroup_are_found) {
    for_each_group(check_faults);
}
END_TEST

/* x + q is congruent to x but out of range; so are bytes beyond the coordinate. */
static void check_ranges(const struct group *g) {
    union plain good;
    size_t n_coords = g->g2 ? 4 : 2;
    struct point p;
    point_init(&p);
    from_generator(g, &p);
    good = to_plain(g, &p);
    for (size_t i = 0; i < n_coords; i++) {
        union plain bad = good;
        uint8_t *coord = (uint8_t *)&bad + i * COORD_BYTES;
        mpz_t x;
        mpz_init(x);
        get(x, coord);
        mpz_add(x, x, q);
        put(coord, x);
        mpz_clear(x);
        ck_assert_int_eq(check(g, &bad), POINT_RANGE);
        bad = good;
        memset(coord, 0xff, g->curve->info->n8q);
        ck_assert_int_eq(check(g, &bad), POINT_RANGE);
        bad = good;
        coord[COORD_BYTES - 1] |= 0x80;
        ck_assert_int_eq(check(g, &bad), POINT_RANGE);
    }
    point_clear(&p);
}

START_TEST(coordinates_at_or_above_q_are_refused) {
    for_each_group(check_ranges);
}
END_TEST

/* zkey form is x * R mod q, R = 2^(8 n8q). */
static void check_zkey_form(const struct group *g) {
    uint8_t bytes[4 * COORD_BYTES] = {0};
    struct point p;
    mpz_t want, got;
    size_t n8q = g->curve->info->n8q;
    mpz_inits(want, got, NULL);
    point_init(&p);
    union plain zero = to_plain(g, &p);
    from_generator(g, &p);
    union plain plain = to_plain(g, &p);
    to_zkey(g, &plain, bytes);
    mpz_mul_2exp(want, p.x[0], 8 * n8q);
    mpz_mod(want, want, q);
    mpz_import(got, n8q, -1, 1, 0, 0, bytes);
    ck_assert(mpz_cmp(got, want) == 0);
    mpz_mul_2exp(want, g->g2 ? p.y[1] : p.y[0], 8 * n8q);
    mpz_mod(want, want, q);
    mpz_import(got, n8q, -1, 1, 0, 0, bytes + (g->g2 ? 3 : 1) * n8q);
    ck_assert(mpz_cmp(got, want) == 0);
    union plain back = from_zkey(g, bytes);
    SAME(back, plain);
    to_zkey(g, &zero, bytes);
    ck_assert(le_is_zero(bytes, zkey_bytes(g)));
    back = from_zkey(g, bytes);
    SAME(back, zero);
    point_clear(&p);
    mpz_clears(want, got, NULL);
}

START_TEST(zkey_form_is_montgomery_and_infinity_zero) {
    for_each_group(check_zkey_form);
}
END_TEST

static void check_lists(const struct group *g) {
    enum { N = 600 };
    size_t bytes = zkey_bytes(g);
    uint8_t *points = calloc(N, bytes), *bad_point = calloc(1, bytes);
    struct pool *pool;
    struct error error;
    enum point_fault fault;
    struct point p;
    ck_assert(points && bad_point);
    ck_assert_int_eq(pool_open(3, &pool, &error), ERR_NONE);
    point_init(&p);
    from_generator(g, &p);
    union plain generator = to_plain(g, &p), sum = generator;
    for (size_t i = 0; i < N; i++) {
        if (i % 10 != 0) to_zkey(g, &sum, points + i * bytes);
        sum = add(g, &sum, &generator);
    }
    ck_assert_uint_eq(check_many(g, pool, points, N, &fault), N);
    ck_assert_int_eq(fault, POINT_OK);
    ck_assert_uint_eq(check_many(g, pool, points, 0, &fault), 0);
    random_on_curve(g, &p);
    union plain outside = to_plain(g, &p);
    to_zkey(g, &outside, bad_point);
    static const size_t at[] = {0, 1, 255, 256, N - 1};
    for (size_t i = sizeof at / sizeof *at; i-- > 0;) { /* the lowest is named */
        uint8_t *slot = points + at[i] * bytes;
        if (has_cofactor(g)) {
            memcpy(slot, bad_point, bytes);
            ck_assert_uint_eq(check_many(g, pool, points, N, &fault), at[i]);
            ck_assert_int_eq(fault, POINT_OFF_SUBGROUP);
        }
        memcpy(slot, points + 2 * bytes, bytes);
        slot[0] ^= 1;
        ck_assert_uint_eq(check_many(g, pool, points, N, &fault), at[i]);
        ck_assert_int_eq(fault, POINT_OFF_CURVE);
        memset(slot, 0xff, bytes);
        ck_assert_uint_eq(check_many(g, pool, points, N, &fault), at[i]);
        ck_assert_int_eq(fault, POINT_RANGE);
    }
    point_clear(&p);
    pool_close(pool);
    free(points);
    free(bad_point);
}

START_TEST(the_lowest_bad_point_of_a_list_is_named) {
    for_each_group(check_lists);
}
END_TEST

/* The larger of y and -y: compare c1, and c0 where c1 is zero. */
static void check_signs(const struct group *g) {
    struct point p;
    point_init(&p);
    for (int i = 0; i < 6; i++) {
        random_on_curve(g, &p);
        for (int sign = 0; sign < 2; sign++) {
            mpz_t half;
            mpz_init(half);
            mpz_tdiv_q_2exp(half, q, 1);
            const mpz_t *decides = g->g2 && mpz_sgn(p.y[1]) != 0 ? &p.y[1] : &p.y[0];
            union plain plain = to_plain(g, &p);
            bool larger =
                g->g2 ? g->curve->g2_y_is_larger(&plain.g2) : g->curve->g1_y_is_larger(&plain.g1);
            ck_assert_int_eq(larger, mpz_cmp(*decides, half) > 0);
            mpz_clear(half);
            for (int k = 0; k < 2; k++) {
                mpz_neg(p.y[k], p.y[k]);
                mpz_mod(p.y[k], p.y[k], q);
            }
            if (!g->g2) {
                union plain negative = to_plain(g, &p), got;
                memset(&got, 0, sizeof got);
                g->curve->g1_neg(&plain.g1, &got.g1);
                SAME(got, negative);
            }
        }
    }
    mpz_set_ui(p.y[0], 5); /* c1 = 0: only the code's rule, no curve point */
    mpz_set_ui(p.y[1], 0);
    union plain small = to_plain(g, &p);
    ck_assert(!(g->g2 ? g->curve->g2_y_is_larger(&small.g2) : g->curve->g1_y_is_larger(&small.g1)));
    mpz_sub_ui(p.y[0], q, 5);
    union plain large = to_plain(g, &p);
    ck_assert(g->g2 ? g->curve->g2_y_is_larger(&large.g2) : g->curve->g1_y_is_larger(&large.g1));
    point_clear(&p);
}

START_TEST(the_larger_y_and_the_negative) {
    for_each_group(check_signs);
}
END_TEST

static void set_up(void) {
    gmp_randinit_default(rng);
    mpz_inits(q, r, NULL);
}

static void tear_down(void) {
    mpz_clears(q, r, NULL);
    gmp_randclear(rng);
}

int main(void) {
    const TTest *const *const tests[] = {&addition_is_the_affine_group_law,
                                         &multiples_by_any_256_bits,
                                         &points_off_the_curve_or_the_subgroup_are_found,
                                         &coordinates_at_or_above_q_are_refused,
                                         &zkey_form_is_montgomery_and_infinity_zero,
                                         &the_lowest_bad_point_of_a_list_is_named,
                                         &the_larger_y_and_the_negative};
    return run_tests("ec", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
