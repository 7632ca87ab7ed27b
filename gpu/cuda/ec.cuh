/* Points of y^2 = x^3 + b (b never matters) over a field or its quadratic extension.
 *
 * `affine` is x, y with (0, 0) for infinity, in memory exactly the zkey form; `xyzz` is (X, Y, ZZ,
 * ZZZ) with x = X/ZZ, y = Y/ZZZ, ZZ^3 = ZZZ^2, and ZZ = 0 for infinity. Formulas: Explicit-Formulas
 * Database, short Weierstrass, xyzz coordinates: madd-2008-s, add-2008-s, dbl-2008-s-1,
 * mdbl-2008-s-1. All operations are complete: infinity, equal and opposite points are handled.
 */
#ifndef PROVERQ_CUDA_EC_CUH
#define PROVERQ_CUDA_EC_CUH

#include "gpu/cuda/field.cuh"

template <class F> struct alignas(16) affine {
    F x, y;

    HD static affine infinity() {
        return {F::zero(), F::zero()};
    }
    HD bool is_infinity() const {
        return x.is_zero() && y.is_zero();
    }
};

template <class F> struct alignas(16) xyzz {
    F x, y, zz, zzz;

    HD static xyzz infinity() {
        return {F::zero(), F::zero(), F::zero(), F::zero()};
    }
    HD static xyzz from_affine(const affine<F> &p) {
        if (p.is_infinity()) return infinity();
        return {p.x, p.y, F::one(), F::one()};
    }
    HD bool is_infinity() const {
        return zz.is_zero();
    }

    HD static xyzz dbl(const xyzz &p) {
        F u = F::dbl(p.y), v = F::sqr(u), w = F::mul(u, v);
        F s = F::mul(p.x, v), m = F::sqr(p.x);
        m = F::add(F::dbl(m), m);
        F x = F::sub(F::sqr(m), F::dbl(s));
        F y = F::mul_sub(m, F::sub(s, x), w, p.y);
        return {x, y, F::mul(v, p.zz), F::mul(w, p.zzz)};
    }
    HD static xyzz dbl(const affine<F> &p) {
        F u = F::dbl(p.y), v = F::sqr(u), w = F::mul(u, v);
        F s = F::mul(p.x, v), m = F::sqr(p.x);
        m = F::add(F::dbl(m), m);
        F x = F::sub(F::sqr(m), F::dbl(s));
        return {x, F::mul_sub(m, F::sub(s, x), w, p.y), v, w};
    }

    HD void add(const affine<F> &q) {
        if (q.is_infinity()) return;
        if (is_infinity()) {
            *this = from_affine(q);
            return;
        }
        F p = F::sub(F::mul(q.x, zz), x), r = F::sub(F::mul(q.y, zzz), y);
        if (p.is_zero()) {
            *this = r.is_zero() ? dbl_rarely(q) : infinity();
            return;
        }
        add_slope(p, r, x, y);
    }
    HD void add(const xyzz &q) {
        if (q.is_infinity()) return;
        if (is_infinity()) {
            *this = q;
            return;
        }
        F u1 = F::mul(x, q.zz), s1 = F::mul(y, q.zzz);
        F p = F::sub(F::mul(q.x, zz), u1), r = F::sub(F::mul(q.y, zzz), s1);
        if (p.is_zero()) {
            *this = r.is_zero() ? dbl_rarely(q) : infinity();
            return;
        }
        zz = F::mul(zz, q.zz);
        zzz = F::mul(zzz, q.zzz);
        add_slope(p, r, u1, s1);
    }

    /* The affine point when 1/ZZZ is known. */
    HD static affine<F> normalised(const xyzz &p, const F &zzz_inverse) {
        if (p.is_infinity()) return affine<F>::infinity();
        F z_inverse = F::mul(p.zz, zzz_inverse);
        return {F::mul(p.x, F::sqr(z_inverse)), F::mul(p.y, zzz_inverse)};
    }
    HD static affine<F> normalised(const xyzz &p) {
        return normalised(p, F::inverse(p.zzz));
    }

  private:
    /* A call, so that the rare case costs the common one no registers. */
    HD_CALL static xyzz dbl_rarely(const xyzz q) {
        return dbl(q);
    }
    HD_CALL static xyzz dbl_rarely(const affine<F> q) {
        return dbl(q);
    }
    /* The end of both additions: p and r are the differences of x and y at the common
     * denominators zz and zzz, u and s one of the two x and y. */
    HD void add_slope(const F &p, const F &r, const F &u, const F &s) {
        F pp = F::sqr(p), ppp = F::mul(p, pp), q = F::mul(u, pp);
        zz = F::mul(zz, pp);
        zzz = F::mul(zzz, ppp);
        F x3 = F::sub(F::sub(F::sqr(r), ppp), F::dbl(q));
        y = F::mul_sub(r, F::sub(q, x3), s, ppp);
        x = x3;
    }
};

/* What the MSM needs to know of a curve. */
struct bn254 {
    typedef bn254_fr fr;
    typedef field<bn254_fq> g1_field;
    typedef fp2<bn254_fq> g2_field;
};
struct bls12_381 {
    typedef bls12_381_fr fr;
    typedef field<bls12_381_fq> g1_field;
    typedef fp2<bls12_381_fq> g2_field;
};

/* Memory in 16-byte words. */
template <class T> HD T load(const T *from) {
#ifdef __CUDA_ARCH__
    static_assert(sizeof(T) % 16 == 0, "whole 16-byte words");
    T value;
    UNROLL for (int i = 0; i < (int)(sizeof(T) / 16); i++) reinterpret_cast<uint4 *>(&value)[i] =
        reinterpret_cast<const uint4 *>(from)[i];
    return value;
#else
    return *from;
#endif
}
template <class T> HD void store(T *to, const T &value) {
#ifdef __CUDA_ARCH__
    static_assert(sizeof(T) % 16 == 0, "whole 16-byte words");
    UNROLL for (int i = 0; i < (int)(sizeof(T) / 16); i++) reinterpret_cast<uint4 *>(to)[i] =
        reinterpret_cast<const uint4 *>(&value)[i];
#else
    *to = value;
#endif
}

#endif
