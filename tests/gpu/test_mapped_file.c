#include "gpu/mapped_file.h"

#include "tests/gpu/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct fixture fixture;
static struct error error;
static const char *path;

static void set_up(void) {
    struct bytes bytes = {(uint8_t *)strdup("0123456789"), 10};
    fixture_dir(&fixture);
    path = fixture.zkey_path;
    bytes_write(path, &bytes);
    free(bytes.data);
}

static void tear_down(void) {
    fixture_close(&fixture);
}

START_TEST(both_ways_give_the_bytes) {
    enum err (*const opens[])(const char *, struct mapped_file **,
                              struct error *) = {mapped_file_open, mapped_file_read};
    for (size_t i = 0; i < sizeof opens / sizeof *opens; i++) {
        struct mapped_file *file;
        CHECK_OK(opens[i](path, &file, &error));
        ck_assert_uint_eq(mapped_file_size(file), 10);
        ck_assert_mem_eq(mapped_file_bytes(file), "0123456789", 10);
        ck_assert_str_eq(mapped_file_path(file), path);
        CHECK_OK(mapped_file_unchanged(file, &error));
        mapped_file_close(file);
    }
}
END_TEST

/* A mapping would kill the process here. */
START_TEST(a_file_that_was_read_outlives_its_truncation) {
    struct mapped_file *file;
    CHECK_OK(mapped_file_read(path, &file, &error));
    ck_assert_int_eq(truncate(path, 0), 0);
    ck_assert_mem_eq(mapped_file_bytes(file), "0123456789", 10);
    mapped_file_close(file);
}
END_TEST

START_TEST(a_file_that_changes_is_noticed) {
    struct mapped_file *file;
    CHECK_OK(mapped_file_open(path, &file, &error));
    ck_assert_int_eq(truncate(path, 11), 0);
    CHECK_ERR(mapped_file_unchanged(file, &error), ERR_IO, "changed while it was read");
    mapped_file_close(file);
}
END_TEST

START_TEST(what_is_no_file_is_refused) {
    struct mapped_file *file;
    CHECK_ERR(mapped_file_open("/nonexistent", &file, &error), ERR_ABSENT, "/nonexistent");
    CHECK_ERR(mapped_file_open(fixture.dir, &file, &error), ERR_IO, "not a regular file");
    CHECK_ERR(mapped_file_read("/dev/zero", &file, &error), ERR_IO, "not a regular file");
    CHECK_ERR(mapped_file_open("/dev/null/x", &file, &error), ERR_IO, "cannot open");
    ck_assert_int_eq(truncate(path, 0), 0);
    CHECK_ERR(mapped_file_open(path, &file, &error), ERR_FORMAT, "empty");
    mapped_file_close(NULL);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &both_ways_give_the_bytes, &a_file_that_was_read_outlives_its_truncation,
        &a_file_that_changes_is_noticed, &what_is_no_file_is_refused};
    return run_tests("mapped_file", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
