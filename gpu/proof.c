#include "gpu/proof.h"

#include "gpu/cpu/cpu_curve.h"
#include "gpu/decimal.h"
#include "gpu/point_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVM_WORD_BYTES = 32 };

static char *dump_and_drop(json_t *json) {
    char *text = json == NULL ? NULL : json_dumps(json, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    json_decref(json);
    return text;
}

char *proof_to_json(const struct proof *proof) {
    const struct curve_info *curve = curve_info(proof->curve);
    return dump_and_drop(json_pack("{sososossss}", "pi_a", json_from_g1(curve, &proof->a), "pi_b",
                                   json_from_g2(curve, &proof->b), "pi_c",
                                   json_from_g1(curve, &proof->c), "protocol", "groth16", "curve",
                                   curve->name));
}

char *publics_to_json(const struct scalar *publics, size_t n) {
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++) {
        if (json_array_append_new(array, json_from_number(publics[i].le, SCALAR_BYTES)) == 0)
            continue;
        json_decref(array);
        return NULL;
    }
    return dump_and_drop(array);
}

/* --- calldata --- */

/* "0x..." with at least a word's digits, as snarkjs pads: a coordinate of BLS12-381 needs more. */
static void print_hex(FILE *out, const uint8_t *le, size_t n) {
    while (n > EVM_WORD_BYTES && le[n - 1] == 0)
        n--;
    (void)fputs("\"0x", out);
    for (size_t i = n; i-- > 0;)
        (void)fprintf(out, i + 1 == n && n > EVM_WORD_BYTES ? "%x" : "%02x", le[i]);
    (void)fputc('"', out);
}

static void print_pair(FILE *out, const uint8_t *first, const uint8_t *second) {
    (void)fputc('[', out);
    print_hex(out, first, COORD_BYTES);
    (void)fputs(", ", out);
    print_hex(out, second, COORD_BYTES);
    (void)fputc(']', out);
}

static void print_calldata(FILE *out, const struct proof *proof, const struct scalar *publics,
                           size_t n) {
    print_pair(out, proof->a.x, proof->a.y);
    (void)fputs(",[", out);
    print_pair(out, proof->b.x[1], proof->b.x[0]);
    (void)fputc(',', out);
    print_pair(out, proof->b.y[1], proof->b.y[0]);
    (void)fputs("],", out);
    print_pair(out, proof->c.x, proof->c.y);
    (void)fputs(",[", out);
    for (size_t i = 0; i < n; i++) {
        if (i > 0) (void)fputc(',', out);
        print_hex(out, publics[i].le, SCALAR_BYTES);
    }
    (void)fputc(']', out);
}

char *proof_to_calldata(const struct proof *proof, const struct scalar *publics, size_t n) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) return NULL;
    print_calldata(out, proof, publics, n);
    bool failed = ferror(out) != 0;
    if (fclose(out) == 0 && !failed) return text;
    free(text);
    return NULL;
}

/* --- reading --- */

/* A proof without "curve" is of bn128: provers that know only one do not write it. */
static enum err read_curve(const json_t *json, struct proof *out, struct error *error) {
    const json_t *curve = json_object_get(json, "curve");
    const char *name = curve == NULL ? "bn128" : json_string_value(curve);
    const struct curve_info *info = name == NULL ? NULL : curve_by_name(name);
    if (info == NULL)
        return error_set(error, ERR_UNSUPPORTED,
                         "proof: curve \"%.20s\" is neither bn128 nor bls12381",
                         name == NULL ? "(not a string)" : name);
    out->curve = info->id;
    return ERR_NONE;
}

