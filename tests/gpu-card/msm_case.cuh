/* Sums with a known answer on the card: bases k_i * G with known k_i, so that the truth is (sum s_i
 * k_i) * G. */
#ifndef PROVERQ_TESTS_MSM_CASE_CUH
#define PROVERQ_TESTS_MSM_CASE_CUH

#include "gpu/cuda/ec.cuh"
#include "gpu/cuda/msm.cuh"
#include "tests/gpu-card/card.h"

#include <vector>

static struct error error;

inline void ok(cudaError_t result, const char *what) {
    MUST(cuda_result(result, what, &error), &error);
}

/* Device memory that ends with its scope. */
struct device_bytes {
    void *at;

    explicit device_bytes(size_t n) {
        MUST(device_memory(n == 0 ? 1 : n, &at, &error), &error);
    }
    ~device_bytes() {
        device_memory_free(at);
    }
    device_bytes(const device_bytes &) = delete;
};

/* points[i] = k[i] * generator; 0 gives infinity. */
template <class F>
__global__ void __launch_bounds__(128)
    bases_kernel(affine<F> generator, const int64_t *k, affine<F> *points, uint32_t n) {
    uint32_t i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n) return;
    uint64_t factor = (uint64_t)(k[i] < 0 ? -k[i] : k[i]);
    xyzz<F> p = xyzz<F>::infinity();
    for (int bit = 63; bit >= 0; bit--) {
        p = xyzz<F>::dbl(p);
        if (factor >> bit & 1) p.add(generator);
    }
    affine<F> a = xyzz<F>::normalised(p);
    a.y = F::neg_if(a.y, k[i] < 0);
    store(points + i, a);
}

template <class F>
void bases_make(const void *generator_zkey_form, const std::vector<int64_t> &k, void *points) {
    if (k.empty()) return;
    affine<F> generator;
    memcpy((void *)&generator, generator_zkey_form, sizeof generator);
    device_bytes factors(k.size() * sizeof k[0]);
    ok(cudaMemcpy(factors.at, k.data(), k.size() * sizeof k[0], cudaMemcpyHostToDevice), "copying");
    bases_kernel<F><<<(unsigned)(k.size() - 1) / 128 + 1, 128>>>(
        generator, (const int64_t *)factors.at, (affine<F> *)points, (uint32_t)k.size());
    ok(cudaDeviceSynchronize(), "making bases");
}

inline void bases_of(enum msm_group group, const std::vector<int64_t> &k, void *points) {
    const struct cpu_curve *curve = cpu_curve(CURVE_BN254);
    uint8_t generator[4 * COORD_BYTES];
    if (group == MSM_G1) {
        curve->g1_to_zkey(curve->g1_generator, generator);
        bases_make<bn254::g1_field>(generator, k, points);
    } else {
        curve->g2_to_zkey(curve->g2_generator, generator);
        bases_make<bn254::g2_field>(generator, k, points);
    }
}

/* sum of s_i * |k_i| over the k of one sign, mod r: by long addition, reduced at the end. */
inline struct scalar sum_of_sign(const std::vector<int64_t> &k, const struct scalar *s,
                                 bool negative) {
    uint64_t sum[7] = {0};
    for (size_t i = 0; i < k.size(); i++) {
        if ((k[i] < 0) != negative) continue;
        uint64_t limb[4], factor = (uint64_t)(negative ? -k[i] : k[i]);
        memcpy(limb, s[i].le, sizeof limb);
        unsigned __int128 carry = 0;
        for (int j = 0; j < 7; j++) {
            carry += sum[j];
            if (j < 4) carry += (unsigned __int128)limb[j] * factor;
            sum[j] = (uint64_t)carry;
            carry >>= 64;
        }
    }
    const struct cpu_curve *curve = cpu_curve(CURVE_BN254);
    struct scalar result = {}, shift = {}, limb;
    shift.le[8] = 1;
    for (int j = 7; j-- > 0;) {
        limb = {};
        memcpy(limb.le, &sum[j], sizeof sum[j]);
        curve->fr_mul(&result, &shift, &result);
        curve->fr_add(&result, &limb, &result);
    }
    return result;
}

struct answer {
    struct g1_point g1;
    struct g2_point g2;
};

inline void answer_check(enum msm_group group, const struct answer &got,
                         const std::vector<int64_t> &k, const struct scalar *s, const char *what) {
    const struct cpu_curve *curve = cpu_curve(CURVE_BN254);
    struct scalar plus = sum_of_sign(k, s, false), minus = sum_of_sign(k, s, true), sum;
    struct answer want = {};
    curve->fr_sub(&plus, &minus, &sum);
    if (group == MSM_G1)
        curve->g1_mul(curve->g1_generator, &sum, &want.g1);
    else
        curve->g2_mul(curve->g2_generator, &sum, &want.g2);
    CHECK(group == MSM_G1 ? memcmp(&got.g1, &want.g1, sizeof want.g1) == 0
                          : memcmp(&got.g2, &want.g2, sizeof want.g2) == 0,
          "%s: the sum is wrong", what);
}

/* Everything one MSM needs on the device, for sums over lists of up to list_n scalars. */
struct msm_place {
    struct msm_shape shape;
    enum msm_group group;
    struct msm_sort_work sort;
    struct msm_sum sum;
    device_bytes table;
    void *memory;
    std::vector<uint8_t> result;

    msm_place(const struct msm_shape &s, enum msm_group g, uint32_t list_n)
        : shape(s), group(g), table(msm_table_bytes(&s, g)), result(msm_result_bytes(&s, g)) {
        struct arena arena = {};
        layout(&arena, list_n);
        MUST(device_memory(arena.used, &memory, &error), &error);
        arena = {(uint8_t *)memory, 0};
        layout(&arena, list_n);
    }
    ~msm_place() {
        device_memory_free(memory);
    }
    void layout(struct arena *arena, uint32_t list_n) {
        MUST(msm_sort_layout(arena, &shape, list_n, &sort, &error), &error);
        MUST(msm_sum_layout(arena, &shape, group, &sum, &error), &error);
    }
    void fill(const std::vector<int64_t> &k) {
        bases_of(group, k, table.at);
        fill_tables();
    }
    void fill_tables() {
        device_bytes work(msm_table_work_bytes(&shape, group));
        MUST(msm_table_fill(&shape, group, table.at, work.at, NULL, &error), &error);
        ok(cudaDeviceSynchronize(), "computing multiples");
    }
    struct answer host_tail() const {
        struct answer a = {};
        if (group == MSM_G1)
            msm_result_g1(&shape, result.data(), &a.g1);
        else
            msm_result_g2(&shape, result.data(), &a.g2);
        return a;
    }
};

#endif
