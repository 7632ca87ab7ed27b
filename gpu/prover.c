#include "gpu/backend.h"

#include "gpu/monotonic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const struct {
    const char *name, *meaning;
} steps[PROVE_STEP_COUNT] = {
#define X(id, name, meaning) [id] = {name, meaning},
    PROVE_STEP_TABLE(X)
#undef X
};

const char *prove_step_name(enum prove_step step) {
    return steps[step].name;
}

const char *prove_step_meaning(enum prove_step step) {
    return steps[step].meaning;
}

static const char *const activity_kinds[ACTIVITY_KIND_COUNT] = {
#define X(id, name, meaning) [id] = (name),
    ACTIVITY_KIND_TABLE(X)
#undef X
};

const char *activity_kind_name(enum activity_kind kind) {
    return activity_kinds[kind];
}

/* --- devices --- */

#ifdef PROVERQ_CUDA

static enum err open_cuda(const char *spec, int index, unsigned threads, struct device **out,
                          struct error *error) {
    struct error why = {0};
    int n = cuda_backend.count(&why);
    if (n == 0)
        return error_set(error, ERR_DEVICE_MISSING, "%s: no CUDA device: %s", spec, why.text);
    if (index >= n)
        return error_set(error, ERR_DEVICE_MISSING, "%s: there are %d CUDA devices, from cuda:0 on",
                         spec, n);
    return cuda_backend.open(index, threads, out, error);
}

/* The first CUDA device that opens, if any. */
static bool open_first_cuda(unsigned threads, struct device **out) {
    struct error why;
    int n = cuda_backend.count(&why);
    for (int i = 0; i < n; i++)
        if (cuda_backend.open(i, threads, out, &why) == ERR_NONE) return true;
    return false;
}

#else

static enum err open_cuda(const char *spec, int index, unsigned threads, struct device **out,
                          struct error *error) {
    (void)index, (void)threads, (void)out;
    return error_set(error, ERR_DEVICE_MISSING,
                     "%s: this build has no CUDA; build with nvcc installed, or use cpu", spec);
}

static bool open_first_cuda(unsigned threads, struct device **out) {
    (void)threads, (void)out;
    return false;
}

#endif

/* The N of "cuda:N", or -1. */
static int cuda_index(const char *spec) {
    static const char prefix[] = "cuda:";
    if (strncmp(spec, prefix, sizeof prefix - 1) != 0) return -1;
    const char *digits = spec + sizeof prefix - 1;
    size_t n = strspn(digits, "0123456789");
    if (n == 0 || n > 4 || digits[n] != '\0') return -1;
    return (int)strtol(digits, NULL, 10);
}

enum err device_open(const char *spec, unsigned threads, struct device **out, struct error *error) {
    *out = NULL;
    if (strcmp(spec, "auto") == 0 && open_first_cuda(threads, out)) return ERR_NONE;
    if (strcmp(spec, "auto") == 0 || strcmp(spec, "cpu") == 0)
        return cpu_backend.open(0, threads, out, error);
    int index = cuda_index(spec);
    if (index < 0)
        return error_set(error, ERR_USAGE, "unknown device \"%s\": auto, cpu or cuda:N", spec);
    return open_cuda(spec, index, threads, out, error);
}

void device_close(struct device *device) {
    if (!device) return;
    if (device->has_records) device->backend->activity_stop();
    activity_close(device->activity);
    device->backend->close(device);
}

const char *device_name(const struct device *device) {
    return device->name;
}

const char *device_description(const struct device *device) {
    return device->description;
}

enum err device_host_alloc(struct device *device, size_t bytes, void **out, struct error *error) {
    *out = NULL;
    return device->backend->host_alloc(device, bytes, out, error);
}

void device_host_free(struct device *device, void *memory) {
    if (memory) device->backend->host_free(device, memory);
}

/* --- when a device is busy --- */

enum err device_activity_start(struct device *device, struct error *error) {
    const struct backend *backend = device->backend;
    enum err rc;
    TRY(activity_open(&device->activity, error));
    (void)snprintf(device->activity_source, sizeof device->activity_source,
                   "the steps of the proofs");
    if (backend->activity_start)
        device->has_records = backend->activity_start(device->activity, device->activity_source);
fail:
    return rc;
}

const char *device_activity_source(const struct device *device) {
    return device->activity_source;
}

enum err device_activity_drain(struct device *device, bool is_last, struct activity_interval **out,
                               size_t *n, int64_t *until_ns, struct error *error) {
    int64_t now = monotonic_ns();
    if (device->has_records) device->backend->activity_flush();
    *until_ns = is_last ? now : activity_settled(device->activity, now);
    return activity_reduce(device->activity, *until_ns, out, n, error);
}

size_t device_activity_dropped(struct device *device) {
    return activity_dropped(device->activity);
}

/* --- keys --- */

