/* Times of sums: bases and their multiples resident, scalars in pinned host memory, the clock
 * running from the first copy to the affine plain result. Each result is checked against known
 * discrete logarithms before its time is printed.
 *
 *     bench_msm                     all sizes with the shapes in use, in 1 to 4 parts
 *     bench_msm g1|g2 [LOG_N]       one group, one size
 *     bench_msm g1|g2 LOG_N SWEEP   windows up to SWEEP bits around the one in use
 */
#include "tests/gpu-card/msm_case.cuh"

#include <algorithm>
#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 15, WARM_UP = 3 };

/* Pinned scalars: uniform, or 98 of 100 of them 0 or 1. */
struct pinned_scalars {
    struct scalar *at;

    pinned_scalars(size_t n, bool bits) {
        void *memory;
        MUST(pinned_memory(n * sizeof *at, &memory, &error), &error);
        at = static_cast<struct scalar *>(memory);
        card_random(curve_info(CURVE_BN254), 3, at, n);
        for (size_t i = 0; bits && i < n; i++)
            if (i % 50 != 0) at[i] = {{(uint8_t)(at[i].le[7] & 1)}};
    }
    ~pinned_scalars() {
        pinned_memory_free(at);
    }
};

struct bench {
    struct msm_place place;
    device_bytes scalars;
    const struct scalar *host;
    uint32_t n;
    unsigned parts;
    uint8_t *pinned_result;
    cudaStream_t copy, main;
    std::vector<cudaEvent_t> copied;
    cudaEvent_t at_step[5];

