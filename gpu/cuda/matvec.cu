#include "gpu/cuda/matvec.cuh"

enum { BLOCK = 128, WARP = 32, WARPS = BLOCK / WARP };

/* The sum over a warp, in lane 0. */
template <class P> static __device__ field<P> warp_sum(field<P> a) {
    for (unsigned step = WARP / 2; step > 0; step /= 2) {
        field<P> other;
        for (int i = 0; i < P::LIMBS; i++)
            other.limb[i] = __shfl_down_sync(~0u, a.limb[i], step);
        a = field<P>::add(a, other);
    }
    return a;
}

template <class P>
static __device__ void put(uint32_t at, const field<P> &sum, field<P> *out, const field<P> *a,
                           field<P> *c) {
    out[at] = sum;
    if (c != NULL) c[at] = field<P>::mul(a[at], sum);
}

template <class P>
static __global__ void __launch_bounds__(BLOCK)
    segments_kernel(const __grid_constant__ struct matvec<P> m, const plain<P> *witness,
                    field<P> *sums) {
    uint32_t i = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (i >= m.n_segments) return;
    field<P> sum = warp_sum(matvec_segment_lane(m, m.segments[i], threadIdx.x % WARP, witness));
    if (threadIdx.x % WARP == 0) sums[i] = sum;
}

template <class P>
static __global__ void __launch_bounds__(BLOCK)
    long_rows_kernel(const struct matvec_long_row *rows, uint32_t n, const field<P> *sums,
                     field<P> *out, const field<P> *a, field<P> *c) {
    uint32_t i = blockIdx.x * WARPS + threadIdx.x / WARP;
    if (i >= n) return;
    field<P> sum = warp_sum(matvec_long_row_lane(rows[i], threadIdx.x % WARP, sums));
    if (threadIdx.x % WARP == 0) put(rows[i].out, sum, out, a, c);
}

template <class P>
static __global__ void __launch_bounds__(BLOCK)
    rows_kernel(const __grid_constant__ struct matvec<P> m, const struct matvec_row *rows,
                uint32_t n, const plain<P> *witness, field<P> *out, const field<P> *a,
                field<P> *c) {
    uint32_t i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) put(rows[i].out, matvec_row_sum(m, rows[i], witness), out, a, c);
}

static unsigned blocks(uint32_t n, uint32_t each) {
    return n / each + (n % each != 0);
}

/* c, if not NULL, gets a * out. */
template <class P>
static void part_run(cudaStream_t stream, const struct matvec<P> &m, const struct matvec_part &part,
                     const plain<P> *witness, const field<P> *sums, field<P> *out,
                     const field<P> *a, field<P> *c) {
    if (part.n_long_rows != 0)
        long_rows_kernel<<<blocks(part.n_long_rows, WARPS), BLOCK, 0, stream>>>(
            part.long_rows, part.n_long_rows, sums, out, a, c);
    if (part.n_rows != 0)
        rows_kernel<<<blocks(part.n_rows, BLOCK), BLOCK, 0, stream>>>(m, part.rows, part.n_rows,
                                                                      witness, out, a, c);
}

template <class P>
enum err matvec_run(cudaStream_t stream, const struct matvec<P> &m, const plain<P> *witness,
                    field<P> *sums, field<P> *a, field<P> *b, field<P> *c, struct error *error) {
    if (m.n_segments != 0)
        segments_kernel<<<blocks(m.n_segments, WARPS), BLOCK, 0, stream>>>(m, witness, sums);
    part_run<P>(stream, m, m.part[0], witness, sums, a, NULL, NULL);
    part_run<P>(stream, m, m.part[1], witness, sums, b, a, c);
    return cuda_launched("multiplying the key's matrices by the witness", error);
}

template <class P>
static __global__ void __launch_bounds__(BLOCK)
    quotient_kernel(const field<P> *a, const field<P> *b, const field<P> *c, plain<P> *h,
                    uint32_t n, const __grid_constant__ struct quotient_factors<P> f) {
    uint32_t i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n) return;
    field<P> q = quotient_element(a[i], b[i], c[i], f);
    for (int k = 0; k < P::LIMBS; k++)
        h[i].limb[k] = q.limb[k];
}

template <class P>
enum err quotient_run(cudaStream_t stream, const field<P> *a, const field<P> *b, const field<P> *c,
                      plain<P> *h, unsigned log_n, const struct quotient_factors<P> &f,
                      struct error *error) {
    uint32_t n = 1u << log_n;
    quotient_kernel<<<blocks(n, BLOCK), BLOCK, 0, stream>>>(a, b, c, h, n, f);
    return cuda_launched("computing the quotient", error);
}

#define INSTANCES(P)                                                                               \
    template enum err matvec_run(cudaStream_t, const struct matvec<P> &, const plain<P> *,         \
                                 field<P> *, field<P> *, field<P> *, field<P> *, struct error *);  \
    template enum err quotient_run(cudaStream_t, const field<P> *, const field<P> *,               \
                                   const field<P> *, plain<P> *, unsigned,                         \
                                   const struct quotient_factors<P> &, struct error *);
INSTANCES(bn254_fr)
INSTANCES(bls12_381_fr)
