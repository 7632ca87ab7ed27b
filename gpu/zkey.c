#include "gpu/zkey.h"

#include "gpu/container.h"
#include "gpu/cpu/pool.h"
#include "gpu/mapped_file.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum section {
    SECTION_PROTOCOL = 1,
    SECTION_HEADER,
    SECTION_IC,
    SECTION_COEFFICIENTS,
    SECTION_A,
    SECTION_B1,
    SECTION_B2,
    SECTION_C,
    SECTION_H,
    SECTION_CONTRIBUTIONS,
};
enum { ZKEY_VERSION = 1, PROTOCOL_GROTH16 = 1, PROTOCOL_PLONK = 2, PROTOCOL_FFLONK = 10 };
enum { HASH_BYTES = 64, PARAMETER_NAME = 1, COEFFICIENT_CHUNK = 1 << 14 };

static enum err read_protocol(const struct container *c, struct error *error) {
    enum err rc;
    struct reader reader;
    uint32_t protocol;
    TRY(reader_open(c, SECTION_PROTOCOL, "protocol", &reader, error));
    TRY(reader_u32(&reader, &protocol, error));
    if (protocol != PROTOCOL_GROTH16)
        return reader_error(&reader, ERR_UNSUPPORTED, error,
                            "protocol %" PRIu32 " (%s) is not Groth16 (1); make the key with "
                            "`snarkjs groth16 setup`",
                            protocol,
                            protocol == PROTOCOL_PLONK    ? "PLONK"
                            : protocol == PROTOCOL_FFLONK ? "FFLONK"
                                                          : "unknown");
    TRY(reader_end(&reader, error));
    return ERR_NONE;
fail:
    return rc;
}

static const struct curve_info *curve_by_coordinate_modulus(const uint8_t *q, size_t n) {
    for (int id = 0; id < CURVE_COUNT; id++) {
        const struct curve_info *curve = curve_info((enum curve_id)id);
        if (n == curve->n8q && memcmp(q, curve->q, n) == 0) return curve;
    }
    return NULL;
}

/* q and r, which must be those of one curve. */
static enum err read_curve(struct reader *reader, struct zkey *key, struct error *error) {
    enum err rc;
    uint32_t n8q;
    const uint8_t *q;
    const struct curve_info *curve_of_r;
    TRY(reader_u32(reader, &n8q, error));
    TRY(reader_bytes(reader, n8q, 1, &q, error));
    key->curve = curve_by_coordinate_modulus(q, n8q);
    if (key->curve == NULL)
        return reader_error(reader, ERR_UNSUPPORTED, error,
                            "a coordinate modulus of %" PRIu32
                            " bytes that is neither bn128's nor bls12381's",
                            n8q);
    TRY(reader_scalar_modulus(reader, &curve_of_r, error));
    if (curve_of_r != key->curve)
        return reader_error(reader, ERR_UNSUPPORTED, error,
                            "the coordinate modulus is that of %s, the scalar modulus that of %s",
                            key->curve->name, curve_of_r->name);
    return ERR_NONE;
fail:
    return rc;
}

static enum err check_sizes(const struct reader *reader, struct zkey *key, struct error *error) {
    if (key->n_public >= key->n_vars)
        return reader_error(reader, ERR_FORMAT, error,
                            "%" PRIu32 " public signals and the constant 1 do not fit into %" PRIu32
                            " signals; the key is corrupt",
                            key->n_public, key->n_vars);
    uint32_t n = key->domain_size;
    if (n < 2 || (n & (n - 1)) != 0)
        return reader_error(reader, ERR_FORMAT, error,
                            "domain size %" PRIu32 " is not a power of two from 2 on; the key is "
                            "corrupt",
                            n);
    key->log_domain = (unsigned)__builtin_ctz(n);
    if (key->log_domain > key->curve->two_adicity)
        return reader_error(
            reader, ERR_FORMAT, error,
            "domain size 2^%u is beyond the largest of %s, 2^%u; the key is corrupt",
            key->log_domain, key->curve->name, key->curve->two_adicity);
    return ERR_NONE;
}

