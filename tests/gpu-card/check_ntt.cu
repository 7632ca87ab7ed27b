/* The transforms on the card against the CPU backend's: both curves, every size up to 2^20, some larger
 * ones by going there and back. */
#include "gpu/cuda/ntt.cuh"
#include "tests/gpu-card/card.h"

#include <stdio.h>
#include <vector>

static struct error error;

template <class P> struct device_array {
    field<P> *at;

    device_array(size_t n) {
        void *memory;
        MUST(device_memory(n * sizeof *at, &memory, &error), &error);
        at = static_cast<field<P> *>(memory);
    }
    ~device_array() {
        device_memory_free(at);
    }
    void set(const std::vector<struct scalar> &values) {
        MUST(cuda_result(
                 cudaMemcpy(at, values.data(), values.size() * sizeof *at, cudaMemcpyHostToDevice),
                 "copying", &error),
             &error);
    }
    void get(std::vector<struct scalar> &values) {
        MUST(cuda_result(
                 cudaMemcpy(values.data(), at, values.size() * sizeof *at, cudaMemcpyDeviceToHost),
                 "copying", &error),
             &error);
    }
};

/* Transforms are linear, so plain values go through them as well as Montgomery ones. */
template <class P> static void check_size(enum curve_id curve, unsigned log_n) {
    size_t n = (size_t)1 << log_n;
    std::vector<struct scalar> values(n), expected, got(n);
    card_random(curve_info(curve), log_n, values.data(), n);
    device_array<P> data(n), twiddles(ntt_table_entries<P>(log_n));
    struct ntt_table<P> table = {
        twiddles.at, log_n
    };
    field<P> *arrays[] = {data.at};
    MUST(ntt_table_fill(NULL, table, &error), &error);

    data.set(values);
    MUST(ntt_run<P>(NULL, NTT_FORWARD, log_n, arrays, 1, table, &error), &error);
    data.get(got);
    expected = values;
    MUST(cpu_curve(curve)->ntt(pool_shared(), expected.data(), log_n, false, &error), &error);
    for (uint32_t i = 0; i < n; i++)
        CHECK(memcmp(&got[bit_reverse(i, log_n)], &expected[i], sizeof expected[i]) == 0,
              "forward 2^%u: value %u", log_n, i);

    MUST(ntt_run<P>(NULL, NTT_INVERSE, log_n, arrays, 1, table, &error), &error);
    data.get(got);
    struct scalar size = {};
    size.le[log_n / 8] = (uint8_t)(1 << log_n % 8);
    for (uint32_t i = 0; i < n; i += 1 + n / 4096) {
        struct scalar product;
        cpu_curve(curve)->fr_mul(&values[i], &size, &product);
        CHECK(memcmp(&got[i], &product, sizeof product) == 0, "inverse 2^%u: value %u", log_n, i);
    }

    /* Turning is going to the odd coset: half of the forward transform of twice the size. */
    data.set(values);
    MUST(ntt_run<P>(NULL, NTT_TURN, log_n, arrays, 1, table, &error), &error);
    data.get(got);
    std::vector<struct scalar> natural(n), twice(2 * n);
    for (uint32_t i = 0; i < n; i++)
        natural[i] = values[bit_reverse(i, log_n)];
    MUST(cpu_curve(curve)->ntt(pool_shared(), natural.data(), log_n, true, &error), &error);
    for (uint32_t i = 0; i < n; i++)
        twice[i] = natural[i];
    MUST(cpu_curve(curve)->ntt(pool_shared(), twice.data(), log_n + 1, false, &error), &error);
    for (uint32_t i = 0; i < n; i++) {
        struct scalar product;
        cpu_curve(curve)->fr_mul(&twice[2 * i + 1], &size, &product);
        CHECK(memcmp(&got[bit_reverse(i, log_n)], &product, sizeof product) == 0,
              "coset 2^%u: value %u", log_n, i);
    }
}

int main(int argc, char **argv) {
    unsigned most = argc > 1 && strcmp(argv[1], "small") == 0 ? 11 : 21;
    for (unsigned log_n = 1; log_n <= most; log_n++) {
        check_size<bn254_fr>(CURVE_BN254, log_n);
        check_size<bls12_381_fr>(CURVE_BLS12_381, log_n);
    }
    printf("ok: transforms of 2^1 .. 2^%u on both curves are the CPU's\n", most);
    return 0;
}
