#include "gpu/atomic_file.h"

#include "tests/gpu/fixture.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BIG = 200000 /* more than the buffer */ };

static struct fixture fixture;
static struct error error;

static void set_up(void) {
    fixture_dir(&fixture);
}

static void tear_down(void) {
    fixture_close(&fixture);
}

static size_t files_in_dir(void) {
    size_t n = 0;
    DIR *dir = opendir(fixture.dir);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += entry->d_name[0] != '.';
    (void)closedir(dir);
    return n;
}

START_TEST(all_pieces_arrive_in_order) {
    struct atomic_file *file;
    uint8_t *expected = malloc(BIG);
    size_t done = 0;
    ck_assert_ptr_nonnull(expected);
    for (size_t i = 0; i < BIG; i++)
        expected[i] = (uint8_t)(i * 7 + i / 256);
    CHECK_OK(atomic_file_create(fixture.zkey_path, 0644, &file, &error));
    for (size_t n = 0; done < BIG; n = n * 3 + 1) { /* small and large, 0 too */
        size_t piece = n < BIG - done ? n : BIG - done;
        CHECK_OK(atomic_file_write(file, expected + done, piece, &error));
        done += piece;
    }
    ck_assert_int_ne(access(fixture.zkey_path, F_OK), 0);
    CHECK_OK(atomic_file_commit(file, &error));
    atomic_file_close(file);
    struct bytes bytes = bytes_read(fixture.zkey_path);
    ck_assert_uint_eq(bytes.size, BIG);
    ck_assert_mem_eq(bytes.data, expected, BIG);
    ck_assert_uint_eq(files_in_dir(), 1);
    free(bytes.data);
    free(expected);
}
END_TEST

START_TEST(nothing_remains_of_a_file_given_up) {
    struct atomic_file *file;
    CHECK_OK(atomic_file_create(fixture.zkey_path, 0644, &file, &error));
    CHECK_OK(atomic_file_write(file, "x", 1, &error));
    ck_assert_uint_eq(files_in_dir(), 1);
    atomic_file_close(file);
    ck_assert_uint_eq(files_in_dir(), 0);
    atomic_file_close(NULL);
}
END_TEST

/* A limit on file sizes stands for a full disk. */
START_TEST(a_write_that_fails_leaves_nothing) {
    struct atomic_file *file;
    const struct rlimit small = {1000, 1000};
    uint8_t *zeros = calloc(1, BIG);
    ck_assert_ptr_nonnull(zeros);
    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    CHECK_OK(atomic_file_create(fixture.zkey_path, 0644, &file, &error));
    CHECK_ERR(atomic_file_write(file, zeros, BIG, &error), ERR_IO, "c.zkey: cannot write: ");
    atomic_file_close(file);
    CHECK_OK(atomic_file_create(fixture.zkey_path, 0644, &file, &error));
    CHECK_OK(atomic_file_write(file, zeros, 2000, &error)); /* buffered */
    CHECK_ERR(atomic_file_commit(file, &error), ERR_IO, "c.zkey: cannot write: ");
    atomic_file_close(file);
    ck_assert_uint_eq(files_in_dir(), 0);
    free(zeros);
}
END_TEST

START_TEST(a_missing_folder_is_an_error) {
    struct atomic_file *file;
    CHECK_ERR(atomic_file_create("/nonexistent/f", 0644, &file, &error), ERR_IO, "/nonexistent/f");
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &all_pieces_arrive_in_order, &nothing_remains_of_a_file_given_up,
        &a_write_that_fails_leaves_nothing, &a_missing_folder_is_an_error};
    return run_tests("atomic_file", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
