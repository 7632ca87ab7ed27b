#include "service/prover/synthesis.h"
#include "service/prover/stages.h"
#include "service/prover/step.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WTNS_HEADERS_BYTES = 4096 /* 76 bytes, unless there are sections that we do not know */ };

/* Time that reading and checking a witness may take: a base for slow network storage, and 1 us a
 * byte, which is 1 MB/s. */
#define READ_LIMIT_NS    INT64_C(60000000000)
#define READ_NS_PER_BYTE 1000

size_t witness_buffer_bytes(const struct zkey *zkey) {
    return (size_t)zkey->n_vars * SCALAR_BYTES + WTNS_HEADERS_BYTES;
}

/* --- files --- */

static enum err too_large(uint64_t bytes, const struct buffer *buffer, struct error *error) {
    return error_set(error, ERR_MISMATCH,
                     "the witness has %llu bytes, one of this circuit has at most %zu",
                     (unsigned long long)bytes, buffer->capacity);
}

static enum err open_failed(const char *path, int reason, struct error *error) {
    switch (reason) {
    case EXDEV:
    case ELOOP:
        return error_set(error, ERR_INPUT, "witness file '%s' is outside the witness root", path);
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EPERM:
        return error_set(error, ERR_ABSENT, "witness file '%s' is not on this host: %s", path,
                         strerror(reason));
    case ENAMETOOLONG:
        return error_set(error, ERR_INPUT, "witness file '%.60s...': its name is too long", path);
    case ENOSYS:
        return error_set(error, ERR_ABSENT,
                         "witness file '%s': the kernel of this host is too old (openat2, Linux "
                         "5.6)",
                         path);
    default:
        return error_set(error, ERR_IO, "witness file '%s': %s", path, strerror(reason));
    }
}

static enum err open_beneath(const char *root, const char *path, int *fd, struct error *error) {
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return error_set(error, ERR_ABSENT, "the witness root %s: %s", root, strerror(errno));
    do
        *fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
    while (*fd < 0 && (errno == EINTR || errno == EAGAIN));
    int reason = errno;
    close(root_fd);
    return *fd < 0 ? open_failed(path, reason, error) : ERR_NONE;
}

static enum err read_whole(int fd, const char *path, struct buffer *buffer, size_t bytes,
                           struct error *error) {
    while (buffer->used < bytes) {
        ssize_t n = read(fd, buffer->bytes + buffer->used, bytes - buffer->used);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return error_set(error, ERR_IO, "witness file '%s': %s", path, strerror(errno));
        if (n == 0)
            return error_set(error, ERR_FORMAT,
                             "witness file '%s' became shorter while it was read", path);
        buffer->used += (size_t)n;
    }
    return ERR_NONE;
}

enum err witness_read_file(const char *root, const char *path, struct buffer *buffer,
                           struct error *error) {
    struct stat status;
    int fd = -1;
    enum err rc;
    if (!*root)
        return error_set(error, ERR_ABSENT,
                         "witness file '%s': start the prover with --witness-root", path);
    TRY(open_beneath(root, path, &fd, error));
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        TRY(error_set(error, ERR_INPUT, "witness file '%s' is not a regular file", path));
    if ((uint64_t)status.st_size > buffer->capacity)
        TRY(too_large((uint64_t)status.st_size, buffer, error));
    TRY(read_whole(fd, path, buffer, (size_t)status.st_size, error));
fail:
    if (fd >= 0) close(fd);
    return rc;
}

enum err witness_copy(const uint8_t *bytes, size_t n, struct buffer *buffer, struct error *error) {
    if (n > buffer->capacity) return too_large(n, buffer, error);
    buffer->used = n;
    memcpy(buffer->bytes, bytes, n);
    return ERR_NONE;
}

enum err witness_check(const struct buffer *buffer, const struct zkey *zkey, struct wtns **out,
                       struct error *error) {
    enum err rc;
    TRY(wtns_parse(buffer->bytes, buffer->used, out, error));
    TRY(wtns_matches(*out, zkey, error));
    return ERR_NONE;
fail:
    wtns_close(*out);
    *out = NULL;
    return rc;
}

/* --- the stage --- */

