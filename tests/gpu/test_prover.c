/* Proving on the CPU, through the interface that every device has: proofs verify, equal a slow direct
 * computation for given r and s, and failures leave nothing behind. */
#include "gpu/backend.h"
#include "gpu/cpu/cpu_curve.h"
#include "gpu/setup.h"
#include "gpu/verify.h"
#include "gpu/wtns.h"
#include "tests/gpu/r1cs_builder.h"
#include "tests/gpu/suite.h"

#include <gmp.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- the allocator: counts bytes, and fails on demand --- */

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define COUNTED_ALLOCATOR 1
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t),
    *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static atomic_size_t live_bytes, peak_bytes;
static atomic_long allocations_left = LONG_MAX; /* then all fail */

static bool may_allocate(void) {
    return atomic_fetch_sub(&allocations_left, 1) > 0;
}

static void *counted(void *memory) {
    size_t now =
        atomic_fetch_add(&live_bytes, malloc_usable_size(memory)) + malloc_usable_size(memory);
    size_t peak = peak_bytes;
    while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now))
        ;
    return memory;
}

void *malloc(size_t size) {
    return may_allocate() ? counted(__libc_malloc(size)) : NULL;
}
void *calloc(size_t n, size_t size) {
    return may_allocate() ? counted(__libc_calloc(n, size)) : NULL;
}
void *aligned_alloc(size_t alignment, size_t size) {
    return may_allocate() ? counted(__libc_memalign(alignment, size)) : NULL;
}
void free(void *memory) {
    atomic_fetch_sub(&live_bytes, malloc_usable_size(memory));
    __libc_free(memory);
}
#endif

/* --- circuits --- */

struct circuit {
    struct zkey *zkey;
    struct wtns *wtns;
    struct vkey *vkey;
};

static struct error error;

