#include "service/db/artefact.h"
#include "service/common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

const struct db_statement artefact_chunk_get = {"artefact_chunk_get", "xi", "x"};
const struct db_statement artefact_put = {"artefact_put", "xtlt", "b"};
const struct db_statement artefact_chunk_put = {"artefact_chunk_put", "xix", ""};

const char *artefact_kind_name(enum artefact_kind kind) {
    static const char *const names[] = {"zkey", "r1cs", "wasm", "calculator", "dat"};
    return names[kind];
}

void sha256_format(const struct sha256 *hash, char out[SHA256_HEX_BYTES]) {
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        out[2 * i] = hex[hash->bytes[i] >> 4];
        out[2 * i + 1] = hex[hash->bytes[i] & 15];
    }
    out[SHA256_HEX_BYTES - 1] = '\0';
}

/* --- places --- */

static enum err no_memory(struct error *error) {
    return error_set(error, ERR_HOST_MEMORY, "out of memory");
}

/* asprintf without its unspecified result on failure. */
static enum err join(char **out, struct error *error, const char *a, const char *b, const char *c) {
    if (asprintf(out, "%s%s%s", a, b, c) >= 0) return ERR_NONE;
    *out = NULL;
    return no_memory(error);
}

static enum err cache_path(const struct artefact_places *places, const struct sha256 *hash,
                           const char *suffix, char **out, struct error *error) {
    char hex[SHA256_HEX_BYTES];
    sha256_format(hash, hex);
    if (asprintf(out, "%s/%s%s", places->cache, hex, suffix) >= 0) return ERR_NONE;
    *out = NULL;
    return no_memory(error);
}

/* mkdir -p, the folders that it makes for us alone. */
static enum err make_folders(char *path, struct error *error) {
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash) *slash = '\0';
        int failed = mkdir(path, 0700) != 0 && errno != EEXIST;
        if (failed)
            return error_set(error, ERR_IO, "cannot make the cache folder %s: %s; set --cache-dir",
                             path, strerror(errno));
        if (!slash) return ERR_NONE;
        *slash = '/';
    }
}

enum err artefact_cache_dir(const char *option, char **out, struct error *error) {
    const char *systemd = getenv("CACHE_DIRECTORY"), *xdg = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    enum err rc;
    *out = NULL;
    if (*option)
        TRY(join(out, error, option, "", ""));
    else if (systemd && *systemd)
        TRY(join(out, error, systemd, "", ""));
    else if (xdg && *xdg == '/')
        TRY(join(out, error, xdg, "/proverq", ""));
    else if (home && *home == '/')
        TRY(join(out, error, home, "/.cache/proverq", ""));
    else
        TRY(join(out, error, "/var/cache/proverq", "", ""));
    TRY(make_folders(*out, error));
    if (access(*out, R_OK | W_OK | X_OK) != 0)
        TRY(error_set(error, ERR_IO, "the cache folder %s: %s; set --cache-dir", *out,
                      strerror(errno)));
    return ERR_NONE;
fail:
    free(*out);
    *out = NULL;
    return rc;
}

/* --- hashing --- */

/* Takes each piece of a file; NULL-able. */
typedef enum err piece_taker(void *arg, int32_t index, const uint8_t *bytes, size_t n,
                             struct error *error);

