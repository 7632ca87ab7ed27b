/* A Groth16 proof and its written forms.
 *
 * JSON: snarkjs's proof.json and public.json (decimal strings). Calldata: the argument list of the
 * Solidity verifier that snarkjs exports (BN254; G2 coordinates swapped). Compressed: BLS12-381
 * only, A | B | C as 48 + 96 + 48 big-endian bytes with the flag bits of the ZCash encoding, which
 * is Filecoin's layout too.
 */
#ifndef PROVERQ_PROOF_H
#define PROVERQ_PROOF_H

#include "gpu/curve.h"
#include "gpu/error.h"

enum { PROOF_COMPRESSED_BYTES = 192 };

struct proof {
    enum curve_id curve;
    struct g1_point a;
    struct g2_point b;
    struct g1_point c;
};

/* The texts below are allocated and the caller frees them; NULL only when out of memory. */
char *proof_to_json(const struct proof *proof);
char *publics_to_json(const struct scalar *publics, size_t n);
char *proof_to_calldata(const struct proof *proof, const struct scalar *publics, size_t n);

/* Reads proof.json. Coordinates must be decimal strings (or JSON integers) below q; points are not
 * checked further, verify.h does that. `text` need not end with a NUL. */
MUST_USE enum err proof_from_json(const char *text, size_t size, struct proof *out,
                                  struct error *error);

/* Reads public.json: an array of decimal strings, each below r of `curve` (ERR_INPUT otherwise:
 * x + r would be an alias of x). The caller frees *publics. */
MUST_USE enum err publics_from_json(const char *text, size_t size, const struct curve_info *curve,
                                    struct scalar **publics, size_t *n, struct error *error);

/* ERR_UNSUPPORTED for a curve other than BLS12-381. */
MUST_USE enum err proof_compress(const struct proof *proof, uint8_t out[PROOF_COMPRESSED_BYTES],
                                 struct error *error);

#endif
