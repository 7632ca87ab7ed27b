#include "gpu/keycheck.h"

#include "gpu/cpu/cpu_curve.h"
#include "tests/gpu/fixture.h"
#include "tests/gpu/oracle.h"

#include <stdio.h>
#include <stdlib.h>

static struct error error;

/* A key whose bytes may be changed, and the offsets of the points in its header. */
struct sample {
    struct fixture fixture;
    struct bytes bytes;
    const struct cpu_curve *ops;
    size_t g1, g2;
    size_t alpha1, beta1, beta2, gamma2, delta1, delta2;
};

static void sample_open(struct sample *s, enum curve_id curve) {
    size_t length;
    fixture_open(&s->fixture, &(struct circuit_spec){.curve = curve,
                                                     .kind = CIRCUIT_BITS,
                                                     .n_constraints = 40,
                                                     .n_public = 2,
                                                     .n_unused = 3,
                                                     .seed = 5});
    s->bytes = bytes_read(s->fixture.zkey_path);
    s->ops = cpu_curve(curve);
    s->g1 = 2 * s->ops->info->n8q;
    s->g2 = 2 * s->g1;
    s->alpha1 =
        bytes_section(&s->bytes, 2, &length) + 4 + s->ops->info->n8q + 4 + SCALAR_BYTES + 12;
    s->beta1 = s->alpha1 + s->g1;
    s->beta2 = s->beta1 + s->g1;
    s->gamma2 = s->beta2 + s->g2;
    s->delta1 = s->gamma2 + s->g2;
    s->delta2 = s->delta1 + s->g1;
}

static void sample_close(struct sample *s) {
    free(s->bytes.data);
    fixture_close(&s->fixture);
}

static enum err check(struct sample *s, bool *forgeable) {
    struct zkey *key;
    bytes_write(s->fixture.zkey_path, &s->bytes);
    CHECK_OK(zkey_open(s->fixture.zkey_path, &key, &error));
    enum err rc = keycheck(key, forgeable, &error);
    zkey_close(key);
    return rc;
}

static void refuse(struct sample *s, const char *fragment) {
    bool forgeable = false;
    CHECK_ERR(check(s, &forgeable), ERR_KEY, fragment);
}

/* Replaces n bytes at an offset, checks that the key is refused, and puts them back. */
static void refuse_bytes(struct sample *s, size_t offset, const uint8_t *new, size_t n,
                         const char *fragment) {
    uint8_t old[4 * COORD_BYTES];
    memcpy(old, s->bytes.data + offset, n);
    memcpy(s->bytes.data + offset, new, n);
    refuse(s, fragment);
    memcpy(s->bytes.data + offset, old, n);
}

static void on_both_curves(void (*body)(struct sample *s)) {
    for (int curve = 0; curve < CURVE_COUNT; curve++) {
        struct sample s;
        sample_open(&s, (enum curve_id)curve);
        body(&s);
        sample_close(&s);
    }
}

START_TEST(good_keys_pass) {
    const char *const paths[] = {
        "tests/circuits/factor/factor.zkey", "tests/circuits/factor381/factor381.zkey",
        "tests/circuits/merkle/merkle.zkey", "tests/circuits/range/range.zkey"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct zkey *key;
        bool forgeable = true;
        CHECK_OK(zkey_open(paths[i], &key, &error));
        CHECK_OK(keycheck(key, &forgeable, &error));
        ck_assert(!forgeable);
        zkey_close(key);
    }
}
END_TEST

static void own_key(struct sample *s) {
    bool forgeable = true;
    CHECK_OK(check(s, &forgeable));
    ck_assert(!forgeable);
}

START_TEST(development_keys_pass) {
    on_both_curves(own_key);
}
END_TEST

/* delta1 = G1, delta2 = gamma2: what `snarkjs groth16 setup` leaves before any contribution. */
static void no_second_phase(struct sample *s) {
    bool forgeable = false;
    memcpy(s->bytes.data + s->delta2, s->bytes.data + s->gamma2, s->g2);
    s->ops->g1_to_zkey(s->ops->g1_generator, s->bytes.data + s->delta1);
    CHECK_OK(check(s, &forgeable));
    ck_assert(forgeable);
}

START_TEST(a_key_without_second_phase_is_forgeable) {
    on_both_curves(no_second_phase);
}
END_TEST

