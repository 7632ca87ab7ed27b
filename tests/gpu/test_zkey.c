#include "gpu/zkey.h"

#include "tests/gpu/fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define BN254_KEY "tests/circuits/factor/factor.zkey"
#define BLS_KEY   "tests/circuits/factor381/factor381.zkey"
#define SECTION_Q 4 /* offsets in section 2 of a BN254 key: q, n8r, r, then the sizes */
#define SECTION_R 40
#define SIZES     72

static struct fixture fixture;
static struct error error;

static void set_up(void) {
    fixture_dir(&fixture);
    error.code = ERR_NONE;
}

static void tear_down(void) {
    fixture_close(&fixture);
}

/* Opens the key with these bytes; it must fail. */
static void refuse(const struct bytes *bytes, enum err code, const char *fragment) {
    struct zkey *key = NULL;
    bytes_write(fixture.zkey_path, bytes);
    CHECK_ERR(zkey_open(fixture.zkey_path, &key, &error), code, fragment);
    ck_assert_ptr_null(key);
}

/* A BN254 key of snarkjs with a u32 at an offset of a section replaced. */
static void refuse_u32(uint32_t section, size_t offset, uint32_t value, enum err code,
                       const char *fragment) {
    size_t length;
    struct bytes bytes = bytes_read(BN254_KEY);
    bytes_put_u32(&bytes, bytes_section(&bytes, section, &length) + offset, value);
    refuse(&bytes, code, fragment);
    free(bytes.data);
}

/* Every byte that the key points to, so that a sanitizer sees whether it may be read. */
static uint64_t touch(const struct zkey *key) {
    const size_t g1 = zkey_g1_bytes(key), g2 = zkey_g2_bytes(key), n = key->n_vars;
    const struct {
        const uint8_t *bytes;
        size_t size;
    } parts[] = {{key->alpha1, g1},
                 {key->beta1, g1},
                 {key->delta1, g1},
                 {key->beta2, g2},
                 {key->gamma2, g2},
                 {key->delta2, g2},
                 {key->ic, (key->n_public + 1) * g1},
                 {key->coefficients, (size_t)key->n_coefficients * ZKEY_COEFFICIENT_BYTES},
                 {key->a, n * g1},
                 {key->b1, n * g1},
                 {key->b2, n * g2},
                 {key->c, (n - key->n_public - 1) * g1},
                 {key->h, key->domain_size * g1}};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (size_t j = 0; j < parts[i].size; j++)
            sum += parts[i].bytes[j];
    return sum;
}

/* The key opens and may be read, or a clear error says why not. */
static void open_or_error(const struct bytes *bytes) {
    struct zkey *key = NULL;
    bytes_write(fixture.zkey_path, bytes);
    if (zkey_open(fixture.zkey_path, &key, &error) == ERR_NONE) {
        ck_assert_uint_gt(touch(key), 0);
        zkey_close(key);
    } else {
        ck_assert_msg(strstr(error.text, fixture.zkey_path) != NULL, "%s", error.text);
    }
}

START_TEST(reads_keys_of_snarkjs_on_both_curves) {
    const struct {
        const char *path;
        enum curve_id curve;
        uint32_t n_public;
    } keys[] = {{BN254_KEY, CURVE_BN254, 0},
                {BLS_KEY, CURVE_BLS12_381, 0},
                {"tests/circuits/merkle/merkle.zkey", CURVE_BN254, 3}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct zkey *key;
        CHECK_OK(zkey_open(keys[i].path, &key, &error));
        ck_assert_int_eq(key->curve->id, keys[i].curve);
        ck_assert_uint_eq(key->n_public, keys[i].n_public);
        ck_assert_uint_eq(key->domain_size, 1u << key->log_domain);
        ck_assert(!key->insecure);
        ck_assert_uint_gt(touch(key), 0);
        zkey_close(key);
    }
}
END_TEST

START_TEST(a_missing_file_is_absent) {
    struct zkey *key;
    CHECK_ERR(zkey_open("/nonexistent/key.zkey", &key, &error), ERR_ABSENT,
              "/nonexistent/key.zkey");
}
END_TEST

START_TEST(a_folder_or_an_empty_file_is_refused) {
    struct zkey *key;
    CHECK_ERR(zkey_open(fixture.dir, &key, &error), ERR_IO, "not a regular file");
    FILE *empty = fopen(fixture.zkey_path, "wb");
    ck_assert_ptr_nonnull(empty);
    (void)fclose(empty);
    CHECK_ERR(zkey_open(fixture.zkey_path, &key, &error), ERR_FORMAT, "empty");
}
END_TEST

