/* The text of inputs: exact numbers, modulo the prime. */
#include "service/calculator/inputs.h"
#include "tests/gpu/suite.h"

#include <gmp.h>
#include <stdio.h>
#include <string.h>

static struct error error;
static struct inputs inputs;
static const struct curve_info *curve;

static void setup(void) {
    curve = curve_info(CURVE_BN254);
}

static void teardown(void) {
    inputs_free(&inputs);
}

static void parse(const char *text) {
    enum err rc = inputs_parse(text, strlen(text), curve->r, &inputs, &error);
    ck_assert_msg(rc == ERR_NONE, "%s", error.text);
}

static void refused(const char *text, const char *says) {
    enum err rc = inputs_parse(text, strlen(text), curve->r, &inputs, &error);
    ck_assert_msg(rc == ERR_INPUT, "%s: %s", text, error_name(rc));
    ck_assert_msg(strstr(error.text, says) != NULL, "%s", error.text);
    ck_assert_ptr_null(inputs.signals);
}

/* What GMP says of the number modulo the curve's order. */
static void expected(const char *number, struct scalar *out) {
    mpz_t value, prime;
    bool negative = *number == '-';
    mpz_init_set_str(value, number + negative, 0);
    mpz_init(prime);
    mpz_import(prime, SCALAR_BYTES, -1, 1, 0, 0, curve->r);
    if (negative) mpz_neg(value, value);
    mpz_mod(value, value, prime);
    memset(out, 0, sizeof *out);
    mpz_export(out->le, NULL, -1, 1, 0, 0, value);
    mpz_clears(value, prime, NULL);
}

START_TEST(signals_have_names_and_values) {
    parse("a 1\npath 1 2 3\nnone\n");
    ck_assert_uint_eq(inputs.n, 3);
    ck_assert_uint_eq(inputs.n_values, 4);
    ck_assert_str_eq(inputs.signals[1].name, "path");
    ck_assert_uint_eq(inputs.signals[1].n, 3);
    ck_assert_uint_eq(inputs.signals[1].values[2].le[0], 3);
    ck_assert_uint_eq(inputs.signals[2].n, 0);
}
END_TEST

/* FNV-1a's published test vectors. */
START_TEST(the_hash_is_fnv_1a) {
    ck_assert_uint_eq(inputs_hash(""), UINT64_C(0xcbf29ce484222325));
    ck_assert_uint_eq(inputs_hash("a"), UINT64_C(0xaf63dc4c8601ec8c));
    ck_assert_uint_eq(inputs_hash("foobar"), UINT64_C(0x85944171f73967e8));
}
END_TEST

START_TEST(numbers_are_exact_modulo_the_prime) {
    static const char *const numbers[] = {
        "0",
        "-0",
        "1",
        "-1",
        "2147483647",
        "-2147483648",
        "9007199254740993",
        "0xff",
        "-0xfF",
        "0X10",
        "21888242871839275222246405745257275088548364400416034343698204186575808495616",
        "21888242871839275222246405745257275088548364400416034343698204186575808495617",
        "21888242871839275222246405745257275088548364400416034343698204186575808495618",
        "-21888242871839275222246405745257275088548364400416034343698204186575808495617",
        "99999999999999999999999999999999999999999999999999999999999999999999999999999999",
        "-99999999999999999999999999999999999999999999999999999999999999999999999999999999",
        "0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "-0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"};
    for (int c = 0; c < CURVE_COUNT; c++)
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            char line[128];
            struct scalar want;
            curve = curve_info((enum curve_id)c);
            (void)snprintf(line, sizeof line, "x %s\n", numbers[i]);
            parse(line);
            expected(numbers[i], &want);
            ck_assert_msg(memcmp(&want, inputs.values, sizeof want) == 0, "%s", numbers[i]);
            inputs_free(&inputs);
        }
}
END_TEST

START_TEST(leading_zeros_are_no_octal) {
    parse("a 010\n");
    ck_assert_uint_eq(inputs.values[0].le[0], 10);
}
END_TEST

START_TEST(what_is_no_number_is_refused_with_its_signal) {
    refused("ok 1\na 1.5\n", "signal \"a\", value 0: '1.5'");
    refused("a 1 x\n", "signal \"a\", value 1");
    refused("a 1  2\n", "signal \"a\", value 1");
    refused("a 0x\n", "signal \"a\"");
    refused("a -\n", "signal \"a\"");
    refused("a --1\n", "signal \"a\"");
    refused("a 0x12g\n", "signal \"a\"");
    refused("a 12a\n", "signal \"a\"");
    refused("a 1e5\n", "signal \"a\"");
    refused("a 999999999999999999999999999999999999999999999999999999999999999999999999999999999\n",
            "80 digits");
    refused(" 1\n", "no name");
}
END_TEST

START_TEST(a_nul_is_refused) {
    static const char text[] = "a 1\0 2\n";
    ck_assert_int_eq(inputs_parse(text, sizeof text - 1, curve->r, &inputs, &error), ERR_INPUT);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&signals_have_names_and_values,
                                         &the_hash_is_fnv_1a,
                                         &numbers_are_exact_modulo_the_prime,
                                         &leading_zeros_are_no_octal,
                                         &what_is_no_number_is_refused_with_its_signal,
                                         &a_nul_is_refused};
    return run_tests("inputs", setup, teardown, tests, sizeof tests / sizeof *tests);
}
