#include "gpu/selftest.h"

#include "gpu/setup.h"
#include "gpu/verify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* As many constraints as make the device work in all its parts; a multiple of the kinds below. */
enum { CONSTRAINTS = 1000, PUBLIC = 1, WIRES = 1 + PUBLIC + CONSTRAINTS, TERMS = 3 * CONSTRAINTS };

struct statement {
    struct r1cs r1cs;
    struct r1cs_constraint constraints[CONSTRAINTS];
    struct r1cs_term terms[TERMS];
    struct scalar values[WIRES];
};

static struct r1cs_row row_of(struct r1cs_term *term, uint32_t wire) {
    *term = (struct r1cs_term){.coefficient = {{1}}};
    for (size_t i = 0; i < sizeof term->wire_le; i++)
        term->wire_le[i] = (uint8_t)(wire >> (8 * i));
    return (struct r1cs_row){term, 1};
}

/* Constraint i says w * 1 = w, or 1 * w = w, of a wire of its own, whose value is random: so that
 * scalars of full size meet the points of all three matrices. */
static enum err make_statement(struct statement *s, struct error *error) {
    for (uint32_t i = 0; i < CONSTRAINTS; i++) {
        uint32_t wire = 1 + PUBLIC + i, is_second = i % 2;
        struct r1cs_term *terms = &s->terms[3 * i];
        s->constraints[i] = (struct r1cs_constraint){row_of(&terms[0], is_second ? 0 : wire),
                                                     row_of(&terms[1], is_second ? wire : 0),
                                                     row_of(&terms[2], wire)};
    }
    s->values[0].le[0] = 1;
    for (uint32_t i = 1; i < WIRES; i++) /* a byte short: below the modulus */
        if (getrandom(s->values[i].le, SCALAR_BYTES - 1, 0) != SCALAR_BYTES - 1)
            return error_set(error, ERR_INTERNAL, "getrandom: %s", strerror(errno));
    s->r1cs = (struct r1cs){.curve = curve_info(CURVE_BN254),
                            .n_vars = WIRES,
                            .n_public = PUBLIC,
                            .n_constraints = CONSTRAINTS,
                            .constraints = s->constraints};
    return ERR_NONE;
}

/* A key for the statement, open; its file is gone again. */
static enum err make_key(const struct statement *s, struct zkey **out, struct error *error) {
    char folder[200], path[220];
    const char *tmp = getenv("TMPDIR");
    enum err rc;
    (void)snprintf(folder, sizeof folder, "%s/proverq-selftest-XXXXXX",
                   tmp && *tmp && strlen(tmp) < 100 ? tmp : "/tmp");
    if (!mkdtemp(folder)) return error_set(error, ERR_IO, "%s: %s", folder, strerror(errno));
    (void)snprintf(path, sizeof path, "%s/key.zkey", folder);
    TRY(setup_write(&s->r1cs, path, error));
    TRY(zkey_open(path, out, error));
fail:
    (void)unlink(path);
    (void)rmdir(folder);
    return rc;
}

static enum err prove(struct device *device, const struct zkey *zkey, const struct statement *s,
                      struct proof *proof, struct error *error) {
    const struct scalar *witness = s->values;
    struct key *key = NULL;
    struct pending *pending = NULL;
    enum err rc;
    TRY(key_load(device, zkey, &key, error));
    TRY(prove_start(key, &witness, 1, &pending, error));
    rc = prove_finish(pending, proof, NULL, NULL, error);
fail:
    key_free(key);
    return rc;
}

enum err device_selftest(struct device *device, struct error *error) {
    struct statement *s = calloc(1, sizeof *s);
    struct zkey *zkey = NULL;
    struct vkey *vkey = NULL;
    struct proof proof;
    enum err rc;
    if (!s) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    TRY(make_statement(s, error));
    TRY(make_key(s, &zkey, error));
    TRY(vkey_from_zkey(zkey, &vkey, error));
    TRY(prove(device, zkey, s, &proof, error));
    rc = verify(vkey, s->values + 1, PUBLIC, &proof, error);
    if (rc == ERR_INVALID_PROOF)
        rc = error_set(error, ERR_DEVICE_FAULT, "%s: its proof of a test statement is wrong",
                       device_name(device));
fail:
    vkey_free(vkey);
    zkey_close(zkey);
    free(s);
    return rc;
}
