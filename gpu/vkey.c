#include "gpu/vkey.h"

#include "gpu/cpu/cpu_curve.h"
#include "gpu/decimal.h"
#include "gpu/point_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GT_COORDINATES = 12 };

static enum err vkey_new(const struct curve_info *curve, uint32_t n_public, struct vkey **out,
                         struct error *error) {
    struct vkey *vkey = calloc(1, sizeof *vkey);
    struct g1_point *ic = calloc((size_t)n_public + 1, sizeof *ic);
    if (vkey == NULL || ic == NULL) {
        free(vkey);
        free(ic);
        return error_set(error, ERR_HOST_MEMORY, "verification key: out of memory");
    }
    vkey->curve = curve;
    vkey->n_public = n_public;
    vkey->ic = ic;
    *out = vkey;
    return ERR_NONE;
}

void vkey_free(struct vkey *vkey) {
    if (vkey == NULL) return;
    free(vkey->ic);
    free(vkey);
}

enum err vkey_from_zkey(const struct zkey *zkey, struct vkey **out, struct error *error) {
    enum err rc;
    struct vkey *vkey = NULL;
    TRY(vkey_new(zkey->curve, zkey->n_public, &vkey, error));
    const struct cpu_curve *ops = cpu_curve(zkey->curve->id);
    ops->g1_from_zkey(zkey->alpha1, &vkey->alpha1);
    ops->g2_from_zkey(zkey->beta2, &vkey->beta2);
    ops->g2_from_zkey(zkey->gamma2, &vkey->gamma2);
    ops->g2_from_zkey(zkey->delta2, &vkey->delta2);
    for (size_t i = 0; i <= zkey->n_public; i++)
        ops->g1_from_zkey(zkey->ic + i * zkey_g1_bytes(zkey), &vkey->ic[i]);
    *out = vkey;
    return ERR_NONE;
fail:
    return rc;
}

/* --- reading JSON --- */

static enum err read_sizes(const json_t *json, struct vkey **out, struct error *error) {
    static const uint8_t max_n_public[4] = {0xff, 0xff, 0xff, 0xff};
    enum err rc;
    uint8_t le[4];
    if (!json_is_object(json))
        return error_set(error, ERR_INPUT, "verification key: not a JSON object");
    TRY(json_protocol(json, "verification key", error));
    const char *name = json_string_value(json_object_get(json, "curve"));
    const struct curve_info *curve = name == NULL ? NULL : curve_by_name(name);
    if (curve == NULL)
        return error_set(error, ERR_UNSUPPORTED,
                         "verification key: curve \"%.20s\" is neither bn128 nor bls12381",
                         name == NULL ? "(missing)" : name);
    TRY(json_number_below(json_object_get(json, "nPublic"), max_n_public, le, sizeof le,
                          "verification key: nPublic", error));
    uint32_t n_public =
        (uint32_t)le[0] | (uint32_t)le[1] << 8 | (uint32_t)le[2] << 16 | (uint32_t)le[3] << 24;
    size_t n_ic = json_array_size(json_object_get(json, "IC"));
    if (n_ic != (size_t)n_public + 1)
        return error_set(error, ERR_INPUT,
                         "verification key: IC has %zu points, nPublic %" PRIu32
                         " needs one more than that",
                         n_ic, n_public);
    return vkey_new(curve, n_public, out, error);
fail:
    return rc;
}

static enum err read_points(const json_t *json, struct vkey *vkey, struct error *error) {
    enum err rc;
    const struct curve_info *curve = vkey->curve;
    struct {
        const char *name;
        struct g2_point *point;
    } g2[] = {
        {"vk_beta_2", &vkey->beta2}, {"vk_gamma_2", &vkey->gamma2}, {"vk_delta_2", &vkey->delta2}};
    TRY(g1_from_json(curve, json_object_get(json, "vk_alpha_1"), "vk_alpha_1", &vkey->alpha1,
                     error));
    for (size_t i = 0; i < sizeof g2 / sizeof *g2; i++)
        TRY(g2_from_json(curve, json_object_get(json, g2[i].name), g2[i].name, g2[i].point, error));
    for (size_t i = 0; i <= vkey->n_public; i++) {
        char what[32];
        (void)snprintf(what, sizeof what, "IC[%zu]", i);
        TRY(g1_from_json(curve, json_array_get(json_object_get(json, "IC"), i), what, &vkey->ic[i],
                         error));
    }
    return ERR_NONE;
fail:
    return error_prefix(error, "verification key");
}

