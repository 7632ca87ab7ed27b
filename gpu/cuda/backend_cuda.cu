/* The CUDA backend: a device with its keys and two slots.
 *
 * Locks: `loading` (one key is loaded at a time) before `lock` (everything else in a device).
 * Nothing that waits for a proof is called under `lock`.
 */
#include "gpu/cuda/records.cuh"
#include "gpu/cuda/slot.cuh"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct cuda_key {
    struct key base;
    struct proving_key on_device;
    void *memory;
    struct slot_need need;
    struct cuda_key *next; /* of the device */
};

struct cuda_device {
    struct device base;
    int index;
    size_t total_memory;
    pthread_mutex_t loading, lock;
    pthread_cond_t changed; /* a slot became free, or a proof was collected */
    struct slot slots[PROVE_SLOTS];
    struct cuda_key *keys;
    cudaStream_t anchor_stream; /* always idle: its events are reached at once */
    cudaEvent_t anchor;
    int64_t anchor_ns;
};

struct cuda_pending {
    struct pending base;
    struct slot *slot; /* NULL once the result is here */
    struct blinding blinding;
    struct blinded blinded;
    enum err rc;
    struct error error;
    struct prove_span spans[PROVE_STEP_COUNT];
    alignas(16) uint8_t results[]; /* the key's need.results_bytes: points, read as such */
};

static const int64_t NS = 1000000000;
static const int64_t ANCHOR_AGE = NS;

static struct cuda_device *cuda(struct device *device) {
    return reinterpret_cast<struct cuda_device *>(device);
}
static struct cuda_key *cuda(struct key *key) {
    return reinterpret_cast<struct cuda_key *>(key);
}
static struct cuda_pending *cuda(struct pending *pending) {
    return reinterpret_cast<struct cuda_pending *>(pending);
}
static struct cuda_device *device_of(const struct pending *pending) {
    return cuda(pending->key->device);
}

static int64_t now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS + t.tv_nsec;
}

