/* Groth16 verification keys: derived from a zkey, or read from snarkjs's verification_key.json. */
#ifndef PROVERQ_VKEY_H
#define PROVERQ_VKEY_H

#include "gpu/curve.h"
#include "gpu/error.h"
#include "gpu/zkey.h"

struct vkey {
    const struct curve_info *curve;
    uint32_t n_public;
    struct g1_point alpha1;
    struct g2_point beta2, gamma2, delta2;
    struct g1_point *ic; /* n_public + 1 */
};

/* The caller frees each; NULL may be freed. */
MUST_USE enum err vkey_from_zkey(const struct zkey *zkey, struct vkey **out, struct error *error);
MUST_USE enum err vkey_from_json(const char *text, size_t size, struct vkey **out,
                                 struct error *error);
void vkey_free(struct vkey *vkey);

/* snarkjs's JSON (vk_alphabeta_12 included, so that snarkjs takes it). The caller frees it. */
char *vkey_to_json(const struct vkey *vkey);

/* ERR_MISMATCH, naming the first field that differs, unless both are the same key. */
MUST_USE enum err vkey_equal(const struct vkey *a, const struct vkey *b, struct error *error);

#endif