static enum err read_piece(int fd, const char *path, uint8_t *piece, size_t *n,
                           struct error *error) {
    *n = 0;
    while (*n < ARTEFACT_CHUNK_BYTES) {
        ssize_t got = read(fd, piece + *n, ARTEFACT_CHUNK_BYTES - *n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return error_set(error, ERR_IO, "%s: %s", path, strerror(errno));
        if (got == 0) break;
        *n += (size_t)got;
    }
    return ERR_NONE;
}

static enum err open_regular(const char *path, int *fd, struct error *error) {
    struct stat status;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return error_set(error, errno == ENOENT ? ERR_ABSENT : ERR_IO, "%s: %s", path,
                         strerror(errno));
    if (fstat(*fd, &status) != 0 || !S_ISREG(status.st_mode))
        return error_set(error, ERR_IO, "%s is not a regular file", path);
    return ERR_NONE;
}

/* Hashes the file and hands each chunk of it to `take`. */
static enum err walk_file(const char *path, piece_taker *take, void *arg, struct sha256 *hash,
                          uint64_t *bytes, struct error *error) {
    uint8_t *piece = malloc(ARTEFACT_CHUNK_BYTES);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int fd = -1;
    size_t n = 0;
    enum err rc;
    *bytes = 0;
    if (!piece || !context || !EVP_DigestInit_ex(context, EVP_sha256(), NULL))
        TRY(no_memory(error));
    TRY(open_regular(path, &fd, error));
    for (int32_t i = 0;; i++) {
        TRY(read_piece(fd, path, piece, &n, error));
        if (n == 0) break;
        *bytes += n;
        if (!EVP_DigestUpdate(context, piece, n)) TRY(no_memory(error));
        if (take) TRY(take(arg, i, piece, n, error));
        if (i == INT32_MAX) TRY(error_set(error, ERR_UNSUPPORTED, "%s is too large", path));
    }
    if (!EVP_DigestFinal_ex(context, hash->bytes, NULL)) TRY(no_memory(error));
fail:
    if (fd >= 0) close(fd);
    EVP_MD_CTX_free(context);
    free(piece);
    return rc;
}

enum err artefact_hash(const char *path, struct sha256 *hash, uint64_t *bytes,
                       struct error *error) {
    return walk_file(path, NULL, NULL, hash, bytes, error);
}

/* ERR_MISMATCH unless the file is the artefact; `label` is what the error calls it. */
static enum err check_file(const char *path, const char *label, const struct artefact *artefact,
                           struct error *error) {
    struct sha256 hash;
    uint64_t bytes;
    enum err rc;
    TRY(artefact_hash(path, &hash, &bytes, error));
    if (bytes != artefact->bytes || memcmp(&hash, &artefact->sha256, sizeof hash) != 0) {
        char is[SHA256_HEX_BYTES], should[SHA256_HEX_BYTES];
        sha256_format(&hash, is);
        sha256_format(&artefact->sha256, should);
        TRY(error_set(error, ERR_MISMATCH,
                      "%s is corrupt: %llu bytes with SHA-256 %s, expected %llu bytes with %s",
                      label, (unsigned long long)bytes, is, (unsigned long long)artefact->bytes,
                      should));
    }
fail:
    return rc;
}

/* --- fetching --- */

static enum err write_piece(int fd, const char *path, const uint8_t *bytes, size_t n,
                            struct error *error) {
    while (n > 0) {
        ssize_t written = write(fd, bytes, n);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return error_set(error, ERR_IO, "writing %s: %s", path, strerror(errno));
        bytes += written;
        n -= (size_t)written;
    }
    return ERR_NONE;
}

/* Copies the chunks that the database has into `path`. A missing one makes the file too short,
 * which its hash tells. */
static enum err download(struct db *db, const struct artefact *artefact, const char *path,
                         struct error *error) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct db_result *rows = NULL;
    uint64_t total = 0;
    enum err rc = ERR_NONE;
    if (fd < 0) return error_set(error, ERR_IO, "%s: %s", path, strerror(errno));
    for (int32_t i = 0; total < artefact->bytes; i++) {
        size_t n;
        TRY(db_run(db, &artefact_chunk_get,
                   DB_PARAMS(db_bytes(artefact->sha256.bytes, SHA256_BYTES), db_int(i)), &rows,
                   error));
        if (db_rows(rows) != 1) break;
        const uint8_t *bytes = db_get_bytes(rows, 0, 0, &n);
        if (n == 0) break;
        TRY(write_piece(fd, path, bytes, n, error));
        total += n;
        db_free(rows);
        rows = NULL;
    }
fail:
    db_free(rows);
    if (close(fd) != 0 && rc == ERR_NONE)
        rc = error_set(error, ERR_IO, "%s: %s", path, strerror(errno));
    return rc;
}

/* One process of a host at a time fetches an artefact; the others wait and then find it. */
static enum err lock_artefact(const struct artefact_places *places, const struct sha256 *hash,
                              int *fd, struct error *error) {
    char *path = NULL;
    enum err rc;
    TRY(cache_path(places, hash, ".lock", &path, error));
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*fd < 0) TRY(error_set(error, ERR_IO, "%s: %s", path, strerror(errno)));
    while (flock(*fd, LOCK_EX) != 0)
        if (errno != EINTR) TRY(error_set(error, ERR_IO, "locking %s: %s", path, strerror(errno)));
