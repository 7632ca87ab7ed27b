/* Multi-scalar multiplication: bases are known multiples k_i of the generator, so that GMP knows the
 * answer: (sum s_i k_i mod r) * G. Both curves, both groups, every instruction set. */
#include "gpu/cpu/cpu_curve.h"
#include "tests/gpu/suite.h"

#include <gmp.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_N = 20000 };

static gmp_randstate_t rng;
static const char *const isas[] = {"portable", "adx"};
static const unsigned thread_counts[] = {1, 2, 5};
static struct pool *pools[3];

/* One group of one curve behind one face: points are in zkey form. */
struct group {
    const struct cpu_curve *curve;
    bool g2;
    size_t bytes;
    mpz_t r;
};

static void group_init(struct group *group, const struct cpu_curve *curve, bool g2) {
    group->curve = curve;
    group->g2 = g2;
    group->bytes = (g2 ? 4 : 2) * curve->info->n8q;
    mpz_init(group->r);
    mpz_import(group->r, SCALAR_BYTES, -1, 1, 0, 0, curve->info->r);
}

static void scalar_set(struct scalar *out, const mpz_t x) {
    memset(out, 0, sizeof *out);
    mpz_export(out->le, NULL, -1, 1, 0, 0, x);
}

/* The first n multiples 1*G, 2*G, ... in zkey form. */
static uint8_t *multiples(const struct group *group, size_t n) {
    const struct cpu_curve *curve = group->curve;
    uint8_t *bases = calloc(n + 1, group->bytes);
    struct g1_point p = *curve->g1_generator;
    struct g2_point q = *curve->g2_generator;
    ck_assert_ptr_nonnull(bases);
    for (size_t i = 0; i < n; i++) {
        if (group->g2) {
            curve->g2_to_zkey(&q, bases + i * group->bytes);
            curve->g2_add(&q, curve->g2_generator, &q);
        } else {
            curve->g1_to_zkey(&p, bases + i * group->bytes);
            curve->g1_add(&p, curve->g1_generator, &p);
        }
    }
    return bases;
}

static void negate(const struct group *group, uint8_t *zkey_form) {
    if (group->g2) {
        struct scalar minus_one;
        struct g2_point q;
        mpz_t x;
        mpz_init(x);
        mpz_sub_ui(x, group->r, 1);
        scalar_set(&minus_one, x);
        mpz_clear(x);
        group->curve->g2_from_zkey(zkey_form, &q);
        group->curve->g2_mul(&q, &minus_one, &q);
        group->curve->g2_to_zkey(&q, zkey_form);
    } else {
        struct g1_point p;
        group->curve->g1_from_zkey(zkey_form, &p);
        group->curve->g1_neg(&p, &p);
        group->curve->g1_to_zkey(&p, zkey_form);
    }
}

/* A sum to be computed: bases are k[i] * G with |k[i]| < 2^31. */
struct instance {
    const struct group *group;
    size_t n;
    uint8_t *bases;
    long *k;
    struct scalar *scalars;
};

static struct instance instance_new(const struct group *group, size_t n) {
    struct instance s = {group, n, multiples(group, n), calloc(n + 1, sizeof *s.k),
                         calloc(n + 1, sizeof *s.scalars)};
    ck_assert(s.k && s.scalars);
    for (size_t i = 0; i < n; i++)
        s.k[i] = (long)i + 1;
    return s;
}

static void instance_free(struct instance *s) {
    free(s->bases);
    free(s->k);
    free(s->scalars);
}

