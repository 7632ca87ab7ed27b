/* Groth16 proving keys as snarkjs writes them (.zkey), read in place from a mapped file.
 *
 * Format: snarkjs 0.7.6 `src/zkey_utils.js`; sections come in any order. Every count, length and
 * index is checked against the file before use, so that after zkey_open every pointer below may be
 * read to its stated length. What is *not* checked here is that points are on the curve: keycheck.h
 * does that.
 */
#ifndef PROVERQ_ZKEY_H
#define PROVERQ_ZKEY_H

#include "gpu/curve.h"
#include "gpu/error.h"

/* One non-zero entry of A or B, 12 + SCALAR_BYTES packed little-endian bytes in the file:
 * u32 matrix (0 = A, 1 = B), u32 constraint (< domain_size), u32 signal (< n_vars), value.
 * The value is coefficient * R^2 mod r ("double Montgomery"): one Montgomery product with a plain
 * witness value gives the product in Montgomery form. */
enum { ZKEY_COEFFICIENT_BYTES = 12 + SCALAR_BYTES };

/* The name of the contribution in section 10 by which a key of `proverq setup` is known: snarkjs
 * shows it, and keeps it when it adds contributions of its own. */
#define ZKEY_INSECURE_NAME "INSECURE: made by proverq setup"

/* Points are affine, Montgomery form, little-endian, coordinates of n8q bytes without padding:
 * G1 is x,y (2*n8q bytes), G2 is x0,x1,y0,y1 (4*n8q bytes). Infinity is all zero bytes. */
struct zkey {
    const struct curve_info *curve;
    uint32_t n_vars;      /* signals, the constant 1 included; >= n_public + 1 */
    uint32_t n_public;    /* public signals, the constant 1 not counted; may be 0 */
    uint32_t domain_size; /* 2^log_domain; >= 2 */
    unsigned log_domain;  /* <= curve->two_adicity */

    const uint8_t *alpha1, *beta1, *delta1; /* G1 */
    const uint8_t *beta2, *gamma2, *delta2; /* G2 */
    const uint8_t *ic;                      /* n_public + 1 G1 */
    const uint8_t *coefficients;            /* n_coefficients * ZKEY_COEFFICIENT_BYTES */
    uint32_t n_coefficients;
    const uint8_t *a, *b1; /* n_vars G1 */
    const uint8_t *b2;     /* n_vars G2 */
    const uint8_t *c;      /* n_vars - n_public - 1 G1, for signals n_public+1 ... */
    const uint8_t *h;      /* domain_size G1 */

    bool insecure; /* made by `proverq setup`: its secrets were known (marked in section 10) */
    struct mapped_file *file;
};

/* Maps and checks the key at `path`. The caller closes it; NULL may be closed. */
MUST_USE enum err zkey_open(const char *path, struct zkey **out, struct error *error);
void zkey_close(struct zkey *zkey);

/* Bytes of a G1 and a G2 point in the file. */
static inline size_t zkey_g1_bytes(const struct zkey *zkey) {
    return 2 * zkey->curve->n8q;
}
static inline size_t zkey_g2_bytes(const struct zkey *zkey) {
    return 4 * zkey->curve->n8q;
}

#endif
