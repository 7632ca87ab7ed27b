/* Sums on the card against known discrete logarithms: what scalars, bases and shapes can bring.
 *
 *     check_msm [small]     small: a few cases, for compute-sanitizer
 */
#include "tests/gpu-card/msm_case.cuh"

#include <stdio.h>

enum scalars { RANDOM, ZEROS, ONES, LARGEST, EQUAL, FEW_LARGE, BITS, SCALAR_KINDS };
enum bases { DISTINCT, ALL_EQUAL, OPPOSITE, INFINITE, ALL_INFINITE, BASE_KINDS };

static const char *const scalar_names[] = {"random",      "all 0",          "all 1",      "all r-1",
                                           "one for all", "few large ones", "mostly bits"};
static const char *const base_names[] = {"distinct", "all equal", "P and -P in turn",
                                         "two of three infinite", "all infinite"};

static std::vector<struct scalar> make_scalars(enum scalars kind, uint32_t n) {
    const struct curve_info *curve = curve_info(CURVE_BN254);
    std::vector<struct scalar> s(n);
    card_random(curve, 7 + (unsigned)kind, s.data(), n);
    for (uint32_t i = 0; i < n; i++) {
        struct scalar largest, small = {};
        memcpy(largest.le, curve->r, sizeof largest.le);
        largest.le[0]--;
        small.le[0] = kind == ONES || (kind == BITS && i % 2);
        if (kind == LARGEST) s[i] = largest;
        if (kind == EQUAL) s[i] = s[0];
        if (kind == ZEROS || kind == ONES) s[i] = small;
        if (kind == BITS && i % 50 != 0) s[i] = small;
        if (kind == FEW_LARGE && i % 97 != 5) s[i] = small;
    }
    return s;
}

static std::vector<int64_t> make_factors(enum bases kind, uint32_t n) {
    std::vector<int64_t> k(n);
    for (uint32_t i = 0; i < n; i++) {
        int64_t distinct = (int64_t)((i + 1) * 0x9e3779b97f4a7c15u >> 2);
        k[i] = kind == DISTINCT       ? distinct
               : kind == ALL_EQUAL    ? 77
               : kind == OPPOSITE     ? (i % 2 ? -(int64_t)(1 + i / 16) : 1 + i / 16)
               : kind == ALL_INFINITE ? 0
               : i % 3 == 1           ? distinct
                                      : 0;
    }
    return k;
}

/* In `parts` lists; the bases with an even index dropped by a mask when `masked`. */
static struct answer sum_on_card(struct msm_place &place, const std::vector<struct scalar> &s,
                                 uint32_t parts, bool masked) {
    uint32_t n = (uint32_t)s.size();
    device_bytes scalars(n * sizeof s[0]), mask((n / 32 + 1) * sizeof(uint32_t));
    ok(cudaMemcpy(scalars.at, s.data(), n * sizeof s[0], cudaMemcpyHostToDevice), "copying");
    ok(cudaMemset(mask.at, 0xaa, (n / 32 + 1) * sizeof(uint32_t)), "setting the mask");
    device_bytes count(sizeof(uint32_t));
    MUST(msm_sum_begin(&place.shape, &place.sum, NULL, &error), &error);
    for (uint32_t part = 0; part < parts; part++) {
        uint32_t first = (uint32_t)((uint64_t)n * part / parts);
        uint32_t end = (uint32_t)((uint64_t)n * (part + 1) / parts);
        struct msm_list list, spare;
        MUST(msm_sort(&place.shape, (const struct scalar *)scalars.at + first, first, end - first,
                      &place.sort, &list, &spare, NULL, &error),
             &error);
        if (masked) {
            spare.count = (uint32_t *)count.at;
            MUST(msm_select(&place.shape, &list, (const uint32_t *)mask.at, &place.sort, &spare,
                            NULL, &error),
                 &error);
            list = spare;
        }
        MUST(msm_sum_add(&place.shape, &place.sum, place.table.at, &list, NULL, &error), &error);
    }
    MUST(msm_sum_end(&place.shape, &place.sum, NULL, &error), &error);
    ok(cudaMemcpy(place.result.data(), place.sum.result, place.result.size(),
                  cudaMemcpyDeviceToHost),
       "copying the result");
    return place.host_tail();
}

static unsigned check_scalars(struct msm_place &place, std::vector<int64_t> k,
                              enum bases base_kind) {
    uint32_t n = place.shape.n;
    unsigned done = 0;
    for (int kind = 0; kind < SCALAR_KINDS; kind++)
        for (unsigned way = 0; way < 3; way++) {
            char what[200];
            (void)snprintf(what, sizeof what,
                           "%s, n %u, window %u, %u tables, %u sets, scalars %s, bases %s%s",
                           place.group == MSM_G1 ? "G1" : "G2", n, place.shape.window_bits,
                           place.shape.tables, place.shape.sets, scalar_names[kind],
                           base_names[base_kind],
                           way == 0   ? ""
                           : way == 1 ? ", in 3 parts"
                                      : ", masked");
            std::vector<struct scalar> s = make_scalars((enum scalars)kind, n);
            struct answer got = sum_on_card(place, s, way == 1 ? 3 : 1, way == 2);
            for (uint32_t i = 0; way == 2 && i < n; i += 2)
                s[i] = {};
            answer_check(place.group, got, k, s.data(), what);
            done++;
        }
    return done;
}

static unsigned check_shape(enum msm_group group, uint32_t n, unsigned window_bits,
                            unsigned max_tables) {
    struct msm_place place(msm_shape_with(CURVE_BN254, n, window_bits, max_tables), group, n);
    unsigned done = 0;
    for (int kind = 0; kind < BASE_KINDS; kind++) {
        std::vector<int64_t> k = make_factors((enum bases)kind, n);
        place.fill(k);
        done += check_scalars(place, k, (enum bases)kind);
    }
    return done;
}

int main(int argc, char **argv) {
    bool small = argc > 1 && strcmp(argv[1], "small") == 0;
    unsigned done = 0;
    for (enum msm_group group : {MSM_G1, MSM_G2}) {
        done += check_shape(group, 1000, 9, 99);
        if (small) continue;
        for (uint32_t n : {0u, 1u, 2u, 33u, 4099u})
            for (unsigned c : {4u, 13u})
                for (unsigned tables : {1u, 5u, 99u})
                    done += check_shape(group, n, c, tables);
        done += check_shape(group, 100003, 16, 99);
        done += check_shape(group, 100003, 17, 4);
        done += check_shape(group, 300000, 20, 99);
        printf("%s done\n", group == MSM_G1 ? "G1" : "G2");
        (void)fflush(stdout);
    }
    printf("ok: %u sums have their known discrete logarithms\n", done);
    return 0;
}
