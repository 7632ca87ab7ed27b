/* The CPU as a proving device: one proof at a time, with all threads of its pool. prove_start does
 * the work and returns when the sums are there; a second one waits for its turn. So a slot's memory
 * is needed once, whatever PROVE_SLOTS says, and what waits to be finished are five points.
 */
#include "gpu/backend.h"

#include "gpu/cpu/cpu_curve.h"
#include "gpu/monotonic.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct cpu_device {
    struct device base;
    struct pool *pool;
    /* One proof at a time, in the order in which they were started: a mutex alone would let a thread
     * that comes back overtake one that waits. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t tickets, serving; /* given out; whose turn it is */
};

struct cpu_key {
    struct key base;
    struct matrix *matrix;
};

struct cpu_pending {
    struct pending base;
    struct blinding blinding;
    struct proof_sums sums;
    struct prove_span spans[PROVE_STEP_COUNT];
    size_t n_spans;
};

static struct cpu_device *cpu_device_of(struct device *device) {
    return (struct cpu_device *)device;
}

/* --- the device --- */

static int cpu_count(struct error *error) {
    (void)error;
    return 1;
}

static enum err cpu_open(int index, unsigned threads, struct device **out, struct error *error) {
    enum err rc;
    (void)index;
    *out = NULL;
    struct cpu_device *device = calloc(1, sizeof *device);
    if (!device) return error_set(error, ERR_HOST_MEMORY, "no memory for a device");
    pthread_mutex_init(&device->lock, NULL);
    pthread_cond_init(&device->changed, NULL);
    device->base.backend = &cpu_backend;
    TRY(pool_open(threads, &device->pool, error));
    (void)snprintf(device->base.name, sizeof device->base.name, "cpu");
    (void)snprintf(device->base.description, sizeof device->base.description,
                   "CPU, %u thread%s, %s arithmetic", pool_threads(device->pool),
                   pool_threads(device->pool) == 1 ? "" : "s", cpu_curve(CURVE_BN254)->isa);
    *out = &device->base;
    return ERR_NONE;
fail:
    pthread_cond_destroy(&device->changed);
    pthread_mutex_destroy(&device->lock);
    free(device);
    return rc;
}

static void cpu_close(struct device *base) {
    struct cpu_device *device = cpu_device_of(base);
    pool_close(device->pool);
    pthread_cond_destroy(&device->changed);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

/* Witnesses are secret: kept out of core dumps, gone when freed. The size is in a page of its own
 * before the memory. */
static enum err cpu_host_alloc(struct device *device, size_t bytes, void **out,
                               struct error *error) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    (void)device;
    *out = NULL;
    void *memory = bytes > SIZE_MAX - 2 * page ? MAP_FAILED
                                               : mmap(NULL, page + bytes, PROT_READ | PROT_WRITE,
                                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return error_set(error, ERR_HOST_MEMORY, "no memory for a witness of %zu bytes", bytes);
    (void)madvise(memory, page + bytes, MADV_DONTDUMP);
    memcpy(memory, &bytes, sizeof bytes);
    *out = (uint8_t *)memory + page;
    return ERR_NONE;
}

static void cpu_host_free(struct device *device, void *memory) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes;
    uint8_t *start = (uint8_t *)memory - page;
    (void)device;
    memcpy(&bytes, start, sizeof bytes);
    (void)munmap(start, page + bytes);
}

/* --- keys: points and coefficients stay in the mapped file --- */

static enum err cpu_key_memory(struct device *base, const struct zkey *zkey, size_t *key_bytes,
                               size_t *scratch_bytes, struct error *error) {
    const struct cpu_curve *curve = cpu_curve(zkey->curve->id);
    (void)error;
    *key_bytes = sizeof(struct cpu_key) + matrix_bytes(zkey);
    *scratch_bytes = PROVE_SLOTS * sizeof(struct cpu_pending) +
                     curve->prove_bytes(zkey, pool_threads(cpu_device_of(base)->pool));
    return ERR_NONE;
}

static enum err cpu_key_load(struct device *device, const struct zkey *zkey, struct key **out,
                             struct error *error) {
    enum err rc;
    *out = NULL;
    struct cpu_key *key = calloc(1, sizeof *key);
    if (!key) return error_set(error, ERR_HOST_MEMORY, "no memory for a key");
    key->base = (struct key){.device = device, .zkey = zkey};
    TRY(matrix_index(zkey, &key->matrix, error));
    *out = &key->base;
    return ERR_NONE;
fail:
    free(key);
    return rc;
}

static void cpu_key_free(struct key *base) {
    struct cpu_key *key = (struct cpu_key *)base;
    matrix_free(key->matrix);
    free(key);
}

/* --- a proof --- */

static void add_span(struct cpu_pending *p, enum prove_step step, int64_t start, int64_t duration) {
    p->spans[p->n_spans++] =
        (struct prove_span){.step = step, .start_ns = start, .duration_ns = duration};
}

static enum err sum_g1(struct cpu_pending *p, struct pool *pool, enum prove_step step,
                       const uint8_t *bases, const struct scalar *scalars, size_t n,
                       struct g1_point *out, struct error *error) {
    const struct cpu_curve *curve = cpu_curve(p->base.key->zkey->curve->id);
    int64_t start = monotonic_ns();
    enum err rc = curve->msm_g1(pool, bases, scalars, n, out, error);
    add_span(p, step, start, monotonic_ns() - start);
    return rc;
}

