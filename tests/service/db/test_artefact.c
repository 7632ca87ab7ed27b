/* Artefacts in the database, in the artefact folder and in the cache. */
#include "service/db/artefact.h"
#include "tests/service/database.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES = 2 * ARTEFACT_CHUNK_BYTES + 12345 };

static struct error error;
static char base[64], cache[80], root[80], file[80];
static struct artefact_places places;
static struct artefact artefact;

static struct db *connect_db(void) {
    static const struct db_statement *const statements[] = {&artefact_chunk_get, &artefact_put,
                                                            &artefact_chunk_put};
    return connect_with(statements, sizeof statements / sizeof *statements);
}

static void write_file(const char *path, size_t n, uint8_t seed) {
    FILE *stream = fopen(path, "wb");
    ck_assert_ptr_nonnull(stream);
    for (size_t i = 0; i < n; i++)
        fputc((int)((i * 7 + i / 1000 + seed) & 0xff), stream);
    ck_assert_int_eq(fclose(stream), 0);
}

static void setup(void) {
    db = connect_db();
    script("truncate proverq_private.artefact cascade");
    snprintf(base, sizeof base, "/tmp/proverq-artefact-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(base));
    snprintf(cache, sizeof cache, "%s/cache", base);
    snprintf(root, sizeof root, "%s/root", base);
    snprintf(file, sizeof file, "%s/key.zkey", base);
    ck_assert_int_eq(mkdir(cache, 0700), 0);
    ck_assert_int_eq(mkdir(root, 0700), 0);
    write_file(file, FILE_BYTES, 0);
    places = (struct artefact_places){cache, root};
}

static void teardown(void) {
    char command[128];
    close_db();
    snprintf(command, sizeof command, "rm -rf '%s'", base);
    ck_assert_int_eq(system(command), 0);
}

static void store(uint64_t limit) {
    CHECK_OK(artefact_describe(&places, ARTEFACT_ZKEY, file, limit, &artefact, &error));
    CHECK_OK(db_begin(db, &error));
    CHECK_OK(artefact_store(&places, db, file, &artefact, &error));
    CHECK_OK(db_commit(db, &error));
}

static void fetched_is_the_file(bool over_the_network) {
    char *path = NULL;
    bool fetched;
    struct sha256 hash;
    uint64_t bytes;
    CHECK_OK(artefact_fetch(&places, db, &artefact, &path, &fetched, &error));
    ck_assert(fetched == over_the_network);
    CHECK_OK(artefact_hash(path, &hash, &bytes, &error));
    ck_assert_mem_eq(&hash, &artefact.sha256, sizeof hash);
    ck_assert_uint_eq(bytes, FILE_BYTES);
    free(path);
}

static void refused(enum err code) {
    char *path = NULL;
    bool fetched;
    enum err rc = artefact_fetch(&places, db, &artefact, &path, &fetched, &error);
    ck_assert_msg(rc == code, "%s: %s", error_name(rc), error.text);
    ck_assert_ptr_null(path);
}

/* How many files of the cache end so. */
static int count(const char *ending) {
    DIR *folder = opendir(cache);
    int n = 0;
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        size_t length = strlen(entry->d_name), want = strlen(ending);
        n += length >= want && strcmp(entry->d_name + length - want, ending) == 0;
    }
    closedir(folder);
    return n;
}

START_TEST(what_is_stored_is_fetched_once_and_then_cached) {
    store(UINT64_MAX);
    fetched_is_the_file(true);
    fetched_is_the_file(false);
    ck_assert_int_eq(count(".zkey"), 1);
    ck_assert_int_eq(count(".part"), 0);
}
END_TEST

START_TEST(storing_again_changes_nothing) {
    store(UINT64_MAX);
    store(UINT64_MAX);
    store(10); /* known: it stays where it is */
    artefact.path[0] = '\0';
    fetched_is_the_file(true);
}
END_TEST

START_TEST(a_corrupt_file_of_the_cache_is_fetched_again) {
    char hex[SHA256_HEX_BYTES], path[256];
    store(UINT64_MAX);
    fetched_is_the_file(true);
    sha256_format(&artefact.sha256, hex);
    snprintf(path, sizeof path, "%s/%s.zkey", cache, hex);
    write_file(path, FILE_BYTES, 1);
    fetched_is_the_file(true);
    ck_assert_int_eq(truncate(path, 1000), 0);
    fetched_is_the_file(true);
}
END_TEST

START_TEST(what_the_database_has_wrong_is_refused_and_not_kept) {
    store(UINT64_MAX);
    script("update proverq_private.artefact_chunk set data = set_byte(data, 5, 255 - "
           "get_byte(data, 5)) "
           "where idx = 1");
    refused(ERR_MISMATCH);
    script("delete from proverq_private.artefact_chunk where idx = 1");
    refused(ERR_MISMATCH);
    script("delete from proverq_private.artefact_chunk");
    refused(ERR_MISMATCH);
    ck_assert_int_eq(count(".zkey") + count(".part"), 0);
}
END_TEST

static void *fetch_in_thread(void *arg) {
    struct error mine;
    struct db *connection = arg;
    char *path = NULL;
    bool fetched = false;
    enum err rc = artefact_fetch(&places, connection, &artefact, &path, &fetched, &mine);
    free(path);
    return (void *)(uintptr_t)(rc != ERR_NONE ? 2 : fetched ? 1 : 0);
}