static enum err read_witness(const struct pipeline *pipeline, struct task *task,
                             struct error *error) {
    if (task->witness) return witness_copy(task->witness, task->witness_bytes, task->buffer, error);
    if (task->path)
        return witness_read_file(pipeline->options->witness_root, task->path, task->buffer, error);
    return error_set(error, ERR_INPUT, "the partition has no witness");
}

/* A calculator's process may have to be started and loaded before the time for its witness begins. */
#define START_LIMIT_NS INT64_C(120000000000)

/* Ends early when the lease is lost or the prover stops. */
static enum err compute_watched(struct pipeline *pipeline, struct task *task, struct error *error) {
    struct witness_memory memory = {task->buffer->bytes, task->buffer->capacity, 0};
    int watch = lease_watch(pipeline->leases, &task->lease);
    enum err rc;
    if (watch < 0)
        rc = error_set(error, ERR_HOST_MEMORY, "no descriptor for a witness to be computed");
    else if (atomic_load(&pipeline->stopping)) /* from here on a stop wakes the watch */
        rc = error_set(error, ERR_LOST_LEASE, "the prover is stopping");
    else
        rc = calculators_compute(pipeline->calculators, task->circuit->calculator, task->inputs,
                                 strlen(task->inputs), watch, &memory, error);
    lease_unwatch(pipeline->leases, &task->lease);
    task->buffer->used = memory.used;
    return rc;
}

static enum err compute_witness(struct pipeline *pipeline, struct task *task, struct error *error) {
    const struct loaded_circuit *circuit = task->circuit;
    if (!circuit->calculator)
        return error_set(error, ERR_ABSENT,
                         "circuit %s has no calculator for machines like this one (%s); on one "
                         "run: proverq circuit add %s with the same files",
                         circuit->name, calculator_machine(), circuit->name);
    return compute_watched(pipeline, task, error);
}

/* Puts the .wtns file into the buffer. That is one step, compute_witness or read_witness, which ends
 * at *at. */
static enum err get_witness(const struct stage_thread *self, struct task *task,
                            int64_t read_limit_ns, int64_t *at, struct error *error) {
    struct pipeline *pipeline = self->pipeline;
    int64_t timeout_ns = (int64_t)pipeline->options->synthesis_timeout_ms * 1000000;
    enum err rc;
    if (task->inputs) {
        step_next(task, self->worker, STEP_COMPUTE_WITNESS, timeout_ns + START_LIMIT_NS);
        rc = compute_witness(pipeline, task, error);
    } else {
        step_next(task, self->worker, STEP_READ_WITNESS, read_limit_ns);
        rc = read_witness(pipeline, task, error);
    }
    *at = step_end(task, self->worker);
    pipeline_computed(pipeline, task);
    return rc;
}

static enum err keep_publics(struct task *task, struct error *error) {
    size_t n = task->circuit->zkey->n_public;
    task->publics = calloc(n ? n : 1, sizeof *task->publics);
    if (!task->publics) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    memcpy(task->publics, task->wtns->values + 1, n * sizeof *task->publics);
    return ERR_NONE;
}

static enum err synthesize(const struct stage_thread *self, struct task *task,
                           struct error *error) {
    int64_t limit = READ_LIMIT_NS + (int64_t)task->buffer->capacity * READ_NS_PER_BYTE, at;
    enum err rc;
    TRY(get_witness(self, task, limit, &at, error));
    step_begin_at(task, STEP_CHECK_WITNESS, limit, at);
    TRY(witness_check(task->buffer, task->circuit->zkey, &task->wtns, error));
    TRY(keep_publics(task, error));
    step_next(task, self->worker, STEP_QUEUE_WAIT, LEASE_NO_DEADLINE);
fail:
    claim_rows_release(task->claim);
    task->claim = NULL;
    task->witness = NULL;
    task->path = NULL;
    task->inputs = NULL;
    return rc;
}

void *synthesis_main(void *arg) {
    struct stage_thread *self = arg;
    struct pipeline *pipeline = self->pipeline;
    struct error error;
    for (struct task *task; (task = queue_pop(&pipeline->synthesis)) != NULL;) {
        if (pipeline_is_over(pipeline, task)) continue;
        if (synthesize(self, task, &error) != ERR_NONE) {
            if (pipeline_is_over(pipeline, task))
                continue; /* then it was not the witness's fault */
            pipeline_give_up(pipeline, task, &error);
            continue;
        }
        queue_push(&pipeline->gpu, task);
    }
    return NULL;
}