static enum err read_header(const struct container *c, struct zkey *key, struct error *error) {
    enum err rc;
    struct reader reader;
    TRY(reader_open(c, SECTION_HEADER, "header", &reader, error));
    TRY(read_curve(&reader, key, error));
    TRY(reader_u32(&reader, &key->n_vars, error));
    TRY(reader_u32(&reader, &key->n_public, error));
    TRY(reader_u32(&reader, &key->domain_size, error));
    TRY(check_sizes(&reader, key, error));
    TRY(reader_bytes(&reader, 1, zkey_g1_bytes(key), &key->alpha1, error));
    TRY(reader_bytes(&reader, 1, zkey_g1_bytes(key), &key->beta1, error));
    TRY(reader_bytes(&reader, 1, zkey_g2_bytes(key), &key->beta2, error));
    TRY(reader_bytes(&reader, 1, zkey_g2_bytes(key), &key->gamma2, error));
    TRY(reader_bytes(&reader, 1, zkey_g1_bytes(key), &key->delta1, error));
    TRY(reader_bytes(&reader, 1, zkey_g2_bytes(key), &key->delta2, error));
    TRY(reader_end(&reader, error));
    return ERR_NONE;
fail:
    return rc;
}

/* --- coefficients --- */

static const char *row_fault(const struct zkey *key, const uint8_t *row) {
    if (le_u32(row) > 1) return "the matrix is neither 0 (A) nor 1 (B)";
    if (le_u32(row + 4) >= key->domain_size) return "the constraint is not below the domain size";
    if (le_u32(row + 8) >= key->n_vars) return "the signal is not below the number of signals";
    if (!le_less(row + 12, key->curve->r, SCALAR_BYTES)) return "the value is not below r";
    return NULL;
}

struct coefficient_check {
    const struct zkey *key;
    atomic_size_t first_bad;
};

static void check_rows(void *arg, size_t begin, size_t end, unsigned worker) {
    (void)worker;
    struct coefficient_check *check = arg;
    for (size_t i = begin; i < end; i++) {
        if (row_fault(check->key, check->key->coefficients + i * ZKEY_COEFFICIENT_BYTES) == NULL)
            continue;
        size_t first = atomic_load(&check->first_bad);
        while (i < first && !atomic_compare_exchange_weak(&check->first_bad, &first, i)) {
        }
        return;
    }
}

static enum err read_coefficients(const struct container *c, struct zkey *key,
                                  struct error *error) {
    enum err rc;
    struct reader reader;
    TRY(reader_open(c, SECTION_COEFFICIENTS, "coefficients", &reader, error));
    TRY(reader_u32(&reader, &key->n_coefficients, error));
    struct reader rows = reader;
    TRY(reader_bytes(&reader, key->n_coefficients, ZKEY_COEFFICIENT_BYTES, &key->coefficients,
                     error));
    TRY(reader_end(&reader, error));

    struct coefficient_check check = {.key = key, .first_bad = key->n_coefficients};
    pool_for(pool_shared(), key->n_coefficients, COEFFICIENT_CHUNK, check_rows, &check);
    size_t bad = atomic_load(&check.first_bad);
    if (bad == key->n_coefficients) return ERR_NONE;
    const uint8_t *row = key->coefficients + bad * ZKEY_COEFFICIENT_BYTES;
    rows.position += bad * ZKEY_COEFFICIENT_BYTES;
    return reader_error(&rows, ERR_FORMAT, error,
                        "coefficient %zu (matrix %" PRIu32 ", constraint %" PRIu32
                        ", signal %" PRIu32 "): %s; the key is corrupt",
                        bad, le_u32(row), le_u32(row + 4), le_u32(row + 8), row_fault(key, row));
fail:
    return rc;
}

/* --- points --- */

static enum err read_points(const struct container *c, enum section id, const char *name,
                            uint64_t n, size_t point_bytes, const uint8_t **out,
                            struct error *error) {
    enum err rc;
    struct reader reader;
    TRY(reader_open(c, id, name, &reader, error));
    TRY(reader_bytes(&reader, n, point_bytes, out, error));
    TRY(reader_end(&reader, error));
    return ERR_NONE;
fail:
    return rc;
}

