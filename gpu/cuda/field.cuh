/* Prime fields on the GPU, and on the host from the same source.
 *
 * A field element is a Montgomery value (a * 2^(32*LIMBS) mod p) in 32-bit limbs, little-endian,
 * always fully reduced; `plain` holds the number as people write it. They are different types, and
 * only to_plain and from_plain convert. All functions take reduced values and return reduced
 * values; arguments may alias results. Nothing here is constant-time.
 *
 * Products run over two accumulators, one for products whose low word is at an even limb, one for
 * the odd ones, so that every step of a carry chain is one IMAD.WIDE.U32(.X): the scheme of Emmart,
 * Zheng and Weems, "Faster modular exponentiation using double precision floating point arithmetic
 * on the GPU" (ARITH 2018, section on integer baselines). Reduction is Montgomery's, limb by limb
 * ("Modular multiplication without trial division", 1985). On the host the carry flag is a member
 * of `carry_chain`; on the device it is the hardware's.
 *
 * A modulus must leave one bit free (p < 2^(32*LIMBS - 1)), and two where mul_sub or fp2 is used.
 */
#ifndef PROVERQ_CUDA_FIELD_CUH
#define PROVERQ_CUDA_FIELD_CUH

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define HD      __host__ __device__ __forceinline__
#define HD_CALL __host__ __device__ __noinline__
#else
#define HD      inline
#define HD_CALL inline __attribute__((noinline))
#endif
#ifdef __CUDA_ARCH__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif

/* One chain of additions, subtractions or multiply-adds that hand the carry on. The first call of a
 * chain is one without the suffix c; at most one chain runs at a time. */
