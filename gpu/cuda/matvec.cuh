/* A*w, B*w and their products row by row, on the GPU; then the quotient from its transforms.
 *
 * A term is one Montgomery product: value (coefficient * R^2) times plain witness gives Montgomery form.
 * Results stand in bit-reversed order. Sums are compiled for the host too.
 */
#ifndef PROVERQ_CUDA_MATVEC_CUH
#define PROVERQ_CUDA_MATVEC_CUH

#include "gpu/cuda/field.cuh"
#include "gpu/cuda/ntt.cuh"

extern "C" {
#include "gpu/cuda/matvec_plan.h"
}

/* A plan on the device. */
template <class P> struct matvec {
    struct matvec_part part[2];
    const struct matvec_segment *segments;
    uint32_t n_segments;
    const uint32_t *signals;
    const field<P> *values; /* any 256-bit value */
};

/* The sum of every `step`th of the terms [begin, end). */
template <class P>
HD field<P> matvec_sum(const struct matvec<P> &m, uint32_t begin, uint32_t end, uint32_t step,
                       const plain<P> *witness) {
    typedef field<P> F;
    F sum = F::zero();
    for (uint32_t i = begin; i < end; i += step) {
        F w;
        memcpy(&w, &witness[m.signals[i]], sizeof w);
        sum = F::add(sum, F::mul(w, m.values[i]));
    }
    return sum;
}

template <class P>
HD field<P> matvec_row_sum(const struct matvec<P> &m, const struct matvec_row &row,
                           const plain<P> *witness) {
    return matvec_sum(m, row.begin, row.begin + row.terms, 1, witness);
}

/* What lane `lane` of 32 contributes to a segment, and to a long row. */
template <class P>
HD field<P> matvec_segment_lane(const struct matvec<P> &m, const struct matvec_segment &segment,
                                uint32_t lane, const plain<P> *witness) {
    return matvec_sum(m, segment.begin + lane, segment.begin + segment.terms, 32, witness);
}
template <class P>
HD field<P> matvec_long_row_lane(const struct matvec_long_row &row, uint32_t lane,
                                 const field<P> *sums) {
    field<P> sum = field<P>::zero();
    for (uint32_t i = lane; i < row.segments; i += 32)
        sum = field<P>::add(sum, sums[row.begin + i]);
    return sum;
}

/* 1/N in Montgomery form and plain: what the quotient needs of the domain's size N. */
template <class P> struct quotient_factors { field<P> inverse, inverse_plain; };

template <class P> struct quotient_factors<P> quotient_factors_make(unsigned log_n) {
    typedef field<P> F;
    words<P::LIMBS> below_half = order_shifted<P>(1); /* (p - 1) / 2 */
    F half, unit = F::zero();
    memcpy(&half, &below_half, sizeof half);
    half.limb[0] += 1; /* no carry: p is 1 modulo 4 */
    half = F::mul(half, F::r_squared());
    unit.limb[0] = 1;
    struct quotient_factors<P> f = {
        F::one(), F::one()
    };
    for (unsigned i = 0; i < log_n; i++)
        f.inverse = F::mul(f.inverse, half);
    f.inverse_plain = F::mul(f.inverse, unit);
    return f;
}

/* a*b - c, plain, where each argument is N times the value (both transforms leave N out). */
template <class P>
HD field<P> quotient_element(const field<P> &a, const field<P> &b, const field<P> &c,
                             const struct quotient_factors<P> &f) {
    typedef field<P> F;
    F product = F::mul(F::mul(a, b), f.inverse);
    return F::mul(F::sub(product, c), f.inverse_plain);
}

#ifdef __CUDACC__

#include "gpu/cuda/arena.cuh"

/* a = A*w, b = B*w, c = a*b in bit-reversed order; `sums` has room for m.n_segments elements. */
template <class P>
MUST_USE enum err matvec_run(cudaStream_t stream, const struct matvec<P> &m,
                             const plain<P> *witness, field<P> *sums, field<P> *a, field<P> *b,
                             field<P> *c, struct error *error);

/* h[i] = quotient_element of a[i], b[i], c[i]; h may be one of them. */
template <class P>
MUST_USE enum err quotient_run(cudaStream_t stream, const field<P> *a, const field<P> *b,
                               const field<P> *c, plain<P> *h, unsigned log_n,
                               const struct quotient_factors<P> &f, struct error *error);

#endif
#endif
