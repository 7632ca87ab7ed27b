/* Whole proofs on the card: equal to the CPU backend's point by point for the same blinding, right
 * over thousands of runs, right after every failed allocation, and a clear error after a fault.
 *
 *     check_prove [small | fault]      small: two proofs, for compute-sanitizer
 */
#include "gpu/cuda/msm.cuh"
#include "tests/gpu-card/card.h"

#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <vector>

extern char **environ;
static struct error error;

static struct device *open_device(const char *spec) {
    struct device *device;
    MUST(device_open(spec, 0, &device, &error), &error);
    return device;
}

static struct key *load(struct device *device, const struct card_circuit &c) {
    struct key *key;
    MUST(key_load(device, &c.zkey, &key, &error), &error);
    return key;
}

static struct circuit_spec spec(enum curve_id curve, enum circuit_kind kind, uint32_t constraints,
                                uint32_t n_public, uint32_t n_unused) {
    return {curve, kind, constraints, n_public, n_unused, constraints, 0};
}

/* --- equal to the CPU --- */
struct both {
    struct device *cpu = open_device("cpu"), *cuda = open_device("cuda:0");

    ~both() {
        device_close(cuda);
        device_close(cpu);
    }
    void same(const struct card_circuit &c, const struct scalar *witness, const char *what) {
        struct key *cpu_key = load(cpu, c), *cuda_key = load(cuda, c);
        struct proof expected, got;
        card_prove(cpu_key, witness, 7, &expected);
        card_prove(cuda_key, witness, 7, &got);
        CHECK(memcmp(&expected.a, &got.a, sizeof got.a) == 0, "%s: A differs", what);
        CHECK(memcmp(&expected.b, &got.b, sizeof got.b) == 0, "%s: B differs", what);
        CHECK(memcmp(&expected.c, &got.c, sizeof got.c) == 0, "%s: C differs", what);
        key_free(cuda_key);
        key_free(cpu_key);
    }
};

static void check_circuit(both &devices, const struct circuit_spec &s) {
    struct card_circuit c;
    char what[96];
    (void)snprintf(what, sizeof what, "%s, %s, %u constraints, %u public, %u unused",
                   curve_info(s.curve)->name, s.kind == CIRCUIT_DENSE ? "dense" : "bits",
                   s.n_constraints, s.n_public, s.n_unused);
    double begin = card_seconds();
    card_circuit_make(&s, &c);
    double made = card_seconds();
    devices.same(c, c.witness, what);
    printf("  %s: same as the CPU (key made in %.1f s, proofs %.1f s)\n", what, made - begin,
           card_seconds() - made);
    card_circuit_free(&c);
}

static void check_sizes(both &devices) {
    for (unsigned log2 = 8; log2 <= 20; log2 += log2 < 14 ? 1 : 2) {
        uint32_t n_public = log2 % 3, unused = log2 % 2 ? (1u << log2) / 3 : 0;
        enum circuit_kind kind = log2 % 2 ? CIRCUIT_BITS : CIRCUIT_DENSE;
        check_circuit(devices, spec(CURVE_BN254, kind, circuit_constraints(log2, n_public),
                                    n_public, unused));
    }
    check_circuit(devices, spec(CURVE_BN254, CIRCUIT_BITS, 1, 0, 0));
    check_circuit(devices, spec(CURVE_BN254, CIRCUIT_DENSE, 5, 3, 0));
    check_circuit(devices, spec(CURVE_BN254, CIRCUIT_BITS, 100000, 20, 0));
}

static void check_other_curve(both &devices) {
    struct circuit_spec s = spec(CURVE_BLS12_381, CIRCUIT_DENSE, 300, 0, 0);
    struct card_circuit c;
    struct key *key;
    if (msm_supports(CURVE_BLS12_381)) {
        check_circuit(devices, s);
        return;
    }
    card_circuit_make(&s, &c);
    CHECK(key_load(devices.cuda, &c.zkey, &key, &error) == ERR_DEVICE_UNSUPPORTED,
          "a key of a curve that is not built in is not refused");
    printf("  BLS12-381: \"%s\"\n", error.text);
    card_circuit_free(&c);
}

/* --- scalars and bases that strain a sum --- */
typedef std::vector<struct scalar> scalars;

static scalars filled(size_t n, const struct scalar &value) {
    scalars all(n, value);
    all[0] = {};
    all[0].le[0] = 1;
    return all;
}