#define OK(call)                                                                                   \
    do {                                                                                           \
        enum err ok_rc = (call);                                                                   \
        ck_assert_msg(ok_rc == ERR_NONE, "%s: %s", #call, error.text);                             \
    } while (0)

static struct circuit circuit_new(enum curve_id curve, enum circuit_kind kind, uint32_t constraints,
                                  uint32_t n_public) {
    struct circuit c;
    struct r1cs *r1cs;
    char folder[] = "/tmp/proverq-test-XXXXXX", r1cs_path[64], wtns_path[64], zkey_path[64];
    struct circuit_spec spec = {.curve = curve,
                                .kind = kind,
                                .n_constraints = constraints,
                                .n_public = n_public,
                                .n_unused = 2,
                                .seed = 7};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(r1cs_path, sizeof r1cs_path, "%s/c.r1cs", folder);
    (void)snprintf(wtns_path, sizeof wtns_path, "%s/c.wtns", folder);
    (void)snprintf(zkey_path, sizeof zkey_path, "%s/c.zkey", folder);
    OK(circuit_write(&spec, r1cs_path, wtns_path, &error));
    OK(r1cs_open(r1cs_path, &r1cs, &error));
    OK(setup_write(r1cs, zkey_path, &error));
    r1cs_close(r1cs);
    OK(zkey_open(zkey_path, &c.zkey, &error));
    OK(wtns_open(wtns_path, &c.wtns, &error));
    OK(vkey_from_zkey(c.zkey, &c.vkey, &error));
    (void)unlink(r1cs_path);
    (void)unlink(wtns_path);
    (void)unlink(zkey_path);
    (void)rmdir(folder);
    return c;
}

static void circuit_free(struct circuit *c) {
    vkey_free(c->vkey);
    wtns_close(c->wtns);
    zkey_close(c->zkey);
}

static enum err circuit_verify(const struct circuit *c, const struct proof *proof) {
    return verify(c->vkey, c->wtns->values + 1, c->zkey->n_public, proof, &error);
}

static struct device *open_cpu(unsigned threads) {
    struct device *device;
    OK(device_open("cpu", threads, &device, &error));
    return device;
}

/* --- proofs --- */

static void prove_and_verify(struct circuit *c, struct device *device) {
    struct key *key;
    struct pending *pending;
    struct proof proof;
    OK(key_load(device, c->zkey, &key, &error));
    OK(prove_start(key, &c->wtns->values, 1, &pending, &error));
    OK(prove_wait_inputs(pending, &error));
    OK(prove_wait_device(pending, &error));
    OK(prove_finish(pending, &proof, NULL, NULL, &error));
    OK(circuit_verify(c, &proof));
    proof.c = proof.a;
    ck_assert_int_eq(circuit_verify(c, &proof), ERR_INVALID_PROOF);
    key_free(key);
}

START_TEST(proofs_verify_on_both_curves_with_and_without_publics) {
    struct device *device = open_cpu(2);
    for (int curve = 0; curve < CURVE_COUNT; curve++)
        for (int kind = 0; kind < 2; kind++)
            for (uint32_t n_public = 0; n_public <= 3; n_public += 3) {
                struct circuit c = circuit_new((enum curve_id)curve, (enum circuit_kind)kind,
                                               n_public ? 300 : 1, n_public);
                prove_and_verify(&c, device);
                circuit_free(&c);
            }
    device_close(device);
}
END_TEST

/* --- the slow direct computation --- */

static void scalar_set(struct scalar *out, const mpz_t x) {
    memset(out, 0, sizeof *out);
    mpz_export(out->le, NULL, -1, 1, 0, 0, x);
}

static void scalar_get(mpz_t out, const uint8_t *le) {
    mpz_import(out, SCALAR_BYTES, -1, 1, 0, 0, le);
}

static void root_of_unity(mpz_t w, unsigned log_n, const mpz_t r) {
    mpz_t e;
    mpz_init(e);
    mpz_sub_ui(e, r, 1);
    mpz_tdiv_q_2exp(e, e, log_n);
    mpz_set_ui(w, 5);
    mpz_powm(w, w, e, r);
    mpz_clear(e);
}

/* a_i and b_i, rows times witness, from the file's own coefficients. */
static void rows(const struct circuit *c, mpz_t *a, mpz_t *b, const mpz_t r) {
    mpz_t value, w, r2_inverse;
    mpz_inits(value, w, r2_inverse, NULL);
    mpz_setbit(r2_inverse, 512);
    mpz_invert(r2_inverse, r2_inverse, r);
    for (uint32_t i = 0; i < c->zkey->n_coefficients; i++) {
        const uint8_t *packed = c->zkey->coefficients + (size_t)i * ZKEY_COEFFICIENT_BYTES;
        uint32_t field[3];
        memcpy(field, packed, sizeof field);
        mpz_t *row = field[0] == 0 ? &a[field[1]] : &b[field[1]];
        scalar_get(value, packed + 12);
        scalar_get(w, c->wtns->values[field[2]].le);
        mpz_mul(value, value, w);
        mpz_mul(value, value, r2_inverse);
        mpz_add(*row, *row, value);
        mpz_mod(*row, *row, r);
    }
    mpz_clears(value, w, r2_inverse, NULL);
}

/* sum_i y_i L_i(x) over the n-th roots of unity, with L_i(x) = w^i (x^n - 1) / (n (x - w^i)). */
static void lagrange(mpz_t out, mpz_t *y, size_t n, const mpz_t w, const mpz_t x, const mpz_t r) {
    mpz_t point, term, z;
    mpz_inits(point, term, z, NULL);
    mpz_powm_ui(z, x, n, r);
    mpz_sub_ui(z, z, 1);
    mpz_set_ui(point, 1);
    mpz_set_ui(out, 0);
    for (size_t i = 0; i < n; i++) {
        mpz_sub(term, x, point);
        mpz_mul_ui(term, term, n);
        mpz_invert(term, term, r);
        mpz_mul(term, term, point);
        mpz_mul(term, term, z);
        mpz_mul(term, term, y[i]);
        mpz_add(out, out, term);
        mpz_mod(out, out, r);
        mpz_mul(point, point, w);
        mpz_mod(point, point, r);
    }
    mpz_clears(point, term, z, NULL);
}

static void slow_quotient(const struct circuit *c, struct scalar *h) {
    enum { MAX = 16 };
    size_t n = c->zkey->domain_size;
    mpz_t y[3][MAX], r, w, x, v[3];
    ck_assert(n <= MAX);
    mpz_inits(r, w, x, v[0], v[1], v[2], NULL);
    scalar_get(r, c->zkey->curve->r);
    for (size_t i = 0; i < n; i++)
        mpz_inits(y[0][i], y[1][i], y[2][i], NULL);
    rows(c, y[0], y[1], r);
    for (size_t i = 0; i < n; i++)
        mpz_mul(y[2][i], y[0][i], y[1][i]);
    root_of_unity(w, c->zkey->log_domain, r);
    root_of_unity(x, c->zkey->log_domain + 1, r);
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++)
            lagrange(v[k], y[k], n, w, x, r);
        mpz_mul(v[0], v[0], v[1]);
        mpz_sub(v[0], v[0], v[2]);
        mpz_mod(v[0], v[0], r);
        scalar_set(&h[i], v[0]);
        mpz_mul(x, x, w);
        mpz_mod(x, x, r);
    }
    for (size_t i = 0; i < n; i++)
        mpz_clears(y[0][i], y[1][i], y[2][i], NULL);
    mpz_clears(r, w, x, v[0], v[1], v[2], NULL);
}

