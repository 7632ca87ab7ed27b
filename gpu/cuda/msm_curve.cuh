/* One curve's part of msm.cuh: kernels, the steps that launch them, and the table of functions
 * through which msm.cu finds them. Private to gpu/cuda/msm*; the bodies that the host can run as
 * well are in msm_sum.cuh. */
#ifndef PROVERQ_CUDA_MSM_CURVE_CUH
#define PROVERQ_CUDA_MSM_CURVE_CUH

#include "gpu/cuda/msm.cuh"
#include "gpu/cuda/msm_sum.cuh"

enum {
    ADD_BLOCK = 32, /* threads: a warp that ends makes room for the next at once */
    LINE_BLOCK = 128,
    BIT_BLOCK = 128,
    TABLE_BLOCK = 128,
    TABLE_RUN = 16 /* points that a thread normalises with one inversion */
};
static constexpr uint32_t TABLE_SLICE = 1 << 20; /* points in the work memory at a time */

/* How many warps or blocks share a multiprocessor's registers, and the entries a thread adds at
 * least; measured on an H200 (tests/bench/RESULTS.md). G1 with 20 warps and G2 with 12 were no
 * faster. */
template <class F> static constexpr int ADD_WARPS = sizeof(F) <= 32 ? 16 : 8;
template <class F> static constexpr int LINE_BLOCKS = sizeof(F) <= 32 ? 3 : 2;
template <class F> static constexpr unsigned SHARE = sizeof(F) <= 32 ? 128 : 512;

/* --- kernels --- */
template <class F>
__global__ void __launch_bounds__(ADD_BLOCK, ADD_WARPS<F>)
    msm_add_kernel(const uint64_t *entries, const uint32_t *count, const affine<F> *table,
                   xyzz<F> *buckets, xyzz<F> *heads, uint32_t *head_keys) {
    uint32_t thread = blockIdx.x * ADD_BLOCK + threadIdx.x;
    msm_add_share(entries, *count, thread, gridDim.x * ADD_BLOCK, table, buckets, heads + thread,
                  head_keys + thread);
}

template <class F> __device__ __forceinline__ xyzz<F> shuffle_down(const xyzz<F> &p, int by) {
    xyzz<F> r;
    const uint32_t *from = reinterpret_cast<const uint32_t *>(&p);
    uint32_t *to = reinterpret_cast<uint32_t *>(&r);
#pragma unroll
    for (int i = 0; i < (int)(sizeof(p) / 4); i++)
        to[i] = __shfl_down_sync(0xffffffff, from[i], by);
    return r;
}

/* Sums runs of heads with the same key within a warp; the sum of a run that begins here goes to its
 * bucket, of one that began before to the next level's heads, one a warp. Here and below one place
 * in the code adds, in a loop over all steps: an addition in G2 is 100 KB of instructions. */
template <class F>
__global__ void __launch_bounds__(LINE_BLOCK)
    msm_heads_kernel(uint32_t n, const xyzz<F> *heads, const uint32_t *keys, xyzz<F> *buckets,
                     xyzz<F> *next_heads, uint32_t *next_keys) {
    uint32_t i = blockIdx.x * LINE_BLOCK + threadIdx.x;
    int lane = threadIdx.x % 32;
    uint32_t key = i < n ? keys[i] : NO_BUCKET;
    uint32_t key_before = i > 0 && i < n ? keys[i - 1] : NO_BUCKET;
    bool used = key != NO_BUCKET, continues = used && key == key_before;
    if (lane == 0 && i < n) next_keys[i / 32] = continues ? key : NO_BUCKET;
    if (!__any_sync(0xffffffff, used)) return;
    xyzz<F> sum = used ? load(heads + i) : xyzz<F>::infinity(), next;
    for (int by = 1; by <= 32; by *= 2) {
        uint32_t other = __shfl_down_sync(0xffffffff, key, by % 32);
        bool joins = used && (by == 32 ? !continues : lane + by < 32 && other == key);
        if (!__any_sync(0xffffffff, joins)) continue;
        next = shuffle_down(sum, by % 32);
        if (joins && by == 32) next = load(buckets + key);
        if (joins) sum.add(next);
    }
    if (used && !continues) store(buckets + key, sum);
    if (continues && lane == 0) store(next_heads + i / 32, sum);
}

