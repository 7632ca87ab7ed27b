#include "gpu/setup.h"

#include "gpu/atomic_file.h"
#include "gpu/cpu/cpu_curve.h"
#include "gpu/mapped_file.h"

#include <openssl/sha.h>
#include <string.h>

/* Sections of zkey.h's format; ids in the order in which they are written. */
enum {
    SECTIONS = 10,
    KEY_MODE = 0666,
    PROTOCOL_GROTH16 = 1,
    ZKEY_VERSION = 1,
    PARAMETER_NAME = 1,
    TRANSCRIPT_BYTES = 64,
};
_Static_assert(SHA512_DIGEST_LENGTH == 64, "section 10 begins with 64 bytes");

struct writer {
    struct atomic_file *file;
    const struct r1cs *r1cs;
    const struct setup_key *key;
    size_t g1, g2; /* bytes of a point */
};

static enum err put_u32(const struct writer *w, uint32_t value, struct error *error) {
    uint8_t le[4];
    for (size_t i = 0; i < sizeof le; i++)
        le[i] = (uint8_t)(value >> (8 * i));
    return atomic_file_write(w->file, le, sizeof le, error);
}

static enum err put_section(const struct writer *w, uint32_t id, uint64_t bytes,
                            struct error *error) {
    enum err rc;
    TRY(put_u32(w, id, error));
    TRY(put_u32(w, (uint32_t)bytes, error));
    TRY(put_u32(w, (uint32_t)(bytes >> 32), error));
fail:
    return rc;
}

static enum err put_number(const struct writer *w, const uint8_t *le, size_t n,
                           struct error *error) {
    enum err rc;
    TRY(put_u32(w, (uint32_t)n, error));
    TRY(atomic_file_write(w->file, le, n, error));
fail:
    return rc;
}

static enum err put_header(const struct writer *w, struct error *error) {
    enum err rc;
    const struct curve_info *curve = w->r1cs->curve;
    const struct setup_key *key = w->key;
    TRY(put_section(w, 1, 4, error));
    TRY(put_u32(w, PROTOCOL_GROTH16, error));
    TRY(put_section(w, 2, 4 + curve->n8q + 4 + SCALAR_BYTES + 3 * 4 + 3 * w->g1 + 3 * w->g2,
                    error));
    TRY(put_number(w, curve->q, curve->n8q, error));
    TRY(put_number(w, curve->r, SCALAR_BYTES, error));
    TRY(put_u32(w, key->n_vars, error));
    TRY(put_u32(w, key->n_public, error));
    TRY(put_u32(w, key->domain_size, error));
    TRY(atomic_file_write(w->file, key->alpha1, w->g1, error));
    TRY(atomic_file_write(w->file, key->beta1, w->g1, error));
    TRY(atomic_file_write(w->file, key->beta2, w->g2, error));
    TRY(atomic_file_write(w->file, key->gamma2, w->g2, error));
    TRY(atomic_file_write(w->file, key->delta1, w->g1, error));
    TRY(atomic_file_write(w->file, key->delta2, w->g2, error));
fail:
    return rc;
}

static enum err put_array(const struct writer *w, uint32_t id, const uint8_t *items, size_t n,
                          size_t item_bytes, struct error *error) {
    enum err rc;
    TRY(put_section(w, id, (uint64_t)n * item_bytes, error));
    TRY(atomic_file_write(w->file, items, n * item_bytes, error));
fail:
    return rc;
}

