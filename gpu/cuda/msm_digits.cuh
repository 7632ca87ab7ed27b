/* The parts of an MSM that touch no curve: signed digits, entries of a list, shares of threads.
 * Compiled for the device and, for tests, for the host. */
#ifndef PROVERQ_CUDA_MSM_DIGITS_CUH
#define PROVERQ_CUDA_MSM_DIGITS_CUH

#include "gpu/cuda/field.cuh"

extern "C" {
#include "gpu/curve.h"
}

/* What all sizes follow from. n * tables and sets * 2^(window_bits - 1) are below 2^31. */
struct msm_shape {
    enum curve_id curve;
    uint32_t n; /* bases; a list may hold digits of fewer scalars */
    unsigned window_bits, windows, tables, sets;
};

/* Entries: fewer per thread cost more in the sum of heads than they save. */
enum { MSM_MIN_SHARE = 8 };

HD uint32_t msm_bucket_count(const struct msm_shape &shape) {
    return shape.sets << (shape.window_bits - 1);
}

HD uint32_t entry_bucket(uint64_t entry) {
    return (uint32_t)(entry >> 32);
}
HD uint32_t entry_point(uint64_t entry) {
    return (uint32_t)entry >> 1;
}
HD bool entry_negative(uint64_t entry) {
    return (entry & 1) != 0;
}

/* Bits at .. at+count-1 of a scalar of 8 limbs; bits past its end are zero. count < 32. */
HD uint32_t scalar_bits(const uint32_t *limb, unsigned at, unsigned count) {
    unsigned word = at / 32, shift = at % 32;
    uint64_t pair = word < 8 ? limb[word] : 0;
    if (word + 1 < 8) pair |= (uint64_t)limb[word + 1] << 32;
    return (uint32_t)(pair >> shift) & ((1u << count) - 1);
}

/* The entry of window w of the scalar of base i; `carry` is 0 for window 0 and goes from window to
 * window. A digit d has |d| <= 2^(window_bits-1); for 0 the bucket is the one past the last. */
HD uint64_t msm_entry(const struct msm_shape &shape, const uint32_t *limb, uint32_t i, unsigned w,
                      uint32_t *carry) {
    uint32_t most = 1u << (shape.window_bits - 1);
    uint32_t digit = scalar_bits(limb, w * shape.window_bits, shape.window_bits) + *carry;
    bool negative = digit > most;
    *carry = negative;
    uint32_t magnitude = negative ? 2 * most - digit : digit;
    if (magnitude == 0) return (uint64_t)msm_bucket_count(shape) << 32;
    unsigned set = w % shape.sets, table = w / shape.sets;
    uint32_t bucket = set * most + magnitude - 1;
    return (uint64_t)bucket << 32 | (uint32_t)(table * shape.n + i) << 1 | (uint32_t)negative;
}

/* The entries of thread `thread` among `threads`: equal shares, none below MSM_MIN_SHARE. */
struct msm_share {
    uint32_t begin, end;
};
HD struct msm_share share_of(uint32_t count, uint32_t thread, uint32_t threads) {
    uint32_t length = count / threads + (count % threads != 0);
    if (length < MSM_MIN_SHARE) length = MSM_MIN_SHARE;
    uint64_t begin = (uint64_t)thread * length, end = begin + length;
    return {(uint32_t)(begin < count ? begin : count), (uint32_t)(end < count ? end : count)};
}

/* Which bases a list keeps. */
HD bool entry_kept(const struct msm_shape &shape, uint64_t entry, const uint32_t *mask) {
    if (entry_bucket(entry) >= msm_bucket_count(shape)) return false;
    uint32_t i = entry_point(entry) % shape.n;
    return mask[i / 32] >> i % 32 & 1;
}

#endif