struct carry_chain {
#ifdef __CUDA_ARCH__
    HD uint32_t add(uint32_t a, uint32_t b) {
        uint32_t r;
        asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
        return r;
    }
    HD uint32_t addc(uint32_t a, uint32_t b) {
        uint32_t r;
        asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
        return r;
    }
    HD uint32_t sub(uint32_t a, uint32_t b) {
        uint32_t r;
        asm volatile("sub.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
        return r;
    }
    HD uint32_t subc(uint32_t a, uint32_t b) {
        uint32_t r;
        asm volatile("subc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
        return r;
    }
    /* (hi, lo) = a * b + (chi, clo) */
    HD void mad(uint32_t &lo, uint32_t &hi, uint32_t a, uint32_t b, uint32_t clo, uint32_t chi) {
        uint32_t l, h;
        asm volatile("mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.cc.u32 %1, %2, %3, %5;"
                     : "=&r"(l), "=r"(h)
                     : "r"(a), "r"(b), "r"(clo), "r"(chi));
        lo = l, hi = h;
    }
    HD void madc(uint32_t &lo, uint32_t &hi, uint32_t a, uint32_t b, uint32_t clo, uint32_t chi) {
        uint32_t l, h;
        asm volatile("madc.lo.cc.u32 %0, %2, %3, %4; madc.hi.cc.u32 %1, %2, %3, %5;"
                     : "=&r"(l), "=r"(h)
                     : "r"(a), "r"(b), "r"(clo), "r"(chi));
        lo = l, hi = h;
    }
#else
    uint32_t carry; /* or borrow: 0 or 1 */

    HD uint32_t add(uint32_t a, uint32_t b) {
        carry = 0;
        return addc(a, b);
    }
    HD uint32_t addc(uint32_t a, uint32_t b) {
        uint64_t sum = (uint64_t)a + b + carry;
        carry = (uint32_t)(sum >> 32);
        return (uint32_t)sum;
    }
    HD uint32_t sub(uint32_t a, uint32_t b) {
        carry = 0;
        return subc(a, b);
    }
    HD uint32_t subc(uint32_t a, uint32_t b) {
        uint64_t difference = (uint64_t)a - b - carry;
        carry = (uint32_t)(difference >> 63);
        return (uint32_t)difference;
    }
    HD void mad(uint32_t &lo, uint32_t &hi, uint32_t a, uint32_t b, uint32_t clo, uint32_t chi) {
        carry = 0;
        madc(lo, hi, a, b, clo, chi);
    }
    HD void madc(uint32_t &lo, uint32_t &hi, uint32_t a, uint32_t b, uint32_t clo, uint32_t chi) {
        uint64_t product = (uint64_t)a * b;
        lo = addc((uint32_t)product, clo);
        hi = addc((uint32_t)(product >> 32), chi);
    }
#endif
};

template <int N> struct words { uint32_t limb[N]; };

/* 2^bits mod p, by doubling; at compile time only. */
template <int N> HD constexpr words<N> power_of_two_mod(const words<N> p, int bits) {
    words<N> value = {};
    value.limb[0] = 1;
    for (int bit = 0; bit < bits; bit++) {
        words<N> doubled = {}, reduced = {};
        uint64_t carry = 0, borrow = 0;
        for (int i = 0; i < N; i++) {
            carry += (uint64_t)value.limb[i] << 1;
            doubled.limb[i] = (uint32_t)carry;
            carry >>= 32;
        }
        for (int i = 0; i < N; i++) {
            uint64_t difference = (uint64_t)doubled.limb[i] - p.limb[i] - borrow;
            reduced.limb[i] = (uint32_t)difference;
            borrow = difference >> 63;
        }
        value = borrow ? doubled : reduced;
    }
    return value;
}

/* -p^-1 mod 2^32 by Newton's iteration. */
HD constexpr uint32_t montgomery_factor(uint32_t p0) {
    uint32_t inverse = 1;
    for (int i = 0; i < 5; i++)
        inverse *= 2 - p0 * inverse;
    return 0 - inverse;
}

/* The moduli of gpu/curve.c, as words; everything else about a field follows from them. */
struct bn254_fr {
    static constexpr int LIMBS = 8, BITS = 254;
    HD static constexpr words<8> modulus() {
        return {{0xf0000001, 0x43e1f593, 0x79b97091, 0x2833e848, 0x8181585d, 0xb85045b6, 0xe131a029,
                 0x30644e72}};
    }
};
struct bn254_fq {
    static constexpr int LIMBS = 8, BITS = 254;
    HD static constexpr words<8> modulus() {
        return {{0xd87cfd47, 0x3c208c16, 0x6871ca8d, 0x97816a91, 0x8181585d, 0xb85045b6, 0xe131a029,
                 0x30644e72}};
    }
};
struct bls12_381_fr {
    static constexpr int LIMBS = 8, BITS = 255;
    HD static constexpr words<8> modulus() {
        return {{0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402, 0x09a1d805, 0x3339d808, 0x299d7d48,
                 0x73eda753}};
    }
};
struct bls12_381_fq {
    static constexpr int LIMBS = 12, BITS = 381;
    HD static constexpr words<12> modulus() {
        return {{0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe, 0xf6b0f624, 0x6730d2a0, 0xf38512bf,
                 0x64774b84, 0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea}};
    }
};

/* A number below p, as people write it. */
template <class P> struct alignas(16) plain { uint32_t limb[P::LIMBS]; };

template <class P> struct alignas(16) field {
    typedef P params;
    static constexpr int N = P::LIMBS;
    static constexpr uint32_t M0 = montgomery_factor(P::modulus().limb[0]);
    static_assert(M0 * P::modulus().limb[0] == 0xffffffff, "M0 is not -1/p");
    static_assert(N % 2 == 0 && P::BITS < 32 * N, "the carry chains need pairs and a free bit");

    uint32_t limb[N];

    /* --- constants --- */
    HD static constexpr uint32_t p(int i) {
        constexpr words<N> w = P::modulus();
        return w.limb[i];
    }
    HD static field zero() {
        field r;
        UNROLL for (int i = 0; i < N; i++) r.limb[i] = 0;
        return r;
    }
    HD static field one() {
        constexpr words<N> w = power_of_two_mod(P::modulus(), 32 * N);
        field r;
        UNROLL for (int i = 0; i < N; i++) r.limb[i] = w.limb[i];
        return r;
    }
    HD static field r_squared() {
        constexpr words<N> w = power_of_two_mod(P::modulus(), 64 * N);
        field r;
        UNROLL for (int i = 0; i < N; i++) r.limb[i] = w.limb[i];
        return r;
    }

    /* --- comparison --- */
    HD bool is_zero() const {
        uint32_t any = 0;
        UNROLL for (int i = 0; i < N; i++) any |= limb[i];
        return any == 0;
    }
    HD bool operator==(const field &b) const {
        uint32_t any = 0;
        UNROLL for (int i = 0; i < N; i++) any |= limb[i] ^ b.limb[i];
        return any == 0;
    }

    /* --- linear --- */
    /* a - p if that is not negative; a below 2p */
    HD static field reduce_once(const field &a) {
        carry_chain k;
        field t;
        t.limb[0] = k.sub(a.limb[0], p(0));
        UNROLL for (int i = 1; i < N; i++) t.limb[i] = k.subc(a.limb[i], p(i));
        bool keep = k.subc(0, 0) != 0;
        UNROLL for (int i = 0; i < N; i++) t.limb[i] = keep ? a.limb[i] : t.limb[i];
        return t;
    }
    /* a + b without reduction: below 2p, for wide::product only */
    HD static field add_loose(const field &a, const field &b) {
        carry_chain k;
        field t;
        t.limb[0] = k.add(a.limb[0], b.limb[0]);
        UNROLL for (int i = 1; i < N; i++) t.limb[i] = k.addc(a.limb[i], b.limb[i]);
        return t;
    }
    HD static field add(const field &a, const field &b) {
        return reduce_once(add_loose(a, b));
    }
    HD static field dbl(const field &a) {
        return add(a, a);
    }
    HD static field sub(const field &a, const field &b) {
        carry_chain k;
        field t;
        t.limb[0] = k.sub(a.limb[0], b.limb[0]);
        UNROLL for (int i = 1; i < N; i++) t.limb[i] = k.subc(a.limb[i], b.limb[i]);
        uint32_t mask = k.subc(0, 0);
        t.limb[0] = k.add(t.limb[0], p(0) & mask);
        UNROLL for (int i = 1; i < N; i++) t.limb[i] = k.addc(t.limb[i], p(i) & mask);
        return t;
    }
    HD static field neg(const field &a) {
        return sub(zero(), a);
    }
    /* negative ? -a : a */
    HD static field neg_if(const field &a, bool negative) {
        field n = neg(a);
        UNROLL for (int i = 0; i < N; i++) n.limb[i] = negative ? n.limb[i] : a.limb[i];
        return n;
    }

    /* --- products --- */
    /* The value even + 2^32 * odd, reduced limb by limb. */
    struct accumulator {
        uint32_t even[N], odd[N];

        /* Adds a * b to a fresh accumulator. */
        HD void first_row(const field &a, uint32_t b) {
            UNROLL for (int j = 0; j < N; j += 2) {
                uint64_t e = (uint64_t)a.limb[j] * b, o = (uint64_t)a.limb[j + 1] * b;
                even[j] = (uint32_t)e, even[j + 1] = (uint32_t)(e >> 32);
                odd[j] = (uint32_t)o, odd[j + 1] = (uint32_t)(o >> 32);
            }
        }
        /* Adds a * b. */
        HD void row(const field &a, uint32_t b) {
            carry_chain k;
            k.mad(odd[0], odd[1], a.limb[1], b, odd[0], odd[1]);
            UNROLL for (int j = 2; j < N; j += 2)
                k.madc(odd[j], odd[j + 1], a.limb[j + 1], b, odd[j], odd[j + 1]);
            even_row(a, b);
        }
        HD void even_row(const field &a, uint32_t b) {
            carry_chain k;
            k.mad(even[0], even[1], a.limb[0], b, even[0], even[1]);
            UNROLL for (int j = 2; j < N; j += 2)
                k.madc(even[j], even[j + 1], a.limb[j], b, even[j], even[j + 1]);
            odd[N - 1] = k.addc(odd[N - 1], 0);
        }
        /* Makes the lowest limb zero. */
        HD void reduce() {
            uint32_t m = even[0] * M0;
            carry_chain k;
            k.mad(odd[0], odd[1], p(1), m, odd[0], odd[1]);
            UNROLL for (int j = 2; j < N; j += 2)
                k.madc(odd[j], odd[j + 1], p(j + 1), m, odd[j], odd[j + 1]);
            k.mad(even[0], even[1], p(0), m, even[0], even[1]);
            UNROLL for (int j = 2; j < N; j += 2)
                k.madc(even[j], even[j + 1], p(j), m, even[j], even[j + 1]);
            odd[N - 1] = k.addc(odd[N - 1], 0);
        }
        /* Divides by 2^32 (the lowest limb is zero) and adds a * b: what was odd is now even, and
         * the other way round two limbs lower. */
        HD void shifted_row(const field &a, uint32_t b) {
            carry_chain k;
            uint32_t e[N], o[N];
            e[0] = k.add(odd[0], even[1]);
            UNROLL for (int j = 0; j < N - 2; j += 2)
                k.madc(o[j], o[j + 1], a.limb[j + 1], b, even[j + 2], even[j + 3]);
            k.madc(o[N - 2], o[N - 1], a.limb[N - 1], b, 0, 0);
            UNROLL for (int j = 1; j < N; j++) e[j] = odd[j];
            UNROLL for (int j = 0; j < N; j++) even[j] = e[j], odd[j] = o[j];
            even_row(a, b);
        }
        /* Divides by 2^32 and makes the lowest limb zero again. */
        HD void shifted_reduce() {
            carry_chain k;
            uint32_t e[N], o[N];
            e[0] = k.add(odd[0], even[1]);
            uint32_t m = e[0] * M0;
            UNROLL for (int j = 0; j < N - 2; j += 2)
                k.madc(o[j], o[j + 1], p(j + 1), m, even[j + 2], even[j + 3]);
            k.madc(o[N - 2], o[N - 1], p(N - 1), m, 0, 0);
            UNROLL for (int j = 1; j < N; j++) e[j] = odd[j];
            k.mad(e[0], e[1], p(0), m, e[0], e[1]);
            UNROLL for (int j = 2; j < N; j += 2) k.madc(e[j], e[j + 1], p(j), m, e[j], e[j + 1]);
            o[N - 1] = k.addc(o[N - 1], 0);
            UNROLL for (int j = 0; j < N; j++) even[j] = e[j], odd[j] = o[j];
        }
        /* The value divided by 2^32, as limbs. */
        HD field shifted_value() const {
            carry_chain k;
            field r;
            r.limb[0] = k.add(odd[0], even[1]);
            UNROLL for (int i = 1; i < N - 1; i++) r.limb[i] = k.addc(odd[i], even[i + 1]);
            r.limb[N - 1] = k.addc(odd[N - 1], 0);
            return r;
        }
    };

    /* The product by carry chains: what the device runs; on the host, for tests. */
    HD static field mul_chain(const field &a, const field &b) {
        accumulator t;
        t.first_row(a, b.limb[0]);
        t.reduce();
        UNROLL for (int i = 1; i < N; i++) {
            t.shifted_row(a, b.limb[i]);
            t.reduce();
        }
        return reduce_once(t.shifted_value());
    }
    HD static field mul(const field &a, const field &b) {
#ifdef __CUDA_ARCH__
        return mul_chain(a, b);
#else
        return mul_host(a, b);
#endif
    }
    HD static field sqr(const field &a) {
#ifdef __CUDA_ARCH__
        return wide::square(a).reduced();
#else
        return mul_host(a, a);
#endif
    }
    /* a*b - c*d with one reduction for both products. Needs two free bits. */
    HD static field mul_sub(const field &a, const field &b, const field &c, const field &d) {
#ifdef __CUDA_ARCH__
        return mul_sub_chain(a, b, c, d);
#else
        return sub(mul_host(a, b), mul_host(c, d));
#endif
    }
    HD static field mul_sub_chain(const field &a, const field &b, const field &c, const field &d) {
        static_assert(P::BITS <= 32 * N - 2, "the sum of two products needs two free bits");
        field minus_c = neg(c);
        accumulator t;
        t.first_row(a, b.limb[0]);
        t.row(minus_c, d.limb[0]);
        t.reduce();
        UNROLL for (int i = 1; i < N; i++) {
            t.shifted_row(a, b.limb[i]);
            t.row(minus_c, d.limb[i]);
            t.reduce();
        }
        return reduce_once(reduce_once(t.shifted_value())); /* below (2p*p + R*p) / R < 2p + p */
    }

    /* An unreduced product, below p * 2^(32*N). */
    struct wide {
        uint32_t limb[2 * N];

        /* a * b; a and b may be add_loose of two values when two bits are free. */
        HD static wide product(const field &a, const field &b) {
            uint32_t even[2 * N], odd[2 * N]; /* odd[j] stands at limb j + 1 */
            UNROLL for (int j = 0; j < 2 * N; j++) even[j] = odd[j] = 0;
            UNROLL for (int i = 0; i < N; i++) {
                add_row(i % 2 ? odd : even, i - i % 2, a, 0, b.limb[i]);
                add_row(i % 2 ? even : odd, i + i % 2, a, 1, b.limb[i]);
            }
            return joined(even, odd);
        }
        /* a * a with 5/8 of the products: those above the diagonal, twice, and the diagonal. */
        HD static wide square(const field &a) {
            uint32_t even[2 * N], odd[2 * N];
            UNROLL for (int j = 0; j < 2 * N; j++) even[j] = odd[j] = 0;
            UNROLL for (int i = 0; i < N - 1; i++) {
                add_row(odd, 2 * i, a, i + 1, a.limb[i]);
                if (i + 2 < N) add_row(even, 2 * i + 2, a, i + 2, a.limb[i]);
            }
            wide r = joined(even, odd);
            UNROLL for (int j = 2 * N - 1; j > 0; j--) r.limb[j] =
                r.limb[j] << 1 | r.limb[j - 1] >> 31;
            r.limb[0] <<= 1;
            carry_chain k;
            k.mad(r.limb[0], r.limb[1], a.limb[0], a.limb[0], r.limb[0], r.limb[1]);
            UNROLL for (int i = 1; i < N; i++) k.madc(r.limb[2 * i], r.limb[2 * i + 1], a.limb[i],
                                                      a.limb[i], r.limb[2 * i], r.limb[2 * i + 1]);
            return r;
        }
        /* this - b, which must not be negative */
        HD wide minus(const wide &b) const {
            carry_chain k;
            wide r;
            r.limb[0] = k.sub(limb[0], b.limb[0]);
            UNROLL for (int i = 1; i < 2 * N; i++) r.limb[i] = k.subc(limb[i], b.limb[i]);
            return r;
        }
        /* this - b modulo p, below p * 2^(32*N): p is added to the upper half of what is negative.
         */
        HD wide minus_mod(const wide &b) const {
            carry_chain k;
            wide r;
            r.limb[0] = k.sub(limb[0], b.limb[0]);
            UNROLL for (int i = 1; i < 2 * N; i++) r.limb[i] = k.subc(limb[i], b.limb[i]);
            uint32_t mask = k.subc(0, 0);
            r.limb[N] = k.add(r.limb[N], p(0) & mask);
            UNROLL for (int i = 1; i < N; i++) r.limb[N + i] = k.addc(r.limb[N + i], p(i) & mask);
            return r;
        }
        /* The Montgomery reduction of a value below p * 2^(32*N). */
        HD field reduced() const {
            accumulator t;
            UNROLL for (int j = 0; j < N; j++) t.even[j] = limb[j], t.odd[j] = 0;
            t.reduce();
            UNROLL for (int i = 1; i < N; i++) t.shifted_reduce();
            field low = t.shifted_value(), high;
            UNROLL for (int j = 0; j < N; j++) high.limb[j] = limb[N + j];
            return reduce_once(add_loose(low, high));
        }

      private:
        /* sum[at..] += (a[first], a[first+2], ...) * b, with the carry out. */
        HD static void add_row(uint32_t *sum, int at, const field &a, int first, uint32_t b) {
            carry_chain k;
            k.mad(sum[at], sum[at + 1], a.limb[first], b, sum[at], sum[at + 1]);
            UNROLL for (int j = first + 2; j < N; j += 2) {
                at += 2;
                k.madc(sum[at], sum[at + 1], a.limb[j], b, sum[at], sum[at + 1]);
            }
            if (at + 2 < 2 * N) sum[at + 2] = k.addc(sum[at + 2], 0);
        }
        HD static wide joined(const uint32_t *even, const uint32_t *odd) {
            carry_chain k;
            wide r;
            r.limb[0] = even[0];
            r.limb[1] = k.add(even[1], odd[0]);
            UNROLL for (int j = 2; j < 2 * N; j++) r.limb[j] = k.addc(even[j], odd[j - 1]);
            return r;
        }
    };

    /* 1/a by Fermat; 0 gives 0. */
    HD_CALL static field inverse(const field &a) {
        field r = one();
        bool started = false;
        for (int i = N - 1; i >= 0; i--) {
            uint32_t word = exponent(i);
            for (int bit = 31; bit >= 0; bit--) {
                if (started) r = sqr(r);
                if (word >> bit & 1) {
                    r = mul(r, a);
                    started = true;
                }
            }
        }
        return r;
    }

    /* --- form --- */
    HD static field from_plain(const plain<P> &a) {
        field t;
        UNROLL for (int i = 0; i < N; i++) t.limb[i] = a.limb[i];
        return mul(t, r_squared());
    }
    HD static plain<P> to_plain(const field &a) {
        field unit = zero();
        unit.limb[0] = 1;
        field t = mul(a, unit);
        plain<P> r;
        UNROLL for (int i = 0; i < N; i++) r.limb[i] = t.limb[i];
        return r;
    }

  private:
    HD static constexpr uint32_t exponent(int i) /* p - 2, whose borrow stops at limb 1 */
    {
        static_assert(P::modulus().limb[0] >= 2 || P::modulus().limb[1] >= 1, "two borrows");
        return p(i) - (i == 0 ? 2 : i == 1 && p(0) < 2 ? 1 : 0);
    }
#ifndef __CUDA_ARCH__
    /* The product with 64-bit limbs, for the host's own work. */
    HD_CALL static field mul_host(const field &a, const field &b) {
        enum { H = N / 2 };
        uint64_t x[H], y[H], m[H], t[H + 2] = {0};
        words<N> modulus = P::modulus();
        memcpy(x, a.limb, sizeof x);
        memcpy(y, b.limb, sizeof y);
        memcpy(m, modulus.limb, sizeof m);
        constexpr uint64_t p0 = P::modulus().limb[0] | (uint64_t)P::modulus().limb[1] << 32;
        constexpr uint64_t m0 = (uint64_t)M0 * (2 + p0 * (uint64_t)M0); /* Newton, once more */
        static_assert(m0 * p0 == UINT64_MAX, "m0 is not -1/p");
        for (int i = 0; i < H; i++) {
            add_product(t, x, y[i]);
            add_product(t, m, t[0] * m0);
            for (int j = 0; j <= H; j++)
                t[j] = t[j + 1];
            t[H + 1] = 0;
        }
        field r;
        memcpy(r.limb, t, sizeof r.limb);
        return reduce_once(r);
    }
    static void add_product(uint64_t *t, const uint64_t *x, uint64_t y) {
        unsigned __int128 carry = 0;
        for (int j = 0; j < N / 2; j++) {
            carry += (unsigned __int128)x[j] * y + t[j];
            t[j] = (uint64_t)carry;
            carry >>= 64;
        }
        carry += t[N / 2];
        t[N / 2] = (uint64_t)carry;
        t[N / 2 + 1] += (uint64_t)(carry >> 64);
    }
#endif
};

/* c0 + c1*u with u^2 = -1 (both curves), over a field with two free bits. */
template <class P> struct alignas(16) fp2 {
    typedef field<P> base;
    typedef P params;
    base c0, c1;

    HD static fp2 zero() {
        return {base::zero(), base::zero()};
    }
    HD static fp2 one() {
        return {base::one(), base::zero()};
    }
    HD bool is_zero() const {
        return c0.is_zero() && c1.is_zero();
    }
    HD bool operator==(const fp2 &b) const {
        return c0 == b.c0 && c1 == b.c1;
    }
    HD static fp2 add(const fp2 &a, const fp2 &b) {
        return {base::add(a.c0, b.c0), base::add(a.c1, b.c1)};
    }
    HD static fp2 dbl(const fp2 &a) {
        return {base::dbl(a.c0), base::dbl(a.c1)};
    }
    HD static fp2 sub(const fp2 &a, const fp2 &b) {
        return {base::sub(a.c0, b.c0), base::sub(a.c1, b.c1)};
    }
    HD static fp2 neg(const fp2 &a) {
        return {base::neg(a.c0), base::neg(a.c1)};
    }
    HD static fp2 neg_if(const fp2 &a, bool negative) {
        return {base::neg_if(a.c0, negative), base::neg_if(a.c1, negative)};
    }
    HD static fp2 mul(const fp2 &a, const fp2 &b) {
#ifdef __CUDA_ARCH__
        return mul_chain(a, b);
#else
        base low = base::mul(a.c0, b.c0), high = base::mul(a.c1, b.c1);
        base cross = base::mul(base::add(a.c0, a.c1), base::add(b.c0, b.c1));
        return {base::sub(low, high), base::sub(base::sub(cross, low), high)};
#endif
    }
    /* A product by Karatsuba, both parts unreduced. */
    struct wide {
        typename base::wide c0, c1;

        HD static wide product(const fp2 &a, const fp2 &b) {
            static_assert(P::BITS <= 32 * P::LIMBS - 2, "loose sums need two free bits");
            typedef typename base::wide half;
            half cross = half::product(base::add_loose(a.c0, a.c1), base::add_loose(b.c0, b.c1));
            half low = half::product(a.c0, b.c0);
            cross = cross.minus(low);
            half high = half::product(a.c1, b.c1);
            return {low.minus_mod(high), cross.minus(high)};
        }
        HD wide minus_mod(const wide &b) const {
            return {c0.minus_mod(b.c0), c1.minus_mod(b.c1)};
        }
        HD fp2 reduced() const {
            return {c0.reduced(), c1.reduced()};
        }
    };
    HD static fp2 mul_chain(const fp2 &a, const fp2 &b) {
        return wide::product(a, b).reduced();
    }
    HD static fp2 mul_sub_chain(const fp2 &a, const fp2 &b, const fp2 &c, const fp2 &d) {
        wide minus = wide::product(c, d);
        return wide::product(a, b).minus_mod(minus).reduced();
    }
    HD static fp2 sqr(const fp2 &a) {
        base product = base::mul(a.c0, a.c1);
        return {base::mul(base::add(a.c0, a.c1), base::sub(a.c0, a.c1)), base::dbl(product)};
    }
    HD static fp2 mul_sub(const fp2 &a, const fp2 &b, const fp2 &c, const fp2 &d) {
#ifdef __CUDA_ARCH__
        return mul_sub_chain(a, b, c, d);
#else
        return sub(mul(a, b), mul(c, d));
#endif
    }
    HD static fp2 inverse(const fp2 &a) {
        base norm = base::inverse(base::add(base::sqr(a.c0), base::sqr(a.c1)));
        return {base::mul(a.c0, norm), base::neg(base::mul(a.c1, norm))};
    }
};

#endif
