#include "gpu/wtns.h"

#include "tests/gpu/fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define WITNESS "tests/circuits/factor/witness.wtns"

enum { HEADER_PRIME = 4, HEADER_COUNT = 36 };

static struct fixture fixture;
static struct error error;
static struct bytes bytes; /* of WITNESS */
static size_t header, values, length;

static void set_up(void) {
    fixture_dir(&fixture);
    bytes = bytes_read(WITNESS);
    header = bytes_section(&bytes, 1, &length);
    values = bytes_section(&bytes, 2, &length);
}

static void tear_down(void) {
    free(bytes.data);
    fixture_close(&fixture);
}

static void refuse(enum err code, const char *fragment) {
    struct wtns *wtns = NULL;
    CHECK_ERR(wtns_parse(bytes.data, bytes.size, &wtns, &error), code, fragment);
    bytes_write(fixture.wtns_path, &bytes);
    CHECK_ERR(wtns_open(fixture.wtns_path, &wtns, &error), code, fragment);
    CHECK_ERR(wtns_open(fixture.wtns_path, &wtns, &error), code, fixture.wtns_path);
    ck_assert_ptr_null(wtns);
}

START_TEST(reads_what_a_calculator_wrote) {
    struct wtns *wtns, *parsed;
    CHECK_OK(wtns_open(WITNESS, &wtns, &error));
    CHECK_OK(wtns_parse(bytes.data, bytes.size, &parsed, &error));
    ck_assert_int_eq(wtns->curve->id, CURVE_BN254);
    ck_assert_uint_eq(wtns->n_vars, length / SCALAR_BYTES);
    ck_assert_mem_eq(wtns->values, bytes.data + values, length);
    ck_assert_mem_eq(parsed->values, wtns->values, length);
    wtns_close(wtns);
    wtns_close(parsed);
}
END_TEST

START_TEST(reads_its_own_file_and_so_does_the_key) {
    struct wtns *wtns;
    struct zkey *key, *other;
    struct scalar v[3] = {{{1}}, {{2}}, {{3}}};
    CHECK_OK(wtns_write(fixture.wtns_path, curve_info(CURVE_BLS12_381), v, 3, &error));
    CHECK_OK(wtns_open(fixture.wtns_path, &wtns, &error));
    ck_assert_int_eq(wtns->curve->id, CURVE_BLS12_381);
    ck_assert_uint_eq(wtns->n_vars, 3);
    ck_assert_mem_eq(wtns->values, v, sizeof v);
    CHECK_OK(zkey_open("tests/circuits/factor/factor.zkey", &key, &error));
    CHECK_OK(zkey_open("tests/circuits/factor381/factor381.zkey", &other, &error));
    CHECK_ERR(wtns_matches(wtns, key, &error), ERR_MISMATCH, "curve");
    CHECK_ERR(wtns_matches(wtns, other, &error), ERR_MISMATCH, "3 signals");
    wtns_close(wtns);
    CHECK_OK(wtns_open(WITNESS, &wtns, &error));
    CHECK_OK(wtns_matches(wtns, key, &error));
    wtns_close(wtns);
    zkey_close(key);
    zkey_close(other);
}
END_TEST

START_TEST(element_zero_must_be_one) {
    bytes.data[values] = 2;
    refuse(ERR_FORMAT, "element 0 is not 1");
    bytes.data[values] = 1;
    bytes.data[values + 31] = 1;
    refuse(ERR_FORMAT, "element 0 is not 1");
}
END_TEST

START_TEST(values_must_be_below_r) {
    memcpy(bytes.data + values + 5 * SCALAR_BYTES, curve_info(CURVE_BN254)->r, SCALAR_BYTES);
    refuse(ERR_FORMAT, "element 5 is not below r");
    bytes.data[values + 5 * SCALAR_BYTES]--; /* r - 1 */
    struct wtns *wtns;
    CHECK_OK(wtns_parse(bytes.data, bytes.size, &wtns, &error));
    wtns_close(wtns);
    memset(bytes.data + values + length - SCALAR_BYTES, 0xff, SCALAR_BYTES);
    refuse(ERR_FORMAT, "not below r");
}
END_TEST