static void add_terms_g1(const struct circuit *c, struct g1_point *sum, const uint8_t *bases,
                         const struct scalar *scalars, size_t n) {
    const struct cpu_curve *curve = cpu_curve_isa(c->zkey->curve->id, "portable");
    for (size_t i = 0; i < n; i++) {
        struct g1_point p;
        curve->g1_from_zkey(bases + i * zkey_g1_bytes(c->zkey), &p);
        curve->g1_mul(&p, &scalars[i], &p);
        curve->g1_add(sum, &p, sum);
    }
}

static void add_terms_g2(const struct circuit *c, struct g2_point *sum, const uint8_t *bases,
                         const struct scalar *scalars, size_t n) {
    const struct cpu_curve *curve = cpu_curve_isa(c->zkey->curve->id, "portable");
    for (size_t i = 0; i < n; i++) {
        struct g2_point p;
        curve->g2_from_zkey(bases + i * zkey_g2_bytes(c->zkey), &p);
        curve->g2_mul(&p, &scalars[i], &p);
        curve->g2_add(sum, &p, sum);
    }
}

/* The three points, term by term. */
static void slow_proof(const struct circuit *c, const struct blinding *blinding,
                       struct proof *out) {
    const struct zkey *zkey = c->zkey;
    const struct cpu_curve *curve = cpu_curve_isa(zkey->curve->id, "portable");
    const struct scalar one = {{1}}, *w = c->wtns->values;
    struct scalar h[16], zero = {{0}}, minus_rs;
    struct g1_point b1 = {{0}, {0}};
    size_t first = (size_t)zkey->n_public + 1;
    memset(out, 0, sizeof *out);
    out->curve = zkey->curve->id;
    add_terms_g1(c, &out->a, zkey->alpha1, &one, 1);
    add_terms_g1(c, &out->a, zkey->a, w, zkey->n_vars);
    add_terms_g1(c, &out->a, zkey->delta1, &blinding->r, 1);
    add_terms_g1(c, &b1, zkey->beta1, &one, 1);
    add_terms_g1(c, &b1, zkey->b1, w, zkey->n_vars);
    add_terms_g1(c, &b1, zkey->delta1, &blinding->s, 1);
    add_terms_g2(c, &out->b, zkey->beta2, &one, 1);
    add_terms_g2(c, &out->b, zkey->b2, w, zkey->n_vars);
    add_terms_g2(c, &out->b, zkey->delta2, &blinding->s, 1);
    slow_quotient(c, h);
    add_terms_g1(c, &out->c, zkey->c, w + first, zkey->n_vars - first);
    add_terms_g1(c, &out->c, zkey->h, h, zkey->domain_size);
    curve->fr_mul(&blinding->r, &blinding->s, &minus_rs);
    curve->fr_sub(&zero, &minus_rs, &minus_rs);
    add_terms_g1(c, &out->c, zkey->delta1, &minus_rs, 1);
    struct g1_point s_a, r_b;
    curve->g1_mul(&out->a, &blinding->s, &s_a);
    curve->g1_mul(&b1, &blinding->r, &r_b);
    curve->g1_add(&out->c, &s_a, &out->c);
    curve->g1_add(&out->c, &r_b, &out->c);
}

