#include "gpu/decimal.h"

#include "tests/gpu/fixture.h"

#include <gmp.h>
#include <stdlib.h>

static struct error error;

START_TEST(numbers_survive_the_way_there_and_back) {
    gmp_randstate_t random;
    gmp_randinit_default(random);
    for (unsigned bits = 0; bits <= 8 * COORD_BYTES; bits++) {
        mpz_t number;
        uint8_t le[COORD_BYTES] = {0}, back[COORD_BYTES];
        char text[DECIMAL_MAX + 1], expected[DECIMAL_MAX + 3];
        mpz_init(number);
        mpz_urandomb(number, random, bits);
        if (bits == 8 * COORD_BYTES) mpz_sub_ui(number, number, mpz_sgn(number) == 0);
        mpz_export(le, NULL, -1, 1, 0, 0, number);
        (void)mpz_get_str(expected, 10, number);
        ck_assert(decimal_from_le(le, sizeof le, text));
        ck_assert_str_eq(text, expected);
        ck_assert(decimal_to_le(text, back, sizeof back));
        ck_assert_mem_eq(back, le, sizeof le);
        mpz_clear(number);
    }
    gmp_randclear(random);
}
END_TEST

START_TEST(only_digits_that_fit_are_numbers) {
    uint8_t le[2];
    const char *const bad[] = {"",   "-1", "+1",  "0x10",  "1e3", "1.0",
                               " 1", "1 ", "1\n", "65536", "٣"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!decimal_to_le(bad[i], le, sizeof le), "\"%s\"", bad[i]);
    char many[10 * DECIMAL_MAX];
    memset(many, '0', sizeof many);
    many[sizeof many - 1] = '\0';
    ck_assert(!decimal_to_le(many, le, sizeof le));
    ck_assert(decimal_to_le("65535", le, sizeof le));
    ck_assert_uint_eq(le[0] & le[1], 255);
    ck_assert(decimal_to_le("007", le, sizeof le));
    ck_assert_uint_eq(le[0], 7);
}
END_TEST

static void check_json(const char *text, const char *expected) {
    json_t *json;
    CHECK_OK(json_load_exact(text, strlen(text), &json, &error));
    char *dumped = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
    ck_assert_str_eq(dumped, expected);
    free(dumped);
    json_decref(json);
}

START_TEST(json_numbers_keep_every_digit) {
    check_json("[1,-2, 3.50 ,1e400,123456789012345678901234567890]",
               "[\"1\",\"-2\",\"3.50\",\"1e400\",\"123456789012345678901234567890\"]");
    check_json("{\"a1\":9007199254740993,\"b\":[true,false,null]}",
               "{\"a1\":\"9007199254740993\",\"b\":[true,false,null]}");
    check_json("\"12\\\"34\\\\\"", "\"12\\\"34\\\\\"");
    check_json("7", "\"7\"");
}
END_TEST

START_TEST(what_is_not_json_is_refused) {
    const char *const bad[] = {"",      "[",    "[1", "{\"a\":1,\"a\":2}", "[1]]", "\"abc", "tru",
                               "[1 2]", "\"\\", "[-"};
    json_t *json;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *exact = malloc(strlen(bad[i]) + 1); /* so that a sanitizer sees its end */
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, bad[i], strlen(bad[i]) + 1);
        CHECK_ERR(json_load_exact(exact, strlen(exact), &json, &error), ERR_INPUT,
                  "not valid JSON");
        free(exact);
    }
    CHECK_ERR(json_load_exact("[\0]", 3, &json, &error), ERR_INPUT, "not valid JSON");
}
END_TEST

START_TEST(numbers_are_below_the_modulus) {
    const uint8_t seven[1] = {7};
    uint8_t le[1];
    json_t *json;
    const char text[] = "[6, 7, \"6\", \"x\", null, 6.0, -1, true]";
    CHECK_OK(json_load_exact(text, sizeof text - 1, &json, &error));
    CHECK_OK(json_number_below(json_array_get(json, 0), seven, le, 1, "n", &error));
    ck_assert_uint_eq(le[0], 6);
    CHECK_OK(json_number_below(json_array_get(json, 2), seven, le, 1, "n", &error));
    CHECK_ERR(json_number_below(json_array_get(json, 1), seven, le, 1, "n", &error), ERR_INPUT,
              "n: 7... is not below");
    for (size_t i = 3; i < json_array_size(json); i++)
        CHECK_ERR(json_number_below(json_array_get(json, i), seven, le, 1, "n", &error), ERR_INPUT,
                  "n: ");
    CHECK_ERR(json_number_below(NULL, seven, le, 1, "n", &error), ERR_INPUT, "n: missing");
    json_decref(json);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &numbers_survive_the_way_there_and_back, &only_digits_that_fit_are_numbers,
        &json_numbers_keep_every_digit, &what_is_not_json_is_refused,
        &numbers_are_below_the_modulus};
    return run_tests("decimal", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
