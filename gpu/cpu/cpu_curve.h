/* Curve arithmetic on the CPU: one table of operations per curve, compiled for plain x86-64/any CPU
 * and again for processors with MULX/ADX, chosen at run time.
 *
 * "zkey form" is the form of points in zkey.h; scalars are plain and below r unless said otherwise.
 * Points given in plain form need not be valid for *_check only; everything else takes checked
 * points. All operations are complete: infinity, equal and opposite points are handled everywhere.
 * Functions with a pool use all its threads. Nothing here is constant-time but what says so.
 */
#ifndef PROVERQ_CPU_CURVE_H
#define PROVERQ_CPU_CURVE_H

#include "gpu/cpu/matrix.h"
#include "gpu/cpu/pool.h"
#include "gpu/curve.h"
#include "gpu/error.h"
#include "gpu/r1cs.h"
#include "gpu/zkey.h"

enum point_fault { POINT_OK, POINT_RANGE, POINT_OFF_CURVE, POINT_OFF_SUBGROUP };

/* What setup computes, in zkey form; sizes as in struct zkey. setup_key_free frees the arrays. */
struct setup_key {
    uint32_t n_vars, n_public, domain_size, n_coefficients;
    uint8_t alpha1[2 * COORD_BYTES], beta1[2 * COORD_BYTES], delta1[2 * COORD_BYTES];
    uint8_t beta2[4 * COORD_BYTES], gamma2[4 * COORD_BYTES], delta2[4 * COORD_BYTES];
    uint8_t *ic, *coefficients, *a, *b1, *b2, *c, *h;
};

struct cpu_curve {
    const struct curve_info *info;
    const char *isa; /* "adx" or "portable" */

    /* --- points --- */
    void (*g1_from_zkey)(const uint8_t *zkey_form, struct g1_point *out);
    void (*g2_from_zkey)(const uint8_t *zkey_form, struct g2_point *out);
    void (*g1_to_zkey)(const struct g1_point *p, uint8_t *zkey_form);
    void (*g2_to_zkey)(const struct g2_point *p, uint8_t *zkey_form);
    const struct g1_point *g1_generator;
    const struct g2_point *g2_generator;

    /* Range, curve and subgroup of one plain point (infinity is POINT_OK). */
    enum point_fault (*g1_check)(const struct g1_point *p);
    enum point_fault (*g2_check)(const struct g2_point *p);

    /* The same for n points in zkey form; returns n when all are good, else the lowest bad index
     * and its fault. */
    size_t (*g1_check_many)(struct pool *pool, const uint8_t *points, size_t n,
                            enum point_fault *fault);
    size_t (*g2_check_many)(struct pool *pool, const uint8_t *points, size_t n,
                            enum point_fault *fault);

    void (*g1_add)(const struct g1_point *p, const struct g1_point *q, struct g1_point *out);
    void (*g2_add)(const struct g2_point *p, const struct g2_point *q, struct g2_point *out);
    void (*g1_mul)(const struct g1_point *p, const struct scalar *k, struct g1_point *out);
    void (*g2_mul)(const struct g2_point *p, const struct scalar *k, struct g2_point *out);
    void (*g1_neg)(const struct g1_point *p, struct g1_point *out);

    /* Whether y is the lexicographically larger of y and -y (the sign bit of the compressed
     * encoding). */
    bool (*g1_y_is_larger)(const struct g1_point *p);
    bool (*g2_y_is_larger)(const struct g2_point *p);

    /* --- multi-scalar multiplication: sum of scalars[i] * bases[i], bases in zkey form, scalars
     * any 256-bit plain value below r. Pippenger with signed digits; zero scalars cost next to
     * nothing. n may be 0. --- */
    enum err (*msm_g1)(struct pool *pool, const uint8_t *bases, const struct scalar *scalars,
                       size_t n, struct g1_point *out, struct error *error);
    enum err (*msm_g2)(struct pool *pool, const uint8_t *bases, const struct scalar *scalars,
                       size_t n, struct g2_point *out, struct error *error);

    /* --- the quotient (inverse NTT of a, b, c = a.b; values on the odd powers of w_2N; a.b - c), plain
     * scalars of the H sum. `witness` has the key's n_vars values, `h` room for domain_size. The
     * times of both parts go to matvec_ns and ntt_ns. --- */
    enum err (*quotient)(struct pool *pool, const struct matrix *matrix,
                         const struct scalar *witness, struct scalar *h, int64_t *matvec_ns,
                         int64_t *ntt_ns, struct error *error);

    /* Bytes that the quotient and the sums of a proof allocate at most, `h` included. */
    size_t (*prove_bytes)(const struct zkey *zkey, unsigned threads);

    /* In-place transforms of 2^log_n plain scalars, natural order in and out: for tests and
     * benchmarks. */
    enum err (*ntt)(struct pool *pool, struct scalar *values, unsigned log_n, bool inverse,
                    struct error *error);

    /* --- pairing --- */
    /* Whether prod e(p[i], q[i]) = 1; points in their subgroups; infinity contributes 1. */
    bool (*pairing_product_is_one)(const struct g1_point *p, const struct g2_point *q, size_t n);
    /* e(p, q) as 12 plain coordinates in snarkjs's vk_alphabeta_12 order [2][3][2]. */
    void (*pairing)(const struct g1_point *p, const struct g2_point *q,
                    uint8_t out[12][COORD_BYTES]);

    /* --- scalars --- */
    void (*fr_add)(const struct scalar *a, const struct scalar *b, struct scalar *out);
    void (*fr_sub)(const struct scalar *a, const struct scalar *b, struct scalar *out);
    void (*fr_mul)(const struct scalar *a, const struct scalar *b, struct scalar *out);
    void (*fr_inv)(const struct scalar *a, struct scalar *out); /* 0 gives 0 */

    /* Index of the first constraint that the witness does not satisfy, or n_constraints. */
    uint32_t (*first_unsatisfied)(struct pool *pool, const struct r1cs *r1cs,
                                  const struct scalar *witness);

    /* --- setup: everything of a key that depends on the secrets --- */
    enum err (*setup)(struct pool *pool, const struct r1cs *r1cs, struct setup_key *out,
                      struct error *error);
};

void setup_key_free(struct setup_key *key);

/* The table for a curve; the fastest that this processor runs. */
const struct cpu_curve *cpu_curve(enum curve_id id);

/* The table compiled for `isa`, or NULL when this processor or build does not have it: for tests
 * and benchmarks. */
const struct cpu_curve *cpu_curve_isa(enum curve_id id, const char *isa);

#endif
