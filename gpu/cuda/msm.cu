/* Shapes and sorted lists: what of an MSM knows no curve. */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "gpu/cuda/msm_curve.cuh"

enum { BLOCK = 256, ENTRY_SHIFT = 32 };

/* --- shapes --- */
/* Whether `windows` digits hold every scalar below r: the top digit must not carry. */
static bool windows_suffice(const struct curve_info *curve, unsigned window_bits,
                            unsigned windows) {
    uint32_t limb[8];
    memcpy(limb, curve->r, sizeof limb);
    unsigned top = window_bits * (windows - 1);
    if (scalar_bits(limb, top + window_bits, 31) != 0) return false;
    return scalar_bits(limb, top, window_bits) + 1 <= 1u << (window_bits - 1);
}

struct msm_shape msm_shape_with(enum curve_id curve, uint32_t n, unsigned window_bits,
                                unsigned max_tables) {
    unsigned windows = 256 / window_bits;
    while (!windows_suffice(curve_info(curve), window_bits, windows))
        windows++;
    uint32_t room = n == 0 ? UINT32_MAX : (UINT32_C(1) << 31) / n;
    if (max_tables > room) max_tables = room;
    if (max_tables < 1) max_tables = 1;
    unsigned sets = (windows + max_tables - 1) / max_tables;
    return {curve, n, window_bits, windows, (windows + sets - 1) / sets, sets};
}

/* Window bits by log2 of n, measured on an H200 (tests/bench/RESULTS.md, CUDA MSM). */
static unsigned best_window(uint32_t n) {
    unsigned log_n = 0;
    while (log_n < 31 && n > UINT32_C(1) << log_n)
        log_n++;
    if (log_n <= 12) return 8;
    if (log_n <= 14) return 15;
    if (log_n <= 18) return 16;
    if (log_n <= 20) return 19;
    if (log_n <= 23) return 20;
    return 22;
}

struct msm_shape msm_shape_choose(enum curve_id curve, uint32_t n, unsigned max_tables) {
    return msm_shape_with(curve, n, best_window(n), max_tables);
}

/* --- lists --- */
static int key_bits(const struct msm_shape *shape) {
    int bits = 0;
    while (msm_bucket_count(*shape) >> bits != 0)
        bits++;
    return bits;
}

struct kept {
    struct msm_shape shape;
    const uint32_t *mask;

    __device__ bool operator()(uint64_t entry) const {
        return entry_kept(shape, entry, mask);
    }
};

enum err msm_sort_layout(struct arena *arena, const struct msm_shape *shape, uint32_t n_scalars,
                         struct msm_sort_work *work, struct error *error) {
    uint64_t capacity = (uint64_t)n_scalars * shape->windows;
    if (capacity >= UINT64_C(1) << 31)
        return error_set(
            error, ERR_DEVICE_UNSUPPORTED,
            "%u scalars have %llu digits; a list holds less than 2^31: sort them in parts",
            n_scalars, (unsigned long long)capacity);
    size_t sort_bytes = 0, select_bytes = 0;
    cub::DoubleBuffer<uint64_t> none(NULL, NULL);
    cudaError_t result = cub::DeviceRadixSort::SortKeys(NULL, sort_bytes, none, (uint32_t)capacity,
                                                        ENTRY_SHIFT, ENTRY_SHIFT + key_bits(shape));
    if (result == cudaSuccess)
        result = cub::DeviceSelect::If(NULL, select_bytes, (uint64_t *)NULL, (uint64_t *)NULL,
                                       (uint32_t *)NULL, (int64_t)capacity, kept{*shape, NULL});
    if (result != cudaSuccess) return cuda_result(result, "sizing the sort of digits", error);
    work->capacity = (uint32_t)capacity;
    work->cub_bytes = sort_bytes > select_bytes ? sort_bytes : select_bytes;
    work->count = arena_take<uint32_t>(arena, 1);
    work->entries[0] = arena_take<uint64_t>(arena, capacity);
    work->entries[1] = arena_take<uint64_t>(arena, capacity);
    work->cub = arena_take_bytes(arena, work->cub_bytes, 1);
    return ERR_NONE;
}