static void compare_with_slow(struct circuit *c, struct key *key, const struct blinding *blinding) {
    struct proof fast, slow;
    struct pending *pending;
    OK(prove_start_blinded(key, &c->wtns->values, 1, blinding, &pending, &error));
    OK(prove_finish(pending, &fast, NULL, NULL, &error));
    slow_proof(c, blinding, &slow);
    ck_assert_mem_eq(&fast.a, &slow.a, sizeof fast.a);
    ck_assert_mem_eq(&fast.b, &slow.b, sizeof fast.b);
    ck_assert_mem_eq(&fast.c, &slow.c, sizeof fast.c);
    ck_assert_int_eq(fast.curve, slow.curve);
    OK(circuit_verify(c, &fast));
}

START_TEST(given_r_and_s_the_points_are_those_of_a_direct_computation) {
    struct device *device = open_cpu(2);
    for (int curve = 0; curve < CURVE_COUNT; curve++)
        for (uint32_t n_public = 0; n_public <= 2; n_public += 2)
            for (int kind = 0; kind < 2; kind++) {
                struct circuit c =
                    circuit_new((enum curve_id)curve, (enum circuit_kind)kind, 9, n_public);
                struct key *key;
                struct blinding blinding = {{{0}}, {{0}}};
                OK(key_load(device, c.zkey, &key, &error));
                compare_with_slow(&c, key, &blinding);
                memcpy(&blinding.r, c.zkey->curve->r, SCALAR_BYTES);
                blinding.r.le[0] -= 1; /* r - 1: both moduli end in a 1 bit */
                compare_with_slow(&c, key, &blinding);
                OK(blinding_draw(c.zkey->curve, &blinding, &error));
                compare_with_slow(&c, key, &blinding);
                key_free(key);
                circuit_free(&c);
            }
    device_close(device);
}
END_TEST

/* --- arguments, devices, spans --- */

START_TEST(other_numbers_of_witnesses_are_unsupported) {
    struct device *device = open_cpu(1);
    struct circuit c = circuit_new(CURVE_BN254, CIRCUIT_DENSE, 5, 1);
    const struct scalar *witnesses[2] = {c.wtns->values, c.wtns->values};
    struct key *key;
    struct pending *pending;
    OK(key_load(device, c.zkey, &key, &error));
    ck_assert_int_eq(prove_start(key, witnesses, 0, &pending, &error), ERR_UNSUPPORTED);
    ck_assert_ptr_null(pending);
    ck_assert_int_eq(prove_start(key, witnesses, 2, &pending, &error), ERR_UNSUPPORTED);
    ck_assert_ptr_null(pending);
    prove_abandon(NULL);
    OK(prove_start(key, witnesses, 1, &pending, &error));
    prove_abandon(pending);
    key_free(key);
    circuit_free(&c);
    device_close(device);
}
END_TEST

START_TEST(device_names_are_exact) {
    static const char *const bad[] = {"",
                                      "gpu",
                                      "CPU",
                                      "cpu ",
                                      "cuda",
                                      "cuda:",
                                      "cuda:x",
                                      "cuda:-1",
                                      "cuda:1x",
                                      "cuda: 1",
                                      "cuda:99999999999"};
    struct device *device;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(device_open(bad[i], 1, &device, &error), ERR_USAGE);
        ck_assert_ptr_null(device);
    }
    ck_assert_int_eq(device_open("cuda:9999", 1, &device, &error), ERR_DEVICE_MISSING);
    ck_assert_ptr_null(device);
    OK(device_open("cpu", 3, &device, &error));
    ck_assert_str_eq(device_name(device), "cpu");
    ck_assert_ptr_nonnull(strstr(device_description(device), "3 threads"));
    device_close(device);
    OK(device_open("auto", 1, &device, &error));
    ck_assert(strcmp(device_name(device), "cpu") == 0 ||
              strncmp(device_name(device), "cuda:", 5) == 0);
    device_close(device);
}
END_TEST

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