static enum err read_proof(const json_t *json, struct proof *out, struct error *error) {
    enum err rc;
    if (!json_is_object(json)) return error_set(error, ERR_INPUT, "proof: not a JSON object");
    TRY(json_protocol(json, "proof", error));
    TRY(read_curve(json, out, error));
    const struct curve_info *curve = curve_info(out->curve);
    TRY(g1_from_json(curve, json_object_get(json, "pi_a"), "proof: pi_a", &out->a, error));
    TRY(g2_from_json(curve, json_object_get(json, "pi_b"), "proof: pi_b", &out->b, error));
    TRY(g1_from_json(curve, json_object_get(json, "pi_c"), "proof: pi_c", &out->c, error));
    return ERR_NONE;
fail:
    return rc;
}

enum err proof_from_json(const char *text, size_t size, struct proof *out, struct error *error) {
    enum err rc;
    json_t *json;
    if (json_load_exact(text, size, &json, error) != ERR_NONE) return error_prefix(error, "proof");
    rc = read_proof(json, out, error);
    json_decref(json);
    return rc;
}

static enum err read_publics(const json_t *json, const struct curve_info *curve,
                             struct scalar **publics, size_t *n, struct error *error) {
    enum err rc;
    char what[48];
    if (!json_is_array(json))
        return error_set(error, ERR_INPUT, "public signals: not a JSON array");
    *n = json_array_size(json);
    *publics = calloc(*n + 1, sizeof **publics);
    if (*publics == NULL) return error_set(error, ERR_HOST_MEMORY, "public signals: out of memory");
    for (size_t i = 0; i < *n; i++) {
        (void)snprintf(what, sizeof what, "public signal %zu", i);
        TRY(json_number_below(json_array_get(json, i), curve->r, (*publics)[i].le, SCALAR_BYTES,
                              what, error));
    }
    return ERR_NONE;
fail:
    free(*publics);
    *publics = NULL;
    return rc;
}

enum err publics_from_json(const char *text, size_t size, const struct curve_info *curve,
                           struct scalar **publics, size_t *n, struct error *error) {
    enum err rc;
    json_t *json;
    if (json_load_exact(text, size, &json, error) != ERR_NONE)
        return error_prefix(error, "public signals");
    rc = read_publics(json, curve, publics, n, error);
    json_decref(json);
    return rc;
}

/* --- compressed form --- */

enum { FLAG_COMPRESSED = 0x80, FLAG_INFINITY = 0x40, FLAG_LARGER_Y = 0x20 };

/* x of n coordinates, the last first, each big-endian, with the flags in the first byte. */
static void put_compressed(const uint8_t (*x)[COORD_BYTES], size_t n, bool is_infinity,
                           bool is_larger, uint8_t *out) {
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < COORD_BYTES; j++)
            out[i * COORD_BYTES + j] = x[n - 1 - i][COORD_BYTES - 1 - j];
    out[0] |= (uint8_t)(FLAG_COMPRESSED | (is_infinity ? FLAG_INFINITY : 0) |
                        (is_larger ? FLAG_LARGER_Y : 0));
}

enum err proof_compress(const struct proof *proof, uint8_t out[PROOF_COMPRESSED_BYTES],
                        struct error *error) {
    if (proof->curve != CURVE_BLS12_381)
        return error_set(error, ERR_UNSUPPORTED, "only bls12381 proofs have a compressed form");
    const struct cpu_curve *ops = cpu_curve(proof->curve);
    const struct g1_point *g1[2] = {&proof->a, &proof->c};
    uint8_t *g1_out[2] = {out, out + 3 * COORD_BYTES};
    for (size_t i = 0; i < 2; i++) {
        bool is_infinity = le_is_zero((const uint8_t *)g1[i], sizeof *g1[i]);
        put_compressed(&g1[i]->x, 1, is_infinity, !is_infinity && ops->g1_y_is_larger(g1[i]),
                       g1_out[i]);
    }
    bool is_infinity = le_is_zero((const uint8_t *)&proof->b, sizeof proof->b);
    put_compressed(proof->b.x, 2, is_infinity, !is_infinity && ops->g2_y_is_larger(&proof->b),
                   out + COORD_BYTES);
    return ERR_NONE;
}