START_TEST(sections_may_come_in_any_order) {
    struct bytes bytes = bytes_read(BN254_KEY), turned = bytes_copy(&bytes);
    struct zkey *key, *original;
    size_t to = 12, length;
    for (uint32_t id = 10; id >= 1; id--) {
        size_t from = bytes_section(&bytes, id, &length) - 12;
        memcpy(turned.data + to, bytes.data + from, length + 12);
        to += length + 12;
    }
    ck_assert_uint_eq(to, bytes.size);
    bytes_write(fixture.zkey_path, &turned);
    CHECK_OK(zkey_open(fixture.zkey_path, &key, &error));
    CHECK_OK(zkey_open(BN254_KEY, &original, &error));
    ck_assert_uint_eq(touch(key), touch(original));
    zkey_close(key);
    zkey_close(original);
    free(bytes.data);
    free(turned.data);
}
END_TEST

START_TEST(every_section_is_needed_and_none_twice) {
    for (uint32_t id = 1; id <= 9; id++) {
        size_t length;
        struct bytes bytes = bytes_read(BN254_KEY);
        size_t header = bytes_section(&bytes, id, &length) - 12;
        bytes_put_u32(&bytes, header, 99);
        refuse(&bytes, ERR_FORMAT, "is missing");
        bytes_put_u32(&bytes, header, id == 1 ? 2 : 1);
        refuse(&bytes, ERR_FORMAT, "appears twice");
        free(bytes.data);
    }
}
END_TEST

START_TEST(contributions_are_not_needed) {
    size_t length;
    struct zkey *key;
    struct bytes bytes = bytes_read(BN254_KEY);
    bytes_put_u32(&bytes, bytes_section(&bytes, 10, &length) - 12, 99);
    bytes_write(fixture.zkey_path, &bytes);
    CHECK_OK(zkey_open(fixture.zkey_path, &key, &error));
    zkey_close(key);
    free(bytes.data);
}
END_TEST

START_TEST(other_files_and_protocols_are_named) {
    struct bytes bytes = bytes_read("tests/circuits/factor/witness.wtns");
    refuse(&bytes, ERR_FORMAT, "not a zkey file");
    free(bytes.data);
    refuse_u32(1, 0, 2, ERR_UNSUPPORTED, "PLONK");
    refuse_u32(1, 0, 10, ERR_UNSUPPORTED, "FFLONK");
    refuse_u32(1, 0, 7, ERR_UNSUPPORTED, "protocol 7");
    bytes = bytes_read(BN254_KEY);
    bytes_put_u32(&bytes, 4, 3);
    refuse(&bytes, ERR_UNSUPPORTED, "version 3");
    free(bytes.data);
}
END_TEST

START_TEST(unknown_and_mixed_curves_are_refused) {
    refuse_u32(2, 0, 31, ERR_UNSUPPORTED, "coordinate modulus of 31 bytes");
    refuse_u32(2, SECTION_Q, 1, ERR_UNSUPPORTED, "coordinate modulus");
    refuse_u32(2, SECTION_R, 2, ERR_UNSUPPORTED, "scalar modulus");
    struct bytes bytes = bytes_read(BN254_KEY);
    size_t length, header = bytes_section(&bytes, 2, &length);
    memcpy(bytes.data + header + SECTION_R, curve_info(CURVE_BLS12_381)->r, SCALAR_BYTES);
    refuse(&bytes, ERR_UNSUPPORTED, "bls12381");
    free(bytes.data);
}
END_TEST

START_TEST(sizes_that_contradict_each_other_are_refused) {
    refuse_u32(2, SIZES, 0, ERR_FORMAT, "do not fit");
    refuse_u32(2, SIZES, UINT32_MAX, ERR_FORMAT, "section has only");
    refuse_u32(2, SIZES + 4, UINT32_MAX, ERR_FORMAT, "do not fit");
    refuse_u32(2, SIZES + 4, 1, ERR_FORMAT, "expected");
    refuse_u32(2, SIZES + 8, 0, ERR_FORMAT, "power of two");
    refuse_u32(2, SIZES + 8, 1, ERR_FORMAT, "power of two");
    refuse_u32(2, SIZES + 8, 48, ERR_FORMAT, "power of two");
    refuse_u32(2, SIZES + 8, 1u << 31, ERR_FORMAT, "2^31");
    refuse_u32(2, SIZES + 8, 1u << 28, ERR_FORMAT, "section 9");
}
END_TEST

