#include "gpu/r1cs.h"

#include "tests/gpu/fixture.h"

#include <stdio.h>
#include <stdlib.h>

#define CIRCUIT "tests/circuits/factor/factor.r1cs"

/* Offsets in section 1. */
enum { PRIME = 4, N_VARS = 36, N_OUTPUTS = 40, N_INPUTS = 44, N_CONSTRAINTS = 60 };

static struct fixture fixture;
static struct error error;
static struct bytes bytes; /* of CIRCUIT */
static size_t header, constraints, length;

static void set_up(void) {
    fixture_dir(&fixture);
    bytes = bytes_read(CIRCUIT);
    header = bytes_section(&bytes, 1, &length);
    constraints = bytes_section(&bytes, 2, &length);
}

static void tear_down(void) {
    free(bytes.data);
    fixture_close(&fixture);
}

static void refuse(enum err code, const char *fragment) {
    struct r1cs *r1cs = NULL;
    bytes_write(fixture.r1cs_path, &bytes);
    CHECK_ERR(r1cs_open(fixture.r1cs_path, &r1cs, &error), code, fragment);
    ck_assert_ptr_null(r1cs);
}

static void refuse_u32(size_t offset, uint32_t value, enum err code, const char *fragment) {
    uint8_t old[4];
    memcpy(old, bytes.data + offset, sizeof old);
    bytes_put_u32(&bytes, offset, value);
    refuse(code, fragment);
    memcpy(bytes.data + offset, old, sizeof old);
}

START_TEST(reads_circuits_of_circom) {
    const char *const names[] = {"factor/factor", "factor381/factor381", "merkle/merkle",
                                 "range/range"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64], key_path[64];
        struct r1cs *r1cs;
        struct zkey *key;
        (void)snprintf(path, sizeof path, "tests/circuits/%s.r1cs", names[i]);
        (void)snprintf(key_path, sizeof key_path, "tests/circuits/%s.zkey", names[i]);
        CHECK_OK(r1cs_open(path, &r1cs, &error));
        CHECK_OK(zkey_open(key_path, &key, &error));
        ck_assert_ptr_eq(r1cs->curve, key->curve);
        ck_assert_uint_eq(r1cs->n_vars, key->n_vars);
        ck_assert_uint_eq(r1cs->n_public, key->n_public);
        ck_assert_uint_gt(r1cs->n_constraints, key->domain_size / 2 - key->n_public - 1);
        r1cs_close(r1cs);
        zkey_close(key);
    }
}
END_TEST

START_TEST(accepts_the_witnesses_of_circom) {
    const char *const names[] = {"factor", "factor381", "merkle", "range"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64], witness_path[64];
        struct r1cs *r1cs;
        struct wtns *wtns;
        (void)snprintf(path, sizeof path, "tests/circuits/%s/%s.r1cs", names[i], names[i]);
        (void)snprintf(witness_path, sizeof witness_path, "tests/circuits/%s/witness.wtns",
                       names[i]);
        CHECK_OK(r1cs_open(path, &r1cs, &error));
        CHECK_OK(wtns_open(witness_path, &wtns, &error));
        CHECK_OK(r1cs_check_witness(r1cs, wtns, &error));
        wtns_close(wtns);
        r1cs_close(r1cs);
    }
}
END_TEST

/* In the builder's circuits constraint i defines one new wire, n_public + 2 + i. */
START_TEST(names_the_first_constraint_that_fails) {
    for (int i = 0; i < 2 * CURVE_COUNT; i++) {
        struct fixture made;
        struct circuit_spec spec = {.curve = (enum curve_id)(i / 2),
                                    .kind = i % 2 == 0 ? CIRCUIT_DENSE : CIRCUIT_BITS,
                                    .n_constraints = 3000,
                                    .n_public = 2,
                                    .seed = 7};
        fixture_open(&made, &spec);
        CHECK_OK(r1cs_check_witness(made.r1cs, made.wtns, &error));
        const uint32_t at[] = {0, 1, 1234, 2999};
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            struct scalar *values = malloc(made.wtns->n_vars * sizeof *values);
            struct wtns changed = *made.wtns;
            char expected[64];
            ck_assert_ptr_nonnull(values);
            memcpy(values, made.wtns->values, made.wtns->n_vars * sizeof *values);
            changed.values = values;
            values[spec.n_public + 2 + at[k]].le[0] ^= 6;
            (void)snprintf(expected, sizeof expected, "constraint %u of 3000", at[k]);
            CHECK_ERR(r1cs_check_witness(made.r1cs, &changed, &error), ERR_WITNESS, expected);
            free(values);
        }
        fixture_close(&made);
    }
}
END_TEST