static enum err sum_b2(struct cpu_pending *p, struct pool *pool, const struct scalar *witness,
                       struct error *error) {
    const struct zkey *zkey = p->base.key->zkey;
    int64_t start = monotonic_ns();
    enum err rc = cpu_curve(zkey->curve->id)
                      ->msm_g2(pool, zkey->b2, witness, zkey->n_vars, &p->sums.b2, error);
    add_span(p, PROVE_STEP_MSM_B2, start, monotonic_ns() - start);
    return rc;
}

/* The quotient and its sum. */
static enum err sum_h(struct cpu_pending *p, struct pool *pool, const struct scalar *witness,
                      struct error *error) {
    enum err rc;
    const struct cpu_key *key = (const struct cpu_key *)p->base.key;
    const struct zkey *zkey = key->base.zkey;
    int64_t start = monotonic_ns(), matvec_ns = 0, ntt_ns = 0;
    struct scalar *h = calloc(zkey->domain_size, sizeof *h);
    if (!h)
        return error_set(error, ERR_HOST_MEMORY, "no memory for %u scalars of the quotient",
                         zkey->domain_size);
    TRY(cpu_curve(zkey->curve->id)
            ->quotient(pool, key->matrix, witness, h, &matvec_ns, &ntt_ns, error));
    add_span(p, PROVE_STEP_MATVEC, start, matvec_ns);
    add_span(p, PROVE_STEP_NTT, start + matvec_ns, ntt_ns);
    TRY(sum_g1(p, pool, PROVE_STEP_MSM_H, zkey->h, h, zkey->domain_size, &p->sums.h, error));
fail:
    explicit_bzero(h, zkey->domain_size * sizeof *h);
    free(h);
    return rc;
}

static enum err compute(struct cpu_pending *p, struct pool *pool, const struct scalar *witness,
                        struct error *error) {
    enum err rc;
    const struct zkey *zkey = p->base.key->zkey;
    size_t first = (size_t)zkey->n_public + 1;
    struct proof_sums *sums = &p->sums;
    TRY(sum_h(p, pool, witness, error));
    TRY(sum_g1(p, pool, PROVE_STEP_MSM_A, zkey->a, witness, zkey->n_vars, &sums->a, error));
    TRY(sum_g1(p, pool, PROVE_STEP_MSM_B1, zkey->b1, witness, zkey->n_vars, &sums->b1, error));
    TRY(sum_b2(p, pool, witness, error));
    TRY(sum_g1(p, pool, PROVE_STEP_MSM_C, zkey->c, witness + first, zkey->n_vars - first, &sums->c,
               error));
fail:
    return rc;
}

static void pending_free(struct cpu_pending *p) {
    explicit_bzero(p, sizeof *p);
    free(p);
}

static void take_turn(struct cpu_device *device) {
    pthread_mutex_lock(&device->lock);
    for (uint64_t ticket = device->tickets++; ticket != device->serving;)
        pthread_cond_wait(&device->changed, &device->lock);
    pthread_mutex_unlock(&device->lock);
}

static void leave_turn(struct cpu_device *device) {
    pthread_mutex_lock(&device->lock);
    device->serving++;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
}

static enum err cpu_start(struct key *key, const struct scalar *const *witnesses, size_t k,
                          const struct blinding *blinding, struct pending **out,
                          struct error *error) {
    enum err rc;
    struct cpu_device *device = cpu_device_of(key->device);
    (void)k; /* is 1: prover.c */
    struct cpu_pending *p = calloc(1, sizeof *p);
    if (!p) return error_set(error, ERR_HOST_MEMORY, "no memory for a proof");
    p->base.key = key;
    p->blinding = *blinding;
    take_turn(device);
    p->base.slot_ns = monotonic_ns();
    rc = compute(p, device->pool, witnesses[0], error);
    leave_turn(device);
    if (rc != ERR_NONE) {
        pending_free(p);
        return rc;
    }
    *out = &p->base;
    return ERR_NONE;
}

/* prove_start has done it all. */
static enum err cpu_wait(struct pending *pending, struct error *error) {
    (void)pending, (void)error;
    return ERR_NONE;
}

static enum err cpu_finish(struct pending *base, struct proof *proofs, struct prove_span *spans,
                           size_t *n_spans, struct error *error) {
    struct cpu_pending *p = (struct cpu_pending *)base;
    int64_t start = monotonic_ns();
    (void)error;
    proof_assemble(base->key->zkey, &p->sums, &p->blinding, proofs);
    add_span(p, PROVE_STEP_FINISH, start, monotonic_ns() - start);
    memcpy(spans, p->spans, p->n_spans * sizeof *spans);
    *n_spans = p->n_spans;
    pending_free(p);
    return ERR_NONE;
}

const struct backend cpu_backend = {
    .name = "cpu",
    .count = cpu_count,
    .open = cpu_open,
    .close = cpu_close,
    .key_memory = cpu_key_memory,
    .key_load = cpu_key_load,
    .key_free = cpu_key_free,
    .host_alloc = cpu_host_alloc,
    .host_free = cpu_host_free,
    .start = cpu_start,
    .wait_inputs = cpu_wait,
    .wait_device = cpu_wait,
    .finish = cpu_finish,
    .span_kind = ACTIVITY_CPU_SPAN,
};