START_TEST(bad_coefficients_are_named) {
    const size_t row = 4 + 2 * ZKEY_COEFFICIENT_BYTES;
    refuse_u32(4, 0, UINT32_MAX, ERR_FORMAT, "section has only");
    refuse_u32(4, 0, 1, ERR_FORMAT, "bytes too many");
    refuse_u32(4, row, 2, ERR_FORMAT, "coefficient 2 (matrix 2");
    refuse_u32(4, row + 4, 1u << 20, ERR_FORMAT, "not below the domain size");
    refuse_u32(4, row + 8, 1u << 20, ERR_FORMAT, "not below the number of signals");
    refuse_u32(4, row + 40, UINT32_MAX, ERR_FORMAT, "not below r");
}
END_TEST

START_TEST(a_key_cut_off_anywhere_is_refused) {
    struct bytes bytes = bytes_read(BN254_KEY);
    size_t whole = bytes.size;
    for (bytes.size = 1; bytes.size < whole; bytes.size += bytes.size < 1000 ? 1 : 37) {
        struct zkey *key = NULL;
        bytes_write(fixture.zkey_path, &bytes);
        enum err rc = zkey_open(fixture.zkey_path, &key, &error);
        ck_assert_int_eq(rc, ERR_FORMAT);
    }
    free(bytes.data);
}
END_TEST

START_TEST(a_key_cut_off_at_a_section_is_refused) {
    struct bytes bytes = bytes_read(BLS_KEY);
    size_t whole = bytes.size, length;
    for (uint32_t id = 1; id <= 10; id++)
        for (size_t behind = 0; behind <= 12; behind += 6) {
            bytes.size = whole;
            bytes.size = bytes_section(&bytes, id, &length) - 12 + behind;
            if (bytes.size < whole) refuse(&bytes, ERR_FORMAT, fixture.zkey_path);
        }
    free(bytes.data);
}
END_TEST

START_TEST(bytes_behind_the_last_section_are_refused) {
    struct bytes bytes = bytes_read(BN254_KEY);
    struct bytes longer = {calloc(1, bytes.size + 1), bytes.size + 1};
    ck_assert_ptr_nonnull(longer.data);
    memcpy(longer.data, bytes.data, bytes.size);
    refuse(&longer, ERR_FORMAT, "1 bytes follow");
    free(longer.data);
    free(bytes.data);
}
END_TEST

START_TEST(a_changed_header_never_crashes) {
    struct bytes bytes = bytes_read(BN254_KEY);
    size_t length;
    for (uint32_t id = 0; id <= 10; id++) {
        size_t begin = id == 0 ? 0 : bytes_section(&bytes, id, &length) - 12;
        size_t end = id == 0 ? 12 : begin + 12 + (id == 2 || id == 10 ? length : 8);
        for (size_t i = begin; i < end && i < bytes.size; i++)
            for (unsigned bit = 0; bit < 8; bit += 7) {
                bytes.data[i] ^= (uint8_t)(1u << bit);
                open_or_error(&bytes);
                bytes.data[i] ^= (uint8_t)(1u << bit);
            }
    }
    free(bytes.data);
}
END_TEST

START_TEST(development_keys_are_marked_insecure) {
    struct fixture made;
    for (int curve = 0; curve < CURVE_COUNT; curve++) {
        fixture_open(&made, &(struct circuit_spec){
                                .curve = (enum curve_id)curve, .n_constraints = 3, .seed = 1});
        ck_assert(made.zkey->insecure);
        ck_assert_uint_eq(made.zkey->n_public, 0);
        fixture_close(&made);
    }
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&reads_keys_of_snarkjs_on_both_curves,
                                         &a_missing_file_is_absent,
                                         &a_folder_or_an_empty_file_is_refused,
                                         &sections_may_come_in_any_order,
                                         &every_section_is_needed_and_none_twice,
                                         &contributions_are_not_needed,
                                         &other_files_and_protocols_are_named,
                                         &unknown_and_mixed_curves_are_refused,
                                         &sizes_that_contradict_each_other_are_refused,
                                         &bad_coefficients_are_named,
                                         &a_key_cut_off_anywhere_is_refused,
                                         &a_key_cut_off_at_a_section_is_refused,
                                         &bytes_behind_the_last_section_are_refused,
                                         &a_changed_header_never_crashes,
                                         &development_keys_are_marked_insecure};
    return run_tests("zkey", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