/* The sum of n terms over a group of `lanes` threads (a power of two from 32 to BLOCK), valid in
 * lane 0: lane l adds terms l, l + lanes, ..., then the lanes' sums meet in a tree. `longest` is
 * the largest n in the block. */
template <class F, int BLOCK, class Term>
__device__ __forceinline__ xyzz<F> sum_group(unsigned lanes, uint32_t n, uint32_t longest,
                                             Term term) {
    __shared__ xyzz<F> of_warp[BLOCK / 32];
    unsigned lane = threadIdx.x % lanes, warp = threadIdx.x / 32;
    unsigned own = (longest + lanes - 1) / lanes, tree = 31 - __clz(lanes);
    xyzz<F> sum = xyzz<F>::infinity(), next;
    for (unsigned step = 0; step < own + tree; step++) {
        bool joins;
        if (step < own) {
            uint32_t k = step * lanes + lane;
            joins = k < n;
            if (joins) next = load(term(k));
        } else if (step < own + 5) {
            unsigned by = 16 >> (step - own);
            joins = lane % 32 < by;
            next = shuffle_down(sum, (int)by);
        } else {
            unsigned by = lanes / 64 >> (step - own - 5);
            joins = lane % 32 == 0 && lane / 32 < by;
            if (lane % 32 == 0) store(of_warp + warp, sum);
            __syncthreads();
            if (joins) next = load(of_warp + warp + by);
            __syncthreads();
        }
        if (joins) sum.add(next);
    }
    return sum;
}

/* Threads a row and a column get: so many that both take the same number of steps. */
__host__ __device__ __forceinline__ unsigned lanes_of(struct msm_matrix m, bool row) {
    return !row && m.row_bits > m.column_bits ? 64 : 32;
}
__host__ __device__ __forceinline__ uint32_t line_blocks(struct msm_matrix m, bool row) {
    uint32_t threads = lanes_of(m, row) << (row ? m.row_bits : m.column_bits);
    return (threads - 1) / LINE_BLOCK + 1;
}

/* Sums of rows and, in the blocks after theirs, of columns; blockIdx.y is the set. */
template <class F>
__global__ void __launch_bounds__(LINE_BLOCK, LINE_BLOCKS<F>)
    msm_lines_kernel(struct msm_shape shape, const xyzz<F> *buckets, xyzz<F> *lines) {
    struct msm_matrix m = matrix_of(shape);
    bool row = blockIdx.x < line_blocks(m, true);
    uint32_t block = row ? blockIdx.x : blockIdx.x - line_blocks(m, true);
    unsigned lanes = lanes_of(m, row);
    uint32_t i = (block * LINE_BLOCK + threadIdx.x) / lanes;
    bool used = i < 1u << (row ? m.row_bits : m.column_bits);
    uint32_t line = row ? i : i + (1u << m.row_bits), length = msm_line_length(m, line);
    const xyzz<F> *of = buckets + ((size_t)blockIdx.y << (shape.window_bits - 1));
    xyzz<F> sum = sum_group<F, LINE_BLOCK>(lanes, used ? length : 0, length, [&](uint32_t k) {
        return of + msm_line_bucket(m, line, k);
    });
    if (used && threadIdx.x % lanes == 0)
        store(lines + blockIdx.y * msm_line_count(shape) + line, sum);
}

/* A block for each bit of each set. */
template <class F>
__global__ void __launch_bounds__(BIT_BLOCK)
    msm_bits_kernel(struct msm_shape shape, const xyzz<F> *lines, xyzz<F> *bits) {
    struct msm_matrix m = matrix_of(shape);
    unsigned set = blockIdx.x / shape.window_bits, bit = blockIdx.x % shape.window_bits;
    lines += set * msm_line_count(shape);
    uint32_t length = msm_bit_length(m, bit);
    xyzz<F> sum = sum_group<F, BIT_BLOCK>(
        BIT_BLOCK, length, length, [&](uint32_t k) { return lines + msm_bit_line(m, bit, k); });
    if (threadIdx.x == 0) store(bits + blockIdx.x, sum);
}