enum err key_memory(struct device *device, const struct zkey *zkey, size_t *key_bytes,
                    size_t *scratch_bytes, struct error *error) {
    return device->backend->key_memory(device, zkey, key_bytes, scratch_bytes, error);
}

enum err key_load(struct device *device, const struct zkey *zkey, struct key **out,
                  struct error *error) {
    *out = NULL;
    return device->backend->key_load(device, zkey, out, error);
}

void key_free(struct key *key) {
    if (key) key->device->backend->key_free(key);
}

static enum err open_for(const char *spec, unsigned threads, const struct zkey *zkey,
                         struct device **device, struct key **key, struct error *error) {
    enum err rc;
    TRY(device_open(spec, threads, device, error));
    TRY(key_load(*device, zkey, key, error));
    return ERR_NONE;
fail:
    device_close(*device);
    *device = NULL;
    return rc;
}

enum err device_open_for(const char *spec, unsigned threads, const struct zkey *zkey,
                         struct device **device, struct key **key, struct error *passed_over,
                         struct error *error) {
    enum err rc = open_for(spec, threads, zkey, device, key, error);
    *passed_over = (struct error){.code = ERR_NONE};
    if (strcmp(spec, "auto") != 0) return rc;
    if (rc != ERR_DEVICE_UNSUPPORTED && rc != ERR_DEVICE_MEMORY) return rc;
    *passed_over = *error;
    return open_for("cpu", threads, zkey, device, key, error);
}

/* --- proofs --- */

/* One scalar below r by rejection: r has its top bit clear, so half of the draws will do. */
static enum err scalar_draw(const struct curve_info *curve, struct scalar *out,
                            struct error *error) {
    unsigned top = SCALAR_BYTES;
    uint8_t mask = 0;
    while (curve->r[top - 1] == 0)
        top--;
    while (mask < curve->r[top - 1])
        mask = (uint8_t)(2 * mask + 1);
    do {
        ssize_t n = getrandom(out->le, sizeof out->le, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n != (ssize_t)sizeof out->le)
            return error_set(error, ERR_INTERNAL, "the system's random numbers failed: %s",
                             strerror(errno));
        memset(out->le + top, 0, SCALAR_BYTES - top);
        out->le[top - 1] &= mask;
    } while (!le_less(out->le, curve->r, SCALAR_BYTES));
    return ERR_NONE;
}

enum err blinding_draw(const struct curve_info *curve, struct blinding *b, struct error *error) {
    enum err rc;
    TRY(scalar_draw(curve, &b->r, error));
    TRY(scalar_draw(curve, &b->s, error));
fail:
    if (rc != ERR_NONE) explicit_bzero(b, sizeof *b);
    return rc;
}

enum err prove_start_blinded(struct key *key, const struct scalar *const *witnesses, size_t k,
                             const struct blinding *blinding, struct pending **out,
                             struct error *error) {
    *out = NULL;
    if (k != 1)
        return error_set(error, ERR_UNSUPPORTED, "%zu proofs at once; start them one by one", k);
    return key->device->backend->start(key, witnesses, k, blinding, out, error);
}

enum err prove_start(struct key *key, const struct scalar *const *witnesses, size_t k,
                     struct pending **out, struct error *error) {
    enum err rc;
    struct blinding blinding;
    *out = NULL;
    TRY(blinding_draw(key->zkey->curve, &blinding, error));
    rc = prove_start_blinded(key, witnesses, k, &blinding, out, error);
fail:
    explicit_bzero(&blinding, sizeof blinding);
    return rc;
}

enum err prove_wait_inputs(struct pending *pending, struct error *error) {
    return pending->key->device->backend->wait_inputs(pending, error);
}

enum err prove_wait_device(struct pending *pending, struct error *error) {
    return pending->key->device->backend->wait_device(pending, error);
}

int64_t prove_slot_ns(const struct pending *pending) {
    return pending->slot_ns;
}

/* The device's part of a proof, where the device keeps no records of its own. */
static void note_spans(struct device *device, const struct prove_span *spans, size_t n) {
    int64_t now = monotonic_ns();
    if (!device->activity || device->has_records) return;
    for (size_t i = 0; i < n; i++)
        if (spans[i].step != PROVE_STEP_FINISH)
            activity_add(device->activity, device->backend->span_kind, spans[i].start_ns,
                         spans[i].start_ns + spans[i].duration_ns, now);
}

enum err prove_finish(struct pending *pending, struct proof *proofs, struct prove_span *spans,
                      size_t *n_spans, struct error *error) {
    struct prove_span dropped[PROVE_STEP_COUNT], *all = spans ? spans : dropped;
    struct device *device = pending->key->device;
    size_t n = 0;
    enum err rc = device->backend->finish(pending, proofs, all, &n, error);
    note_spans(device, all, n);
    if (n_spans) *n_spans = n;
    return rc;
}

void prove_abandon(struct pending *pending) {
    struct proof proof;
    struct error error;
    if (!pending) return;
    (void)!prove_finish(pending, &proof, NULL, NULL, &error);
}