static void check_scalars(both &devices, const struct card_circuit &c) {
    size_t n = c.zkey.n_vars;
    struct scalar zero = {}, one = {}, most, drawn;
    one.le[0] = 1;
    memcpy(most.le, c.zkey.curve->r, sizeof most.le);
    most.le[0] -= 1; /* r is odd */
    card_random(c.zkey.curve, 11, &drawn, 1);
    devices.same(c, filled(n, zero).data(), "scalars all 0");
    devices.same(c, filled(n, one).data(), "scalars all 1");
    devices.same(c, filled(n, most).data(), "scalars all r-1");
    devices.same(c, filled(n, drawn).data(), "scalars all equal");
    scalars few = filled(n, zero), mixed = filled(n, one);
    for (size_t i : {n / 3, n / 2, n - 1})
        few[i] = most;
    devices.same(c, few.data(), "few large among zeros");
    for (size_t i = 1; i < n; i += 2)
        mixed[i] = most;
    devices.same(c, mixed.data(), "1 and r-1 by turns");
}

/* Overwrites the bases of all groups: base i becomes base of(i), negated when negative(i), infinity
 * when of(i) is not below n. */
static void change_bases(struct card_circuit *c, size_t (*of)(size_t i, size_t n),
                         bool (*negative)(size_t i)) {
    const struct cpu_curve *curve = cpu_curve(c->zkey.curve->id);
    struct {
        uint8_t *points;
        size_t n, bytes;
    } groups[] = {{c->setup.a, c->zkey.n_vars, zkey_g1_bytes(&c->zkey)},
                  {c->setup.b1, c->zkey.n_vars, zkey_g1_bytes(&c->zkey)},
                  {c->setup.b2, c->zkey.n_vars, zkey_g2_bytes(&c->zkey)},
                  {c->setup.c, c->zkey.n_vars - c->zkey.n_public - 1, zkey_g1_bytes(&c->zkey)},
                  {c->setup.h, c->zkey.domain_size, zkey_g1_bytes(&c->zkey)}};
    for (auto &g : groups) {
        std::vector<uint8_t> old(g.points, g.points + g.n * g.bytes);
        for (size_t i = 0; i < g.n; i++) {
            size_t from = of(i, g.n);
            if (from >= g.n)
                memset(g.points + i * g.bytes, 0, g.bytes);
            else
                memcpy(g.points + i * g.bytes, old.data() + from * g.bytes, g.bytes);
            if (g.bytes == zkey_g1_bytes(&c->zkey) && negative(i)) {
                struct g1_point p, minus;
                curve->g1_from_zkey(g.points + i * g.bytes, &p);
                curve->g1_neg(&p, &minus);
                curve->g1_to_zkey(&minus, g.points + i * g.bytes);
            }
        }
    }
}

static void check_bases(both &devices, const struct circuit_spec &s, const char *what,
                        size_t (*of)(size_t i, size_t n), bool (*negative)(size_t i)) {
    struct card_circuit c;
    card_circuit_make(&s, &c);
    change_bases(&c, of, negative);
    struct scalar one = {}, drawn;
    one.le[0] = 1;
    card_random(c.zkey.curve, 12, &drawn, 1);
    devices.same(c, c.witness, what);
    devices.same(c, filled(c.zkey.n_vars, one).data(), what);
    devices.same(c, filled(c.zkey.n_vars, drawn).data(), what);
    card_circuit_free(&c);
}

static void check_strains(both &devices) {
    struct circuit_spec s = spec(CURVE_BN254, CIRCUIT_DENSE, 3000, 1, 0);
    struct card_circuit c;
    card_circuit_make(&s, &c);
    check_scalars(devices, c);
    card_circuit_free(&c);
    auto never = [](size_t) { return false; };
    auto odd = [](size_t i) { return i % 2 == 1; };
    auto third = [](size_t i) { return i % 3 == 1; };
    check_bases(
        devices, s, "bases all equal", [](size_t, size_t) -> size_t { return 5; }, never);
    check_bases(
        devices, s, "P and -P", [](size_t, size_t) -> size_t { return 5; }, odd);
    check_bases(
        devices, s, "P, P and -P in pairs", [](size_t i, size_t) { return i / 4 * 4; }, third);
    check_bases(
        devices, s, "infinity first, in the middle, last",
        [](size_t i, size_t n) { return i == 0 || i == n / 2 || i == n - 1 ? n : i; }, never);
    check_bases(
        devices, s, "all infinity", [](size_t, size_t n) { return n; }, never);
    printf("  scalars and bases that strain a sum: same as the CPU\n");
}

/* --- thousands of proofs --- */
enum { THREADS = 8, STRESS_KEYS = 5 };

struct stress {
    struct card_circuit circuit[STRESS_KEYS];
    struct scalar *pinned[STRESS_KEYS]; /* the witnesses */
    struct key *key[STRESS_KEYS];
    unsigned proofs, next;
};

