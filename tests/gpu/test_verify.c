#include "gpu/verify.h"

#include "gpu/cpu/cpu_curve.h"
#include "tests/gpu/fixture.h"
#include "tests/gpu/oracle.h"

#include <stdio.h>
#include <stdlib.h>

static struct error error;

/* --- snarkjs's proofs --- */

static void verify_snarkjs(const char *name, enum err expected, const char *fragment,
                           size_t wrong_public) {
    char path[64];
    struct vkey *vkey;
    struct proof proof;
    struct scalar *publics;
    size_t n;
    (void)snprintf(path, sizeof path, "tests/circuits/%s/vkey.json", name);
    struct bytes text = bytes_read(path);
    CHECK_OK(vkey_from_json((const char *)text.data, text.size, &vkey, &error));
    free(text.data);
    (void)snprintf(path, sizeof path, "tests/circuits/%s/proof.json", name);
    text = bytes_read(path);
    CHECK_OK(proof_from_json((const char *)text.data, text.size, &proof, &error));
    free(text.data);
    (void)snprintf(path, sizeof path, "tests/circuits/%s/public.json", name);
    text = bytes_read(path);
    CHECK_OK(
        publics_from_json((const char *)text.data, text.size, vkey->curve, &publics, &n, &error));
    free(text.data);
    if (wrong_public < n) publics[wrong_public].le[0] ^= 1;
    error.text[0] = '\0';
    CHECK_ERR(verify(vkey, publics, n, &proof, &error), expected, fragment);
    free(publics);
    vkey_free(vkey);
}

START_TEST(proofs_of_snarkjs_are_valid) {
    verify_snarkjs("factor", ERR_NONE, "", SIZE_MAX);
    verify_snarkjs("factor381", ERR_NONE, "", SIZE_MAX);
    verify_snarkjs("merkle", ERR_NONE, "", SIZE_MAX);
    verify_snarkjs("range", ERR_NONE, "", SIZE_MAX);
}
END_TEST

START_TEST(not_for_other_public_signals) {
    for (size_t i = 0; i < 3; i++)
        verify_snarkjs("merkle", ERR_INVALID_PROOF, "not valid for this key", i);
    verify_snarkjs("range", ERR_INVALID_PROOF, "not valid for this key", 0);
}
END_TEST

/* --- ours, and what may be wrong with them --- */

struct sample {
    struct fixture fixture;
    struct proof proof;
};

static void sample_open(struct sample *s, enum curve_id curve, uint32_t n_public) {
    const struct circuit_spec spec = {.curve = curve,
                                      .kind = CIRCUIT_DENSE,
                                      .n_constraints = 12,
                                      .n_public = n_public,
                                      .seed = 3};
    fixture_open(&s->fixture, &spec);
    fixture_prove(&s->fixture, NULL, &s->proof);
}

static enum err verify_sample(const struct sample *s, const struct proof *proof) {
    return verify(s->fixture.vkey, fixture_publics(&s->fixture), s->fixture.vkey->n_public, proof,
                  &error);
}

static void on_samples(uint32_t n_public, void (*body)(struct sample *s)) {
    for (int curve = 0; curve < CURVE_COUNT; curve++) {
        struct sample s;
        sample_open(&s, (enum curve_id)curve, n_public);
        CHECK_OK(verify_sample(&s, &s.proof));
        body(&s);
        fixture_close(&s.fixture);
    }
}

