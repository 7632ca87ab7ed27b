#include "gpu/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct mapped_file {
    char *path;
    int fd;
    uint8_t *bytes;
    size_t size;
    bool is_mapped;
    struct timespec changed;
};

static enum err open_regular(const char *path, struct mapped_file *file, struct error *error) {
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0)
        return error_set(error, errno == ENOENT ? ERR_ABSENT : ERR_IO, "%s: cannot open: %s", path,
                         strerror(errno));
    struct stat st;
    if (fstat(file->fd, &st) != 0)
        return error_set(error, ERR_IO, "%s: cannot stat: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode)) return error_set(error, ERR_IO, "%s: not a regular file", path);
    if (st.st_size <= 0)
        return error_set(error, ERR_FORMAT, "%s: the file is empty: make or copy it again", path);
    file->size = (size_t)st.st_size;
    file->changed = st.st_mtim;
    return ERR_NONE;
}

static enum err map_bytes(struct mapped_file *file, struct error *error) {
    void *bytes = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, file->fd, 0);
    if (bytes == MAP_FAILED)
        return error_set(error, errno == ENOMEM ? ERR_HOST_MEMORY : ERR_IO, "%s: cannot map: %s",
                         file->path, strerror(errno));
    file->bytes = bytes;
    file->is_mapped = true;
    return ERR_NONE;
}

static enum err read_bytes(struct mapped_file *file, struct error *error) {
    file->bytes = malloc(file->size);
    if (file->bytes == NULL)
        return error_set(error, ERR_HOST_MEMORY, "%s: no memory for %zu bytes", file->path,
                         file->size);
    for (size_t done = 0; done < file->size;) {
        ssize_t n = read(file->fd, file->bytes + done, file->size - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return error_set(error, ERR_IO, "%s: cannot read: %s", file->path, strerror(errno));
        if (n == 0)
            return error_set(error, ERR_IO, "%s: the file became shorter while it was read",
                             file->path);
        done += (size_t)n;
    }
    return ERR_NONE;
}

static enum err load(const char *path, enum err (*fill)(struct mapped_file *, struct error *),
                     struct mapped_file **out, struct error *error) {
    enum err rc;
    struct mapped_file *file = calloc(1, sizeof *file);
    if (file == NULL) return error_set(error, ERR_HOST_MEMORY, "%s: out of memory", path);
    file->fd = -1;
    file->path = strdup(path);
    if (file->path == NULL) {
        rc = error_set(error, ERR_HOST_MEMORY, "%s: out of memory", path);
        goto fail;
    }
    TRY(open_regular(path, file, error));
    TRY(fill(file, error));
    *out = file;
    return ERR_NONE;
fail:
    mapped_file_close(file);
    return rc;
}

enum err mapped_file_open(const char *path, struct mapped_file **out, struct error *error) {
    return load(path, map_bytes, out, error);
}

enum err mapped_file_read(const char *path, struct mapped_file **out, struct error *error) {
    return load(path, read_bytes, out, error);
}

void mapped_file_close(struct mapped_file *file) {
    if (file == NULL) return;
    if (file->is_mapped) {
        (void)munmap(file->bytes, file->size);
    } else if (file->bytes != NULL) {
        explicit_bzero(file->bytes, file->size);
        free(file->bytes);
    }
    if (file->fd >= 0) (void)close(file->fd);
    free(file->path);
    free(file);
}

const uint8_t *mapped_file_bytes(const struct mapped_file *file) {
    return file->bytes;
}

size_t mapped_file_size(const struct mapped_file *file) {
    return file->size;
}

const char *mapped_file_path(const struct mapped_file *file) {
    return file->path;
}

enum err mapped_file_unchanged(const struct mapped_file *file, struct error *error) {
    struct stat st;
    if (fstat(file->fd, &st) != 0)
        return error_set(error, ERR_IO, "%s: cannot stat: %s", file->path, strerror(errno));
    if ((size_t)st.st_size != file->size || st.st_mtim.tv_sec != file->changed.tv_sec ||
        st.st_mtim.tv_nsec != file->changed.tv_nsec)
        return error_set(error, ERR_IO,
                         "%s: the file changed while it was read; let its writer finish (or rename "
                         "it into place) and try again",
                         file->path);
    return ERR_NONE;
}