static void instance_check(const struct instance *s, const char *what) {
    const struct cpu_curve *curve = s->group->curve;
    struct g1_point want1, got1;
    struct g2_point want2, got2;
    struct scalar total;
    struct error error;
    mpz_t sum, x;
    mpz_inits(sum, x, NULL);
    for (size_t i = 0; i < s->n; i++) {
        mpz_import(x, SCALAR_BYTES, -1, 1, 0, 0, s->scalars[i].le);
        mpz_mul_si(x, x, s->k[i]);
        mpz_add(sum, sum, x);
    }
    mpz_mod(sum, sum, s->group->r);
    scalar_set(&total, sum);
    mpz_clears(sum, x, NULL);
    curve->g1_mul(curve->g1_generator, &total, &want1);
    curve->g2_mul(curve->g2_generator, &total, &want2);
    for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++) {
        bool same;
        if (s->group->g2) {
            ck_assert_int_eq(curve->msm_g2(pools[t], s->bases, s->scalars, s->n, &got2, &error),
                             ERR_NONE);
            same = memcmp(&got2, &want2, sizeof got2) == 0;
        } else {
            ck_assert_int_eq(curve->msm_g1(pools[t], s->bases, s->scalars, s->n, &got1, &error),
                             ERR_NONE);
            same = memcmp(&got1, &want1, sizeof got1) == 0;
        }
        ck_assert_msg(same, "%s %s %s, n = %zu, %s, %u threads", curve->info->name, curve->isa,
                      s->group->g2 ? "g2" : "g1", s->n, what, thread_counts[t]);
    }
}

/* Runs `test` for every curve, instruction set and group. */
static void for_each_group(void (*test)(const struct group *)) {
    for (int id = 0; id < CURVE_COUNT; id++)
        for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
            for (int g2 = 0; g2 < 2; g2++) {
                const struct cpu_curve *curve = cpu_curve_isa((enum curve_id)id, isas[i]);
                struct group group;
                if (!curve) continue;
                group_init(&group, curve, g2);
                test(&group);
                mpz_clear(group.r);
            }
}

static void random_scalar(const struct group *group, struct scalar *out) {
    mpz_t x;
    mpz_init(x);
    mpz_urandomm(x, rng, group->r);
    scalar_set(out, x);
    mpz_clear(x);
}

static void check_sizes(const struct group *group) {
    static const size_t sizes[] = {0, 1, 2, 3, 7, 64, 129, 1000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct instance s = instance_new(group, sizes[i]);
        for (size_t j = 0; j < s.n; j++)
            random_scalar(group, &s.scalars[j]);
        instance_check(&s, "random");
        instance_free(&s);
    }
}

START_TEST(random_scalars_at_every_size) {
    for_each_group(check_sizes);
}
END_TEST

static void check_large(const struct group *group) {
    struct instance s = instance_new(group, group->g2 ? 5000 : MAX_N);
    for (size_t j = 0; j < s.n; j++)
        random_scalar(group, &s.scalars[j]);
    instance_check(&s, "random");
    for (size_t j = 0; j < s.n; j++) /* a circuit's witness: bits, a few others */
        if (j % 16 != 0) {
            memset(&s.scalars[j], 0, sizeof s.scalars[j]);
            s.scalars[j].le[0] = j % 3 == 0;
        }
    instance_check(&s, "mostly bits");
    instance_free(&s);
}

START_TEST(thousands_of_points_and_witnesses_of_bits) {
    for_each_group(check_large);
}
END_TEST

/* Every scalar the same: one bucket takes all points. */
static void check_equal_scalars(const struct group *group) {
    struct instance s = instance_new(group, 700);
    mpz_t x;
    mpz_init(x);
    for (int kind = 0; kind < 8; kind++) {
        if (kind < 3) mpz_set_ui(x, (unsigned long)kind);
        if (kind == 3 || kind == 4) mpz_sub_ui(x, group->r, (unsigned long)kind - 2);
        if (kind == 5 || kind == 6) {
            mpz_add_ui(x, group->r, kind == 6);
            mpz_tdiv_q_2exp(x, x, 1);
        }
        if (kind == 7) mpz_urandomm(x, rng, group->r);
        for (size_t j = 0; j < s.n; j++)
            scalar_set(&s.scalars[j], x);
        instance_check(&s, "all scalars equal");
    }
    mpz_clear(x);
    instance_free(&s);
}

START_TEST(equal_scalars_zero_one_minus_one_and_half_of_r) {
    for_each_group(check_equal_scalars);
}
END_TEST