template <class F>
__global__ void __launch_bounds__(TABLE_BLOCK)
    msm_table_kernel(const affine<F> *from, affine<F> *to, xyzz<F> *work, uint32_t n,
                     unsigned doublings) {
    uint32_t thread = blockIdx.x * TABLE_BLOCK + threadIdx.x;
    msm_double_run(from, to, work, thread, gridDim.x * TABLE_BLOCK, n, doublings);
}

/* --- steps --- */
template <class F> struct msm_steps {
    /* Threads that add: whole waves of those that are resident at once. More waves end more evenly,
     * fewer leave fewer heads; SHARE entries a thread measured best, and no more than 8 waves. */
    static unsigned thread_count(uint64_t entries, unsigned resident) {
        uint64_t waves = entries / ((uint64_t)resident * SHARE<F>)+1;
        return resident * (unsigned)(waves < 8 ? waves : 8);
    }

    static enum err layout(struct arena *arena, const struct msm_shape *shape, struct msm_sum *sum,
                           struct error *error) {
        int device, processors, blocks;
        cudaError_t result = cudaGetDevice(&device);
        if (result == cudaSuccess)
            result = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
        if (result == cudaSuccess)
            result = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, msm_add_kernel<F>,
                                                                   ADD_BLOCK, 0);
        if (result != cudaSuccess) return cuda_result(result, "sizing a sum", error);
        sum->threads = thread_count((uint64_t)shape->n * shape->windows,
                                    (unsigned)(processors * blocks * ADD_BLOCK));
        sum->buckets = arena_take<xyzz<F>>(arena, msm_bucket_count(*shape));
        for (int level = 0; level < 2; level++) {
            size_t heads = level == 0 ? sum->threads : (sum->threads - 1) / 32 + 1;
            sum->heads[level] = arena_take<xyzz<F>>(arena, heads);
            sum->head_keys[level] = arena_take<uint32_t>(arena, heads);
        }
        sum->partials = arena_take<xyzz<F>>(arena, (size_t)shape->sets * msm_line_count(*shape));
        sum->result = arena_take<xyzz<F>>(arena, (size_t)shape->sets * shape->window_bits);
        return ERR_NONE;
    }

    static enum err begin(const struct msm_shape *shape, const struct msm_sum *sum,
                          cudaStream_t stream, struct error *error) {
        return cuda_result(
            cudaMemsetAsync(sum->buckets, 0, msm_bucket_count(*shape) * sizeof(xyzz<F>), stream),
            "clearing buckets", error);
    }

    static enum err add(const struct msm_sum *sum, const void *table, const struct msm_list *list,
                        cudaStream_t stream, struct error *error) {
        xyzz<F> *buckets = (xyzz<F> *)sum->buckets;
        xyzz<F> *heads[2] = {(xyzz<F> *)sum->heads[0], (xyzz<F> *)sum->heads[1]};
        msm_add_kernel<F><<<sum->threads / ADD_BLOCK, ADD_BLOCK, 0, stream>>>(
            list->entries, list->count, (const affine<F> *)table, buckets, heads[0],
            sum->head_keys[0]);
        int from = 0;
        for (uint32_t n = sum->threads;; n = (n - 1) / 32 + 1, from = 1 - from) {
            msm_heads_kernel<F><<<(n - 1) / LINE_BLOCK + 1, LINE_BLOCK, 0, stream>>>(
                n, heads[from], sum->head_keys[from], buckets, heads[1 - from],
                sum->head_keys[1 - from]);
            if (n <= 32) break;
        }
        return cuda_launched("adding to buckets", error);
    }

    static enum err end(const struct msm_shape *shape, const struct msm_sum *sum,
                        cudaStream_t stream, struct error *error) {
        struct msm_matrix m = matrix_of(*shape);
        dim3 grid(line_blocks(m, true) + line_blocks(m, false), shape->sets);
        xyzz<F> *partials = (xyzz<F> *)sum->partials;
        msm_lines_kernel<F>
            <<<grid, LINE_BLOCK, 0, stream>>>(*shape, (const xyzz<F> *)sum->buckets, partials);
        msm_bits_kernel<F><<<shape->sets * shape->window_bits, BIT_BLOCK, 0, stream>>>(
            *shape, partials, (xyzz<F> *)sum->result);
        return cuda_launched("summing buckets", error);
    }

    static size_t table_work_bytes(const struct msm_shape *shape) {
        return (shape->n < TABLE_SLICE ? shape->n : TABLE_SLICE) * sizeof(xyzz<F>);
    }

    static enum err table_fill(const struct msm_shape *shape, void *table, void *work,
                               cudaStream_t stream, struct error *error) {
        affine<F> *points = (affine<F> *)table;
        for (unsigned j = 1; j < shape->tables; j++)
            for (uint32_t at = 0; at < shape->n; at += TABLE_SLICE) {
                uint32_t n = shape->n - at < TABLE_SLICE ? shape->n - at : TABLE_SLICE;
                uint32_t threads = (n - 1) / TABLE_RUN + 1;
                affine<F> *to = points + (size_t)j * shape->n + at;
                msm_table_kernel<F><<<(threads - 1) / TABLE_BLOCK + 1, TABLE_BLOCK, 0, stream>>>(
                    to - shape->n, to, (xyzz<F> *)work, n, shape->window_bits * shape->sets);
            }
        return cuda_launched("computing multiples of the bases", error);
    }
};

