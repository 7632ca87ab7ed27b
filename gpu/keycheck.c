#include "gpu/keycheck.h"

#include "gpu/cpu/cpu_curve.h"

#include <string.h>

static const char *fault_text(enum point_fault fault) {
    switch (fault) {
    case POINT_RANGE:
        return "has a coordinate that is not below q";
    case POINT_OFF_CURVE:
        return "is not on the curve";
    case POINT_OFF_SUBGROUP:
        return "is not in the subgroup of order r";
    case POINT_OK:
        break;
    }
    return "is good";
}

static enum err check_points(const struct zkey *zkey, bool is_g2, const char *section,
                             const uint8_t *points, size_t n, struct error *error) {
    const struct cpu_curve *ops = cpu_curve(zkey->curve->id);
    enum point_fault fault = POINT_OK;
    size_t bad =
        (is_g2 ? ops->g2_check_many : ops->g1_check_many)(pool_shared(), points, n, &fault);
    if (bad == n) return ERR_NONE;
    return error_set(error, ERR_KEY,
                     "the proving key is bad: point %zu of section %s %s; get the key again and "
                     "compare its hash with its maker's",
                     bad, section, fault_text(fault));
}

/* The constant points: good, and none of them infinity, which would make part of the pairing
 * equation vanish. */
static enum err check_constants(const struct zkey *zkey, struct error *error) {
    struct {
        const char *name;
        const uint8_t *point;
        bool is_g2;
    } constants[] = {{"alpha1", zkey->alpha1, false}, {"beta1", zkey->beta1, false},
                     {"delta1", zkey->delta1, false}, {"beta2", zkey->beta2, true},
                     {"gamma2", zkey->gamma2, true},  {"delta2", zkey->delta2, true}};
    enum err rc;
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        bool is_g2 = constants[i].is_g2;
        TRY(check_points(zkey, is_g2, constants[i].name, constants[i].point, 1, error));
        if (le_is_zero(constants[i].point, is_g2 ? zkey_g2_bytes(zkey) : zkey_g1_bytes(zkey)))
            return error_set(error, ERR_KEY, "the proving key is bad: %s is the point at infinity",
                             constants[i].name);
    }
    return ERR_NONE;
fail:
    return rc;
}

static enum err check_sections(const struct zkey *zkey, struct error *error) {
    enum err rc;
    size_t n_public = (size_t)zkey->n_public + 1;
    TRY(check_points(zkey, false, "3 (IC)", zkey->ic, n_public, error));
    TRY(check_points(zkey, false, "5 (A)", zkey->a, zkey->n_vars, error));
    TRY(check_points(zkey, false, "6 (B1)", zkey->b1, zkey->n_vars, error));
    TRY(check_points(zkey, true, "7 (B2)", zkey->b2, zkey->n_vars, error));
    TRY(check_points(zkey, false, "8 (C)", zkey->c, zkey->n_vars - n_public, error));
    TRY(check_points(zkey, false, "9 (H)", zkey->h, zkey->domain_size, error));
    return ERR_NONE;
fail:
    return rc;
}

/* e(p1, G2) = e(G1, p2): both points have the same discrete logarithm. */
static enum err check_same_exponent(const struct zkey *zkey, const char *name, const uint8_t *g1,
                                    const uint8_t *g2, struct error *error) {
    const struct cpu_curve *ops = cpu_curve(zkey->curve->id);
    struct g1_point p[2];
    struct g2_point q[2];
    ops->g1_from_zkey(g1, &p[0]);
    ops->g1_neg(&p[0], &p[0]);
    q[0] = *ops->g2_generator;
    p[1] = *ops->g1_generator;
    ops->g2_from_zkey(g2, &q[1]);
    if (ops->pairing_product_is_one(p, q, 2)) return ERR_NONE;
    return error_set(error, ERR_KEY,
                     "the proving key is bad: e(%s1, G2) is not e(G1, %s2); get the key again and "
                     "compare its hash with its maker's",
                     name, name);
}

enum err keycheck(const struct zkey *zkey, bool *forgeable, struct error *error) {
    enum err rc;
    TRY(check_constants(zkey, error));
    TRY(check_sections(zkey, error));
    TRY(check_same_exponent(zkey, "beta", zkey->beta1, zkey->beta2, error));
    TRY(check_same_exponent(zkey, "delta", zkey->delta1, zkey->delta2, error));
    /* Equal x: delta is gamma or its negative, and a forger can cancel the public part with C. */
    *forgeable = memcmp(zkey->gamma2, zkey->delta2, zkey_g2_bytes(zkey) / 2) == 0;
    return ERR_NONE;
fail:
    return rc;
}
