/* The host tail of a proof; see backend.h. Groth, "On the Size of Pairing-based Non-interactive
 * Arguments", 2016, section 3.2. */
#include "gpu/backend.h"

#include "gpu/cpu/cpu_curve.h"

#include <string.h>

/* sum += k * p. */
static void g1_add_multiple(const struct cpu_curve *curve, struct g1_point *sum,
                            const struct g1_point *p, const struct scalar *k) {
    struct g1_point product;
    curve->g1_mul(p, k, &product);
    curve->g1_add(sum, &product, sum);
}

/* constant + k * delta */
static void blind_g1(const struct cpu_curve *curve, const uint8_t *constant,
                     const struct g1_point *delta, const struct scalar *k, struct g1_point *out) {
    curve->g1_from_zkey(constant, out);
    g1_add_multiple(curve, out, delta, k);
}

static void blind_g2(const struct cpu_curve *curve, const uint8_t *constant, const uint8_t *delta,
                     const struct scalar *k, struct g2_point *out) {
    struct g2_point multiple;
    curve->g2_from_zkey(delta, &multiple);
    curve->g2_mul(&multiple, k, &multiple);
    curve->g2_from_zkey(constant, out);
    curve->g2_add(out, &multiple, out);
}

void proof_blind(const struct zkey *zkey, const struct blinding *blinding, struct blinded *out) {
    const struct cpu_curve *curve = cpu_curve(zkey->curve->id);
    struct g1_point delta, minus_delta;
    struct scalar rs;
    curve->g1_from_zkey(zkey->delta1, &delta);
    curve->g1_neg(&delta, &minus_delta);
    curve->fr_mul(&blinding->r, &blinding->s, &rs);
    blind_g1(curve, zkey->alpha1, &delta, &blinding->r, &out->a);
    blind_g1(curve, zkey->beta1, &delta, &blinding->s, &out->b1);
    blind_g2(curve, zkey->beta2, zkey->delta2, &blinding->s, &out->b);
    curve->g1_mul(&minus_delta, &rs, &out->minus_rs_delta);
    explicit_bzero(&rs, sizeof rs);
}

void proof_complete(const struct zkey *zkey, const struct proof_sums *sums,
                    const struct blinding *blinding, const struct blinded *blinded,
                    struct proof *out) {
    const struct cpu_curve *curve = cpu_curve(zkey->curve->id);
    struct g1_point b1;
    memset(out, 0, sizeof *out);
    out->curve = zkey->curve->id;
    curve->g1_add(&blinded->a, &sums->a, &out->a);
    curve->g1_add(&blinded->b1, &sums->b1, &b1);
    curve->g2_add(&blinded->b, &sums->b2, &out->b);
    curve->g1_add(&sums->c, &sums->h, &out->c);
    curve->g1_add(&out->c, &blinded->minus_rs_delta, &out->c);
    g1_add_multiple(curve, &out->c, &out->a, &blinding->s);
    g1_add_multiple(curve, &out->c, &b1, &blinding->r);
}

void proof_assemble(const struct zkey *zkey, const struct proof_sums *sums,
                    const struct blinding *blinding, struct proof *out) {
    struct blinded blinded;
    proof_blind(zkey, blinding, &blinded);
    proof_complete(zkey, sums, blinding, &blinded, out);
    explicit_bzero(&blinded, sizeof blinded);
}