fail:
    free(path);
    return rc;
}

static enum err fetch_locked(const struct artefact_places *places, struct db *db,
                             const struct artefact *artefact, const char *path, bool *fetched,
                             struct error *error) {
    static const char *const labels[] = {
        "the proving key in the database", "the r1cs in the database", "the wasm in the database",
        "the calculator in the database", "the .dat file in the database"};
    char *part = NULL;
    enum err rc = check_file(path, path, artefact, error);
    if (rc == ERR_NONE) return rc;
    if (rc == ERR_MISMATCH)
        log_warn("a cached file is corrupt and will be fetched again",
                 log_text("error", error->text));
    TRY(cache_path(places, &artefact->sha256, ".part", &part, error));
    TRY(download(db, artefact, part, error));
    TRY(check_file(part, labels[artefact->kind], artefact, error));
    if (rename(part, path) != 0) TRY(error_set(error, ERR_IO, "%s: %s", path, strerror(errno)));
    *fetched = true;
fail:
    if (rc != ERR_NONE && part) unlink(part);
    free(part);
    return rc;
}

static enum err fetch_from_database(const struct artefact_places *places, struct db *db,
                                    const struct artefact *artefact, char **path, bool *fetched,
                                    struct error *error) {
    char suffix[16];
    int lock = -1;
    enum err rc;
    snprintf(suffix, sizeof suffix, ".%s", artefact_kind_name(artefact->kind));
    TRY(cache_path(places, &artefact->sha256, suffix, path, error));
    TRY(lock_artefact(places, &artefact->sha256, &lock, error));
    TRY(fetch_locked(places, db, artefact, *path, fetched, error));
fail:
    if (lock >= 0) close(lock);
    return rc;
}

static enum err find_in_root(const struct artefact_places *places, const struct artefact *artefact,
                             char **path, struct error *error) {
    enum err rc;
    if (!*places->root)
        TRY(error_set(
            error, ERR_ABSENT,
            "artefact %s is in the artefact folder; start the prover with --artefact-root",
            artefact->path));
    if (strchr(artefact->path, '/') || artefact->path[0] == '.')
        TRY(error_set(error, ERR_MISMATCH, "'%s' is not a file name of the artefact folder",
                      artefact->path));
    TRY(join(path, error, places->root, "/", artefact->path));
    TRY(check_file(*path, *path, artefact, error));
fail:
    return rc;
}

enum err artefact_fetch(const struct artefact_places *places, struct db *db,
                        const struct artefact *artefact, char **path, bool *fetched,
                        struct error *error) {
    enum err rc;
    *path = NULL;
    *fetched = false;
    if (artefact->path[0])
        TRY(find_in_root(places, artefact, path, error));
    else
        TRY(fetch_from_database(places, db, artefact, path, fetched, error));
    return ERR_NONE;
fail:
    free(*path);
    *path = NULL;
    return rc;
}

/* --- storing --- */

struct storing {
    struct db *db;
    const struct sha256 *hash;
};

static enum err store_chunk(void *arg, int32_t index, const uint8_t *bytes, size_t n,
                            struct error *error) {
    const struct storing *storing = arg;
    return db_run(
        storing->db, &artefact_chunk_put,
        DB_PARAMS(db_bytes(storing->hash->bytes, SHA256_BYTES), db_int(index), db_bytes(bytes, n)),
        NULL, error);
}

static enum err copy_chunk(void *arg, int32_t index, const uint8_t *bytes, size_t n,
                           struct error *error) {
    (void)index;
    return write_piece(*(int *)arg, "the copy in the artefact folder", bytes, n, error);
}

static enum err changed_meanwhile(const char *file, struct error *error) {
    return error_set(error, ERR_IO, "%s was changed while it was read; try again", file);
}