/* The first and the last point of each section that is not infinity, moved off the curve. */
static void points_off_the_curve(struct sample *s) {
    const uint32_t ids[] = {3, 5, 6, 7, 8, 9};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        size_t length, begin = bytes_section(&s->bytes, ids[i], &length);
        size_t size = ids[i] == 7 ? s->g2 : s->g1;
        for (size_t k = 0; k < length / size; k++) {
            char expected[64];
            uint8_t *point = s->bytes.data + begin + k * size;
            if (le_is_zero(point, size)) continue;
            (void)snprintf(expected, sizeof expected, "point %zu of section %u", k, ids[i]);
            point[size - s->ops->info->n8q] ^= 1;
            refuse(s, expected);
            ck_assert_ptr_nonnull(strstr(error.text, "not on the curve"));
            point[size - s->ops->info->n8q] ^= 1;
        }
    }
}

START_TEST(a_point_off_the_curve_is_named) {
    on_both_curves(points_off_the_curve);
}
END_TEST

static void points_outside(struct sample *s) {
    const enum curve_id curve = s->ops->info->id;
    size_t length, b2 = bytes_section(&s->bytes, 7, &length),
                   h = bytes_section(&s->bytes, 9, &length);
    gmp_randstate_t random;
    struct g1_point p;
    struct g2_point q;
    uint8_t point[4 * COORD_BYTES];
    gmp_randinit_default(random);
    oracle_g2_random(curve, random, &q);
    s->ops->g2_to_zkey(&q, point);
    refuse_bytes(s, b2 + 7 * s->g2, point, s->g2,
                 "point 7 of section 7 (B2) is not in the subgroup");
    refuse_bytes(s, s->gamma2, point, s->g2, "gamma2 is not in the subgroup");
    oracle_g1_random(curve, random, &p);
    s->ops->g1_to_zkey(&p, point);
    if (curve == CURVE_BLS12_381)
        refuse_bytes(s, h + 9 * s->g1, point, s->g1,
                     "point 9 of section 9 (H) is not in the subgroup");
    memset(point, 0xff, sizeof point);
    refuse_bytes(s, h + 9 * s->g1, point, s->g1, "point 9 of section 9 (H) has a coordinate");
    memcpy(point, s->ops->info->q, s->ops->info->n8q);
    refuse_bytes(s, h, point, s->ops->info->n8q, "point 0 of section 9 (H) has a coordinate");
    gmp_randclear(random);
}

START_TEST(a_point_outside_the_subgroup_or_range_is_named) {
    on_both_curves(points_outside);
}
END_TEST

/* Good points that do not belong together. */
static void constants(struct sample *s) {
    const uint8_t zeros[4 * COORD_BYTES] = {0};
    uint8_t g1[2 * COORD_BYTES], g2[4 * COORD_BYTES];
    s->ops->g1_to_zkey(s->ops->g1_generator, g1);
    s->ops->g2_to_zkey(s->ops->g2_generator, g2);
    refuse_bytes(s, s->beta1, g1, s->g1, "e(beta1, G2) is not e(G1, beta2)");
    refuse_bytes(s, s->beta2, g2, s->g2, "e(beta1, G2) is not e(G1, beta2)");
    refuse_bytes(s, s->delta1, g1, s->g1, "e(delta1, G2) is not e(G1, delta2)");
    refuse_bytes(s, s->delta2, g2, s->g2, "e(delta1, G2) is not e(G1, delta2)");
    refuse_bytes(s, s->alpha1, zeros, s->g1, "alpha1 is the point at infinity");
    refuse_bytes(s, s->beta1, zeros, s->g1, "beta1 is the point at infinity");
    refuse_bytes(s, s->delta1, zeros, s->g1, "delta1 is the point at infinity");
    refuse_bytes(s, s->beta2, zeros, s->g2, "beta2 is the point at infinity");
    refuse_bytes(s, s->gamma2, zeros, s->g2, "gamma2 is the point at infinity");
    refuse_bytes(s, s->delta2, zeros, s->g2, "delta2 is the point at infinity");
    own_key(s);
}

START_TEST(constants_that_do_not_match_are_named) {
    on_both_curves(constants);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&good_keys_pass,
                                         &development_keys_pass,
                                         &a_key_without_second_phase_is_forgeable,
                                         &a_point_off_the_curve_is_named,
                                         &a_point_outside_the_subgroup_or_range_is_named,
                                         &constants_that_do_not_match_are_named};
    return run_tests("keycheck", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
