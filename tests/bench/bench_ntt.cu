/* Times of the transforms, one direction, data and twiddles resident: checked first, then the median
 * of events around one transform each, over buffers that together are larger than the cache.
 *
 *     bench_ntt [all] [LOG2]     all: every tile that was tried, not only the one in use
 *                                LOG2: this size only, 1 to 24
 */
#include "gpu/cuda/ntt.cuh"
#include "tests/gpu-card/card.h"

#include <algorithm>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

typedef bn254_fr P;
typedef field<P> F;
typedef void launcher(cudaStream_t, enum ntt_kind, unsigned, F *const *, unsigned,
                      const struct ntt_table<P> &);

enum { LEAST_LOG = 16, MOST_LOG = 24, RUNS = 60, CACHE_MIB = 256 };

static struct error error;

static void ok(cudaError_t result, const char *what) {
    MUST(cuda_result(result, what, &error), &error);
}

static void in_use(cudaStream_t stream, enum ntt_kind kind, unsigned log_n, F *const *arrays,
                   unsigned count, const struct ntt_table<P> &table) {
    MUST(ntt_run<P>(stream, kind, log_n, arrays, count, table, &error), &error);
}

static const struct variant {
    const char *name;
    launcher *launch;
} variants[] = {
    {"in use", in_use},
    {"tile 2^10, 8 a thread, 4 blocks", ntt_launch<P, 10, 3, 4>},
    {"tile 2^10, 4 a thread, 3 blocks", ntt_launch<P, 10, 2, 3>},
    {"tile 2^10, 4 a thread, 4 blocks", ntt_launch<P, 10, 2, 4>},
    {"tile 2^9, 4 a thread, 6 blocks", ntt_launch<P, 9, 2, 6>},
    {"tile 2^9, 4 a thread, 8 blocks", ntt_launch<P, 9, 2, 8>},
    {"tile 2^8, 4 a thread, 16 blocks", ntt_launch<P, 8, 2, 16>},
    {"tile 2^10, 2 a thread, 2 blocks", ntt_launch<P, 10, 1, 2>},
    {"tile 2^9, 2 a thread, 4 blocks", ntt_launch<P, 9, 1, 4>},
    {"tile 2^9, 2 a thread, 5 blocks", ntt_launch<P, 9, 1, 5>},
    {"tile 2^8, 2 a thread, 8 blocks", ntt_launch<P, 8, 1, 8>},
};

struct buffers {
    unsigned log_n, n;
    std::vector<F *> at;
    F *memory;

    explicit buffers(unsigned log) : log_n(log) {
        size_t bytes = sizeof(F) << log;
        n = (unsigned)std::max<size_t>(2, ((size_t)CACHE_MIB << 20) / bytes);
        void *all;
        MUST(device_memory(n * bytes, &all, &error), &error);
        memory = static_cast<F *>(all);
        for (unsigned i = 0; i < n; i++)
            at.push_back(memory + ((size_t)i << log));
    }
    ~buffers() {
        device_memory_free(memory);
    }
    void fill(const std::vector<struct scalar> &values) {
        for (F *buffer : at)
            ok(cudaMemcpy(buffer, values.data(), values.size() * sizeof(F), cudaMemcpyHostToDevice),
               "copying");
    }
};

/* The forward transform against the CPU's. */
static void check(const struct variant &v, buffers &data, const std::vector<struct scalar> &values,
                  const std::vector<struct scalar> &expected, const struct ntt_table<P> &table) {
    std::vector<struct scalar> got(values.size());
    v.launch(NULL, NTT_FORWARD, data.log_n, &data.at[0], 1, table);
    ok(cudaMemcpy(got.data(), data.at[0], got.size() * sizeof(F), cudaMemcpyDeviceToHost),
       "copying");
    for (uint32_t i = 0; i < got.size(); i++)
        CHECK(memcmp(&got[bit_reverse(i, data.log_n)], &expected[i], sizeof(F)) == 0,
              "%s: 2^%u: value %u is wrong", v.name, data.log_n, i);
}

static double median_us(const struct variant &v, buffers &data, enum ntt_kind kind,
                        const struct ntt_table<P> &table) {
    cudaEvent_t begin, end;
    std::vector<float> times;
    ok(cudaEventCreate(&begin), "making an event");
    ok(cudaEventCreate(&end), "making an event");
    for (int run = -5; run < RUNS; run++) {
        float ms;
        F **array = &data.at[(unsigned)(run + 5) % data.n];
        ok(cudaEventRecord(begin, NULL), "recording");
        v.launch(NULL, kind, data.log_n, array, 1, table);
        ok(cudaEventRecord(end, NULL), "recording");
        ok(cudaEventSynchronize(end), "running");
        ok(cudaEventElapsedTime(&ms, begin, end), "timing");
        if (run >= 0) times.push_back(ms);
    }
    ok(cudaEventDestroy(begin), "freeing an event");
    ok(cudaEventDestroy(end), "freeing an event");
    std::sort(times.begin(), times.end());
    return (double)times[times.size() / 2] * 1e3;
}

static void bench(unsigned log_n, size_t n_variants, const struct ntt_table<P> &table) {
    buffers data(log_n);
    std::vector<struct scalar> values((size_t)1 << log_n);
    card_random(curve_info(CURVE_BN254), log_n, values.data(), values.size());
    std::vector<struct scalar> expected = values;
    MUST(cpu_curve(CURVE_BN254)->ntt(pool_shared(), expected.data(), log_n, false, &error), &error);
    for (size_t v = 0; v < n_variants; v++) {
        data.fill(values);
        check(variants[v], data, values, expected, table);
        printf("2^%-2u %-34s", log_n, variants[v].name);
        for (enum ntt_kind kind : {NTT_FORWARD, NTT_COSET, NTT_INVERSE, NTT_TURN})
            printf(" %9.1f", median_us(variants[v], data, kind, table));
        printf("\n");
        (void)fflush(stdout);
    }
}

int main(int argc, char **argv) {
    size_t n_variants = 1;
    unsigned long only = 0;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "all") == 0)
            n_variants = sizeof variants / sizeof *variants;
        else
            only = strtoul(argv[i], NULL, 10);
    CHECK(only <= MOST_LOG, "sizes go to 2^%d", MOST_LOG);
    buffers twiddles(MOST_LOG + 1);
    struct ntt_table<P> table = {
        twiddles.memory, MOST_LOG
    };
    MUST(ntt_table_fill(NULL, table, &error), &error);
    printf("transforms, BN254 scalars, us, median of %d (forward / odd coset / inverse / turn)\n",
           RUNS);
    if (only != 0) bench((unsigned)only, n_variants, table);
    for (unsigned log_n = LEAST_LOG; only == 0 && log_n <= MOST_LOG; log_n += 2)
        bench(log_n, n_variants, table);
    return 0;
}
