/* The parts of an MSM that add points, for any curve: an instance per group in msm_<curve>.cu.
 *
 * Every thread of one full wave adds an equal share of the sorted list, so a bucket of any length
 * is spread over as many threads as it needs. The thread in whose share a bucket begins adds to the
 * bucket itself; the part of a bucket that continues from the share before is this thread's "head",
 * and heads are summed by runs of equal buckets, a warp at a time. The buckets of a set are then
 * seen as a matrix: bucket k = row * columns + column weighs k + 1, so sums of rows and of columns
 * suffice (two additions a bucket), and of those, sums over the numbers with bit j set. What is
 * left are window_bits points a set for the host's Horner scheme.
 */
#ifndef PROVERQ_CUDA_MSM_SUM_CUH
#define PROVERQ_CUDA_MSM_SUM_CUH

#include "gpu/cuda/ec.cuh"
#include "gpu/cuda/msm_digits.cuh"

static constexpr uint32_t NO_BUCKET = UINT32_MAX;

/* Adds the share of one thread; *head and *head_key get the part of a bucket that began before. */
template <class F>
HD void msm_add_share(const uint64_t *entries, uint32_t count, uint32_t thread, uint32_t threads,
                      const affine<F> *table, xyzz<F> *buckets, xyzz<F> *head, uint32_t *head_key) {
    struct msm_share share = share_of(count, thread, threads);
    *head_key = NO_BUCKET;
    if (share.begin == share.end) return;
    uint64_t entry = entries[share.begin];
    uint32_t bucket = entry_bucket(entry);
    xyzz<F> *to = buckets + bucket, sum;
    if (share.begin != 0 && entry_bucket(entries[share.begin - 1]) == bucket) {
        *head_key = bucket;
        to = head;
        sum = xyzz<F>::infinity();
    } else {
        sum = load(to);
    }
    for (uint32_t at = share.begin; at < share.end; at++) {
        if (entry_bucket(entry) != bucket) {
            store(to, sum);
            bucket = entry_bucket(entry);
            to = buckets + bucket;
            sum = load(to);
        }
        affine<F> point = load(table + entry_point(entry));
        point.y = F::neg_if(point.y, entry_negative(entry));
        if (at + 1 < share.end) entry = entries[at + 1];
        sum.add(point);
    }
    store(to, sum);
}

/* Bucket k of a set as row and column. */
struct msm_matrix {
    unsigned row_bits, column_bits;
};
HD struct msm_matrix matrix_of(const struct msm_shape &shape) {
    unsigned bits = shape.window_bits - 1;
    return {bits - bits / 2, bits / 2};
}
HD uint32_t msm_line_count(const struct msm_shape &shape) {
    struct msm_matrix m = matrix_of(shape);
    return (1u << m.row_bits) + (1u << m.column_bits);
}

/* Element k of a line: lines 0 .. rows-1 of a set are its rows, the others its columns. */
HD uint32_t msm_line_bucket(struct msm_matrix m, uint32_t line, uint32_t k) {
    uint32_t rows = 1u << m.row_bits;
    return line < rows ? line << m.column_bits | k : k << m.column_bits | (line - rows);
}
HD uint32_t msm_line_length(struct msm_matrix m, uint32_t line) {
    return line < 1u << m.row_bits ? 1u << m.column_bits : 1u << m.row_bits;
}

/* The k-th line that counts for bit `bit` of bucket numbers; bit window_bits-1 means all columns,
 * for the + 1 of the weights. Lines of a bit: msm_bit_length. */
HD uint32_t msm_bit_line(struct msm_matrix m, unsigned bit, uint32_t k) {
    uint32_t rows = 1u << m.row_bits;
    if (bit == m.row_bits + m.column_bits) return rows + k;
    unsigned b = bit < m.column_bits ? bit : bit - m.column_bits;
    uint32_t number = (k >> b) << (b + 1) | 1u << b | (k & ((1u << b) - 1));
    return bit < m.column_bits ? rows + number : number;
}
HD uint32_t msm_bit_length(struct msm_matrix m, unsigned bit) {
    if (bit == m.row_bits + m.column_bits) return 1u << m.column_bits;
    return 1u << ((bit < m.column_bits ? m.column_bits : m.row_bits) - 1);
}

/* The sum from the points of all bits and sets. */
template <class F> inline xyzz<F> msm_horner(const struct msm_shape &shape, const xyzz<F> *bits) {
    unsigned c = shape.window_bits;
    xyzz<F> total = xyzz<F>::infinity();
    for (unsigned set = shape.sets; set-- > 0;) {
        for (unsigned bit = c; bit-- > 0;) {
            total = xyzz<F>::dbl(total);
            if (bit < c - 1) total.add(bits[set * c + bit]);
        }
        total.add(bits[set * c + c - 1]);
    }
    return total;
}

/* 2^doublings * P for points first, first + step, ... below end, by one inversion. */
template <class F>
HD void msm_double_run(const affine<F> *from, affine<F> *to, xyzz<F> *work, uint32_t first,
                       uint32_t step, uint32_t end, unsigned doublings) {
    F product = F::one();
    for (uint32_t i = first; i < end; i += step) {
        xyzz<F> p = xyzz<F>::from_affine(load(from + i));
        for (unsigned j = 0; j < doublings; j++)
            p = xyzz<F>::dbl(p);
        if (!p.is_infinity()) product = F::mul(product, p.zzz);
        store(work + i, p);
        store(&to[i].x,
              product); /* of all up to i; x is not needed any more in place of its final value */
    }
    F inverse = F::inverse(product);
    uint32_t n = first < end ? (end - 1 - first) / step + 1 : 0;
    for (uint32_t k = n; k-- > 0;) {
        uint32_t i = first + k * step;
        xyzz<F> p = load(work + i);
        F before = k == 0 ? F::one() : load(&to[i - step].x);
        affine<F> result = affine<F>::infinity();
        if (!p.is_infinity()) {
            result = xyzz<F>::normalised(p, F::mul(inverse, before));
            inverse = F::mul(inverse, p.zzz);
        }
        store(to + i, result);
    }
}

#endif
