/* The device's own records (gpu/cuda/records.cu) on a card: they are on the host's clock, agree with
 * the events of the proofs' steps, show a pause where there was one, and cost little.
 *
 *     check_activity [small]      small: nothing, it has no memory of its own for compute-sanitizer
 */
#include "tests/gpu-card/card.h"

#include <algorithm>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vector>

static const int64_t US = 1000;
/* Events give a float, the milliseconds since an anchor. */
static const int64_t CLOCK_SLACK = 500 * US;

static struct error error;

struct interval {
    int64_t start, end;
};

static int64_t now_ns(void) {
    return (int64_t)(card_seconds() * 1e9);
}

/* One proof; the union of its device steps' spans. */
static struct interval prove(struct key *key, const struct scalar *witness) {
    struct pending *pending;
    struct proof proof;
    struct prove_span spans[PROVE_STEP_COUNT];
    size_t n;
    struct interval all = {INT64_MAX, 0};
    MUST(prove_start(key, &witness, 1, &pending, &error), &error);
    MUST(prove_finish(pending, &proof, spans, &n, &error), &error);
    for (size_t i = 0; i < n; i++) {
        if (spans[i].step == PROVE_STEP_FINISH) continue;
        all.start = std::min(all.start, spans[i].start_ns);
        all.end = std::max(all.end, spans[i].start_ns + spans[i].duration_ns);
    }
    return all;
}

/* Seconds for n proofs, two at a time. */
static double time_proofs(struct key *key, const struct scalar *witness, int n) {
    double begin = card_seconds();
    struct pending *before = NULL, *pending;
    struct proof proof;
    for (int i = 0; i < n; i++) {
        MUST(prove_start(key, &witness, 1, &pending, &error), &error);
        if (before != NULL) MUST(prove_finish(before, &proof, NULL, NULL, &error), &error);
        before = pending;
    }
    MUST(prove_finish(before, &proof, NULL, NULL, &error), &error);
    return card_seconds() - begin;
}

static std::vector<struct activity_interval> drain(struct device *device, bool is_last) {
    struct activity_interval *got;
    size_t n;
    int64_t until;
    MUST(device_activity_drain(device, is_last, &got, &n, &until, &error), &error);
    CHECK(until <= now_ns(), "records of the future");
    std::vector<struct activity_interval> all(got, got + n);
    free(got);
    return all;
}

/* Every proof's records lie within its steps and reach from their start to their end. */
static void check_against_steps(const std::vector<struct activity_interval> &records,
                                const std::vector<struct interval> &proofs) {
    for (const struct interval &proof : proofs) {
        int64_t first = INT64_MAX, last = 0, kernels = 0, copies = 0;
        for (const struct activity_interval &r : records) {
            if (r.end_ns < proof.start - CLOCK_SLACK || r.start_ns > proof.end + CLOCK_SLACK)
                continue;
            first = std::min(first, r.start_ns);
            last = std::max(last, r.end_ns);
            (r.kind == ACTIVITY_KERNEL ? kernels : copies) += r.busy_ns;
            CHECK(r.busy_ns <= r.end_ns - r.start_ns, "more busy than long");
        }
        CHECK(llabs(first - proof.start) < CLOCK_SLACK && llabs(last - proof.end) < CLOCK_SLACK,
              "records from %lld to %lld us of the steps' start, which last %lld us",
              (long long)(first - proof.start) / US, (long long)(last - proof.start) / US,
              (long long)(proof.end - proof.start) / US);
        CHECK(copies > 0 && kernels > (proof.end - proof.start) / 2,
              "%lld us of kernels in %lld us of steps", (long long)kernels / US,
              (long long)(proof.end - proof.start) / US);
    }
}

static void check_pauses(const std::vector<struct activity_interval> &records,
                         const std::vector<struct interval> &proofs) {
    for (size_t i = 1; i < proofs.size(); i++)
        for (const struct activity_interval &r : records)
            CHECK(r.end_ns <= proofs[i - 1].end + CLOCK_SLACK ||
                      r.start_ns >= proofs[i].start - CLOCK_SLACK,
                  "something ran in the pause after proof %zu", i);
}

int main(int argc, char **argv) {
    struct circuit_spec spec = {CURVE_BN254, CIRCUIT_DENSE, 60000, 1, 0, 1, 0};
    struct card_circuit circuit;
    struct device *device;
    struct key *key;
    std::vector<struct interval> proofs;
    if (argc > 1 && strcmp(argv[1], "small") == 0) return EXIT_SUCCESS;
    card_circuit_make(&spec, &circuit);
    MUST(device_open("cuda:0", 0, &device, &error), &error);
    MUST(key_load(device, &circuit.zkey, &key, &error), &error);
    (void)time_proofs(key, circuit.witness, 50);
    double without = time_proofs(key, circuit.witness, 200);
    MUST(device_activity_start(device, &error), &error);
    printf("  busy times: %s\n", device_activity_source(device));
    if (!device->has_records) {
        printf("check_activity: left out\n");
        return EXIT_SUCCESS;
    }
    double with = time_proofs(key, circuit.witness, 200);
    (void)drain(device, true);
    for (int i = 0; i < 10; i++) {
        proofs.push_back(prove(key, circuit.witness));
        (void)usleep(20000);
    }
    std::vector<struct activity_interval> records = drain(device, true);
    CHECK(records.size() >= 20, "only %zu intervals of 10 proofs", records.size());
    check_against_steps(records, proofs);
    check_pauses(records, proofs);
    printf("  10 proofs of 2^16 apart: %zu intervals, within their steps, pauses seen\n",
           records.size());
    printf("  200 proofs of 2^16 in turn: %.3f ms each without records, %.3f with: %+.2f %%\n",
           without * 5, with * 5, 100 * (with / without - 1));
    key_free(key);
    device_close(device);
    card_circuit_free(&circuit);
    printf("check_activity: passed\n");
    return EXIT_SUCCESS;
}
