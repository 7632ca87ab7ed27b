/* What the tests of the prover library share: small circuits with all their files, files as bytes. */
#ifndef PROVERQ_TESTS_FIXTURE_H
#define PROVERQ_TESTS_FIXTURE_H

#include "gpu/backend.h"
#include "gpu/r1cs.h"
#include "gpu/vkey.h"
#include "gpu/wtns.h"
#include "gpu/zkey.h"
#include "tests/gpu/r1cs_builder.h"
#include "tests/gpu/suite.h"

/* --- files --- */

enum { FIXTURE_PATH = 128 };

struct bytes {
    uint8_t *data;
    size_t size;
};

/* The caller frees data. They end the test when they fail. */
struct bytes bytes_read(const char *path);
struct bytes bytes_copy(const struct bytes *bytes);
void bytes_write(const char *path, const struct bytes *bytes);
void bytes_put_u32(struct bytes *bytes, size_t offset, uint32_t value);

/* Where section `id` of an iden3 binary file begins, behind its header, and its length. */
size_t bytes_section(const struct bytes *bytes, uint32_t id, size_t *length);

/* --- circuits --- */

struct fixture {
    char dir[FIXTURE_PATH];
    char r1cs_path[FIXTURE_PATH + 16], wtns_path[FIXTURE_PATH + 16], zkey_path[FIXTURE_PATH + 16];
    struct r1cs *r1cs;
    struct wtns *wtns;
    struct zkey *zkey; /* a development key */
    struct vkey *vkey;
};

/* A new folder under $TMPDIR or /tmp; fixture_close removes it and its files. */
void fixture_dir(struct fixture *fixture);

/* The circuit's files, and all of them opened. */
void fixture_open(struct fixture *fixture, const struct circuit_spec *spec);
void fixture_close(struct fixture *fixture);

/* A proof on the CPU, with these blinding factors or, for NULL, fresh ones. */
void fixture_prove(const struct fixture *fixture, const struct blinding *blinding,
                   struct proof *out);

/* The witness's public signals. */
static inline const struct scalar *fixture_publics(const struct fixture *fixture) {
    return fixture->wtns->values + 1;
}

#endif
