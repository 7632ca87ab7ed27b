/* Witnesses from rows and from files below the witness root. */
#include "service/prover/synthesis.h"
#include "tests/gpu/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_VARS = 5 };

static struct error error;
static char base[64], root[80];
static struct buffer buffer;
static struct zkey zkey; /* what a witness is compared with, without its points */

static const char *below(const char *folder, const char *name) {
    static char path[4][256];
    static int next;
    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

static void write_witness(const char *path, const struct curve_info *curve, uint32_t n_vars,
                          uint8_t first) {
    struct scalar values[N_VARS + 200] = {{{0}}};
    values[0].le[0] = first;
    for (uint32_t i = 1; i < n_vars; i++)
        values[i].le[0] = (uint8_t)(i * 3);
    ck_assert_int_eq(wtns_write(path, curve, values, n_vars, &error), ERR_NONE);
}

static void write_bytes(const char *path, const uint8_t *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    ck_assert_int_eq(fclose(file), 0);
}

static void setup(void) {
    snprintf(base, sizeof base, "/tmp/proverq-synthesis-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(base));
    snprintf(root, sizeof root, "%s/root", base);
    ck_assert_int_eq(mkdir(root, 0700), 0);
    ck_assert_int_eq(mkdir(below(root, "deep"), 0700), 0);
    zkey = (struct zkey){.curve = curve_info(CURVE_BN254), .n_vars = N_VARS, .n_public = 1};
    buffer = (struct buffer){.capacity = witness_buffer_bytes(&zkey)};
    buffer.bytes = malloc(buffer.capacity);
    ck_assert_ptr_nonnull(buffer.bytes);
}

static void teardown(void) {
    char command[128];
    free(buffer.bytes);
    snprintf(command, sizeof command, "rm -rf '%s'", base);
    ck_assert_int_eq(system(command), 0);
}

static enum err read_and_check(const char *path, struct wtns **out) {
    *out = NULL;
    buffer.used = 0;
    enum err rc = witness_read_file(root, path, &buffer, &error);
    return rc == ERR_NONE ? witness_check(&buffer, &zkey, out, &error) : rc;
}

static void refused(const char *path, enum err code) {
    struct wtns *wtns;
    enum err rc = read_and_check(path, &wtns);
    ck_assert_msg(rc == code, "%s: %s, %s", path, error_name(rc), error.text);
    ck_assert_ptr_null(wtns);
    ck_assert_uint_gt(strlen(error.text), 0);
}

START_TEST(a_file_below_the_root_is_read) {
    struct wtns *wtns;
    write_witness(below(root, "deep/a.wtns"), zkey.curve, N_VARS, 1);
    ck_assert_int_eq(symlink("deep/a.wtns", below(root, "link.wtns")), 0);
    static const char *const paths[] = {"deep/a.wtns", "./deep/../deep/a.wtns", "link.wtns"};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_msg(read_and_check(paths[i], &wtns) == ERR_NONE, "%s", error.text);
        ck_assert_uint_eq(wtns->n_vars, N_VARS);
        ck_assert_uint_eq(wtns->values[2].le[0], 6);
        ck_assert((const uint8_t *)wtns->values >= buffer.bytes &&
                  (const uint8_t *)(wtns->values + N_VARS) <= buffer.bytes + buffer.capacity);
        wtns_close(wtns);
    }
}
END_TEST

START_TEST(a_path_that_leaves_the_root_is_refused) {
    write_witness(below(base, "outside.wtns"), zkey.curve, N_VARS, 1);
    refused("../outside.wtns", ERR_INPUT);
    refused("deep/../../outside.wtns", ERR_INPUT);
    refused(below(base, "outside.wtns"), ERR_INPUT);
    refused(below(root, "deep"), ERR_INPUT); /* absolute, though inside */
}
END_TEST

START_TEST(a_link_that_leaves_the_root_is_refused) {
    write_witness(below(base, "outside.wtns"), zkey.curve, N_VARS, 1);
    ck_assert_int_eq(symlink("../outside.wtns", below(root, "relative.wtns")), 0);
    ck_assert_int_eq(symlink(below(base, "outside.wtns"), below(root, "absolute.wtns")), 0);
    ck_assert_int_eq(symlink("..", below(root, "up")), 0);
    ck_assert_int_eq(symlink("self", below(root, "self")), 0);
    refused("relative.wtns", ERR_INPUT);
    refused("absolute.wtns", ERR_INPUT);
    refused("up/outside.wtns", ERR_INPUT);
    refused("self", ERR_INPUT);
}
END_TEST

START_TEST(a_file_that_is_missing_is_only_not_here) {
    refused("none.wtns", ERR_ABSENT);
    refused("none/none.wtns", ERR_ABSENT);
    ck_assert_int_eq(witness_read_file("", "a.wtns", &buffer, &error), ERR_ABSENT);
    ck_assert_int_eq(witness_read_file("/nonexistent", "a.wtns", &buffer, &error), ERR_ABSENT);
}
END_TEST

START_TEST(what_is_no_regular_file_is_refused) {
    ck_assert_int_eq(mkfifo(below(root, "fifo"), 0600), 0);
    refused("deep", ERR_INPUT);
    refused("fifo", ERR_INPUT); /* and nobody waits for its writer */
    refused("", ERR_ABSENT);
}
END_TEST

START_TEST(a_truncated_witness_is_refused_at_every_length) {
    uint8_t whole[1024];
    write_witness(below(root, "a.wtns"), zkey.curve, N_VARS, 1);
    FILE *file = fopen(below(root, "a.wtns"), "rb");
    ck_assert_ptr_nonnull(file);
    size_t n = fread(whole, 1, sizeof whole, file);
    fclose(file);
    ck_assert_uint_eq(n, 76 + N_VARS * 32);
    for (size_t length = 0; length < n; length++) {
        write_bytes(below(root, "cut.wtns"), whole, length);
        refused("cut.wtns", ERR_FORMAT);
    }
}
END_TEST

START_TEST(a_witness_of_another_circuit_is_refused) {
    write_witness(below(root, "long.wtns"), zkey.curve, N_VARS + 1, 1);
    write_witness(below(root, "short.wtns"), zkey.curve, N_VARS - 1, 1);
    write_witness(below(root, "huge.wtns"), zkey.curve, N_VARS + 150, 1);
    write_witness(below(root, "curve.wtns"), curve_info(CURVE_BLS12_381), N_VARS, 1);
    refused("long.wtns", ERR_MISMATCH);
    refused("short.wtns", ERR_MISMATCH);
    refused("huge.wtns", ERR_MISMATCH); /* larger than the buffer */
    refused("curve.wtns", ERR_MISMATCH);
}
END_TEST

START_TEST(values_that_no_witness_has_are_refused) {
    uint8_t whole[76 + N_VARS * 32];
    struct wtns *wtns = NULL;
    write_witness(below(root, "two.wtns"), zkey.curve, N_VARS, 2);
    refused("two.wtns", ERR_FORMAT);
    write_witness(below(root, "a.wtns"), zkey.curve, N_VARS, 1);
    FILE *file = fopen(below(root, "a.wtns"), "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(whole, 1, sizeof whole, file), sizeof whole);
    fclose(file);
    memcpy(whole + 76 + 3 * 32, zkey.curve->r, 32); /* a value of r */
    buffer.used = 0;
    ck_assert_int_eq(witness_copy(whole, sizeof whole, &buffer, &error), ERR_NONE);
    ck_assert_int_eq(witness_check(&buffer, &zkey, &wtns, &error), ERR_FORMAT);
    ck_assert_ptr_null(wtns);
}
END_TEST

START_TEST(a_row_is_copied_or_refused_when_too_large) {
    uint8_t *large = calloc(1, buffer.capacity + 1);
    ck_assert_ptr_nonnull(large);
    ck_assert_int_eq(witness_copy(large, buffer.capacity + 1, &buffer, &error), ERR_MISMATCH);
    ck_assert_int_eq(witness_copy(large, buffer.capacity, &buffer, &error), ERR_NONE);
    ck_assert_uint_eq(buffer.used, buffer.capacity);
    free(large);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&a_file_below_the_root_is_read,
                                         &a_path_that_leaves_the_root_is_refused,
                                         &a_link_that_leaves_the_root_is_refused,
                                         &a_file_that_is_missing_is_only_not_here,
                                         &what_is_no_regular_file_is_refused,
                                         &a_truncated_witness_is_refused_at_every_length,
                                         &a_witness_of_another_circuit_is_refused,
                                         &values_that_no_witness_has_are_refused,
                                         &a_row_is_copied_or_refused_when_too_large};
    return run_tests("synthesis", setup, teardown, tests, sizeof tests / sizeof *tests);
}
