/* The pairings against their defining properties and against snarkjs's vk_alphabeta_12. */
#include "gpu/cpu/cpu_curve.h"

#include "gpu/decimal.h"
#include "tests/gpu/fixture.h"

#include <stdlib.h>

static struct error error;
static const char *const isas[] = {"portable", "adx"};

/* Runs `body` on both curves with every instruction set that this processor has. */
static void on_all(void (*body)(const struct cpu_curve *ops)) {
    for (int curve = 0; curve < CURVE_COUNT; curve++)
        for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
            const struct cpu_curve *ops = cpu_curve_isa((enum curve_id)curve, isas[i]);
            if (ops != NULL) body(ops);
        }
}

static struct scalar some_scalar(const struct cpu_curve *ops, unsigned seed) {
    struct scalar s, one = {{1}};
    for (size_t i = 0; i < SCALAR_BYTES; i++)
        s.le[i] = (uint8_t)(seed * 29 + 41 * i * (i + seed));
    s.le[SCALAR_BYTES - 1] &= 0x1f;
    ops->fr_mul(&s, &one, &s);
    return s;
}

static void bilinear(const struct cpu_curve *ops) {
    for (unsigned seed = 1; seed < 4; seed++) {
        const struct scalar a = some_scalar(ops, seed), b = some_scalar(ops, seed + 100);
        struct scalar ab;
        struct g1_point p[2];
        struct g2_point q[2];
        uint8_t left[12][COORD_BYTES], right[12][COORD_BYTES];
        ops->fr_mul(&a, &b, &ab);
        ops->g1_mul(ops->g1_generator, &a, &p[0]);
        ops->g2_mul(ops->g2_generator, &b, &q[0]);
        ops->g1_mul(ops->g1_generator, &ab, &p[1]);
        q[1] = *ops->g2_generator;
        ops->pairing(&p[0], &q[0], left);
        ops->pairing(&p[1], &q[1], right);
        ck_assert_mem_eq(left, right, sizeof left);
        ops->g1_neg(&p[1], &p[1]);
        ck_assert(ops->pairing_product_is_one(p, q, 2));
        ops->g1_add(&p[1], ops->g1_generator, &p[1]);
        ck_assert(!ops->pairing_product_is_one(p, q, 2));
    }
}

START_TEST(exponents_move_from_one_side_to_the_other) {
    on_all(bilinear);
}
END_TEST

static void not_degenerate(const struct cpu_curve *ops) {
    const struct g1_point g1_zero = {{0}, {0}};
    const struct g2_point g2_zero = {{{0}}, {{0}}};
    ck_assert(!ops->pairing_product_is_one(ops->g1_generator, ops->g2_generator, 1));
    ck_assert(ops->pairing_product_is_one(&g1_zero, ops->g2_generator, 1));
    ck_assert(ops->pairing_product_is_one(ops->g1_generator, &g2_zero, 1));
    ck_assert(ops->pairing_product_is_one(ops->g1_generator, ops->g2_generator, 0));
}

START_TEST(only_infinity_pairs_to_one) {
    on_all(not_degenerate);
}
END_TEST

/* e(G1, G2)^(1 + 2 + ... + n) * e(-n(n+1)/2 G1, G2) = 1, for n beyond one batch of the loop. */
static void many(const struct cpu_curve *ops) {
    enum { N = 20 };
    struct g1_point p[N + 1];
    struct g2_point q[N + 1];
    struct scalar k = {{N * (N + 1) / 2}};
    for (uint8_t i = 0; i < N; i++) {
        const struct scalar factor = {{(uint8_t)(i + 1)}};
        ops->g1_mul(ops->g1_generator, &factor, &p[i]);
        q[i] = *ops->g2_generator;
    }
    ops->g1_mul(ops->g1_generator, &k, &p[N]);
    ops->g1_neg(&p[N], &p[N]);
    q[N] = *ops->g2_generator;
    for (size_t infinity = 0; infinity < 2; infinity++) {
        ck_assert(ops->pairing_product_is_one(p, q, N + 1));
        ck_assert(!ops->pairing_product_is_one(p, q, N));
        ck_assert(!ops->pairing_product_is_one(p + 1, q + 1, N));
        memset(&q[3], 0, sizeof q[3]); /* 4 less on both sides */
        k.le[0] -= 4;
        ops->g1_mul(ops->g1_generator, &k, &p[N]);
        ops->g1_neg(&p[N], &p[N]);
    }
}

START_TEST(products_of_any_length) {
    on_all(many);
}
END_TEST

static void known_value(const char *zkey_path, const char *vkey_path) {
    struct zkey *zkey;
    struct vkey *vkey;
    json_t *json;
    struct bytes text = bytes_read(vkey_path);
    CHECK_OK(zkey_open(zkey_path, &zkey, &error));
    CHECK_OK(vkey_from_zkey(zkey, &vkey, &error));
    CHECK_OK(json_load_exact((const char *)text.data, text.size, &json, &error));
    const json_t *expected = json_object_get(json, "vk_alphabeta_12");
    for (size_t isa = 0; isa < sizeof isas / sizeof *isas; isa++) {
        const struct cpu_curve *ops = cpu_curve_isa(zkey->curve->id, isas[isa]);
        uint8_t e[12][COORD_BYTES];
        if (ops == NULL) continue;
        ops->pairing(&vkey->alpha1, &vkey->beta2, e);
        for (size_t i = 0; i < 12; i++) {
            char digits[DECIMAL_MAX + 1];
            const json_t *fp6 = json_array_get(expected, i / 6);
            const json_t *fp2 = json_array_get(fp6, i / 2 % 3);
            ck_assert(decimal_from_le(e[i], COORD_BYTES, digits));
            ck_assert_str_eq(digits, json_string_value(json_array_get(fp2, i % 2)));
        }
    }
    json_decref(json);
    free(text.data);
    vkey_free(vkey);
    zkey_close(zkey);
}

START_TEST(values_are_those_of_snarkjs) {
    known_value("tests/circuits/factor/factor.zkey", "tests/circuits/factor/vkey.json");
    known_value("tests/circuits/merkle/merkle.zkey", "tests/circuits/merkle/vkey.json");
    known_value("tests/circuits/factor381/factor381.zkey", "tests/circuits/factor381/vkey.json");
    known_value("tests/circuits/range/range.zkey", "tests/circuits/range/vkey.json");
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&exponents_move_from_one_side_to_the_other,
                                         &only_infinity_pairs_to_one, &products_of_any_length,
                                         &values_are_those_of_snarkjs};
    return run_tests("pairing", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
