#include "gpu/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 16 };

struct atomic_file {
    char *path, *temporary;
    int fd;
    bool is_created;
    size_t buffered;
    char buffer[BUFFER_BYTES];
};

static enum err io_error(const struct atomic_file *file, const char *what, struct error *error) {
    return error_set(error, ERR_IO, "%s: cannot %s: %s", file->path, what, strerror(errno));
}

enum err atomic_file_create(const char *path, mode_t mode, struct atomic_file **out,
                            struct error *error) {
    enum err rc;
    struct atomic_file *file = calloc(1, sizeof *file);
    if (file == NULL) return error_set(error, ERR_HOST_MEMORY, "%s: out of memory", path);
    file->fd = -1;
    file->path = strdup(path);
    if (file->path == NULL || asprintf(&file->temporary, "%s.XXXXXX", path) < 0) {
        file->temporary = NULL;
        rc = error_set(error, ERR_HOST_MEMORY, "%s: out of memory", path);
        goto fail;
    }
    file->fd = mkostemp(file->temporary, O_CLOEXEC);
    if (file->fd < 0) {
        rc = io_error(file, "create a temporary file beside it", error);
        goto fail;
    }
    file->is_created = true;
    mode_t mask = umask(0);
    (void)umask(mask);
    if (fchmod(file->fd, mode & ~mask) != 0) {
        rc = io_error(file, "set its permissions", error);
        goto fail;
    }
    *out = file;
    return ERR_NONE;
fail:
    atomic_file_close(file);
    return rc;
}

static enum err write_through(struct atomic_file *file, const char *bytes, size_t n,
                              struct error *error) {
    while (n > 0) {
        ssize_t done = write(file->fd, bytes, n);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return io_error(file, "write", error);
        bytes += done;
        n -= (size_t)done;
    }
    return ERR_NONE;
}

static enum err flush(struct atomic_file *file, struct error *error) {
    size_t n = file->buffered;
    file->buffered = 0;
    return write_through(file, file->buffer, n, error);
}

enum err atomic_file_write(struct atomic_file *file, const void *bytes, size_t n,
                           struct error *error) {
    enum err rc;
    if (n > BUFFER_BYTES - file->buffered) TRY(flush(file, error));
    if (n > BUFFER_BYTES) return write_through(file, bytes, n, error);
    if (n > 0) memcpy(file->buffer + file->buffered, bytes, n);
    file->buffered += n;
    return ERR_NONE;
fail:
    return rc;
}

enum err atomic_file_sync(struct atomic_file *file, struct error *error) {
    enum err rc;
    TRY(flush(file, error));
    if (fsync(file->fd) != 0) return io_error(file, "sync", error);
fail:
    return rc;
}

enum err atomic_file_commit(struct atomic_file *file, struct error *error) {
    enum err rc;
    TRY(atomic_file_sync(file, error));
    if (rename(file->temporary, file->path) != 0) return io_error(file, "rename into place", error);
    file->is_created = false;
    return ERR_NONE;
fail:
    return rc;
}

void atomic_file_close(struct atomic_file *file) {
    if (file == NULL) return;
    if (file->fd >= 0) (void)close(file->fd);
    if (file->is_created) (void)unlink(file->temporary);
    free(file->temporary);
    free(file->path);
    free(file);
}