static enum err put_arrays(const struct writer *w, struct error *error) {
    enum err rc;
    const struct setup_key *key = w->key;
    size_t n_ic = (size_t)key->n_public + 1, n = key->n_vars;
    size_t coefficient_bytes = (size_t)key->n_coefficients * ZKEY_COEFFICIENT_BYTES;
    TRY(put_array(w, 3, key->ic, n_ic, w->g1, error));
    TRY(put_section(w, 4, 4 + coefficient_bytes, error));
    TRY(put_u32(w, key->n_coefficients, error));
    TRY(atomic_file_write(w->file, key->coefficients, coefficient_bytes, error));
    TRY(put_array(w, 5, key->a, n, w->g1, error));
    TRY(put_array(w, 6, key->b1, n, w->g1, error));
    TRY(put_array(w, 7, key->b2, n, w->g2, error));
    TRY(put_array(w, 8, key->c, n - n_ic, w->g1, error));
    TRY(put_array(w, 9, key->h, key->domain_size, w->g1, error));
fail:
    return rc;
}

/* Section 10: the SHA-512 of the circuit's file, and one contribution whose name is the mark. Its
 * points say what happened, G1 became delta*G1 and G2 delta*G2, without the proof of knowledge that
 * a ceremony needs: snarkjs shows the name, and rejects the contribution when asked to verify it. */
static enum err put_contribution(const struct writer *w, struct error *error) {
    static const uint8_t transcript[TRANSCRIPT_BYTES] = {0};
    enum err rc;
    const struct cpu_curve *ops = cpu_curve(w->r1cs->curve->id);
    size_t name_bytes = sizeof ZKEY_INSECURE_NAME - 1;
    uint8_t generator[2 * COORD_BYTES], digest[SHA512_DIGEST_LENGTH] = {0};
    const uint8_t name_head[2] = {PARAMETER_NAME, (uint8_t)name_bytes};
    ops->g1_to_zkey(ops->g1_generator, generator);
    if (w->r1cs->file)
        (void)SHA512(mapped_file_bytes(w->r1cs->file), mapped_file_size(w->r1cs->file), digest);

    TRY(put_section(w, 10,
                    sizeof digest + 4 + 3 * w->g1 + w->g2 + sizeof transcript + 4 + 4 +
                        sizeof name_head + name_bytes,
                    error));
    TRY(atomic_file_write(w->file, digest, sizeof digest, error));
    TRY(put_u32(w, 1, error));
    TRY(atomic_file_write(w->file, w->key->delta1, w->g1, error));
    TRY(atomic_file_write(w->file, generator, w->g1, error));
    TRY(atomic_file_write(w->file, w->key->delta1, w->g1, error));
    TRY(atomic_file_write(w->file, w->key->delta2, w->g2, error));
    TRY(atomic_file_write(w->file, transcript, sizeof transcript, error));
    TRY(put_u32(w, 0, error));
    TRY(put_u32(w, (uint32_t)(sizeof name_head + name_bytes), error));
    TRY(atomic_file_write(w->file, name_head, sizeof name_head, error));
    TRY(atomic_file_write(w->file, ZKEY_INSECURE_NAME, name_bytes, error));
fail:
    return rc;
}

static enum err write_key(const struct r1cs *r1cs, const struct setup_key *key, const char *path,
                          struct error *error) {
    enum err rc;
    struct writer w = {
        .r1cs = r1cs, .key = key, .g1 = 2 * r1cs->curve->n8q, .g2 = 4 * r1cs->curve->n8q};
    TRY(atomic_file_create(path, KEY_MODE, &w.file, error));
    TRY(atomic_file_write(w.file, "zkey", 4, error));
    TRY(put_u32(&w, ZKEY_VERSION, error));
    TRY(put_u32(&w, SECTIONS, error));
    TRY(put_header(&w, error));
    TRY(put_arrays(&w, error));
    TRY(put_contribution(&w, error));
    TRY(atomic_file_commit(w.file, error));
fail:
    atomic_file_close(w.file);
    return rc;
}

enum err setup_write(const struct r1cs *r1cs, const char *path, struct error *error) {
    enum err rc;
    struct setup_key key;
    TRY(cpu_curve(r1cs->curve->id)->setup(pool_shared(), r1cs, &key, error));
    rc = write_key(r1cs, &key, path, error);
    setup_key_free(&key);
fail:
    return rc;
}