START_TEST(the_count_must_be_the_values) {
    uint32_t n = (uint32_t)(length / SCALAR_BYTES);
    bytes_put_u32(&bytes, header + HEADER_COUNT, n - 1);
    refuse(ERR_FORMAT, "32 bytes too many");
    bytes_put_u32(&bytes, header + HEADER_COUNT, n + 1);
    refuse(ERR_FORMAT, "expected");
    bytes_put_u32(&bytes, header + HEADER_COUNT, UINT32_MAX);
    refuse(ERR_FORMAT, "expected");
    bytes_put_u32(&bytes, header + HEADER_COUNT, 0);
    refuse(ERR_FORMAT, "no element");
}
END_TEST

START_TEST(other_primes_versions_and_files_are_refused) {
    bytes.data[header + HEADER_PRIME] ^= 2;
    refuse(ERR_UNSUPPORTED, "scalar modulus");
    bytes.data[header + HEADER_PRIME] ^= 2;
    bytes_put_u32(&bytes, header, 8);
    refuse(ERR_UNSUPPORTED, "modulus of 8 bytes");
    bytes_put_u32(&bytes, header, UINT32_MAX);
    refuse(ERR_FORMAT, "expected");
    bytes_put_u32(&bytes, header, SCALAR_BYTES);
    bytes_put_u32(&bytes, 4, 1);
    refuse(ERR_UNSUPPORTED, "version 1");
    bytes.data[0] = 'z';
    refuse(ERR_FORMAT, "not a wtns file");
}
END_TEST

START_TEST(a_witness_cut_off_anywhere_is_refused) {
    struct wtns *wtns;
    size_t whole = bytes.size;
    for (size_t size = 0; size < whole; size++) {
        uint8_t *exact = malloc(size + (size == 0)); /* so that a sanitizer sees its end */
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, bytes.data, size);
        CHECK_ERR(wtns_parse(exact, size, &wtns, &error), ERR_FORMAT, "witness: ");
        free(exact);
    }
}
END_TEST

START_TEST(a_changed_byte_never_crashes) {
    for (size_t i = 0; i < bytes.size; i++)
        for (unsigned bit = 0; bit < 8; bit++) {
            struct wtns *wtns = NULL;
            bytes.data[i] ^= (uint8_t)(1u << bit);
            if (wtns_parse(bytes.data, bytes.size, &wtns, &error) == ERR_NONE) {
                ck_assert_uint_ge(i, values); /* only values may change unseen */
                wtns_close(wtns);
            }
            bytes.data[i] ^= (uint8_t)(1u << bit);
        }
}
END_TEST

START_TEST(a_missing_file_is_absent) {
    struct wtns *wtns;
    CHECK_ERR(wtns_open("/nonexistent/w.wtns", &wtns, &error), ERR_ABSENT, "/nonexistent/w.wtns");
}
END_TEST

START_TEST(a_file_that_cannot_be_written_leaves_nothing) {
    const struct scalar one = {{1}};
    CHECK_ERR(wtns_write("/nonexistent/w.wtns", curve_info(CURVE_BN254), &one, 1, &error), ERR_IO,
              "/nonexistent/w.wtns");
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&reads_what_a_calculator_wrote,
                                         &reads_its_own_file_and_so_does_the_key,
                                         &element_zero_must_be_one,
                                         &values_must_be_below_r,
                                         &the_count_must_be_the_values,
                                         &other_primes_versions_and_files_are_refused,
                                         &a_witness_cut_off_anywhere_is_refused,
                                         &a_changed_byte_never_crashes,
                                         &a_missing_file_is_absent,
                                         &a_file_that_cannot_be_written_leaves_nothing};
    return run_tests("wtns", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