START_TEST(another_circuits_witness_is_a_mismatch) {
    struct r1cs *r1cs;
    struct wtns *wtns;
    CHECK_OK(r1cs_open(CIRCUIT, &r1cs, &error));
    CHECK_OK(wtns_open("tests/circuits/merkle/witness.wtns", &wtns, &error));
    CHECK_ERR(r1cs_check_witness(r1cs, wtns, &error), ERR_MISMATCH, "signals");
    wtns_close(wtns);
    CHECK_OK(wtns_open("tests/circuits/factor381/witness.wtns", &wtns, &error));
    CHECK_ERR(r1cs_check_witness(r1cs, wtns, &error), ERR_MISMATCH, "curve");
    wtns_close(wtns);
    r1cs_close(r1cs);
}
END_TEST

START_TEST(sizes_that_contradict_the_file_are_refused) {
    refuse_u32(header + N_VARS, 0, ERR_FORMAT, "do not fit");
    refuse_u32(header + N_VARS, 1, ERR_FORMAT, "constraint 0");
    refuse_u32(header + N_OUTPUTS, UINT32_MAX, ERR_FORMAT, "do not fit");
    refuse_u32(header + N_INPUTS, UINT32_MAX, ERR_FORMAT, "do not fit");
    refuse_u32(header + N_CONSTRAINTS, UINT32_MAX, ERR_FORMAT, "more than the section can hold");
    refuse_u32(header + N_CONSTRAINTS, 1, ERR_FORMAT, "too many");
    refuse_u32(header + PRIME, 5, ERR_UNSUPPORTED, "scalar modulus");
}
END_TEST

START_TEST(bad_terms_are_named) {
    const size_t row = 4, wire = 4;
    refuse_u32(constraints, UINT32_MAX, ERR_FORMAT, "expected");
    refuse_u32(constraints + row, 1u << 30, ERR_FORMAT, "constraint 0, wire 1073741824");
    refuse_u32(constraints + row + wire + SCALAR_BYTES - 4, UINT32_MAX, ERR_FORMAT,
               "coefficient is not below r");
}
END_TEST

START_TEST(custom_gates_are_unsupported) {
    struct bytes longer = {calloc(1, bytes.size + 16), bytes.size + 16};
    struct r1cs *r1cs;
    ck_assert_ptr_nonnull(longer.data);
    memcpy(longer.data, bytes.data, bytes.size);
    bytes_put_u32(&longer, 8, 4);
    bytes_put_u32(&longer, bytes.size, 5);
    bytes_put_u32(&longer, bytes.size + 4, 4);
    bytes_write(fixture.r1cs_path, &longer);
    CHECK_OK(r1cs_open(fixture.r1cs_path, &r1cs, &error)); /* announced, but none */
    r1cs_close(r1cs);
    bytes_put_u32(&longer, bytes.size + 12, 3);
    bytes_write(fixture.r1cs_path, &longer);
    CHECK_ERR(r1cs_open(fixture.r1cs_path, &r1cs, &error), ERR_UNSUPPORTED, "3 custom gates");
    free(longer.data);
}
END_TEST

START_TEST(a_circuit_cut_off_anywhere_is_refused) {
    size_t whole = bytes.size;
    for (bytes.size = 1; bytes.size < whole; bytes.size += bytes.size < 200 ? 1 : 11)
        refuse(ERR_FORMAT, fixture.r1cs_path);
}
END_TEST

START_TEST(a_changed_byte_never_crashes) {
    for (size_t i = 0; i < bytes.size; i += i < 400 ? 1 : 5) {
        struct r1cs *r1cs = NULL;
        bytes.data[i] ^= 0x41;
        bytes_write(fixture.r1cs_path, &bytes);
        if (r1cs_open(fixture.r1cs_path, &r1cs, &error) == ERR_NONE) r1cs_close(r1cs);
        bytes.data[i] ^= 0x41;
    }
}
END_TEST

START_TEST(a_missing_file_is_absent) {
    struct r1cs *r1cs;
    CHECK_ERR(r1cs_open("/nonexistent/c.r1cs", &r1cs, &error), ERR_ABSENT, "/nonexistent/c.r1cs");
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&reads_circuits_of_circom,
                                         &accepts_the_witnesses_of_circom,
                                         &names_the_first_constraint_that_fails,
                                         &another_circuits_witness_is_a_mismatch,
                                         &sizes_that_contradict_the_file_are_refused,
                                         &bad_terms_are_named,
                                         &custom_gates_are_unsupported,
                                         &a_circuit_cut_off_anywhere_is_refused,
                                         &a_changed_byte_never_crashes,
                                         &a_missing_file_is_absent};
    return run_tests("r1cs", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
