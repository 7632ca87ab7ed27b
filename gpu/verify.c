/* Infinity: A and B may not be. Each is a constant of the key plus a blinding term, so an honest
 * one is at infinity with probability 1/r, and nobody without the setup's secrets can complete a
 * proof that has it. C may be: a prover that does not blind makes such a C for a circuit whose
 * private part vanishes, and it is sound (Groth 2016, theorem 1, puts no restriction on the
 * elements). */
#include "gpu/verify.h"

#include "gpu/cpu/cpu_curve.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *fault_text(enum point_fault fault) {
    return fault == POINT_RANGE       ? "has a coordinate that is not below q"
           : fault == POINT_OFF_CURVE ? "is not on the curve"
                                      : "is not in the subgroup of order r";
}

/* A point that is good in its group; `code` is what a bad one means. */
struct check {
    const char *name;
    const struct g1_point *g1; /* or NULL */
    const struct g2_point *g2;
    bool may_be_infinity;
};

static enum err check_points(const struct cpu_curve *ops, const struct check *checks, size_t n,
                             enum err code, struct error *error) {
    for (size_t i = 0; i < n; i++) {
        const struct check *c = &checks[i];
        enum point_fault fault = c->g1 != NULL ? ops->g1_check(c->g1) : ops->g2_check(c->g2);
        if (fault != POINT_OK) return error_set(error, code, "%s %s", c->name, fault_text(fault));
        bool is_infinity = c->g1 != NULL ? le_is_zero((const uint8_t *)c->g1, sizeof *c->g1)
                                         : le_is_zero((const uint8_t *)c->g2, sizeof *c->g2);
        if (is_infinity && !c->may_be_infinity)
            return error_set(error, code, "%s is the point at infinity", c->name);
    }
    return ERR_NONE;
}

static enum err check_key(const struct cpu_curve *ops, const struct vkey *vkey,
                          bool may_be_forgeable, struct error *error) {
    const struct check constants[] = {{"vk_alpha_1", &vkey->alpha1, NULL, false},
                                      {"vk_beta_2", NULL, &vkey->beta2, false},
                                      {"vk_gamma_2", NULL, &vkey->gamma2, false},
                                      {"vk_delta_2", NULL, &vkey->delta2, false}};
    enum err rc;
    TRY(check_points(ops, constants, sizeof constants / sizeof *constants, ERR_KEY, error));
    for (size_t i = 0; i <= vkey->n_public; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "IC[%zu]", i);
        const struct check ic = {name, &vkey->ic[i], NULL, true};
        TRY(check_points(ops, &ic, 1, ERR_KEY, error));
    }
    if (may_be_forgeable) return ERR_NONE;
    if (memcmp(vkey->gamma2.x, vkey->delta2.x, sizeof vkey->gamma2.x) != 0) return ERR_NONE;
    (void)error_set(error, ERR_KEY,
                    "gamma equals delta (or its negative), so anyone can forge proofs; finish the "
                    "key's second phase with `snarkjs zkey contribute`");
fail:
    return error_prefix(error, "verification key");
}

static enum err check_publics(const struct vkey *vkey, const struct scalar *publics,
                              size_t n_publics, struct error *error) {
    if (n_publics != vkey->n_public)
        return error_set(error, ERR_INPUT,
                         "%zu public signals given, the key has %" PRIu32
                         "; they are of different circuits",
                         n_publics, vkey->n_public);
    for (size_t i = 0; i < n_publics; i++)
        if (!le_less(publics[i].le, vkey->curve->r, SCALAR_BYTES))
            return error_set(error, ERR_INPUT,
                             "public signal %zu is not below r, an alias of a smaller value", i);
    return ERR_NONE;
}

/* IC[0] + sum publics[i] * IC[i + 1] */
static enum err sum_publics(const struct cpu_curve *ops, const struct vkey *vkey,
                            const struct scalar *publics, struct g1_point *out,
                            struct error *error) {
    enum err rc = ERR_NONE;
    size_t n = vkey->n_public, point_bytes = 2 * vkey->curve->n8q;
    uint8_t *bases = malloc(n * point_bytes + 1);
    if (bases == NULL) return error_set(error, ERR_HOST_MEMORY, "verification: out of memory");
    for (size_t i = 0; i < n; i++)
        ops->g1_to_zkey(&vkey->ic[i + 1], bases + i * point_bytes);
    TRY(ops->msm_g1(NULL, bases, publics, n, out, error));
    ops->g1_add(out, &vkey->ic[0], out);
fail:
    free(bases);
    return rc;
}

static enum err check_proof(const struct vkey *vkey, bool may_be_forgeable,
                            const struct scalar *publics, size_t n_publics,
                            const struct proof *proof, struct error *error) {
    enum err rc;
    if (proof->curve != vkey->curve->id)
        return error_set(error, ERR_MISMATCH, "the proof is of curve %s, the key of %s",
                         curve_info(proof->curve)->name, vkey->curve->name);
    const struct cpu_curve *ops = cpu_curve(vkey->curve->id);
    const struct check points[] = {{"proof: pi_a", &proof->a, NULL, false},
                                   {"proof: pi_b", NULL, &proof->b, false},
                                   {"proof: pi_c", &proof->c, NULL, true}};
    TRY(check_key(ops, vkey, may_be_forgeable, error));
    TRY(check_publics(vkey, publics, n_publics, error));
    TRY(check_points(ops, points, sizeof points / sizeof *points, ERR_INVALID_PROOF, error));

    struct g1_point p[4] = {{.x = {0}}, vkey->alpha1, {.x = {0}}, proof->c};
    const struct g2_point q[4] = {proof->b, vkey->beta2, vkey->gamma2, vkey->delta2};
    ops->g1_neg(&proof->a, &p[0]);
    TRY(sum_publics(ops, vkey, publics, &p[2], error));
    if (!ops->pairing_product_is_one(p, q, 4))
        return error_set(error, ERR_INVALID_PROOF,
                         "the proof is not valid for this key and these public signals");
    return ERR_NONE;
fail:
    return rc;
}

enum err verify(const struct vkey *vkey, const struct scalar *publics, size_t n_publics,
                const struct proof *proof, struct error *error) {
    return check_proof(vkey, false, publics, n_publics, proof, error);
}

enum err verify_own(const struct vkey *vkey, const struct scalar *publics, size_t n_publics,
                    const struct proof *proof, struct error *error) {
    return check_proof(vkey, true, publics, n_publics, proof, error);
}
