#include "gpu/proof.h"

#include "gpu/cpu/cpu_curve.h"
#include "tests/gpu/fixture.h"

#include <stdio.h>
#include <stdlib.h>

static struct error error;

static struct proof read_proof(const char *path) {
    struct proof proof;
    struct bytes text = bytes_read(path);
    CHECK_OK(proof_from_json((const char *)text.data, text.size, &proof, &error));
    free(text.data);
    return proof;
}

START_TEST(writes_what_snarkjs_wrote) {
    const char *const names[] = {"factor", "factor381", "merkle", "range"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "tests/circuits/%s/proof.json", names[i]);
        const struct proof proof = read_proof(path);
        struct bytes text = bytes_read(path);
        char *ours = proof_to_json(&proof);
        ck_assert_ptr_nonnull(ours);
        ck_assert_uint_eq(strlen(ours), text.size);
        ck_assert_mem_eq(ours, text.data, text.size);
        free(ours);
        free(text.data);
    }
}
END_TEST

START_TEST(publics_too) {
    struct scalar *publics;
    size_t n;
    struct bytes text = bytes_read("tests/circuits/merkle/public.json");
    CHECK_OK(publics_from_json((const char *)text.data, text.size, curve_info(CURVE_BN254),
                               &publics, &n, &error));
    ck_assert_uint_eq(n, 3);
    char *ours = publics_to_json(publics, n);
    ck_assert_uint_eq(strlen(ours), text.size);
    ck_assert_mem_eq(ours, text.data, text.size);
    free(ours);
    free(publics);
    free(text.data);
    char *none = publics_to_json(NULL, 0);
    CHECK_OK(publics_from_json(none, strlen(none), curve_info(CURVE_BN254), &publics, &n, &error));
    ck_assert_uint_eq(n, 0);
    free(publics);
    free(none);
}
END_TEST

/* Infinity as snarkjs writes it; without "curve" it is bn128; integers count as well as strings. */
#define ZERO_POINTS                                                                                \
    "\"pi_a\":[\"0\",\"1\",\"0\"],\"pi_b\":[[\"0\",\"0\"],[\"1\",\"0\"],[\"0\",\"0\"]],"           \
    "\"pi_c\":[1,2]"

START_TEST(reads_infinity_and_affine_points) {
    const char text[] = "{" ZERO_POINTS ",\"protocol\":\"groth16\"}";
    struct proof proof;
    CHECK_OK(proof_from_json(text, sizeof text - 1, &proof, &error));
    ck_assert_int_eq(proof.curve, CURVE_BN254);
    ck_assert(le_is_zero((const uint8_t *)&proof.a, sizeof proof.a));
    ck_assert(le_is_zero((const uint8_t *)&proof.b, sizeof proof.b));
    ck_assert_mem_eq(&proof.c, cpu_curve(CURVE_BN254)->g1_generator, sizeof proof.c);
    char *written = proof_to_json(&proof);
    struct proof again;
    CHECK_OK(proof_from_json(written, strlen(written), &again, &error));
    ck_assert_mem_eq(&again.a, &proof.a, sizeof proof.a);
    ck_assert_mem_eq(&again.b, &proof.b, sizeof proof.b);
    ck_assert_mem_eq(&again.c, &proof.c, sizeof proof.c);
    ck_assert_ptr_nonnull(strstr(written, "\"0\",\n  \"1\",\n  \"0\""));
    free(written);
}
END_TEST