/* Puts a copy of the file into the artefact folder, whole or not at all. */
static enum err copy_to_root(const struct artefact_places *places, const char *file,
                             const struct artefact *artefact, struct error *error) {
    char *path = NULL, *part = NULL;
    struct sha256 hash;
    uint64_t bytes;
    int fd = -1;
    enum err rc;
    TRY(join(&path, error, places->root, "/", artefact->path));
    TRY(join(&part, error, path, ".part", ""));
    if (check_file(path, path, artefact, error) == ERR_NONE) goto fail; /* it is there */
    fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) TRY(error_set(error, ERR_IO, "%s: %s", part, strerror(errno)));
    TRY(walk_file(file, copy_chunk, &fd, &hash, &bytes, error));
    if (memcmp(&hash, &artefact->sha256, sizeof hash) != 0) TRY(changed_meanwhile(file, error));
    if (fsync(fd) != 0 || rename(part, path) != 0)
        TRY(error_set(error, ERR_IO, "%s: %s", path, strerror(errno)));
fail:
    if (fd >= 0) close(fd);
    if (rc != ERR_NONE && fd >= 0) unlink(part);
    free(part);
    free(path);
    return rc;
}

static enum err store_in_chunks(struct db *db, const char *file, const struct artefact *artefact,
                                struct error *error) {
    struct storing storing = {db, &artefact->sha256};
    struct sha256 hash;
    uint64_t bytes;
    enum err rc;
    TRY(walk_file(file, store_chunk, &storing, &hash, &bytes, error));
    if (memcmp(&hash, &artefact->sha256, sizeof hash) != 0) TRY(changed_meanwhile(file, error));
fail:
    return rc;
}

/* Its name in the artefact folder, when it is too large for the database. */
static enum err choose_path(const struct artefact_places *places, const char *file, uint64_t limit,
                            struct artefact *artefact, struct error *error) {
    char hex[SHA256_HEX_BYTES];
    artefact->path[0] = '\0';
    if (artefact->bytes <= limit) return ERR_NONE;
    if (!*places->root)
        return error_set(error, ERR_USAGE,
                         "%s has %llu bytes, more than --artefact-limit (%llu) lets into the "
                         "database; give --artefact-root, a folder that every host sees",
                         file, (unsigned long long)artefact->bytes, (unsigned long long)limit);
    sha256_format(&artefact->sha256, hex);
    snprintf(artefact->path, sizeof artefact->path, "%s.%s", hex,
             artefact_kind_name(artefact->kind));
    return ERR_NONE;
}

enum err artefact_describe(const struct artefact_places *places, enum artefact_kind kind,
                           const char *file, uint64_t limit, struct artefact *out,
                           struct error *error) {
    enum err rc;
    out->kind = kind;
    TRY(artefact_hash(file, &out->sha256, &out->bytes, error));
    if (out->bytes == 0) TRY(error_set(error, ERR_FORMAT, "%s is empty", file));
    TRY(choose_path(places, file, limit, out, error));
fail:
    return rc;
}

enum err artefact_store(const struct artefact_places *places, struct db *db, const char *file,
                        const struct artefact *artefact, struct error *error) {
    const char *path = artefact->path[0] ? artefact->path : NULL;
    struct db_result *rows = NULL;
    enum err rc;
    TRY(db_run(db, &artefact_put,
               DB_PARAMS(db_bytes(artefact->sha256.bytes, SHA256_BYTES),
                         db_text(artefact_kind_name(artefact->kind)),
                         db_int((int64_t)artefact->bytes), db_text(path)),
               &rows, error));
    if (db_rows(rows) == 0) goto fail; /* known, with its chunks or its path */
    if (path)
        TRY(copy_to_root(places, file, artefact, error));
    else
        TRY(store_in_chunks(db, file, artefact, error));
fail:
    db_free(rows);
    return rc;
}

/* --- checked once per hash --- */

/* A check that finds more than the one before gets a new number, and old marks count no more. */
#define CHECKED_SUFFIX ".checked-1"

enum err artefact_mark_checked(const struct artefact_places *places, const struct sha256 *hash,
                               struct error *error) {
    char *path = NULL;
    int fd = -1;
    enum err rc;
    TRY(cache_path(places, hash, CHECKED_SUFFIX, &path, error));
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) TRY(error_set(error, ERR_IO, "%s: %s", path, strerror(errno)));
    close(fd);
fail:
    free(path);
    return rc;
}

bool artefact_is_checked(const struct artefact_places *places, const struct sha256 *hash) {
    struct error error;
    char *path = NULL;
    bool is_checked = cache_path(places, hash, CHECKED_SUFFIX, &path, &error) == ERR_NONE &&
                      access(path, F_OK) == 0;
    free(path);
    return is_checked;
}
