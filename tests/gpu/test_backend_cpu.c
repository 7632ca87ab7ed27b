/* Proofs of the CPU backend against a direct computation with the same blinding factors. */
#include "gpu/backend.h"

#include "gpu/verify.h"
#include "tests/gpu/fixture.h"
#include "tests/gpu/oracle.h"

#include <stdio.h>
#include <stdlib.h>

static struct error error;

/* 0, 1, r - 1, and two that fill the width. */
static void blinding_at(const struct curve_info *curve, int index, struct blinding *out) {
    struct scalar values[5] = {{{0}}, {{1}}, {{0}}, {{0}}, {{0}}};
    memcpy(values[2].le, curve->r, SCALAR_BYTES);
    values[2].le[0]--;
    for (size_t i = 0; i < SCALAR_BYTES; i++) {
        values[3].le[i] = (uint8_t)(i * 37 + 11);
        values[4].le[i] = (uint8_t)(i * 101 + 3);
    }
    values[3].le[SCALAR_BYTES - 1] = 0x2f;
    values[4].le[SCALAR_BYTES - 1] = 0x1e;
    out->r = values[index % 5];
    out->s = values[(index / 5 + index) % 5];
}

static void compare(const struct circuit_spec *spec, int blinding_index) {
    struct fixture made;
    struct blinding blinding;
    struct proof proof, expected;
    fixture_open(&made, spec);
    blinding_at(made.zkey->curve, blinding_index, &blinding);
    oracle_prove(made.zkey, made.r1cs, made.wtns->values, &blinding.r, &blinding.s, &expected);
    fixture_prove(&made, &blinding, &proof);
    ck_assert_mem_eq(&proof.a, &expected.a, sizeof proof.a);
    ck_assert_mem_eq(&proof.b, &expected.b, sizeof proof.b);
    ck_assert_mem_eq(&proof.c, &expected.c, sizeof proof.c);
    CHECK_OK(verify(made.vkey, fixture_publics(&made), spec->n_public, &proof, &error));
    fixture_close(&made);
}

/* Circuits of every kind with n_public from 0 on, each with other blinding factors. */
static void compare_all(enum curve_id curve) {
    const struct {
        uint32_t n_constraints, n_public, n_unused;
    } sizes[] = {{1, 0, 0}, {2, 0, 0}, {3, 1, 0}, {7, 0, 2}, {10, 5, 1}, {17, 2, 0}};
    int index = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int kind = CIRCUIT_DENSE; kind <= CIRCUIT_BITS; kind++) {
            const struct circuit_spec spec = {.curve = curve,
                                              .kind = (enum circuit_kind)kind,
                                              .n_constraints = sizes[i].n_constraints,
                                              .n_public = sizes[i].n_public,
                                              .n_unused = sizes[i].n_unused,
                                              .seed = 100 + i};
            compare(&spec, index++);
        }
}

START_TEST(points_on_bn254_are_those_of_a_direct_computation) {
    compare_all(CURVE_BN254);
}
END_TEST

START_TEST(points_on_bls12_381_are_those_of_a_direct_computation) {
    compare_all(CURVE_BLS12_381);
}
END_TEST

/* snarkjs's keys and circom's witnesses, so that the oracle does not rest on our setup. */
START_TEST(with_keys_of_snarkjs_too) {
    const char *const names[] = {"factor", "factor381"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct fixture given;
        struct blinding blinding;
        struct proof proof, expected;
        fixture_dir(&given);
        (void)snprintf(given.zkey_path, sizeof given.zkey_path, "tests/circuits/%s/%s.zkey",
                       names[i], names[i]);
        (void)snprintf(given.r1cs_path, sizeof given.r1cs_path, "tests/circuits/%s/%s.r1cs",
                       names[i], names[i]);
        (void)snprintf(given.wtns_path, sizeof given.wtns_path, "tests/circuits/%s/witness.wtns",
                       names[i]);
        CHECK_OK(zkey_open(given.zkey_path, &given.zkey, &error));
        CHECK_OK(r1cs_open(given.r1cs_path, &given.r1cs, &error));
        CHECK_OK(wtns_open(given.wtns_path, &given.wtns, &error));
        CHECK_OK(vkey_from_zkey(given.zkey, &given.vkey, &error));
        blinding_at(given.zkey->curve, 3, &blinding);
        oracle_prove(given.zkey, given.r1cs, given.wtns->values, &blinding.r, &blinding.s,
                     &expected);
        fixture_prove(&given, &blinding, &proof);
        ck_assert_mem_eq(&proof.a, &expected.a, sizeof proof.a);
        ck_assert_mem_eq(&proof.b, &expected.b, sizeof proof.b);
        ck_assert_mem_eq(&proof.c, &expected.c, sizeof proof.c);
        CHECK_OK(verify(given.vkey, fixture_publics(&given), given.vkey->n_public, &proof, &error));
        fixture_close(&given);
    }
}
END_TEST

START_TEST(no_two_proofs_are_the_same) {
    struct fixture made;
    struct proof one, two;
    fixture_open(&made,
                 &(struct circuit_spec){.curve = CURVE_BN254, .n_constraints = 5, .seed = 1});
    fixture_prove(&made, NULL, &one);
    fixture_prove(&made, NULL, &two);
    ck_assert_mem_ne(&one.a, &two.a, sizeof one.a);
    ck_assert_mem_ne(&one.b, &two.b, sizeof one.b);
    ck_assert_mem_ne(&one.c, &two.c, sizeof one.c);
    fixture_close(&made);
}
END_TEST

/* A witness that does not satisfy the circuit gives a proof, but not a valid one. */
START_TEST(a_wrong_witness_does_not_verify) {
    for (int curve = 0; curve < CURVE_COUNT; curve++) {
        struct fixture made;
        struct proof proof;
        fixture_open(&made, &(struct circuit_spec){.curve = (enum curve_id)curve,
                                                   .n_constraints = 9,
                                                   .n_public = 1,
                                                   .seed = 2});
        struct scalar *values = malloc(made.wtns->n_vars * sizeof *values);
        ck_assert_ptr_nonnull(values);
        memcpy(values, made.wtns->values, made.wtns->n_vars * sizeof *values);
        values[made.wtns->n_vars - 1].le[0] ^= 1;
        const struct scalar *good = made.wtns->values;
        made.wtns->values = values;
        fixture_prove(&made, NULL, &proof);
        CHECK_ERR(verify(made.vkey, fixture_publics(&made), 1, &proof, &error), ERR_INVALID_PROOF,
                  "not valid");
        made.wtns->values = good;
        free(values);
        fixture_close(&made);
    }
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&points_on_bn254_are_those_of_a_direct_computation,
                                         &points_on_bls12_381_are_those_of_a_direct_computation,
                                         &with_keys_of_snarkjs_too, &no_two_proofs_are_the_same,
                                         &a_wrong_witness_does_not_verify};
    return run_tests("backend_cpu", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