    bench(const struct msm_shape &shape, enum msm_group group, const struct scalar *s, unsigned p)
        : place(shape, group, part_begin(shape.n, p, p) - part_begin(shape.n, p - 1, p)),
          scalars(shape.n * sizeof *s), host(s), n(shape.n), parts(p), copied(p) {
        void *memory;
        MUST(pinned_memory(place.result.size(), &memory, &error), &error);
        pinned_result = static_cast<uint8_t *>(memory);
        ok(cudaStreamCreateWithFlags(&copy, cudaStreamNonBlocking), "making a stream");
        ok(cudaStreamCreateWithFlags(&main, cudaStreamNonBlocking), "making a stream");
        for (cudaEvent_t &event : copied)
            ok(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
        for (cudaEvent_t &event : at_step)
            ok(cudaEventCreate(&event), "making an event");
    }
    ~bench() {
        pinned_memory_free(pinned_result);
        ok(cudaStreamDestroy(copy), "freeing a stream");
        ok(cudaStreamDestroy(main), "freeing a stream");
        for (cudaEvent_t event : copied)
            ok(cudaEventDestroy(event), "freeing an event");
        for (cudaEvent_t event : at_step)
            ok(cudaEventDestroy(event), "freeing an event");
    }
    /* Each part is four times the one before, so that it is copied while that one is summed. */
    static uint32_t part_begin(uint32_t n, unsigned part, unsigned parts) {
        return (uint32_t)((uint64_t)n * ((1u << 2 * part) - 1) / ((1u << 2 * parts) - 1));
    }
    void mark(int step) {
        ok(cudaEventRecord(at_step[step], main), "recording");
    }

    /* Steps are marked for the first part; with one part they are the whole. */
    struct answer run() {
        mark(0);
        MUST(msm_sum_begin(&place.shape, &place.sum, main, &error), &error);
        for (unsigned part = 0; part < parts; part++) {
            uint32_t first = part_begin(n, part, parts);
            uint32_t count = part_begin(n, part + 1, parts) - first;
            struct scalar *to = (struct scalar *)scalars.at + first;
            ok(cudaMemcpyAsync(to, host + first, count * sizeof *to, cudaMemcpyHostToDevice, copy),
               "copying");
            ok(cudaEventRecord(copied[part], copy), "recording");
        }
        for (unsigned part = 0; part < parts; part++) {
            uint32_t first = part_begin(n, part, parts);
            uint32_t count = part_begin(n, part + 1, parts) - first;
            struct msm_list list;
            ok(cudaStreamWaitEvent(main, copied[part]), "waiting");
            if (part == 0) mark(1);
            MUST(msm_sort(&place.shape, (const struct scalar *)scalars.at + first, first, count,
                          &place.sort, &list, NULL, main, &error),
                 &error);
            if (part == 0) mark(2);
            MUST(msm_sum_add(&place.shape, &place.sum, place.table.at, &list, main, &error),
                 &error);
            if (part == parts - 1) mark(3);
        }
        MUST(msm_sum_end(&place.shape, &place.sum, main, &error), &error);
        ok(cudaMemcpyAsync(pinned_result, place.sum.result, place.result.size(),
                           cudaMemcpyDeviceToHost, main),
           "copying the result");
        mark(4);
        ok(cudaStreamSynchronize(main), "summing");
        memcpy(place.result.data(), pinned_result, place.result.size());
        return place.host_tail();
    }
    float between(int from, int to) const {
        float ms;
        ok(cudaEventElapsedTime(&ms, at_step[from], at_step[to]), "timing");
        return ms;
    }
};

static void measure(struct bench &b, const std::vector<int64_t> &k, const char *kind,
                    double table_ms) {
    struct answer first = b.run();
    answer_check(b.place.group, first, k, b.host, kind);
    std::vector<double> wall;
    std::vector<float> step[4];
    for (int run = -WARM_UP; run < RUNS; run++) {
        double begin = card_seconds();
        struct answer got = b.run();
        double end = card_seconds();
        CHECK(memcmp(&got, &first, sizeof got) == 0, "%s: a repeated sum differs", kind);
        if (run < 0) continue;
        wall.push_back((end - begin) * 1e3);
        for (int i = 0; i < 4; i++)
            step[i].push_back(b.between(i, i + 1));
    }
    std::sort(wall.begin(), wall.end());
    for (auto &s : step)
        std::sort(s.begin(), s.end());
    const struct msm_shape &shape = b.place.shape;
    printf("%s %8u %-8s window %2u tables %2u sets %2u parts %u: %8.3f ms (best %.3f), copy %.3f "
           "sort %.3f add %.3f end %.3f; tables made in %.1f ms\n",
           b.place.group == MSM_G1 ? "G1" : "G2", b.n, kind, shape.window_bits, shape.tables,
           shape.sets, b.parts, wall[RUNS / 2], wall[0], step[0][RUNS / 2], step[1][RUNS / 2],
           step[2][RUNS / 2], step[3][RUNS / 2], table_ms);
    (void)fflush(stdout);
}

static void measure_shape(enum msm_group group, const struct msm_shape &shape, unsigned parts,
                          const std::vector<int64_t> &k, const pinned_scalars &uniform,
                          const pinned_scalars &bits) {
    struct bench b(shape, group, uniform.at, parts);
    bases_of(group, k, b.place.table.at);
    double begin = card_seconds();
    b.place.fill_tables();
    double table_ms = (card_seconds() - begin) * 1e3;
    measure(b, k, "uniform", table_ms);
    b.host = bits.at;
    if (parts == 1) measure(b, k, "bits", table_ms);
}

static void measure_size(enum msm_group group, unsigned log_n, unsigned sweep) {
    uint32_t n = UINT32_C(1) << log_n;
    std::vector<int64_t> k(n);
    for (uint32_t i = 0; i < n; i++)
        k[i] = (int64_t)((i + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 1);
    pinned_scalars uniform(n, false), bits(n, true);
    struct msm_shape best = msm_shape_choose(CURVE_BN254, n, 99);
    if (sweep == 0) {
        for (unsigned parts = 1; parts <= 4; parts++)
            measure_shape(group, best, parts, k, uniform, bits);
        return;
    }
    for (unsigned c = best.window_bits - sweep; c <= best.window_bits + sweep; c++)
        measure_shape(group, msm_shape_with(CURVE_BN254, n, c, 99), 1, k, uniform, bits);
}

int main(int argc, char **argv) {
    CHECK(argc <= 4, "usage: bench_msm [g1|g2 [LOG_N [SWEEP]]]");
    bool g1 = argc == 1 || strcmp(argv[1], "g1") == 0, g2 = argc == 1 || !g1;
    unsigned log_n = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    unsigned sweep = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    for (unsigned log = 12; g1 && log <= 24; log += 2)
        if (log_n == 0 || log == log_n) measure_size(MSM_G1, log, sweep);
    for (unsigned log = 12; g2 && log <= 22; log += 2)
        if (log_n == 0 || log == log_n) measure_size(MSM_G2, log, sweep);
    return 0;
}
