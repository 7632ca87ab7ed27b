/* Subgroup checks against points of every order that the curves have.
 *
 * A check is whether an endomorphism f vanishes, so it is sound when f vanishes on no point of prime
 * order p for any prime p that divides a cofactor. The cofactors' factors: BN254 G2, 2q - r; BLS12-381,
 * (x - 1)^2 / 3 and the G2 cofactor of the IETF draft; factored once, multiplied out again here. What
 * is left of the G2 cofactors is prime.
 */
#include "gpu/cpu/cpu_curve.h"

#include "tests/gpu/fixture.h"
#include "tests/gpu/oracle.h"

#include <stdlib.h>

enum { SAMPLES = 6, MAX_FACTORS = 8 };

struct group {
    enum curve_id curve;
    bool is_g2;
    const char *cofactor;            /* decimal or 0x */
    const char *primes[MAX_FACTORS]; /* all small prime factors */
    bool rest_is_prime;              /* the cofactor less the small ones, if not 1 */
};

static const struct group groups[] = {
    {CURVE_BN254,
     true,
     "21888242871839275222246405745257275088844257914179612981679871602714643921549",
     {"10069", "5864401", "1875725156269"},
     true},
    {CURVE_BLS12_381,
     false,
     "0x396c8c005555e1568c00aaab0000aaab",
     {"3", "11", "10177", "859267", "52437899"},
     false},
    {CURVE_BLS12_381,
     true,
     "0x5d543a95414e7f1091d50792876a202cd91de4547085abaa68a205b2e5a7ddfa628f1cb4d9e82ef21537e293a66"
     "91ae1"
     "616ec6e786f0c70cf1c38e31c7238e5",
     {"13", "23", "2713", "11953", "262069"},
     true},
};

static gmp_randstate_t random_state;

static void set_up(void) {
    gmp_randinit_default(random_state);
    gmp_randseed_ui(random_state, 4711);
}

static void tear_down(void) {
    gmp_randclear(random_state);
}

union any_point {
    struct g1_point g1;
    struct g2_point g2;
};

static bool is_infinity(const struct group *group, const union any_point *p) {
    return group->is_g2 ? le_is_zero((const uint8_t *)&p->g2, sizeof p->g2)
                        : le_is_zero((const uint8_t *)&p->g1, sizeof p->g1);
}

static enum point_fault check(const struct group *group, const union any_point *p) {
    const struct cpu_curve *ops = cpu_curve(group->curve);
    return group->is_g2 ? ops->g2_check(&p->g2) : ops->g1_check(&p->g1);
}

/* k times a random point of the curve. */
static void random_multiple(const struct group *group, const mpz_t k, union any_point *out) {
    memset(out, 0, sizeof *out);
    if (group->is_g2) {
        oracle_g2_random(group->curve, random_state, &out->g2);
        oracle_g2_mul(group->curve, &out->g2, k, &out->g2);
    } else {
        oracle_g1_random(group->curve, random_state, &out->g1);
        oracle_g1_mul(group->curve, &out->g1, k, &out->g1);
    }
}

static void multiply(const struct group *group, union any_point *p, const mpz_t k) {
    if (group->is_g2)
        oracle_g2_mul(group->curve, &p->g2, k, &p->g2);
    else
        oracle_g1_mul(group->curve, &p->g1, k, &p->g1);
}

static void read_cofactor(const struct group *group, mpz_t out) {
    ck_assert_int_eq(mpz_set_str(out, group->cofactor, 0), 0);
}

static void read_r(const struct group *group, mpz_t out) {
    mpz_import(out, SCALAR_BYTES, -1, 1, 0, 0, curve_info(group->curve)->r);
}