START_TEST(many_that_fetch_at_once_download_it_once) {
    enum { N = 4 };
    pthread_t threads[N];
    struct db *connections[N];
    uintptr_t downloads = 0;
    store(UINT64_MAX);
    for (int i = 0; i < N; i++)
        connections[i] = connect_db();
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, fetch_in_thread, connections[i]), 0);
    for (int i = 0; i < N; i++) {
        void *result;
        pthread_join(threads[i], &result);
        ck_assert_uint_lt((uintptr_t)result, 2);
        downloads += (uintptr_t)result;
    }
    ck_assert_uint_eq(downloads, 1);
    for (int i = 0; i < N; i++)
        db_close(connections[i]);
}
END_TEST

START_TEST(a_large_file_goes_to_the_artefact_folder) {
    store(FILE_BYTES - 1);
    ck_assert_uint_gt(strlen(artefact.path), 0);
    fetched_is_the_file(false);
    ck_assert_int_eq(count(".zkey"), 0);
    places.root = "";
    refused(ERR_ABSENT);
    places.root = base; /* another folder, without it */
    refused(ERR_ABSENT);
    places.root = root;
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, artefact.path);
    ck_assert_int_eq(truncate(path, 7), 0);
    refused(ERR_MISMATCH);
}
END_TEST

START_TEST(a_large_file_without_a_folder_is_refused) {
    places.root = "";
    ck_assert_int_eq(artefact_describe(&places, ARTEFACT_ZKEY, file, 10, &artefact, &error),
                     ERR_USAGE);
    ck_assert_ptr_nonnull(strstr(error.text, "--artefact-root"));
}
END_TEST

START_TEST(a_path_that_leaves_the_folder_is_refused) {
    store(10);
    snprintf(artefact.path, sizeof artefact.path, "../key.zkey");
    refused(ERR_MISMATCH);
}
END_TEST

START_TEST(a_file_that_changes_meanwhile_is_not_stored) {
    CHECK_OK(artefact_describe(&places, ARTEFACT_ZKEY, file, UINT64_MAX, &artefact, &error));
    write_file(file, FILE_BYTES, 9);
    CHECK_OK(db_begin(db, &error));
    ck_assert_int_eq(artefact_store(&places, db, file, &artefact, &error), ERR_IO);
    db_rollback(db);
    CHECK_OK(artefact_describe(&places, ARTEFACT_ZKEY, file, 10, &artefact, &error));
    write_file(file, FILE_BYTES, 10);
    CHECK_OK(db_begin(db, &error));
    ck_assert_int_eq(artefact_store(&places, db, file, &artefact, &error), ERR_IO);
    db_rollback(db);
}
END_TEST

START_TEST(an_empty_or_missing_file_is_refused) {
    ck_assert_int_eq(truncate(file, 0), 0);
    ck_assert_int_eq(artefact_describe(&places, ARTEFACT_ZKEY, file, 10, &artefact, &error),
                     ERR_FORMAT);
    ck_assert_int_eq(
        artefact_describe(&places, ARTEFACT_ZKEY, "/nonexistent", 10, &artefact, &error),
        ERR_ABSENT);
}
END_TEST

START_TEST(a_check_is_remembered_by_hash) {
    struct sha256 other = {{1}};
    store(UINT64_MAX);
    ck_assert(!artefact_is_checked(&places, &artefact.sha256));
    CHECK_OK(artefact_mark_checked(&places, &artefact.sha256, &error));
    ck_assert(artefact_is_checked(&places, &artefact.sha256));
    ck_assert(!artefact_is_checked(&places, &other));
}
END_TEST

static void cache_dir_is(const char *option, const char *wanted) {
    char *path = NULL;
    struct stat status;
    CHECK_OK(artefact_cache_dir(option, &path, &error));
    ck_assert_str_eq(path, wanted);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert(S_ISDIR(status.st_mode));
    free(path);
}

START_TEST(the_cache_is_where_it_was_asked_for) {
    char xdg[100], home[120], option[120];
    snprintf(xdg, sizeof xdg, "%s/xdg", base);
    snprintf(home, sizeof home, "%s/home", base);
    snprintf(option, sizeof option, "%s/a/b/c", base);
    setenv("HOME", home, 1);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("CACHE_DIRECTORY");
    char wanted[200];
    snprintf(wanted, sizeof wanted, "%s/.cache/proverq", home);
    cache_dir_is("", wanted);
    setenv("XDG_CACHE_HOME", xdg, 1);
    snprintf(wanted, sizeof wanted, "%s/proverq", xdg);
    cache_dir_is("", wanted);
    setenv("CACHE_DIRECTORY", cache, 1);
    cache_dir_is("", cache);
    cache_dir_is(option, option);
    char *path = NULL;
    ck_assert_int_eq(artefact_cache_dir("/proc/none", &path, &error), ERR_IO);
    ck_assert_ptr_null(path);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&what_is_stored_is_fetched_once_and_then_cached,
                                         &storing_again_changes_nothing,
                                         &a_corrupt_file_of_the_cache_is_fetched_again,
                                         &what_the_database_has_wrong_is_refused_and_not_kept,
                                         &many_that_fetch_at_once_download_it_once,
                                         &a_large_file_goes_to_the_artefact_folder,
                                         &a_large_file_without_a_folder_is_refused,
                                         &a_path_that_leaves_the_folder_is_refused,
                                         &a_file_that_changes_meanwhile_is_not_stored,
                                         &an_empty_or_missing_file_is_refused,
                                         &a_check_is_remembered_by_hash,
                                         &the_cache_is_where_it_was_asked_for};
    return run_database_tests("artefact", setup, teardown, tests, sizeof tests / sizeof *tests);
}