static void *stress_thread(void *arg) {
    struct stress *s = static_cast<struct stress *>(arg);
    for (;;) {
        unsigned i = __atomic_fetch_add(&s->next, 1, __ATOMIC_SEQ_CST);
        if (i >= s->proofs) return NULL;
        unsigned k = i % STRESS_KEYS;
        const struct scalar *witness = s->pinned[k];
        struct error e;
        struct pending *pending;
        struct proof proof;
        struct prove_span spans[PROVE_STEP_COUNT];
        size_t n_spans;
        double begin = card_seconds() * 1e9;
        MUST(prove_start(s->key[k], &witness, 1, &pending, &e), &e);
        MUST(prove_wait_inputs(pending, &e), &e);
        MUST(prove_finish(pending, &proof, spans, &n_spans, &e), &e);
        double end = card_seconds() * 1e9;
        CHECK(card_verifies(&s->circuit[k], witness, &proof), "proof %u does not verify", i);
        CHECK(n_spans == PROVE_STEP_COUNT, "proof %u has %zu steps", i, n_spans);
        for (const struct prove_span &span : spans)
            CHECK((double)span.start_ns > begin - 1e6 && span.duration_ns >= 0 &&
                      (double)(span.start_ns + span.duration_ns) < end + 1e6,
                  "proof %u: step %s lies outside the proof", i, prove_step_name(span.step));
    }
}

static void stress_run(struct stress *s, unsigned proofs) {
    struct device *device = open_device("cuda:0");
    for (int k = 0; k < STRESS_KEYS; k++) {
        size_t bytes = s->circuit[k].zkey.n_vars * sizeof *s->pinned[k];
        void *memory;
        s->key[k] = load(device, s->circuit[k]);
        MUST(device_host_alloc(device, bytes, &memory, &error), &error);
        memcpy(memory, s->circuit[k].witness, bytes);
        s->pinned[k] = static_cast<struct scalar *>(memory);
    }
    s->proofs = proofs;
    s->next = 0;
    pthread_t threads[THREADS];
    for (pthread_t &t : threads)
        CHECK(pthread_create(&t, NULL, stress_thread, s) == 0, "no thread");
    for (pthread_t &t : threads)
        (void)pthread_join(t, NULL);
    for (int k = 0; k < STRESS_KEYS; k++) {
        device_host_free(device, s->pinned[k]);
        key_free(s->key[k]);
    }
    device_close(device);
}

static size_t free_memory(void) {
    size_t free_bytes, total;
    MUST(cuda_result(cudaMemGetInfo(&free_bytes, &total), "reading the device's memory", &error),
         &error);
    return free_bytes;
}

static void check_stress(unsigned proofs) {
    static struct stress s;
    const struct circuit_spec specs[STRESS_KEYS] = {
        spec(CURVE_BN254, CIRCUIT_DENSE, circuit_constraints(8, 1), 1, 0),
        spec(CURVE_BN254, CIRCUIT_BITS, circuit_constraints(13, 4), 4, 0),
        spec(CURVE_BN254, CIRCUIT_DENSE, 3000, 0, 2000),
        spec(CURVE_BN254, CIRCUIT_BITS, circuit_constraints(10, 2), 2, 0),
        spec(CURVE_BN254, CIRCUIT_DENSE, circuit_constraints(14, 3), 3, 0),
    };
    for (int k = 0; k < STRESS_KEYS; k++)
        card_circuit_make(&specs[k], &s.circuit[k]);
    stress_run(&s, 2 * STRESS_KEYS); /* what the driver allocates once */
    size_t before = free_memory();
    double begin = card_seconds();
    stress_run(&s, proofs);
    double seconds = card_seconds() - begin;
    size_t after = free_memory();
    CHECK(before == after, "device memory: %zu bytes free before, %zu after", before, after);
    for (struct card_circuit &c : s.circuit)
        card_circuit_free(&c);
    printf(
        "  %u proofs by %d threads, mixed circuits: all verified, no device memory lost (%.1f s)\n",
        proofs, THREADS, seconds);
}