enum err vkey_from_json(const char *text, size_t size, struct vkey **out, struct error *error) {
    enum err rc;
    json_t *json;
    struct vkey *vkey = NULL;
    if (json_load_exact(text, size, &json, error) != ERR_NONE)
        return error_prefix(error, "verification key");
    TRY(read_sizes(json, &vkey, error));
    TRY(read_points(json, vkey, error));
    json_decref(json);
    *out = vkey;
    return ERR_NONE;
fail:
    json_decref(json);
    vkey_free(vkey);
    return rc;
}

/* --- writing JSON --- */

static json_t *alphabeta_to_json(const struct vkey *vkey) {
    uint8_t e[GT_COORDINATES][COORD_BYTES];
    json_t *n[GT_COORDINATES];
    cpu_curve(vkey->curve->id)->pairing(&vkey->alpha1, &vkey->beta2, e);
    for (size_t i = 0; i < GT_COORDINATES; i++)
        n[i] = json_from_number(e[i], vkey->curve->n8q);
    return json_pack("[[[oo][oo][oo]][[oo][oo][oo]]]", n[0], n[1], n[2], n[3], n[4], n[5], n[6],
                     n[7], n[8], n[9], n[10], n[11]);
}

static json_t *ic_to_json(const struct vkey *vkey) {
    json_t *array = json_array();
    for (size_t i = 0; i <= vkey->n_public; i++) {
        if (json_array_append_new(array, json_from_g1(vkey->curve, &vkey->ic[i])) == 0) continue;
        json_decref(array);
        return NULL;
    }
    return array;
}

char *vkey_to_json(const struct vkey *vkey) {
    const struct curve_info *curve = vkey->curve;
    json_t *json = json_pack(
        "{sssssIsosososososo}", "protocol", "groth16", "curve", curve->name, "nPublic",
        (json_int_t)vkey->n_public, "vk_alpha_1", json_from_g1(curve, &vkey->alpha1), "vk_beta_2",
        json_from_g2(curve, &vkey->beta2), "vk_gamma_2", json_from_g2(curve, &vkey->gamma2),
        "vk_delta_2", json_from_g2(curve, &vkey->delta2), "vk_alphabeta_12",
        alphabeta_to_json(vkey), "IC", ic_to_json(vkey));
    char *text = json == NULL ? NULL : json_dumps(json, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    json_decref(json);
    return text;
}

/* --- comparing --- */

enum err vkey_equal(const struct vkey *a, const struct vkey *b, struct error *error) {
    if (a->curve != b->curve)
        return error_set(error, ERR_MISMATCH, "the verification keys differ in curve: %s and %s",
                         a->curve->name, b->curve->name);
    if (a->n_public != b->n_public)
        return error_set(error, ERR_MISMATCH,
                         "the verification keys differ in nPublic: %" PRIu32 " and %" PRIu32,
                         a->n_public, b->n_public);
    const char *field = memcmp(&a->alpha1, &b->alpha1, sizeof a->alpha1) != 0   ? "vk_alpha_1"
                        : memcmp(&a->beta2, &b->beta2, sizeof a->beta2) != 0    ? "vk_beta_2"
                        : memcmp(&a->gamma2, &b->gamma2, sizeof a->gamma2) != 0 ? "vk_gamma_2"
                        : memcmp(&a->delta2, &b->delta2, sizeof a->delta2) != 0 ? "vk_delta_2"
                                                                                : NULL;
    if (field != NULL)
        return error_set(error, ERR_MISMATCH, "the verification keys differ in %s", field);
    for (size_t i = 0; i <= a->n_public; i++)
        if (memcmp(&a->ic[i], &b->ic[i], sizeof *a->ic) != 0)
            return error_set(error, ERR_MISMATCH, "the verification keys differ in IC[%zu]", i);
    return ERR_NONE;
}
