#include "service/commands/output.h"

#include "gpu/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LINKS_MAX = 40 };

static enum err no_memory(struct error *error) {
    return error_set(error, ERR_HOST_MEMORY, "out of memory");
}

/* --- where a name leads --- */

/* The bytes of the folder's name with its slash; 0 for the current folder. */
static size_t folder_bytes(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* The path that the link `path` holds, seen from where `path` is seen from. */
static enum err follow(const char *path, char **out, struct error *error) {
    char held[PATH_MAX];
    ssize_t n = readlink(path, held, sizeof held - 1);
    if (n < 0)
        return error_set(error, ERR_IO, "%s: cannot follow the link: %s", path, strerror(errno));
    held[n] = '\0';
    size_t folder = held[0] == '/' ? 0 : folder_bytes(path);
    if (asprintf(out, "%.*s%s", (int)folder, path, held) >= 0) return ERR_NONE;
    *out = NULL;
    return no_memory(error);
}

/* A link in /proc leads to an open file, whatever its text says. */
static bool is_in_proc(const char *path) {
    struct statfs fs = {0};
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return false;
    bool is_proc = fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
    (void)close(fd);
    return is_proc;
}

enum err output_target(const char *path, char **target, struct error *error) {
    struct stat st;
    char *next, *at = strdup(path);
    enum err rc = at ? ERR_NONE : no_memory(error);
    bool is_there = false;
    for (int links = 0; rc == ERR_NONE; links++) {
        is_there = lstat(at, &st) == 0;
        if (!is_there || !S_ISLNK(st.st_mode) || is_in_proc(at)) break;
        rc = links < LINKS_MAX ? follow(at, &next, error)
                               : error_set(error, ERR_IO, "%s: too many links", path);
        if (rc == ERR_NONE) free(at), at = next;
    }
    if (rc == ERR_NONE && (!is_there || S_ISREG(st.st_mode))) {
        *target = at;
        return ERR_NONE;
    }
    *target = NULL;
    free(at);
    return rc;
}

/* --- which file it is --- */

struct place {
    const char *path;
    bool is_known;
    dev_t device;
    ino_t inode;             /* of the file; of the folder if there is no file */
    char name[NAME_MAX + 1]; /* in the folder; "" if there is a file */
};

/* Only regular files are told apart: a device can be read and written at once. */
static bool find_file(const char *path, struct place *place) {
    struct stat st;
    if (stat(path, &st) != 0) return false;
    place->is_known = S_ISREG(st.st_mode);
    place->device = st.st_dev;
    place->inode = st.st_ino;
    return true;
}

static void find_name(const char *path, struct place *place) {
    struct stat st;
    char folder[PATH_MAX];
    size_t n = folder_bytes(path);
    (void)snprintf(folder, sizeof folder, "%.*s.", (int)n, path);
    if (stat(folder, &st) != 0) return; /* writing to it will fail */
    place->is_known = true;
    place->device = st.st_dev;
    place->inode = st.st_ino;
    (void)snprintf(place->name, sizeof place->name, "%s", path + n);
}

static enum err find_place(const char *path, struct place *place, struct error *error) {
    char *target = NULL;
    enum err rc;
    *place = (struct place){.path = path};
    if (!*path || find_file(path, place)) return ERR_NONE;
    TRY(output_target(path, &target, error));
    if (target) find_name(target, place);
    free(target);
fail:
    return rc;
}

static bool is_same(const struct place *a, const struct place *b) {
    return a->is_known && b->is_known && a->device == b->device && a->inode == b->inode &&
           strcmp(a->name, b->name) == 0;
}

enum err output_check(const char *const *inputs, size_t n_inputs, const char *const *outputs,
                      size_t n_outputs, struct error *error) {
    size_t n = n_inputs + n_outputs;
    struct place *places = calloc(n, sizeof *places);
    enum err rc = places ? ERR_NONE : no_memory(error);
    for (size_t i = 0; i < n && rc == ERR_NONE; i++) {
        TRY(find_place(i < n_inputs ? inputs[i] : outputs[i - n_inputs], &places[i], error));
        for (size_t j = 0; j < i && i >= n_inputs; j++)
            if (is_same(&places[i], &places[j]))
                TRY(error_set(error, ERR_USAGE, "%s and %s are one file: %s", places[j].path,
                              places[i].path,
                              j < n_inputs ? "the input would be overwritten"
                                           : "one output would overwrite the other"));
    }
fail:
    free(places);
    return rc;
}

/* --- writing --- */

static enum err write_in_place(const struct output *out, struct error *error) {
    const char *at = out->bytes;
    size_t left = out->size;
    int fd = open(out->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    while (fd >= 0 && left > 0) {
        ssize_t n = write(fd, at, left);
        if (n < 0 && errno != EINTR) break;
        if (n > 0) at += n, left -= (size_t)n;
    }
    int cause = errno;
    if (fd >= 0 && close(fd) != 0 && left == 0) left = 1, cause = errno;
    if (fd >= 0 && left == 0) return ERR_NONE;
    return error_set(error, ERR_IO, "%s: cannot write: %s", out->path, strerror(cause));
}

/* *file stays NULL for what is to be written in place. */
static enum err prepare(const struct output *out, struct atomic_file **file, struct error *error) {
    char *target = NULL;
    enum err rc;
    TRY(output_target(out->path, &target, error));
    if (!target) return ERR_NONE;
    TRY(atomic_file_create(target, 0666, file, error));
    TRY(atomic_file_write(*file, out->bytes, out->size, error));
    TRY(atomic_file_sync(*file, error));
fail:
    free(target);
    return rc;
}

enum err output_write(const struct output *outputs, size_t n, struct error *error) {
    struct atomic_file **files = calloc(n, sizeof *files);
    enum err rc;
    if (!files) return no_memory(error);
    for (size_t i = 0; i < n; i++)
        TRY(prepare(&outputs[i], &files[i], error));
    for (size_t i = 0; i < n; i++)
        if (!files[i]) TRY(write_in_place(&outputs[i], error));
    for (size_t i = 0; i < n; i++)
        if (files[i]) TRY(atomic_file_commit(files[i], error));
    rc = ERR_NONE;
fail:
    for (size_t i = 0; i < n; i++)
        atomic_file_close(files[i]);
    free(files);
    return rc;
}