START_TEST(every_step_is_timed_once_and_none_overlap) {
    struct device *device = open_cpu(2);
    struct circuit c = circuit_new(CURVE_BN254, CIRCUIT_DENSE, 1000, 1);
    struct prove_span spans[PROVE_STEP_COUNT];
    struct key *key;
    struct pending *pending;
    struct proof proof;
    size_t n = 0;
    bool seen[PROVE_STEP_COUNT] = {false};
    OK(key_load(device, c.zkey, &key, &error));
    int64_t start = now_ns(), last = start, covered = 0;
    OK(prove_start(key, &c.wtns->values, 1, &pending, &error));
    OK(prove_finish(pending, &proof, spans, &n, &error));
    int64_t end = now_ns();
    for (size_t i = 0; i < n; i++) {
        ck_assert(!seen[spans[i].step]);
        seen[spans[i].step] = true;
        ck_assert(spans[i].start_ns >= last && spans[i].duration_ns >= 0);
        last = spans[i].start_ns + spans[i].duration_ns;
        covered += spans[i].duration_ns;
    }
    ck_assert(last <= end);
    ck_assert_int_ge(covered, (end - start) / 2);
    for (int step = 0; step < PROVE_STEP_COUNT; step++) {
        bool copies = step == PROVE_STEP_COPY_IN || step == PROVE_STEP_COPY_OUT;
        ck_assert_int_eq(seen[step], !copies);
        ck_assert(strlen(prove_step_name((enum prove_step)step)) > 0);
    }
    key_free(key);
    circuit_free(&c);
    device_close(device);
}
END_TEST

START_TEST(activity_is_what_the_steps_say_and_no_more) {
    struct device *device = open_cpu(1);
    struct circuit c = circuit_new(CURVE_BN254, CIRCUIT_DENSE, 200, 1);
    struct prove_span spans[PROVE_STEP_COUNT];
    struct activity_interval *got;
    struct key *key;
    struct pending *pending;
    struct proof proof;
    size_t n = 0, n_got;
    int64_t until, in_steps = 0, busy = 0, start = now_ns();
    OK(device_activity_start(device, &error));
    OK(key_load(device, c.zkey, &key, &error));
    for (int i = 0; i < 3; i++) {
        OK(prove_start(key, &c.wtns->values, 1, &pending, &error));
        ck_assert_int_ge(prove_slot_ns(pending), start);
        OK(prove_finish(pending, &proof, spans, &n, &error));
        for (size_t j = 0; j < n; j++)
            if (spans[j].step != PROVE_STEP_FINISH) in_steps += spans[j].duration_ns;
    }
    OK(device_activity_drain(device, false, &got, &n_got, &until, &error));
    ck_assert_uint_eq(n_got, 0); /* some may still come */
    ck_assert_int_lt(until, start);
    OK(device_activity_drain(device, true, &got, &n_got, &until, &error));
    ck_assert_uint_gt(n_got, 0);
    for (size_t i = 0; i < n_got; i++) {
        ck_assert_str_eq(activity_kind_name(got[i].kind), "cpu_span");
        ck_assert(got[i].start_ns >= start && got[i].end_ns <= until);
        busy += got[i].busy_ns;
    }
    ck_assert_int_eq(busy, in_steps);
    ck_assert_uint_eq(device_activity_dropped(device), 0);
    free(got);
    key_free(key);
    circuit_free(&c);
    device_close(device);
}
END_TEST

/* --- several at once --- */

struct prover_thread {
    struct key *key;
    struct circuit *circuit;
    pthread_t handle;
    bool valid;
};

static void *prove_twice(void *arg) {
    struct prover_thread *self = arg;
    struct error why;
    self->valid = true;
    for (int i = 0; i < 2; i++) {
        struct pending *pending;
        struct proof proof;
        self->valid =
            self->valid &&
            prove_start(self->key, &self->circuit->wtns->values, 1, &pending, &why) == ERR_NONE &&
            prove_finish(pending, &proof, NULL, NULL, &why) == ERR_NONE &&
            verify(self->circuit->vkey, self->circuit->wtns->values + 1,
                   self->circuit->zkey->n_public, &proof, &why) == ERR_NONE;
    }
    return NULL;
}

