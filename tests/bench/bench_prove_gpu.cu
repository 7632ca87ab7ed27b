/* Times of whole proofs, key resident, witness in pinned memory: each proof is verified first. The
 * circuits and their keys are made here.
 *
 *     bench_prove_gpu [dense|bits LOG2 ...]      default: dense 17 dense 20 bits 20 dense 22
 */
#include "tests/gpu-card/card.h"

#include <algorithm>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

enum { RUNS = 21, PAIRS = 20 };

static struct error error;

struct subject {
    struct card_circuit circuit;
    struct scalar *witness;
    struct key *key;
};

static void prove(const struct subject &s, struct proof *proof, struct prove_span *spans) {
    struct pending *pending;
    size_t n;
    const struct scalar *witness = s.witness;
    MUST(prove_start(s.key, &witness, 1, &pending, &error), &error);
    MUST(prove_finish(pending, proof, spans, &n, &error), &error);
}

/* Milliseconds for a proof when two are always in flight. */
static double pipelined_ms(const struct subject &s) {
    struct pending *pending[2];
    struct proof proof;
    const struct scalar *witness = s.witness;
    MUST(prove_start(s.key, &witness, 1, &pending[0], &error), &error);
    double begin = card_seconds();
    for (int i = 1; i <= PAIRS; i++) {
        MUST(prove_start(s.key, &witness, 1, &pending[i % 2], &error), &error);
        MUST(prove_finish(pending[(i + 1) % 2], &proof, NULL, NULL, &error), &error);
        CHECK(i % 10 != 1 || card_verifies(&s.circuit, s.witness, &proof), "a proof is wrong");
    }
    double ms = (card_seconds() - begin) * 1e3 / PAIRS;
    MUST(prove_finish(pending[PAIRS % 2], &proof, NULL, NULL, &error), &error);
    return ms;
}

static double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

static void time_proofs(const struct subject &s) {
    struct proof proof;
    struct prove_span spans[PROVE_STEP_COUNT];
    std::vector<double> whole, begin[PROVE_STEP_COUNT], length[PROVE_STEP_COUNT];
    prove(s, &proof, spans);
    CHECK(card_verifies(&s.circuit, s.witness, &proof), "the proof does not verify");
    for (int run = 0; run < RUNS; run++) {
        double start = card_seconds();
        prove(s, &proof, spans);
        whole.push_back((card_seconds() - start) * 1e3);
        for (int step = 0; step < PROVE_STEP_COUNT; step++) {
            begin[step].push_back((double)spans[step].start_ns * 1e-6 - start * 1e3);
            length[step].push_back((double)spans[step].duration_ns * 1e-6);
        }
    }
    CHECK(card_verifies(&s.circuit, s.witness, &proof), "the last proof does not verify");
    std::sort(whole.begin(), whole.end());
    printf("  proof %.2f ms (least %.2f), two in flight %.2f ms each\n", median(whole), whole[0],
           pipelined_ms(s));
    for (int step = 0; step < PROVE_STEP_COUNT; step++)
        printf("    %-9s from %7.2f for %7.2f ms\n", prove_step_name((enum prove_step)step),
               median(begin[step]), median(length[step]));
}

static void bench(struct device *device, enum circuit_kind kind, unsigned log2) {
    struct subject s;
    struct circuit_spec spec = {CURVE_BN254, kind, circuit_constraints(log2, 1), 1, 0, log2, 0};
    double begin = card_seconds();
    card_circuit_make(&spec, &s.circuit);
    double made = card_seconds();
    size_t key_bytes, scratch_bytes, bytes = s.circuit.zkey.n_vars * sizeof *s.witness;
    void *pinned;
    MUST(key_memory(device, &s.circuit.zkey, &key_bytes, &scratch_bytes, &error), &error);
    MUST(device_host_alloc(device, bytes, &pinned, &error), &error);
    memcpy(pinned, s.circuit.witness, bytes);
    s.witness = static_cast<struct scalar *>(pinned);
    double loading = card_seconds();
    MUST(key_load(device, &s.circuit.zkey, &s.key, &error), &error);
    double loaded = card_seconds();
    printf("%s 2^%u: %u signals, %u terms; key made on the CPU in %.1f s, loaded in %.3f s, "
           "%.0f MiB + %.0f MiB for two proofs\n",
           kind == CIRCUIT_DENSE ? "dense" : "bits", log2, s.circuit.zkey.n_vars,
           s.circuit.zkey.n_coefficients, made - begin, loaded - loading,
           (double)key_bytes / (1 << 20), (double)scratch_bytes / (1 << 20));
    time_proofs(s);
    (void)fflush(stdout);
    key_free(s.key);
    device_host_free(device, s.witness);
    card_circuit_free(&s.circuit);
}

int main(int argc, char **argv) {
    static const char *const usual[] = {"",     "dense", "17",    "dense", "20",
                                        "bits", "20",    "dense", "22"};
    const char *const *args = argc > 1 ? argv : usual;
    int n = argc > 1 ? argc : (int)(sizeof usual / sizeof *usual);
    struct device *device;
    MUST(device_open("cuda:0", 0, &device, &error), &error);
    printf("whole proofs on %s\n", device_description(device));
    for (int i = 1; i + 1 < n; i += 2)
        bench(device, strcmp(args[i], "dense") == 0 ? CIRCUIT_DENSE : CIRCUIT_BITS,
              (unsigned)strtoul(args[i + 1], NULL, 10));
    device_close(device);
    return 0;
}