static void flip_every_bit(struct sample *s) {
    const size_t n = s->fixture.vkey->curve->n8q;
    uint8_t *const coordinates[] = {s->proof.a.x,    s->proof.a.y,    s->proof.b.x[0],
                                    s->proof.b.x[1], s->proof.b.y[0], s->proof.b.y[1],
                                    s->proof.c.x,    s->proof.c.y};
    for (size_t i = 0; i < sizeof coordinates / sizeof *coordinates; i++)
        for (size_t bit = 0; bit < 8 * n; bit++) {
            coordinates[i][bit / 8] ^= (uint8_t)(1u << bit % 8);
            ck_assert_int_eq(verify_sample(s, &s->proof), ERR_INVALID_PROOF);
            coordinates[i][bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    CHECK_OK(verify_sample(s, &s->proof));
}

START_TEST(no_bit_may_change) {
    on_samples(2, flip_every_bit);
}
END_TEST

static void wrong_publics(struct sample *s) {
    const struct vkey *vkey = s->fixture.vkey;
    struct scalar publics[4];
    memcpy(publics, fixture_publics(&s->fixture), sizeof publics);
    CHECK_ERR(verify(vkey, publics, 2, &s->proof, &error), ERR_INPUT, "2 public signals given");
    CHECK_ERR(verify(vkey, publics, 4, &s->proof, &error), ERR_INPUT, "4 public signals given");
    CHECK_ERR(verify(vkey, NULL, 0, &s->proof, &error), ERR_INPUT, "0 public signals given");
    for (size_t i = 0; i < 3; i++) {
        publics[i].le[0] ^= 1;
        CHECK_ERR(verify(vkey, publics, 3, &s->proof, &error), ERR_INVALID_PROOF, "not valid");
        publics[i].le[0] ^= 1;
    }
    CHECK_OK(verify(vkey, publics, 3, &s->proof, &error));
}

START_TEST(every_public_signal_counts) {
    on_samples(3, wrong_publics);
}
END_TEST

/* x + r sums to the same point as x. */
START_TEST(an_alias_of_a_public_signal_is_refused) {
    struct vkey *vkey;
    struct proof proof;
    struct scalar *publics;
    size_t n;
    struct bytes text = bytes_read("tests/circuits/range/vkey.json");
    CHECK_OK(vkey_from_json((const char *)text.data, text.size, &vkey, &error));
    free(text.data);
    text = bytes_read("tests/circuits/range/proof.json");
    CHECK_OK(proof_from_json((const char *)text.data, text.size, &proof, &error));
    free(text.data);
    text = bytes_read("tests/circuits/range/public.json");
    CHECK_OK(
        publics_from_json((const char *)text.data, text.size, vkey->curve, &publics, &n, &error));
    free(text.data);
    ck_assert_uint_ge(n, 1);
    for (size_t i = 0; i < n; i++) {
        struct scalar old = publics[i];
        unsigned carry = 0;
        for (size_t k = 0; k < SCALAR_BYTES; k++) {
            carry += (unsigned)old.le[k] + vkey->curve->r[k];
            publics[i].le[k] = (uint8_t)carry;
            carry >>= 8;
        }
        ck_assert_uint_eq(carry, 0);
        CHECK_ERR(verify(vkey, publics, n, &proof, &error), ERR_INPUT, "alias");
        publics[i] = old;
    }
    CHECK_OK(verify(vkey, publics, n, &proof, &error));
    free(publics);
    vkey_free(vkey);
}
END_TEST

/* Adds q to each coordinate that stays below 2^(8 * COORD_BYTES). */
static void add_q(struct sample *s) {
    const struct curve_info *curve = s->fixture.vkey->curve;
    struct proof *p = &s->proof;
    uint8_t *const coordinates[] = {p->a.x,    p->a.y,    p->b.x[0], p->b.x[1],
                                    p->b.y[0], p->b.y[1], p->c.x,    p->c.y};
    for (size_t i = 0; i < sizeof coordinates / sizeof *coordinates; i++) {
        uint8_t old[COORD_BYTES];
        unsigned carry = 0;
        memcpy(old, coordinates[i], sizeof old);
        for (size_t k = 0; k < COORD_BYTES; k++) {
            carry += (unsigned)old[k] + (k < curve->n8q ? curve->q[k] : 0);
            coordinates[i][k] = (uint8_t)carry;
            carry >>= 8;
        }
        ck_assert_uint_eq(carry, 0);
        CHECK_ERR(verify_sample(s, p), ERR_INVALID_PROOF, "not below q");
        memcpy(coordinates[i], old, sizeof old);
    }
}

START_TEST(coordinates_are_below_q) {
    on_samples(1, add_q);
}
END_TEST

/* A point of order 3 (G1 of BLS12-381), 2713 or 10069 (G2) added to a proof's: the pairing does not
 * see it, so that only the subgroup check stands between it and a second valid proof. */
static void add_low_order(struct sample *s) {
    const enum curve_id curve = s->fixture.vkey->curve->id;
    const struct cpu_curve *ops = cpu_curve(curve);
    struct proof changed = s->proof;
    gmp_randstate_t random;
    mpz_t k;
    gmp_randinit_default(random);
    mpz_init(k);
    /* the cofactor times r, over the small prime */
    static const char *const g2_cofactors[CURVE_COUNT] = {
        "21888242871839275222246405745257275088844257914179612981679871602714643921549",
        "0x5d543a95414e7f1091d50792876a202cd91de4547085abaa68a205b2e5a7ddfa628f1cb4d9e82ef21537e293"
        "a669"
        "1ae1616ec6e786f0c70cf1c38e31c7238e5"};
    mpz_t r;
    mpz_init(r);
    mpz_import(r, SCALAR_BYTES, -1, 1, 0, 0, s->fixture.vkey->curve->r);
    struct g2_point t2;
    do {
        oracle_g2_random(curve, random, &t2);
        ck_assert_int_eq(mpz_set_str(k, g2_cofactors[curve], 0), 0);
        mpz_mul(k, k, r);
        mpz_divexact_ui(k, k, curve == CURVE_BN254 ? 10069 : 2713);
        oracle_g2_mul(curve, &t2, k, &t2);
    } while (le_is_zero((const uint8_t *)&t2, sizeof t2));
    ops->g2_add(&changed.b, &t2, &changed.b);
    CHECK_ERR(verify_sample(s, &changed), ERR_INVALID_PROOF, "pi_b is not in the subgroup");
    changed = s->proof;
    if (curve == CURVE_BLS12_381) {
        struct g1_point t1;
        do {
            oracle_g1_random(curve, random, &t1);
            ck_assert_int_eq(mpz_set_str(k, "0x396c8c005555e1568c00aaab0000aaab", 0), 0);
            mpz_mul(k, k, r);
            mpz_divexact_ui(k, k, 3);
            oracle_g1_mul(curve, &t1, k, &t1);
        } while (le_is_zero((const uint8_t *)&t1, sizeof t1));
        ops->g1_add(&changed.a, &t1, &changed.a);
        CHECK_ERR(verify_sample(s, &changed), ERR_INVALID_PROOF, "pi_a is not in the subgroup");
        changed = s->proof;
        ops->g1_add(&changed.c, &t1, &changed.c);
        CHECK_ERR(verify_sample(s, &changed), ERR_INVALID_PROOF, "pi_c is not in the subgroup");
    }
    mpz_clears(k, r, NULL);
    gmp_randclear(random);
}

START_TEST(points_outside_the_subgroup_are_refused) {
    on_samples(1, add_low_order);
}
END_TEST

static void infinities(struct sample *s) {
    struct proof changed = s->proof;
    memset(&changed.a, 0, sizeof changed.a);
    CHECK_ERR(verify_sample(s, &changed), ERR_INVALID_PROOF, "pi_a is the point at infinity");
    changed = s->proof;
    memset(&changed.b, 0, sizeof changed.b);
    CHECK_ERR(verify_sample(s, &changed), ERR_INVALID_PROOF, "pi_b is the point at infinity");
    changed = s->proof;
    memset(&changed.c, 0, sizeof changed.c);
    CHECK_ERR(verify_sample(s, &changed), ERR_INVALID_PROOF, "not valid");
}

START_TEST(infinity_is_no_proof) {
    on_samples(0, infinities);
}
END_TEST

/* alpha = 2, beta = 3, gamma = 1, delta = 7, IC[0] = 5: A = 2 * 3 + 5, B = 1, C = 0. */
START_TEST(c_may_be_infinity_where_the_equation_holds) {
    for (int curve = 0; curve < CURVE_COUNT; curve++) {
        const struct cpu_curve *ops = cpu_curve((enum curve_id)curve);
        const struct scalar k[] = {{{2}}, {{3}}, {{7}}, {{5}}, {{11}}};
        struct g1_point ic;
        struct vkey vkey = {.curve = ops->info, .gamma2 = *ops->g2_generator, .ic = &ic};
        struct proof proof = {.curve = (enum curve_id)curve, .b = *ops->g2_generator};
        ops->g1_mul(ops->g1_generator, &k[0], &vkey.alpha1);
        ops->g2_mul(ops->g2_generator, &k[1], &vkey.beta2);
        ops->g2_mul(ops->g2_generator, &k[2], &vkey.delta2);
        ops->g1_mul(ops->g1_generator, &k[3], &ic);
        ops->g1_mul(ops->g1_generator, &k[4], &proof.a);
        CHECK_OK(verify(&vkey, NULL, 0, &proof, &error));
    }
}
END_TEST

static void bad_keys(struct sample *s) {
    struct vkey key = *s->fixture.vkey;
    struct g1_point ic[2];
    const struct scalar *publics = fixture_publics(&s->fixture);
    memcpy(ic, key.ic, sizeof ic);
    key.ic = ic;
    CHECK_OK(verify(&key, publics, 1, &s->proof, &error));
    const struct vkey good = key;
    key.delta2 = key.gamma2;
    CHECK_ERR(verify(&key, publics, 1, &s->proof, &error), ERR_KEY, "forge");
    /* The negative is as bad: y -> q - y. */
    struct scalar minus_one, one = {{1}}, zero = {{0}};
    const struct cpu_curve *ops = cpu_curve(key.curve->id);
    ops->fr_sub(&zero, &one, &minus_one);
    ops->g2_mul(&key.gamma2, &minus_one, &key.delta2);
    CHECK_ERR(verify(&key, publics, 1, &s->proof, &error), ERR_KEY, "forge");
    key = good;
    memset(&key.gamma2, 0, sizeof key.gamma2);
    CHECK_ERR(verify(&key, publics, 1, &s->proof, &error), ERR_KEY, "vk_gamma_2 is the point at");
    key = good;
    memset(&key.alpha1, 0, sizeof key.alpha1);
    CHECK_ERR(verify(&key, publics, 1, &s->proof, &error), ERR_KEY, "vk_alpha_1 is the point at");
    key = good;
    key.beta2.x[0][0] ^= 1;
    CHECK_ERR(verify(&key, publics, 1, &s->proof, &error), ERR_KEY, "vk_beta_2 is not on");
    key = good;
    ic[1].y[0] ^= 1;
    CHECK_ERR(verify(&key, publics, 1, &s->proof, &error), ERR_KEY, "IC[1] is not on");
    struct proof other = s->proof;
    other.curve = key.curve->id == CURVE_BN254 ? CURVE_BLS12_381 : CURVE_BN254;
    CHECK_ERR(verify(&good, publics, 1, &other, &error), ERR_MISMATCH, "curve");
}

START_TEST(bad_keys_are_refused) {
    on_samples(1, bad_keys);
}
END_TEST

START_TEST(one_circuits_proof_is_not_anothers) {
    struct sample a, b;
    sample_open(&a, CURVE_BN254, 1);
    sample_open(&b, CURVE_BN254, 1); /* the same circuit with other secrets */
    CHECK_ERR(verify_sample(&a, &b.proof), ERR_INVALID_PROOF, "not valid");
    fixture_close(&a.fixture);
    fixture_close(&b.fixture);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&proofs_of_snarkjs_are_valid,
                                         &not_for_other_public_signals,
                                         &no_bit_may_change,
                                         &every_public_signal_counts,
                                         &an_alias_of_a_public_signal_is_refused,
                                         &coordinates_are_below_q,
                                         &points_outside_the_subgroup_are_refused,
                                         &infinity_is_no_proof,
                                         &c_may_be_infinity_where_the_equation_holds,
                                         &bad_keys_are_refused,
                                         &one_circuits_proof_is_not_anothers};
    return run_tests("verify", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
