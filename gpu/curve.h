/* The two pairing-friendly curves and the plain form of what lies on them.
 *
 * "Plain" is a number as people write it, little-endian, below its modulus; "Montgomery" is that
 * number times R = 2^(8*n8) modulo the modulus. Files (zkey) keep points in Montgomery form, see
 * zkey.h; this library's own interfaces take and give plain values in the types below, so that the
 * compiler tells the two apart. Constants: EIP-196/197 (bn128 is circom's name for BN254,
 * alt_bn128), and the IETF pairing-friendly-curves draft, section 4.2.1 (BLS12-381).
 */
#ifndef PROVERQ_CURVE_H
#define PROVERQ_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum curve_id { CURVE_BN254, CURVE_BLS12_381 };
enum { CURVE_COUNT = 2, SCALAR_BYTES = 32, COORD_BYTES = 48 /* widest coordinate */ };

struct curve_info {
    enum curve_id id;
    const char *name;        /* as proof.json says it: "bn128", "bls12381" */
    size_t n8q;              /* bytes of a coordinate: 32 or 48 */
    uint8_t q[COORD_BYTES];  /* coordinate modulus, little-endian */
    uint8_t r[SCALAR_BYTES]; /* scalar modulus, little-endian */
    unsigned two_adicity;    /* largest s with 2^s | r-1: 28 or 32 */
};

/* A scalar: plain, little-endian, below r unless the taker says otherwise. */
struct scalar {
    uint8_t le[SCALAR_BYTES];
};

/* Affine points in plain form. A coordinate uses its first n8q bytes, the rest is zero. The point
 * at infinity is all zero bytes (0,0 is on neither curve). An Fp2 coordinate is c0 + c1*u. */
struct g1_point {
    uint8_t x[COORD_BYTES], y[COORD_BYTES];
};
struct g2_point {
    uint8_t x[2][COORD_BYTES], y[2][COORD_BYTES];
};

extern const struct curve_info curve_infos[CURVE_COUNT];
const struct curve_info *curve_info(enum curve_id id);

/* The curve called `name`, or NULL: "bn128", "bn254", "alt_bn128" or "bls12381". As in snarkjs only
 * letters and digits count, in either case: "BLS12-381" is one. */
const struct curve_info *curve_by_name(const char *name);

/* The curve whose scalar modulus is the `n` bytes at `r_le`, or NULL. */
const struct curve_info *curve_by_scalar_modulus(const uint8_t *r_le, size_t n);

/* Whether the little-endian number a of n bytes is below b. */
bool le_less(const uint8_t *a, const uint8_t *b, size_t n);

/* Whether n bytes are all zero; constant time is not promised. */
bool le_is_zero(const uint8_t *a, size_t n);

#endif