/* Bits at the edges of windows: 2^i, 2^i - 1, and r less those. */
static void check_powers(const struct group *group) {
    struct instance s = instance_new(group, 4 * 253);
    mpz_t x;
    mpz_init(x);
    for (size_t j = 0; j < s.n; j++) {
        mpz_set_ui(x, 0);
        mpz_setbit(x, j / 4);
        if (j & 1) mpz_sub_ui(x, x, 1);
        if (j & 2) mpz_sub(x, group->r, x);
        mpz_mod(x, x, group->r);
        scalar_set(&s.scalars[j], x);
    }
    instance_check(&s, "powers of two");
    for (size_t j = 0; j < s.n; j++) { /* one at a time, so that errors cannot cancel */
        struct instance one = s;
        if (j % 37 != 0) continue;
        one.n = 1;
        one.scalars = &s.scalars[j];
        instance_check(&one, "one power of two");
    }
    mpz_clear(x);
    instance_free(&s);
}

START_TEST(powers_of_two_and_their_negatives) {
    for_each_group(check_powers);
}
END_TEST

/* Equal points meet in a bucket (doubling), opposite ones (infinity), infinity itself. */
static void check_special_points(const struct group *group) {
    struct instance s = instance_new(group, 600);
    uint8_t *originals = multiples(group, 2);
    for (int kind = 0; kind < 4; kind++) {
        for (size_t j = 0; j < s.n; j++) {
            uint8_t *base = s.bases + j * group->bytes;
            size_t from = kind == 3 ? j / 3 % 2 : 0;
            memcpy(base, originals + from * group->bytes, group->bytes);
            s.k[j] = (long)from + 1;
            bool opposite = (kind == 1 && j % 2 == 1) || (kind == 3 && j % 5 < 2 && j > 1);
            if (opposite) {
                negate(group, base);
                s.k[j] = -s.k[j];
            }
            if (kind >= 2 && j % 7 == 3) {
                memset(base, 0, group->bytes);
                s.k[j] = 0;
            }
            if (j == 0) random_scalar(group, &s.scalars[0]);
            s.scalars[j] = s.scalars[0];
        }
        instance_check(&s, "special points, equal scalars");
        for (size_t j = 0; j < s.n; j++) {
            memset(&s.scalars[j], 0, sizeof s.scalars[j]);
            s.scalars[j].le[0] = 1;
        }
        instance_check(&s, "special points, all ones");
        for (size_t j = 0; j < s.n; j++)
            random_scalar(group, &s.scalars[j]);
        instance_check(&s, "special points, random scalars");
    }
    free(originals);
    instance_free(&s);
}

START_TEST(equal_and_opposite_points_and_infinity) {
    for_each_group(check_special_points);
}
END_TEST

static void check_infinity(const struct group *group) {
    struct instance s = instance_new(group, 50);
    memset(s.bases, 0, s.n * group->bytes);
    memset(s.k, 0, s.n * sizeof *s.k);
    for (size_t j = 0; j < s.n; j++)
        random_scalar(group, &s.scalars[j]);
    instance_check(&s, "all bases at infinity");
    instance_free(&s);
}

START_TEST(only_infinity) {
    for_each_group(check_infinity);
}
END_TEST

static void set_up(void) {
    struct error error;
    gmp_randinit_default(rng);
    for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++)
        if (thread_counts[t] > 1) CHECK_OK(pool_open(thread_counts[t], &pools[t], &error));
}

static void tear_down(void) {
    for (size_t t = 0; t < sizeof thread_counts / sizeof *thread_counts; t++)
        pool_close(pools[t]);
    gmp_randclear(rng);
}

int main(void) {
    const TTest *const *const tests[] = {&random_scalars_at_every_size,
                                         &thousands_of_points_and_witnesses_of_bits,
                                         &equal_scalars_zero_one_minus_one_and_half_of_r,
                                         &powers_of_two_and_their_negatives,
                                         &equal_and_opposite_points_and_infinity,
                                         &only_infinity};
    return run_tests("msm", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