static enum err read_all_points(const struct container *c, struct zkey *key, struct error *error) {
    enum err rc;
    size_t g1 = zkey_g1_bytes(key), g2 = zkey_g2_bytes(key);
    uint64_t n_public = (uint64_t)key->n_public + 1, n = key->n_vars;
    TRY(read_points(c, SECTION_IC, "IC", n_public, g1, &key->ic, error));
    TRY(read_points(c, SECTION_A, "A", n, g1, &key->a, error));
    TRY(read_points(c, SECTION_B1, "B1", n, g1, &key->b1, error));
    TRY(read_points(c, SECTION_B2, "B2", n, g2, &key->b2, error));
    TRY(read_points(c, SECTION_C, "C", n - n_public, g1, &key->c, error));
    TRY(read_points(c, SECTION_H, "H", key->domain_size, g1, &key->h, error));
    return ERR_NONE;
fail:
    return rc;
}

/* --- contributions --- */

/* Whether the parameters of a contribution hold our mark: {u8 type, u8 length, bytes}, the name
 * first as its type is the lowest. */
static bool is_our_name(const uint8_t *parameters, uint32_t n) {
    size_t length = sizeof ZKEY_INSECURE_NAME - 1;
    return n >= 2 + length && parameters[0] == PARAMETER_NAME && parameters[1] == length &&
           memcmp(parameters + 2, ZKEY_INSECURE_NAME, length) == 0;
}

/* Proving does not need section 10, so a key without it, or with one that other tools wrote
 * differently, is no error: it just has no mark of ours. */
static bool has_insecure_mark(const struct container *c, const struct zkey *key) {
    struct error ignored;
    struct reader reader;
    uint32_t n, type, n_parameters;
    const uint8_t *bytes;
    uint64_t fixed = 3 * zkey_g1_bytes(key) + zkey_g2_bytes(key) + HASH_BYTES;
    if (reader_open(c, SECTION_CONTRIBUTIONS, "contributions", &reader, &ignored) != ERR_NONE ||
        reader_bytes(&reader, 1, HASH_BYTES, &bytes, &ignored) != ERR_NONE ||
        reader_u32(&reader, &n, &ignored) != ERR_NONE)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (reader_bytes(&reader, 1, fixed, &bytes, &ignored) != ERR_NONE ||
            reader_u32(&reader, &type, &ignored) != ERR_NONE ||
            reader_u32(&reader, &n_parameters, &ignored) != ERR_NONE ||
            reader_bytes(&reader, n_parameters, 1, &bytes, &ignored) != ERR_NONE)
            return false;
        if (is_our_name(bytes, n_parameters)) return true;
    }
    return false;
}

static enum err read_all(struct zkey *key, struct error *error) {
    enum err rc;
    struct container c;
    TRY(container_parse(mapped_file_path(key->file), mapped_file_bytes(key->file),
                        mapped_file_size(key->file), "zkey", ZKEY_VERSION, &c, error));
    TRY(read_protocol(&c, error));
    TRY(read_header(&c, key, error));
    TRY(read_all_points(&c, key, error));
    TRY(read_coefficients(&c, key, error));
    key->insecure = has_insecure_mark(&c, key);
    TRY(mapped_file_unchanged(key->file, error));
    return ERR_NONE;
fail:
    return rc;
}

enum err zkey_open(const char *path, struct zkey **out, struct error *error) {
    enum err rc;
    struct zkey *key = calloc(1, sizeof *key);
    if (key == NULL) return error_set(error, ERR_HOST_MEMORY, "%s: out of memory", path);
    TRY(mapped_file_open(path, &key->file, error));
    TRY(read_all(key, error));
    *out = key;
    return ERR_NONE;
fail:
    zkey_close(key);
    return rc;
}

void zkey_close(struct zkey *zkey) {
    if (zkey == NULL) return;
    mapped_file_close(zkey->file);
    free(zkey);
}
