#include "gpu/point_json.h"

#include "gpu/decimal.h"

#include <stdio.h>
#include <string.h>

enum { AFFINE = 2, PROJECTIVE = 3, FP2 = 2, WHAT_BYTES = 64, PART_BYTES = WHAT_BYTES + 24 };

json_t *json_from_number(const uint8_t *le, size_t n) {
    char text[DECIMAL_MAX + 1];
    return decimal_from_le(le, n, text) ? json_string(text) : NULL;
}

json_t *json_from_g1(const struct curve_info *curve, const struct g1_point *p) {
    if (le_is_zero((const uint8_t *)p, sizeof *p)) return json_pack("[sss]", "0", "1", "0");
    return json_pack("[oos]", json_from_number(p->x, curve->n8q),
                     json_from_number(p->y, curve->n8q), "1");
}

json_t *json_from_g2(const struct curve_info *curve, const struct g2_point *p) {
    if (le_is_zero((const uint8_t *)p, sizeof *p))
        return json_pack("[[ss][ss][ss]]", "0", "0", "1", "0", "0", "0");
    size_t n = curve->n8q;
    return json_pack("[[oo][oo][ss]]", json_from_number(p->x[0], n), json_from_number(p->x[1], n),
                     json_from_number(p->y[0], n), json_from_number(p->y[1], n), "1", "0");
}

enum err json_protocol(const json_t *json, const char *what, struct error *error) {
    const json_t *protocol = json_object_get(json, "protocol");
    const char *name = json_string_value(protocol);
    if (protocol == NULL || (name != NULL && strcmp(name, "groth16") == 0)) return ERR_NONE;
    return error_set(error, ERR_UNSUPPORTED, "%s: protocol \"%.20s\" is not groth16", what,
                     name == NULL ? "(not a string)" : name);
}

static enum err check_shape(const json_t *json, size_t least, size_t most, const char *what,
                            struct error *error) {
    if (!json_is_array(json))
        return error_set(error, ERR_INPUT, "%s: %s, expected an array", what,
                         json == NULL ? "missing" : "not an array");
    size_t n = json_array_size(json);
    if (n < least || n > most)
        return error_set(error, ERR_INPUT, "%s: an array of %zu, expected %zu", what, n, most);
    return ERR_NONE;
}

/* A coordinate in Fp (degree 1, one number) or Fp2 (degree 2, an array). */
static enum err read_coordinate(const struct curve_info *curve, const json_t *json, size_t degree,
                                const char *what, uint8_t (*out)[COORD_BYTES],
                                struct error *error) {
    enum err rc;
    char part[PART_BYTES];
    if (degree == 1) return json_number_below(json, curve->q, out[0], curve->n8q, what, error);
    TRY(check_shape(json, FP2, FP2, what, error));
    for (size_t i = 0; i < FP2; i++) {
        (void)snprintf(part, sizeof part, "%s[%zu]", what, i);
        TRY(json_number_below(json_array_get(json, i), curve->q, out[i], curve->n8q, part, error));
    }
    return ERR_NONE;
fail:
    return rc;
}

/* x and y to coordinates[0..degree) and [degree..2*degree), all zero for infinity. */
static enum err read_point(const struct curve_info *curve, const json_t *json, size_t degree,
                           const char *what, uint8_t coordinates[2 * FP2][COORD_BYTES],
                           struct error *error) {
    enum err rc;
    char part[WHAT_BYTES];
    uint8_t z[FP2][COORD_BYTES] = {{1}};
    memset(coordinates, 0, 2 * FP2 * COORD_BYTES);
    TRY(check_shape(json, AFFINE, PROJECTIVE, what, error));
    for (size_t i = 0; i < json_array_size(json); i++) {
        (void)snprintf(part, sizeof part, "%s[%zu]", what, i);
        TRY(read_coordinate(curve, json_array_get(json, i), degree, part,
                            i < AFFINE ? coordinates + i * degree : z, error));
    }
    if (z[0][0] > 1 || !le_is_zero(z[0] + 1, sizeof z - 1))
        return error_set(
            error, ERR_INPUT,
            "%s: its last coordinate is neither 1 nor 0; give the point in affine form", what);
    if (z[0][0] == 0) memset(coordinates, 0, 2 * FP2 * COORD_BYTES);
    return ERR_NONE;
fail:
    return rc;
}

enum err g1_from_json(const struct curve_info *curve, const json_t *json, const char *what,
                      struct g1_point *out, struct error *error) {
    enum err rc;
    uint8_t coordinates[2 * FP2][COORD_BYTES];
    TRY(read_point(curve, json, 1, what, coordinates, error));
    memcpy(out->x, coordinates[0], sizeof out->x);
    memcpy(out->y, coordinates[1], sizeof out->y);
    return ERR_NONE;
fail:
    return rc;
}

enum err g2_from_json(const struct curve_info *curve, const json_t *json, const char *what,
                      struct g2_point *out, struct error *error) {
    enum err rc;
    uint8_t coordinates[2 * FP2][COORD_BYTES];
    TRY(read_point(curve, json, FP2, what, coordinates, error));
    memcpy(out->x, coordinates[0], sizeof out->x);
    memcpy(out->y, coordinates[FP2], sizeof out->y);
    return ERR_NONE;
fail:
    return rc;
}