__global__ static void __launch_bounds__(BLOCK)
    msm_digits_kernel(struct msm_shape shape, const uint4 *scalars, uint32_t first,
                      uint32_t n_scalars, uint64_t *entries, uint32_t *count) {
    uint32_t i = blockIdx.x * BLOCK + threadIdx.x;
    uint32_t used = 0;
    if (i < n_scalars) {
        uint4 low = scalars[2 * i], high = scalars[2 * i + 1];
        uint32_t limb[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        uint32_t carry = 0;
        for (unsigned w = 0; w < shape.windows; w++) {
            uint64_t entry = msm_entry(shape, limb, first + i, w, &carry);
            used += entry_bucket(entry) < msm_bucket_count(shape);
            entries[(size_t)w * n_scalars + i] = entry;
        }
    }
    __shared__ uint32_t total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    used = __reduce_add_sync(0xffffffff, used);
    if (threadIdx.x % 32 == 0) atomicAdd(&total, used);
    __syncthreads();
    if (threadIdx.x == 0 && total != 0) atomicAdd(count, total);
}

enum err msm_sort(const struct msm_shape *shape, const struct scalar *scalars, uint32_t first,
                  uint32_t n_scalars, struct msm_sort_work *work, struct msm_list *list,
                  struct msm_list *spare, cudaStream_t stream, struct error *error) {
    uint32_t capacity = n_scalars * shape->windows;
    cub::DoubleBuffer<uint64_t> entries(work->entries[0], work->entries[1]);
    cudaError_t result = cudaMemsetAsync(work->count, 0, sizeof *work->count, stream);
    if (result == cudaSuccess && n_scalars != 0) {
        msm_digits_kernel<<<(n_scalars - 1) / BLOCK + 1, BLOCK, 0, stream>>>(
            *shape, (const uint4 *)scalars, first, n_scalars, work->entries[0], work->count);
        size_t bytes = work->cub_bytes;
        result = cub::DeviceRadixSort::SortKeys(work->cub, bytes, entries, capacity, ENTRY_SHIFT,
                                                ENTRY_SHIFT + key_bits(shape), stream);
    }
    if (result != cudaSuccess) return cuda_result(result, "sorting digits", error);
    *list = {entries.Current(), work->count, capacity};
    if (spare != NULL) *spare = {entries.Alternate(), NULL, work->capacity};
    return cuda_launched("sorting digits", error);
}

enum err msm_select(const struct msm_shape *shape, const struct msm_list *from,
                    const uint32_t *mask, struct msm_sort_work *work, struct msm_list *out,
                    cudaStream_t stream, struct error *error) {
    size_t bytes = work->cub_bytes;
    cudaError_t result =
        cub::DeviceSelect::If(work->cub, bytes, from->entries, out->entries, out->count,
                              (int64_t)from->capacity, kept{*shape, mask}, stream);
    out->capacity = from->capacity;
    return cuda_result(result, "selecting digits", error);
}

/* --- points: by curve and group --- */
static const struct msm_curve *curve_of(enum curve_id id) {
    return id == CURVE_BN254 ? &msm_bn254 : NULL;
}

bool msm_supports(enum curve_id curve) {
    return curve_of(curve) != NULL;
}

static const struct msm_curve::group *group_of(const struct msm_shape *shape,
                                               enum msm_group group) {
    return &curve_of(shape->curve)->groups[group];
}

size_t msm_table_bytes(const struct msm_shape *shape, enum msm_group group) {
    return (size_t)shape->n * shape->tables * group_of(shape, group)->point_bytes;
}
size_t msm_table_work_bytes(const struct msm_shape *shape, enum msm_group group) {
    return group_of(shape, group)->table_work_bytes(shape);
}
enum err msm_table_fill(const struct msm_shape *shape, enum msm_group group, void *table,
                        void *work, cudaStream_t stream, struct error *error) {
    return group_of(shape, group)->table_fill(shape, table, work, stream, error);
}

enum err msm_sum_layout(struct arena *arena, const struct msm_shape *shape, enum msm_group group,
                        struct msm_sum *sum, struct error *error) {
    sum->group = group;
    return group_of(shape, group)->layout(arena, shape, sum, error);
}
enum err msm_sum_begin(const struct msm_shape *shape, const struct msm_sum *sum,
                       cudaStream_t stream, struct error *error) {
    return group_of(shape, sum->group)->begin(shape, sum, stream, error);
}
enum err msm_sum_add(const struct msm_shape *shape, const struct msm_sum *sum, const void *table,
                     const struct msm_list *list, cudaStream_t stream, struct error *error) {
    return group_of(shape, sum->group)->add(sum, table, list, stream, error);
}
enum err msm_sum_end(const struct msm_shape *shape, const struct msm_sum *sum, cudaStream_t stream,
                     struct error *error) {
    return group_of(shape, sum->group)->end(shape, sum, stream, error);
}

size_t msm_result_bytes(const struct msm_shape *shape, enum msm_group group) {
    return (size_t)shape->sets * shape->window_bits * group_of(shape, group)->sum_bytes;
}
void msm_result_g1(const struct msm_shape *shape, const void *result, struct g1_point *out) {
    curve_of(shape->curve)->result_g1(shape, result, out);
}
void msm_result_g2(const struct msm_shape *shape, const void *result, struct g2_point *out) {
    curve_of(shape->curve)->result_g2(shape, result, out);
}