/* --- out of memory --- */
/* Opens, loads, proves, with the nth allocation failing; whatever failed must work when tried again. */
static bool with_failure(unsigned nth, const struct card_circuit &small,
                         const struct card_circuit &large) {
    struct device *device = NULL;
    struct key *first = NULL, *second = NULL;
    struct proof proof;
    void *pinned = NULL;
    unsigned failures = 0;
    auto survive = [&](enum err rc, const char *what) {
        if (rc == ERR_NONE) return true;
        CHECK(rc == ERR_DEVICE_MEMORY && error.text[0] != '\0',
              "allocation %u, %s: not a lack of memory but %s", nth, what, error.text);
        failures++;
        allocation_fail(0);
        return false;
    };
    allocation_fail(nth);
    if (!survive(device_open("cuda:0", 0, &device, &error), "device_open"))
        device = open_device("cuda:0");
    if (!survive(key_load(device, &small.zkey, &first, &error), "key_load"))
        first = load(device, small);
    if (!survive(key_load(device, &large.zkey, &second, &error), "second key_load")) {
        card_prove(first, small.witness, nth, &proof);
        CHECK(card_verifies(&small, small.witness, &proof), "wrong after allocation %u", nth);
        second = load(device, large);
    }
    if (!survive(device_host_alloc(device, 1 << 20, &pinned, &error), "device_host_alloc"))
        MUST(device_host_alloc(device, 1 << 20, &pinned, &error), &error);
    unsigned allocations = allocation_count();
    card_prove(first, small.witness, nth, &proof);
    CHECK(card_verifies(&small, small.witness, &proof), "wrong after allocation %u", nth);
    card_prove(second, large.witness, nth, &proof);
    CHECK(card_verifies(&large, large.witness, &proof), "wrong after allocation %u", nth);
    CHECK(allocation_count() == allocations, "a proof allocates");
    device_host_free(device, pinned);
    key_free(first);
    key_free(second);
    device_close(device);
    CHECK(failures <= 1, "allocation %u failed more than once", nth);
    return failures == 1;
}

static void check_out_of_memory(void) {
    struct card_circuit small, large;
    struct circuit_spec s = spec(CURVE_BN254, CIRCUIT_BITS, 200, 1, 0);
    struct circuit_spec l = spec(CURVE_BN254, CIRCUIT_DENSE, 3000, 1, 0);
    card_circuit_make(&s, &small);
    card_circuit_make(&l, &large);
    (void)with_failure(0, small, large);
    size_t before = free_memory();
    unsigned points = 0;
    while (with_failure(points + 1, small, large))
        points++;
    allocation_fail(0);
    CHECK(free_memory() == before, "memory is lost after failed allocations");
    CHECK(points > 50, "only %u allocation points", points);
    card_circuit_free(&small);
    card_circuit_free(&large);
    printf("  out of memory at each of %u allocation points: a clear error, the next proof right\n",
           points);
}

/* --- a fault --- */
static __global__ void fault_kernel(int *nowhere) {
    *nowhere = 1;
}

/* In a process of its own: a write to nowhere, then a proof. */
static int fault_child(void) {
    struct card_circuit c;
    struct circuit_spec s = spec(CURVE_BN254, CIRCUIT_BITS, 200, 1, 0);
    card_circuit_make(&s, &c);
    struct device *device = open_device("cuda:0");
    struct key *key = load(device, c);
    fault_kernel<<<1, 1>>>((int *)64);
    (void)cudaDeviceSynchronize();
    struct pending *pending = NULL;
    struct proof proof;
    const struct scalar *witness = c.witness;
    enum err rc = prove_start(key, &witness, 1, &pending, &error);
    if (rc == ERR_NONE) rc = prove_finish(pending, &proof, NULL, NULL, &error);
    CHECK(rc == ERR_DEVICE_FAULT, "after a fault: %s", rc == ERR_NONE ? "no error" : error.text);
    CHECK(strstr(error.text, "must end") != NULL, "the error does not say what to do: %s",
          error.text);
    printf("  a fault: \"%s\"\n", error.text);
    return 0;
}

static void check_fault(const char *program) {
    char *argv[] = {(char *)program, (char *)"fault", NULL};
    pid_t pid;
    int status;
    (void)fflush(stdout);
    CHECK(posix_spawn(&pid, program, NULL, NULL, argv, environ) == 0, "cannot run %s", program);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0,
          "the process with the fault failed");
}

static void check_missing(void) {
    struct device *device;
    CHECK(device_open("cuda:99", 0, &device, &error) == ERR_DEVICE_MISSING, "cuda:99 is there");
    printf("  cuda:99: \"%s\"\n", error.text);
}

int main(int argc, char **argv) {
    bool small = argc > 1 && strcmp(argv[1], "small") == 0;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && strcmp(argv[1], "fault") == 0) return fault_child();
    {
        both devices;
        printf("proofs on %s\n", device_description(devices.cuda));
        check_circuit(devices, spec(CURVE_BN254, CIRCUIT_DENSE, 250, 2, 0));
        check_circuit(devices, spec(CURVE_BN254, CIRCUIT_DENSE, 700, 0, 1500)); /* infinities */
        if (!small) {
            check_strains(devices);
            check_sizes(devices);
            check_other_curve(devices);
        }
    }
    if (!small) {
        check_missing();
        check_out_of_memory();
        check_stress(2000);
        check_fault(argv[0]);
    }
    printf("ok: proofs\n");
    return 0;
}