START_TEST(threads_prove_different_keys_on_one_device) {
    enum { N = 4 };
    struct device *device = open_cpu(3);
    struct circuit circuits[2] = {circuit_new(CURVE_BN254, CIRCUIT_BITS, 700, 2),
                                  circuit_new(CURVE_BLS12_381, CIRCUIT_DENSE, 60, 1)};
    struct key *keys[2];
    struct prover_thread threads[N];
    for (size_t i = 0; i < 2; i++)
        OK(key_load(device, circuits[i].zkey, &keys[i], &error));
    for (size_t i = 0; i < N; i++) {
        threads[i] = (struct prover_thread){.key = keys[i % 2], .circuit = &circuits[i % 2]};
        ck_assert_int_eq(pthread_create(&threads[i].handle, NULL, prove_twice, &threads[i]), 0);
    }
    for (size_t i = 0; i < N; i++) {
        pthread_join(threads[i].handle, NULL);
        ck_assert(threads[i].valid);
    }
    for (size_t i = 0; i < 2; i++) {
        key_free(keys[i]);
        circuit_free(&circuits[i]);
    }
    device_close(device);
}
END_TEST

START_TEST(one_thread_starts_more_proofs_than_slots) {
    enum { N = PROVE_SLOTS + 2 };
    struct device *device = open_cpu(1);
    struct circuit c = circuit_new(CURVE_BN254, CIRCUIT_BITS, 20, 1);
    struct key *key;
    struct pending *pending[N];
    struct proof proofs[N];
    OK(key_load(device, c.zkey, &key, &error));
    for (size_t i = 0; i < N; i++)
        OK(prove_start(key, &c.wtns->values, 1, &pending[i], &error));
    for (size_t i = 0; i < N; i++) {
        OK(prove_finish(pending[i], &proofs[i], NULL, NULL, &error));
        OK(circuit_verify(&c, &proofs[i]));
        if (i > 0) ck_assert_mem_ne(&proofs[i].a, &proofs[0].a, sizeof proofs[i].a);
    }
    key_free(key);
    circuit_free(&c);
    device_close(device);
}
END_TEST

/* --- blinding --- */

START_TEST(blinding_is_below_r_full_width_and_fresh) {
    for (int id = 0; id < CURVE_COUNT; id++) {
        const struct curve_info *info = curve_info((enum curve_id)id);
        uint8_t any[SCALAR_BYTES] = {0}, all[SCALAR_BYTES];
        struct blinding b, last = {{{0}}, {{0}}};
        memset(all, 0xff, sizeof all);
        for (int i = 0; i < 200; i++) {
            OK(blinding_draw(info, &b, &error));
            ck_assert(le_less(b.r.le, info->r, SCALAR_BYTES));
            ck_assert(le_less(b.s.le, info->r, SCALAR_BYTES));
            ck_assert_mem_ne(&b.r, &b.s, sizeof b.r);
            ck_assert_mem_ne(&b, &last, sizeof b);
            last = b;
            for (size_t k = 0; k < SCALAR_BYTES; k++) {
                any[k] |= b.r.le[k];
                all[k] &= b.r.le[k];
            }
        }
        for (size_t k = 0; k < SCALAR_BYTES; k++) { /* 2^-200 that a bit never changes */
            uint8_t possible = k == SCALAR_BYTES - 1 ? (id == CURVE_BN254 ? 0x3f : 0x7f) : 0xff;
            ck_assert_uint_eq(any[k], possible);
            ck_assert_uint_eq(all[k], 0);
        }
    }
}
END_TEST

/* --- memory --- */

START_TEST(host_memory_is_zeroed_and_impossible_sizes_are_refused) {
    struct device *device = open_cpu(1);
    void *memory;
    OK(device_host_alloc(device, 100000, &memory, &error));
    ck_assert(le_is_zero(memory, 100000));
    memset(memory, 1, 100000);
    device_host_free(device, memory);
    device_host_free(device, NULL);
    ck_assert_int_eq(device_host_alloc(device, SIZE_MAX, &memory, &error), ERR_HOST_MEMORY);
    ck_assert_int_eq(device_host_alloc(device, SIZE_MAX / 4, &memory, &error), ERR_HOST_MEMORY);
    ck_assert_ptr_null(memory);
    device_close(device);
}
END_TEST