/* --- devices --- */
/* Kernels are loaded when the context is made, not at their first launch in a proof. */
static void load_kernels_early(void) {
    (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

static int count(struct error *error) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, load_kernels_early);
    int n = 0;
    cudaError_t result = cudaGetDeviceCount(&n);
    if (result == cudaSuccess && n > 0) return n;
    (void)cudaGetLastError();
    if (result == cudaErrorInsufficientDriver)
        (void)error_set(error, ERR_DEVICE_MISSING,
                        "no driver for CUDA %d.%d or newer is installed; install NVIDIA's, or use "
                        "--device cpu",
                        CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    else
        (void)error_set(error, ERR_DEVICE_MISSING, "%s; --device cpu needs none",
                        cudaGetErrorString(result == cudaSuccess ? cudaErrorNoDevice : result));
    return 0;
}

static __global__ void probe_kernel(void) {}

static enum err describe(struct cuda_device *device, struct error *error) {
    enum err rc;
    struct cudaDeviceProp p = {};
    size_t free_memory;
    TRY(cuda_result(cudaGetDeviceProperties(&p, device->index), "reading the device's properties",
                    error));
    probe_kernel<<<1, 1>>>();
    TRY(cuda_launched("starting a kernel", error));
    TRY(cuda_result(cudaDeviceSynchronize(), "running a kernel", error));
    TRY(cuda_result(cudaMemGetInfo(&free_memory, &device->total_memory),
                    "reading the device's memory", error));
    (void)snprintf(device->base.name, sizeof device->base.name, "cuda:%d", device->index);
    (void)snprintf(device->base.description, sizeof device->base.description,
                   "%.80s, sm_%d%d, %zu MiB, %d multiprocessors", p.name, p.major, p.minor,
                   device->total_memory >> 20, p.multiProcessorCount);
fail:
    return rc;
}

/* Ties the device's clock to the host's. */
static enum err set_anchor(struct cuda_device *device, struct error *error) {
    enum err rc;
    int64_t before = now_ns();
    TRY(cuda_result(cudaEventRecord(device->anchor, device->anchor_stream), "timing the device",
                    error));
    TRY(cuda_result(cudaEventSynchronize(device->anchor), "timing the device", error));
    device->anchor_ns = before + (now_ns() - before) / 2;
fail:
    return rc;
}

static void close_device(struct device *base) {
    struct cuda_device *device = cuda(base);
    (void)cudaSetDevice(device->index);
    for (struct slot &slot : device->slots)
        slot_close(&slot);
    if (device->anchor != NULL) (void)cudaEventDestroy(device->anchor);
    if (device->anchor_stream != NULL) (void)cudaStreamDestroy(device->anchor_stream);
    (void)pthread_cond_destroy(&device->changed);
    (void)pthread_mutex_destroy(&device->lock);
    (void)pthread_mutex_destroy(&device->loading);
    free(device);
}

static enum err set_up(struct cuda_device *device, struct error *error) {
    enum err rc;
    TRY(cuda_result(cudaSetDevice(device->index), "choosing the device", error));
    TRY(describe(device, error));
    TRY(allocation_point("a stream", error));
    TRY(cuda_result(cudaStreamCreateWithFlags(&device->anchor_stream, cudaStreamNonBlocking),
                    "making a stream", error));
    TRY(allocation_point("an event", error));
    TRY(cuda_result(cudaEventCreate(&device->anchor), "making an event", error));
    TRY(set_anchor(device, error));
    for (struct slot &slot : device->slots)
        TRY(slot_open(&slot, error));
fail:
    return rc;
}

static enum err open_device(int index, unsigned threads, struct device **out, struct error *error) {
    (void)threads;
    int n = count(error);
    *out = NULL;
    if (n == 0) return error->code;
    if (index < 0 || index >= n)
        return error_set(error, ERR_DEVICE_MISSING, "there is no cuda:%d; the last one is cuda:%d",
                         index, n - 1);
    struct cuda_device *device = (struct cuda_device *)calloc(1, sizeof *device);
    if (device == NULL) return error_set(error, ERR_HOST_MEMORY, "no memory for a device");
    device->base.backend = &cuda_backend;
    device->index = index;
    (void)pthread_mutex_init(&device->loading, NULL);
    (void)pthread_mutex_init(&device->lock, NULL);
    (void)pthread_cond_init(&device->changed, NULL);
    enum err rc = set_up(device, error);
    if (rc != ERR_NONE) {
        close_device(&device->base);
        if (rc == ERR_DEVICE_FAULT) error->code = rc = ERR_DEVICE_MISSING;
        (void)error_prefix(error, "cuda:%d", index);
        return rc;
    }
    *out = &device->base;
    return ERR_NONE;
}

static enum err use(struct cuda_device *device, struct error *error) {
    return cuda_result(cudaSetDevice(device->index), "choosing the device", error);
}

/* --- slots --- */
/* With the lock. */
static void free_slot(struct cuda_device *device, struct slot *slot) {
    slot->owner = NULL;
    slot->running = false;
    (void)pthread_cond_broadcast(&device->changed);
}

/* Waits for the proof in `slot` and takes its result out. Called and returns with the lock, which it
 * gives up while it waits. */
static void collect(struct cuda_device *device, struct slot *slot) {
    struct cuda_pending *p = cuda(slot->owner);
    size_t bytes = cuda(p->base.key)->need.results_bytes;
    slot->collecting = true;
    (void)pthread_mutex_unlock(&device->lock);
    struct error error = {};
    enum err rc = cuda_result(cudaEventSynchronize(slot->done), "proving", &error);
    if (rc == ERR_NONE) memcpy(p->results, slot->results, bytes);
    (void)pthread_mutex_lock(&device->lock);
    if (rc == ERR_NONE) rc = slot_spans(slot, device->anchor, device->anchor_ns, p->spans, &error);
    p->rc = rc;
    p->error = error;
    p->slot = NULL;
    slot->collecting = false;
    free_slot(device, slot);
}

/* A free slot, marked as taken by `owner`. Blocks while there is none; results that nobody waits for are
 * taken out, so that one thread may start any number of proofs before it finishes the first. */
static struct slot *take_slot(struct cuda_device *device, struct pending *owner) {
    (void)pthread_mutex_lock(&device->lock);
    for (;;) {
        struct slot *idle = NULL, *waiting = NULL;
        for (struct slot &slot : device->slots) {
            if (slot.owner == NULL)
                idle = &slot;
            else if (slot.running && !slot.collecting)
                waiting = &slot;
        }
        if (idle != NULL) {
            idle->owner = owner;
            (void)pthread_mutex_unlock(&device->lock);
            return idle;
        }
        if (waiting != NULL)
            collect(device, waiting);
        else
            (void)pthread_cond_wait(&device->changed, &device->lock);
    }
}

static void return_slot(struct cuda_device *device, struct slot *slot) {
    (void)pthread_mutex_lock(&device->lock);
    free_slot(device, slot);
    (void)pthread_mutex_unlock(&device->lock);
}

/* --- keys --- */
struct key_plan {
    unsigned max_tables;
    size_t bytes, work_bytes;
    struct slot_need need;
};

static enum err plan_with(const struct zkey *zkey, unsigned max_tables, struct key_plan *out,
                          struct error *error) {
    enum err rc;
    struct arena arena = {};
    struct proving_key key;
    out->max_tables = max_tables;
    TRY(proving_key_layout(&arena, zkey, max_tables, &key, error));
    TRY(slot_need(&key, zkey, &out->need, error));
    out->bytes = arena.used;
    out->work_bytes = proving_key_work_bytes(&key);
fail:
    return rc;
}

/* As many multiples of the bases as fit in two fifths of the device and in what is free on it: they
 * must leave room for other keys, and a key without them proves too. */
static enum err plan_key(const struct cuda_device *device, const struct zkey *zkey,
                         struct key_plan *out, struct error *error) {
    enum err rc;
    size_t free_memory, total;
    TRY(cuda_result(cudaMemGetInfo(&free_memory, &total), "reading the device's memory", error));
    for (unsigned tables = 64; tables >= 1; tables /= 2) {
        TRY(plan_with(zkey, tables, out, error));
        if (out->bytes / 2 <= device->total_memory / 5 &&
            out->bytes + out->work_bytes + PROVE_SLOTS * out->need.bytes <= free_memory)
            break;
    }
fail:
    return rc;
}

static enum err key_memory_of(struct device *base, const struct zkey *zkey, size_t *key_bytes,
                              size_t *scratch_bytes, struct error *error) {
    enum err rc;
    struct key_plan plan = {};
    TRY(use(cuda(base), error));
    TRY(plan_key(cuda(base), zkey, &plan, error));
    *key_bytes = plan.bytes + plan.work_bytes;
    *scratch_bytes = PROVE_SLOTS * plan.need.bytes;
fail:
    return rc;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* What the keys on the device need of a slot, and `more`. */
static struct slot_need largest_need(struct cuda_device *device, struct slot_need more) {
    (void)pthread_mutex_lock(&device->lock);
    for (const struct cuda_key *key = device->keys; key != NULL; key = key->next) {
        more.bytes = larger(more.bytes, key->need.bytes);
        more.results_bytes = larger(more.results_bytes, key->need.results_bytes);
    }
    (void)pthread_mutex_unlock(&device->lock);
    return more;
}

/* Both slots get room for the keys on the device and `more`; they keep what they had when there is
 * no room for that. */
static enum err resize_slots(struct cuda_device *device, struct slot_need more,
                             struct error *error) {
    enum err rc = ERR_NONE;
    static struct pending nobody;
    struct slot *taken[PROVE_SLOTS];
    struct slot_need need = largest_need(device, more);
    for (struct slot *&slot : taken)
        slot = take_slot(device, &nobody);
    for (struct slot *slot : taken)
        if (rc == ERR_NONE) rc = slot_resize(slot, &need, error);
    if (rc != ERR_NONE) {
        struct error second;
        need = largest_need(device, {});
        for (struct slot *slot : taken)
            (void)!slot_resize(slot, &need, &second);
    }
    for (struct slot *slot : taken)
        return_slot(device, slot);
    return rc;
}

static enum err fill_key(struct cuda_key *key, const struct zkey *zkey, size_t work_bytes,
                         struct error *error) {
    enum err rc;
    void *work = NULL;
    cudaStream_t stream = NULL;
    TRY(device_memory(work_bytes, &work, error));
    TRY(allocation_point("a stream", error));
    TRY(cuda_result(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream",
                    error));
    TRY(proving_key_fill(&key->on_device, zkey, work, stream, error));
fail:
    if (stream != NULL) {
        (void)cudaStreamSynchronize(stream);
        (void)cudaStreamDestroy(stream);
    }
    device_memory_free(work);
    return rc;
}

static void link_key(struct cuda_device *device, struct cuda_key *key) {
    (void)pthread_mutex_lock(&device->lock);
    key->next = device->keys;
    device->keys = key;
    (void)pthread_mutex_unlock(&device->lock);
}

static enum err load(struct cuda_device *device, const struct zkey *zkey, struct cuda_key *key,
                     struct error *error) {
    enum err rc;
    struct key_plan plan = {};
    struct arena arena = {};
    void *memory;
    TRY(use(device, error));
    TRY(plan_key(device, zkey, &plan, error));
    TRY(device_memory(plan.bytes, &memory, error));
    key->memory = memory;
    arena.base = (uint8_t *)memory;
    TRY(proving_key_layout(&arena, zkey, plan.max_tables, &key->on_device, error));
    key->need = plan.need;
    TRY(resize_slots(device, plan.need, error));
    TRY(fill_key(key, zkey, plan.work_bytes, error));
fail:
    return rc;
}

static enum err key_load_on(struct device *base, const struct zkey *zkey, struct key **out,
                            struct error *error) {
    struct cuda_device *device = cuda(base);
    struct cuda_key *key = (struct cuda_key *)calloc(1, sizeof *key);
    *out = NULL;
    if (key == NULL) return error_set(error, ERR_HOST_MEMORY, "no memory for a key");
    key->base.device = base;
    key->base.zkey = zkey;
    (void)pthread_mutex_lock(&device->loading);
    enum err rc = load(device, zkey, key, error);
    if (rc == ERR_NONE) link_key(device, key);
    (void)pthread_mutex_unlock(&device->loading);
    if (rc != ERR_NONE) {
        device_memory_free(key->memory);
        free(key);
        return rc;
    }
    *out = &key->base;
    return ERR_NONE;
}

/* The slots keep their size until the next key is loaded, or have none when no key is left. */
static void key_free_on(struct key *base) {
    if (base == NULL) return;
    struct cuda_key *key = cuda(base);
    struct cuda_device *device = cuda(base->device);
    struct error error;
    (void)cudaSetDevice(device->index);
    (void)pthread_mutex_lock(&device->loading);
    (void)pthread_mutex_lock(&device->lock);
    struct cuda_key **at = &device->keys;
    while (*at != key)
        at = &(*at)->next;
    *at = key->next;
    bool last = device->keys == NULL;
    (void)pthread_mutex_unlock(&device->lock);
    if (last) (void)!resize_slots(device, {}, &error);
    (void)pthread_mutex_unlock(&device->loading);
    device_memory_free(key->memory);
    free(key);
}

/* --- host memory --- */
static enum err host_alloc(struct device *device, size_t bytes, void **out, struct error *error) {
    enum err rc;
    *out = NULL;
    TRY(use(cuda(device), error));
    TRY(pinned_memory(bytes, out, error));
fail:
    return rc;
}

static void host_free(struct device *device, void *memory) {
    (void)cudaSetDevice(cuda(device)->index);
    pinned_memory_free(memory);
}

/* --- proofs --- */
static void free_pending(struct cuda_pending *p) {
    explicit_bzero(&p->blinding, sizeof p->blinding);
    explicit_bzero(&p->blinded, sizeof p->blinded);
    free(p);
}

static enum err refresh_anchor(struct cuda_device *device, struct error *error) {
    enum err rc = ERR_NONE;
    (void)pthread_mutex_lock(&device->lock);
    if (now_ns() - device->anchor_ns > ANCHOR_AGE) rc = set_anchor(device, error);
    (void)pthread_mutex_unlock(&device->lock);
    return rc;
}

static enum err enqueue(struct cuda_device *device, struct cuda_key *key, struct slot *slot,
                        const struct scalar *witness, struct error *error) {
    enum err rc;
    TRY(refresh_anchor(device, error));
    if (slot->bytes < key->need.bytes || slot->results_bytes < key->need.results_bytes)
        TRY(slot_resize(slot, &key->need, error)); /* after a key_load that found no room */
    TRY(slot_enqueue(slot, &key->on_device, key->base.zkey, witness, error));
fail:
    return rc;
}

static enum err start(struct key *base, const struct scalar *const *witnesses, size_t k,
                      const struct blinding *blinding, struct pending **out, struct error *error) {
    enum err rc;
    struct cuda_key *key = cuda(base);
    struct cuda_device *device = cuda(base->device);
    struct cuda_pending *p;
    *out = NULL;
    if (k != 1)
        return error_set(error, ERR_UNSUPPORTED, "%zu witnesses at once; only 1 is supported", k);
    TRY(use(device, error));
    p = (struct cuda_pending *)calloc(1, sizeof *p + key->need.results_bytes);
    if (p == NULL) return error_set(error, ERR_HOST_MEMORY, "no memory for a proof");
    p->base.key = base;
    p->blinding = *blinding;
    p->slot = take_slot(device, &p->base);
    p->base.slot_ns = now_ns();
    rc = enqueue(device, key, p->slot, witnesses[0], error);
    if (rc != ERR_NONE) {
        return_slot(device, p->slot);
        free_pending(p);
        return rc;
    }
    (void)pthread_mutex_lock(&device->lock);
    p->slot->running = true; /* from here on another thread may collect it */
    (void)pthread_cond_broadcast(&device->changed);
    (void)pthread_mutex_unlock(&device->lock);
    proof_blind(key->base.zkey, blinding, &p->blinded); /* while the device works */
    *out = &p->base;
fail:
    return rc;
}

static enum err wait_inputs(struct pending *base, struct error *error) {
    struct cuda_device *device = device_of(base);
    (void)pthread_mutex_lock(&device->lock);
    const struct slot *slot = cuda(base)->slot;
    cudaEvent_t copied = slot == NULL ? NULL : slot->inputs_copied;
    (void)pthread_mutex_unlock(&device->lock);
    if (copied == NULL) return ERR_NONE;
    return cuda_result(cudaEventSynchronize(copied), "copying the witness", error);
}

static enum err wait_device(struct pending *base, struct error *error) {
    struct cuda_pending *p = cuda(base);
    struct cuda_device *device = device_of(base);
    (void)pthread_mutex_lock(&device->lock);
    while (p->slot != NULL && p->slot->collecting)
        (void)pthread_cond_wait(&device->changed, &device->lock);
    if (p->slot != NULL) collect(device, p->slot);
    (void)pthread_mutex_unlock(&device->lock);
    if (p->rc != ERR_NONE) *error = p->error;
    return p->rc;
}

static void give_spans(const struct cuda_pending *p, int64_t finish_ns, struct prove_span *spans,
                       size_t *n) {
    if (spans == NULL) return;
    memcpy(spans, p->spans, sizeof p->spans);
    spans[PROVE_STEP_FINISH] = {PROVE_STEP_FINISH, finish_ns, now_ns() - finish_ns};
    *n = PROVE_STEP_COUNT;
}

static enum err finish(struct pending *base, struct proof *proofs, struct prove_span *spans,
                       size_t *n_spans, struct error *error) {
    enum err rc;
    struct cuda_pending *p = cuda(base);
    const struct cuda_key *key = cuda(base->key);
    struct proof_sums sums;
    int64_t begin;
    TRY(wait_device(base, error));
    begin = now_ns();
    slot_sums(&key->on_device, p->results, &sums);
    proof_complete(key->base.zkey, &sums, &p->blinding, &p->blinded, proofs);
    give_spans(p, begin, spans, n_spans);
fail:
    free_pending(p);
    return rc;
}

const struct backend cuda_backend = {
    "cuda",     count,     open_device, close_device, key_memory_of, key_load_on, key_free_on,
    host_alloc, host_free, start,       wait_inputs,  wait_device,   finish,
    ACTIVITY_DEVICE_SPAN, cupti_start, cupti_flush, cupti_stop};