/* --- the table --- */

struct msm_curve {
    struct group {
        size_t point_bytes, sum_bytes;
        size_t (*table_work_bytes)(const struct msm_shape *shape);
        enum err (*table_fill)(const struct msm_shape *shape, void *table, void *work,
                               cudaStream_t stream, struct error *error);
        enum err (*layout)(struct arena *arena, const struct msm_shape *shape, struct msm_sum *sum,
                           struct error *error);
        enum err (*begin)(const struct msm_shape *shape, const struct msm_sum *sum,
                          cudaStream_t stream, struct error *error);
        enum err (*add)(const struct msm_sum *sum, const void *table, const struct msm_list *list,
                        cudaStream_t stream, struct error *error);
        enum err (*end)(const struct msm_shape *shape, const struct msm_sum *sum,
                        cudaStream_t stream, struct error *error);
    } groups[2]; /* by enum msm_group */
    void (*result_g1)(const struct msm_shape *shape, const void *result, struct g1_point *out);
    void (*result_g2)(const struct msm_shape *shape, const void *result, struct g2_point *out);
};

extern const struct msm_curve msm_bn254;

template <class P> void coordinate_to_plain(const field<P> &from, uint8_t *out) {
    plain<P> value = field<P>::to_plain(from);
    memset(out, 0, COORD_BYTES);
    memcpy(out, value.limb, sizeof value.limb);
}

template <class C>
void msm_result_g1_of(const struct msm_shape *shape, const void *result, struct g1_point *out) {
    typedef xyzz<typename C::g1_field> point;
    auto p = point::normalised(msm_horner(*shape, (const point *)result));
    coordinate_to_plain(p.x, out->x);
    coordinate_to_plain(p.y, out->y);
}

template <class C>
void msm_result_g2_of(const struct msm_shape *shape, const void *result, struct g2_point *out) {
    typedef xyzz<typename C::g2_field> point;
    auto p = point::normalised(msm_horner(*shape, (const point *)result));
    coordinate_to_plain(p.x.c0, out->x[0]);
    coordinate_to_plain(p.x.c1, out->x[1]);
    coordinate_to_plain(p.y.c0, out->y[0]);
    coordinate_to_plain(p.y.c1, out->y[1]);
}

template <class F> constexpr struct msm_curve::group msm_group_of() {
    typedef msm_steps<F> steps;
    return {sizeof(affine<F>), sizeof(xyzz<F>), steps::table_work_bytes,
            steps::table_fill, steps::layout,   steps::begin,
            steps::add,        steps::end};
}

template <class C> constexpr struct msm_curve msm_curve_of() {
    return {{msm_group_of<typename C::g1_field>(), msm_group_of<typename C::g2_field>()},
            msm_result_g1_of<C>,
            msm_result_g2_of<C>};
}

#endif