#ifdef COUNTED_ALLOCATOR

/* Both within a factor: an estimate that is too low starves a host, one far too high idles it. */
START_TEST(key_memory_foretells_what_is_allocated) {
    static const uint32_t sizes[] = {10, 3000};
    for (size_t i = 0; i < 2 * (size_t)CURVE_COUNT; i++) {
        struct device *device = open_cpu(2);
        struct circuit c =
            circuit_new((enum curve_id)(i % CURVE_COUNT), CIRCUIT_DENSE, sizes[i / CURVE_COUNT], 1);
        struct key *key;
        struct pending *pending;
        struct proof proof;
        size_t key_bytes, scratch_bytes;
        OK(key_memory(device, c.zkey, &key_bytes, &scratch_bytes, &error));
        size_t before = live_bytes;
        OK(key_load(device, c.zkey, &key, &error));
        size_t used = live_bytes - before;
        ck_assert_uint_ge(key_bytes + 200, used);
        ck_assert_uint_ge(used, key_bytes);
        before = peak_bytes = live_bytes;
        OK(prove_start(key, &c.wtns->values, 1, &pending, &error));
        OK(prove_finish(pending, &proof, NULL, NULL, &error));
        used = peak_bytes - before;
        ck_assert_msg(used <= scratch_bytes + 500, "%zu used, %zu foretold", used, scratch_bytes);
        ck_assert_msg(used >= scratch_bytes / 3, "%zu used, %zu foretold", used, scratch_bytes);
        key_free(key);
        circuit_free(&c);
        device_close(device);
    }
}
END_TEST

/* Lets 0, 1, 2, ... allocations succeed until the whole works; every failure is clean. The table of
 * twiddles, which outlives a proof, is made before. */
START_TEST(every_failed_allocation_is_an_error_and_leaks_nothing) {
    struct device *device = open_cpu(2);
    struct circuit c = circuit_new(CURVE_BN254, CIRCUIT_BITS, 300, 1);
    long failures = 0;
    prove_and_verify(&c, device);
    for (enum err rc = ERR_HOST_MEMORY; rc != ERR_NONE; failures++) {
        struct key *key = NULL;
        struct pending *pending = NULL;
        struct proof proof;
        size_t before = live_bytes;
        ck_assert_int_lt(failures, 1000);
        allocations_left = failures;
        rc = key_load(device, c.zkey, &key, &error);
        if (rc == ERR_NONE) rc = prove_start(key, &c.wtns->values, 1, &pending, &error);
        allocations_left = LONG_MAX;
        ck_assert(rc == ERR_NONE || rc == ERR_HOST_MEMORY);
        if (rc == ERR_NONE) {
            OK(prove_finish(pending, &proof, NULL, NULL, &error));
            OK(circuit_verify(&c, &proof));
        }
        key_free(key);
        ck_assert_uint_eq(live_bytes, before);
    }
    ck_assert_int_gt(failures, 20);
    circuit_free(&c);
    device_close(device);
}
END_TEST

#endif

int main(void) {
    const TTest *const *const tests[] = {
        &proofs_verify_on_both_curves_with_and_without_publics,
        &given_r_and_s_the_points_are_those_of_a_direct_computation,
        &other_numbers_of_witnesses_are_unsupported,
        &device_names_are_exact,
        &every_step_is_timed_once_and_none_overlap,
        &activity_is_what_the_steps_say_and_no_more,
        &threads_prove_different_keys_on_one_device,
        &one_thread_starts_more_proofs_than_slots,
        &blinding_is_below_r_full_width_and_fresh,
        &host_memory_is_zeroed_and_impossible_sizes_are_refused,
#ifdef COUNTED_ALLOCATOR
        &key_memory_foretells_what_is_allocated,
        &every_failed_allocation_is_an_error_and_leaks_nothing,
#endif
    };
    return run_tests("prover", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