START_TEST(the_cofactors_are_the_curves) {
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        mpz_t order, r;
        union any_point p;
        mpz_inits(order, r, NULL);
        read_cofactor(&groups[i], order);
        read_r(&groups[i], r);
        mpz_mul(order, order, r);
        for (int k = 0; k < SAMPLES; k++) {
            random_multiple(&groups[i], order, &p);
            ck_assert(is_infinity(&groups[i], &p));
        }
        mpz_clears(order, r, NULL);
    }
}
END_TEST

START_TEST(points_of_the_subgroup_pass) {
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        mpz_t cofactor;
        union any_point p;
        mpz_init(cofactor);
        read_cofactor(&groups[i], cofactor);
        for (int k = 0; k < SAMPLES; k++) {
            random_multiple(&groups[i], cofactor, &p);
            ck_assert(!is_infinity(&groups[i], &p));
            ck_assert_int_eq(check(&groups[i], &p), POINT_OK);
        }
        memset(&p, 0, sizeof p);
        ck_assert_int_eq(check(&groups[i], &p), POINT_OK);
        mpz_clear(cofactor);
    }
}
END_TEST

START_TEST(random_points_of_the_curve_do_not) {
    mpz_t one;
    mpz_init_set_ui(one, 1);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        for (int k = 0; k < 3 * SAMPLES; k++) {
            union any_point p;
            random_multiple(&groups[i], one, &p);
            ck_assert_int_eq(check(&groups[i], &p), POINT_OFF_SUBGROUP);
        }
    mpz_clear(one);
}
END_TEST

/* Points of order exactly p: (the part of the order prime to p) times a random point, then p as often
 * as leaves something. Where p^2 divides the cofactor there may be two independent ones: several. */
static void refuse_order(const struct group *group, const mpz_t order, const mpz_t prime) {
    mpz_t rest;
    mpz_init(rest);
    (void)mpz_remove(rest, order, prime);
    for (int k = 0, found = 0; found < SAMPLES; k++) {
        union any_point p, next;
        ck_assert_int_lt(k, 1000);
        random_multiple(group, rest, &p);
        if (is_infinity(group, &p)) continue;
        for (next = p; !is_infinity(group, &next);) {
            p = next;
            multiply(group, &next, prime);
        }
        ck_assert_int_eq(check(group, &p), POINT_OFF_SUBGROUP);
        found++;
    }
    mpz_clear(rest);
}

START_TEST(no_point_of_another_prime_order_passes) {
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        mpz_t order, rest, prime, r;
        mpz_inits(order, rest, prime, r, NULL);
        read_cofactor(&groups[i], rest);
        read_r(&groups[i], r);
        mpz_mul(order, rest, r);
        for (size_t k = 0; k < MAX_FACTORS && groups[i].primes[k] != NULL; k++) {
            ck_assert_int_eq(mpz_set_str(prime, groups[i].primes[k], 10), 0);
            ck_assert_int_ne(mpz_probab_prime_p(prime, 30), 0);
            ck_assert_uint_gt(mpz_remove(rest, rest, prime), 0);
            refuse_order(&groups[i], order, prime);
        }
        if (groups[i].rest_is_prime) {
            ck_assert_int_ne(mpz_probab_prime_p(rest, 30), 0);
            refuse_order(&groups[i], order, rest);
        } else {
            ck_assert_int_eq(mpz_cmp_ui(rest, 1), 0);
        }
        mpz_clears(order, rest, prime, r, NULL);
    }
}
END_TEST