START_TEST(refuses_proofs_of_another_shape) {
    const struct {
        const char *text;
        enum err code;
        const char *fragment;
    } bad[] = {
        {"[]", ERR_INPUT, "not a JSON object"},
        {"{", ERR_INPUT, "not valid JSON"},
        {"{}", ERR_INPUT, "pi_a: missing"},
        {"{\"protocol\":7}", ERR_UNSUPPORTED, "protocol"},
        {"{\"curve\":\"alt-bn128\"}", ERR_INPUT, "pi_a: missing"},
        {"{\"curve\":\"BN-128\"}", ERR_INPUT, "pi_a: missing"},
        {"{\"curve\":\"bn1284\"}", ERR_UNSUPPORTED, "bn1284"},
        {"{\"protocol\":\"plonk\"}", ERR_UNSUPPORTED, "plonk"},
        {"{\"protocol\":\"groth16\"}", ERR_INPUT, "pi_a: missing"},
        {"{\"protocol\":\"groth16\",\"curve\":\"bw6\"}", ERR_UNSUPPORTED, "bw6"},
        {"{\"protocol\":\"groth16\",\"curve\":7}", ERR_UNSUPPORTED, "curve"},
        {"{\"protocol\":\"groth16\",\"pi_a\":[1]}", ERR_INPUT, "pi_a: an array of 1"},
        {"{\"protocol\":\"groth16\",\"pi_a\":[1,2,3]}", ERR_INPUT, "pi_a: its last coordinate"},
        {"{\"protocol\":\"groth16\",\"pi_a\":[1,2,1,1]}", ERR_INPUT, "pi_a: an array of 4"},
        {"{\"protocol\":\"groth16\",\"pi_a\":[1,\"0x2\"]}", ERR_INPUT, "pi_a[1]: \"0x2\""},
        {"{\"protocol\":\"groth16\",\"pi_a\":[1,-2]}", ERR_INPUT, "pi_a[1]: \"-2\""},
        {"{\"protocol\":\"groth16\",\"pi_a\":[1,2.0]}", ERR_INPUT, "pi_a[1]: \"2.0\""},
        {"{\"protocol\":\"groth16\",\"pi_a\":[1,[2]]}", ERR_INPUT, "pi_a[1]: not a string"},
        {"{\"protocol\":\"groth16\",\"pi_a\":[1,2],\"pi_b\":[1,2]}", ERR_INPUT, "pi_b[0]: not an"},
        {"{\"protocol\":\"groth16\",\"pi_a\":[1,2],\"pi_b\":[[1],[2]]}", ERR_INPUT, "pi_b[0]: an"},
        {"{\"protocol\":\"groth16\",\"pi_a\":[1,2],\"pi_a\":[1,2]}", ERR_INPUT, "not valid JSON"},
        /* x = q */
        {"{\"protocol\":\"groth16\",\"pi_a\":["
         "\"2188824287183927522224640574525727508869631115729782"
         "3662689037894645226208583\",2]}",
         ERR_INPUT, "pi_a[0]"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct proof proof;
        CHECK_ERR(proof_from_json(bad[i].text, strlen(bad[i].text), &proof, &error), bad[i].code,
                  bad[i].fragment);
    }
}
END_TEST

START_TEST(public_values_are_read_exactly_or_not_at_all) {
    const struct curve_info *bn = curve_info(CURVE_BN254);
    const char good[] = "[\"0\", 9007199254740993, \"2188824287183927522224640574525727508854836440"
                        "0416034343698204186575808495616\"]";
    const struct {
        const char *text, *fragment;
    } bad[] = {
        {"{}", "not a JSON array"},
        {"[\"1\",\"0x1\"]", "public signal 1: \"0x1\""},
        {"[\"1\",\"-1\"]", "public signal 1: \"-1\""},
        {"[1,2,3.0]", "public signal 2: \"3.0\""},
        {"[1,2e0]", "public signal 1: \"2e0\""},
        {"[null]", "public signal 0"},
        {"[[\"1\"]]", "public signal 0"},
        {"[\"21888242871839275222246405745257275088548364400416034343698204186575808495617\"]",
         "public signal 0: 2188824287183927522224640574525727508854... is not below"},
        {"[1", "not valid JSON"},
    };
    struct scalar *publics, r_minus_1;
    size_t n;
    CHECK_OK(publics_from_json(good, sizeof good - 1, bn, &publics, &n, &error));
    ck_assert_uint_eq(n, 3);
    const uint8_t above_2_53[8] = {1, 0, 0, 0, 0, 0, 0x20, 0};
    memcpy(r_minus_1.le, bn->r, SCALAR_BYTES);
    r_minus_1.le[0]--;
    ck_assert_mem_eq(publics[1].le, above_2_53, sizeof above_2_53);
    ck_assert_mem_eq(&publics[2], &r_minus_1, sizeof r_minus_1);
    free(publics);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_ERR(publics_from_json(bad[i].text, strlen(bad[i].text), bn, &publics, &n, &error),
                  ERR_INPUT, bad[i].fragment);
    /* r of bn128 is below r of bls12381 */
    CHECK_OK(publics_from_json(bad[7].text, strlen(bad[7].text), curve_info(CURVE_BLS12_381),
                               &publics, &n, &error));
    free(publics);
}
END_TEST

/* Expected texts: `snarkjs zkey export soliditycalldata` 0.7.6 on the same files. */
START_TEST(calldata_swaps_the_coordinates_of_b) {
    const struct proof proof = {
        .curve = CURVE_BN254, .a = {{1}, {2, 1}}, .b = {{{3}, {4}}, {{5}, {6}}}, .c = {{7}, {8}}};
    const struct scalar publics[2] = {{{0xab}}, {{0, 1}}};
#define W(x) "\"0x00000000000000000000000000000000000000000000000000000000000000" x "\""
    char *text = proof_to_calldata(&proof, publics, 2);
    ck_assert_str_eq(
        text, "[" W("01") ", "
                          "\"0x0000000000000000000000000000000000000000000000000000000000000102\"],"
                          "[[" W("04") ", " W("03") "],[" W("06") ", " W(
                              "05") "]],"
                                    "[" W("07") ", " W("08") "],[" W(
                                        "ab") ","
                                              "\"0x000000000000000000000000000000000000000000000000"
                                              "0000000000000100\"]");
    free(text);
    text = proof_to_calldata(&proof, NULL, 0);
    ck_assert_str_eq(text + strlen(text) - 4, "],[]");
    free(text);
}
END_TEST

/* The generators' encodings: IETF pairing-friendly-curves draft, appendix C (ZCash's format). */
START_TEST(compresses_as_zcash_does) {
    static const uint8_t g1_head[4] = {0x97, 0xf1, 0xd3, 0xa7},
                         g2_head[4] = {0x93, 0xe0, 0x2b, 0x60};
    static const uint8_t g1_tail[2] = {0xc6, 0xbb}, g2_tail[2] = {0xbd, 0xb8};
    const struct cpu_curve *ops = cpu_curve(CURVE_BLS12_381);
    struct proof proof = {
        .curve = CURVE_BLS12_381, .a = *ops->g1_generator, .b = *ops->g2_generator};
    uint8_t out[PROOF_COMPRESSED_BYTES], zeros[COORD_BYTES - 1] = {0};
    CHECK_OK(proof_compress(&proof, out, &error));
    ck_assert_mem_eq(out, g1_head, sizeof g1_head);
    ck_assert_mem_eq(out + 46, g1_tail, sizeof g1_tail);
    ck_assert_mem_eq(out + 48, g2_head, sizeof g2_head);
    ck_assert_mem_eq(out + 142, g2_tail, sizeof g2_tail);
    ck_assert_uint_eq(out[144], 0xc0); /* infinity */
    ck_assert_mem_eq(out + 145, zeros, sizeof zeros);
    ops->g1_neg(&proof.a, &proof.a);
    CHECK_OK(proof_compress(&proof, out, &error));
    ck_assert_uint_eq(out[0], 0x97 | 0x20);
    proof.curve = CURVE_BN254;
    CHECK_ERR(proof_compress(&proof, out, &error), ERR_UNSUPPORTED, "bls12381");
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&writes_what_snarkjs_wrote,
                                         &publics_too,
                                         &reads_infinity_and_affine_points,
                                         &refuses_proofs_of_another_shape,
                                         &public_values_are_read_exactly_or_not_at_all,
                                         &calldata_swaps_the_coordinates_of_b,
                                         &compresses_as_zcash_does};
    return run_tests("proof", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
