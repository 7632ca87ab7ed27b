/* Multi-scalar multiplication over fixed bases on the GPU: sum of s_i * P_i.
 *
 * Pippenger's buckets with signed digits, and multiples of the bases precomputed at key load so
 * that many or all windows share one set of buckets. Window w = table * sets + set of a scalar has
 * the weight 2^(window_bits * w); table j of the bases holds 2^(window_bits * sets * j) * P_i, so
 * the digit goes to bucket |digit| of `set` with the point of `table`. Steps, each stream-ordered,
 * without allocation or synchronisation:
 *
 *     key load    msm_table_fill        the tables from the bases
 *     a witness   msm_sort              digits of all scalars, sorted by bucket; once for A, B1,
 *                                       B2 and C
 *                 msm_select            the entries of a list whose bases are not infinite, once
 *                                       per mask
 *     a sum       msm_sum_begin
 *                 msm_sum_add           once per list
 *                 msm_sum_end
 *     the host    msm_result_g1, _g2    the affine plain point from what msm_sum_end left
 *
 * A point in device memory is in zkey form: x, y in Montgomery form, all zero for infinity
 * (zkey.h). Scalars are plain, 32 bytes, below r. Equal and opposite points and infinity may meet
 * anywhere. Everything returns the launch's error; errors of running kernels come later, as usual
 * in CUDA.
 */
#ifndef PROVERQ_CUDA_MSM_CUH
#define PROVERQ_CUDA_MSM_CUH

#include "gpu/cuda/arena.cuh"
#include "gpu/cuda/msm_digits.cuh"

enum msm_group { MSM_G1, MSM_G2 };

/* Whether this build has the curve; everything below needs one that it has. */
bool msm_supports(enum curve_id curve);

/* The shape measured best for n bases with at most max_tables tables (1: no multiples). */
struct msm_shape msm_shape_choose(enum curve_id curve, uint32_t n, unsigned max_tables);

/* The shape with the given window, for benchmarks and tests; 2 <= window_bits <= 24. */
struct msm_shape msm_shape_with(enum curve_id curve, uint32_t n, unsigned window_bits,
                                unsigned max_tables);

/* --- tables --- */
size_t msm_table_bytes(const struct msm_shape *shape, enum msm_group group);
size_t msm_table_work_bytes(const struct msm_shape *shape, enum msm_group group);

/* Fills tables 1 and up; the caller has put the n bases at the start of `table`. `work` is free
 * again when the stream has got past it. */
MUST_USE enum err msm_table_fill(const struct msm_shape *shape, enum msm_group group, void *table,
                                 void *work, cudaStream_t stream, struct error *error);

/* --- lists --- */
/* Digits sorted by bucket: (set * 2^(window_bits-1) + |digit| - 1) << 32 | (table * n + i) << 1 |
 * negative. Entries past *count have a bucket past the last one. */
struct msm_list {
    uint64_t *entries;
    uint32_t *count; /* device memory */
    uint32_t capacity;
};

struct msm_sort_work {
    uint64_t *entries[2];
    uint32_t *count;
    void *cub;
    size_t cub_bytes;
    uint32_t capacity;
};

/* For lists of up to n_scalars scalars. */
MUST_USE enum err msm_sort_layout(struct arena *arena, const struct msm_shape *shape,
                                  uint32_t n_scalars, struct msm_sort_work *work,
                                  struct error *error);

/* The list of scalars first .. first + n_scalars - 1, of which scalars[0] in device memory is the
 * first. It lives in `work`, as long as work is not used again; the other of the two entry arrays
 * is free then: *spare (if not NULL) is a list over it, for msm_select. */
MUST_USE enum err msm_sort(const struct msm_shape *shape, const struct scalar *scalars,
                           uint32_t first, uint32_t n_scalars, struct msm_sort_work *work,
                           struct msm_list *list, struct msm_list *spare, cudaStream_t stream,
                           struct error *error);

/* Entries of `from` whose base i has bit i % 32 of mask[i / 32] set, in order. out->entries has
 * room for from->capacity entries. Worth it where a tenth of the bases is infinite; infinite bases
 * that stay in a list are skipped by the sum. `work` is the list's. */
MUST_USE enum err msm_select(const struct msm_shape *shape, const struct msm_list *from,
                             const uint32_t *mask, struct msm_sort_work *work, struct msm_list *out,
                             cudaStream_t stream, struct error *error);

/* --- sums --- */
/* One sum at a time may use this. */
struct msm_sum {
    enum msm_group group;
    void *buckets, *heads[2], *partials, *result;
    uint32_t *head_keys[2];
    unsigned threads;
};

MUST_USE enum err msm_sum_layout(struct arena *arena, const struct msm_shape *shape,
                                 enum msm_group group, struct msm_sum *sum, struct error *error);
MUST_USE enum err msm_sum_begin(const struct msm_shape *shape, const struct msm_sum *sum,
                                cudaStream_t stream, struct error *error);
MUST_USE enum err msm_sum_add(const struct msm_shape *shape, const struct msm_sum *sum,
                              const void *table, const struct msm_list *list, cudaStream_t stream,
                              struct error *error);
/* Leaves msm_result_bytes at sum->result, for the caller to copy to the host. */
MUST_USE enum err msm_sum_end(const struct msm_shape *shape, const struct msm_sum *sum,
                              cudaStream_t stream, struct error *error);

/* --- results --- */
size_t msm_result_bytes(const struct msm_shape *shape, enum msm_group group); /* a few KB at most */
void msm_result_g1(const struct msm_shape *shape, const void *result, struct g1_point *out);
void msm_result_g2(const struct msm_shape *shape, const void *result, struct g2_point *out);

#endif