/* n copies of the generator and infinity, in zkey form, with one point replaced. */
static void check_many(const struct cpu_curve *ops, bool is_g2, size_t n, size_t bad_index,
                       const union any_point *bad) {
    size_t bytes = (is_g2 ? 4 : 2) * ops->info->n8q;
    uint8_t *points = calloc(n, bytes);
    enum point_fault fault;
    ck_assert_ptr_nonnull(points);
    for (size_t i = 0; i < n; i++) {
        if (i % 5 == 4) continue;
        if (is_g2)
            ops->g2_to_zkey(ops->g2_generator, points + i * bytes);
        else
            ops->g1_to_zkey(ops->g1_generator, points + i * bytes);
    }
    size_t (*many)(struct pool *, const uint8_t *, size_t, enum point_fault *) =
        is_g2 ? ops->g2_check_many : ops->g1_check_many;
    ck_assert_uint_eq(many(pool_shared(), points, n, &fault), n);
    ck_assert_int_eq(fault, POINT_OK);
    if (is_g2)
        ops->g2_to_zkey(&bad->g2, points + bad_index * bytes);
    else
        ops->g1_to_zkey(&bad->g1, points + bad_index * bytes);
    ck_assert_uint_eq(many(pool_shared(), points, n, &fault), bad_index);
    ck_assert_int_eq(fault, POINT_OFF_SUBGROUP);
    points[n / 3 * bytes] ^= 1; /* an earlier one, off the curve */
    if (bad_index > n / 3 && !le_is_zero(points + n / 3 * bytes, bytes)) {
        ck_assert_uint_eq(many(pool_shared(), points, n, &fault), n / 3);
        ck_assert_int_eq(fault, POINT_OFF_CURVE);
    }
    memset(points, 0xff, bytes);
    ck_assert_uint_eq(many(pool_shared(), points, n, &fault), 0);
    ck_assert_int_eq(fault, POINT_RANGE);
    free(points);
}

/* One of smallest order, which half of all random subsets' sums do not show. */
START_TEST(the_first_bad_of_many_is_found) {
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        const struct group *group = &groups[i];
        const size_t sizes[] = {1, 100, 500, 8192, 20000};
        mpz_t order, r, prime;
        union any_point bad;
        mpz_inits(order, r, prime, NULL);
        read_cofactor(group, order);
        read_r(group, r);
        mpz_mul(order, order, r);
        ck_assert_int_eq(mpz_set_str(prime, group->primes[0], 10), 0);
        (void)mpz_remove(order, order, prime);
        do {
            random_multiple(group, order, &bad);
        } while (is_infinity(group, &bad));
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            check_many(cpu_curve(group->curve), group->is_g2, sizes[k], sizes[k] * 3 / 4, &bad);
        mpz_clears(order, r, prime, NULL);
    }
}
END_TEST

START_TEST(points_off_the_curve_or_out_of_range_are_told_apart) {
    for (int curve = 0; curve < CURVE_COUNT; curve++) {
        const struct cpu_curve *ops = cpu_curve((enum curve_id)curve);
        struct g1_point p = *ops->g1_generator;
        struct g2_point q = *ops->g2_generator;
        p.x[0] ^= 1;
        q.y[1][0] ^= 1;
        ck_assert_int_eq(ops->g1_check(&p), POINT_OFF_CURVE);
        ck_assert_int_eq(ops->g2_check(&q), POINT_OFF_CURVE);
        memcpy(p.x, ops->info->q, COORD_BYTES);
        memcpy(q.y[1], ops->info->q, COORD_BYTES);
        ck_assert_int_eq(ops->g1_check(&p), POINT_RANGE);
        ck_assert_int_eq(ops->g2_check(&q), POINT_RANGE);
        p = *ops->g1_generator;
        q = *ops->g2_generator;
        memset(p.y, 0xff, COORD_BYTES); /* beyond the coordinate's size too, on BN254 */
        memset(q.x[0], 0xff, COORD_BYTES);
        ck_assert_int_eq(ops->g1_check(&p), POINT_RANGE);
        ck_assert_int_eq(ops->g2_check(&q), POINT_RANGE);
    }
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &the_cofactors_are_the_curves,      &points_of_the_subgroup_pass,
        &random_points_of_the_curve_do_not, &no_point_of_another_prime_order_passes,
        &the_first_bad_of_many_is_found,    &points_off_the_curve_or_out_of_range_are_told_apart};
    return run_tests("subgroup", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
