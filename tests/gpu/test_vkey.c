#include "gpu/vkey.h"

#include "tests/gpu/fixture.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const names[] = {"factor", "factor381", "merkle", "range"};
enum { NAMES = sizeof names / sizeof *names };

static struct error error;

static struct vkey *from_zkey(const char *name) {
    char path[64];
    struct zkey *zkey;
    struct vkey *vkey;
    (void)snprintf(path, sizeof path, "tests/circuits/%s/%s.zkey", name, name);
    CHECK_OK(zkey_open(path, &zkey, &error));
    CHECK_OK(vkey_from_zkey(zkey, &vkey, &error));
    zkey_close(zkey);
    return vkey;
}

static struct bytes json_of(const char *name) {
    char path[64];
    (void)snprintf(path, sizeof path, "tests/circuits/%s/vkey.json", name);
    return bytes_read(path);
}

START_TEST(exports_what_snarkjs_exports) {
    for (size_t i = 0; i < NAMES; i++) {
        struct vkey *vkey = from_zkey(names[i]);
        struct bytes theirs = json_of(names[i]);
        char *ours = vkey_to_json(vkey);
        ck_assert_uint_eq(strlen(ours), theirs.size);
        ck_assert_mem_eq(ours, theirs.data, theirs.size);
        free(ours);
        free(theirs.data);
        vkey_free(vkey);
    }
}
END_TEST

START_TEST(reads_what_snarkjs_exports) {
    for (size_t i = 0; i < NAMES; i++) {
        struct vkey *vkey = from_zkey(names[i]), *read;
        struct bytes theirs = json_of(names[i]);
        CHECK_OK(vkey_from_json((const char *)theirs.data, theirs.size, &read, &error));
        CHECK_OK(vkey_equal(vkey, read, &error));
        free(theirs.data);
        vkey_free(vkey);
        vkey_free(read);
    }
}
END_TEST

START_TEST(a_difference_is_named) {
    struct vkey *a = from_zkey("merkle"), *b = from_zkey("merkle"), *other = from_zkey("factor"),
                *bls = from_zkey("factor381");
    struct {
        uint8_t *byte;
        const char *name;
    } fields[] = {{b->alpha1.y, "vk_alpha_1"},
                  {b->beta2.x[1], "vk_beta_2"},
                  {b->gamma2.y[0], "vk_gamma_2"},
                  {b->delta2.y[1], "vk_delta_2"},
                  {b->ic[3].x, "IC[3]"}};
    CHECK_OK(vkey_equal(a, b, &error));
    CHECK_ERR(vkey_equal(a, bls, &error), ERR_MISMATCH, "curve");
    CHECK_ERR(vkey_equal(a, other, &error), ERR_MISMATCH, "nPublic");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        *fields[i].byte ^= 1;
        CHECK_ERR(vkey_equal(a, b, &error), ERR_MISMATCH, fields[i].name);
        *fields[i].byte ^= 1;
    }
    vkey_free(a);
    vkey_free(b);
    vkey_free(other);
    vkey_free(bls);
}
END_TEST

/* merkle's key with `from` replaced by `to` once. */
static void refuse(const char *from, const char *to, enum err code, const char *fragment) {
    struct bytes text = json_of("merkle");
    char *found = memmem(text.data, text.size, from, strlen(from));
    ck_assert_ptr_nonnull(found);
    size_t head = (size_t)(found - (char *)text.data), tail = text.size - head - strlen(from);
    char *changed = malloc(head + strlen(to) + tail);
    ck_assert_ptr_nonnull(changed);
    memcpy(changed, text.data, head);
    memcpy(changed + head, to, strlen(to));
    memcpy(changed + head + strlen(to), found + strlen(from), tail);
    struct vkey *vkey = NULL;
    CHECK_ERR(vkey_from_json(changed, head + strlen(to) + tail, &vkey, &error), code, fragment);
    ck_assert_ptr_null(vkey);
    free(changed);
    free(text.data);
}

START_TEST(keys_of_another_shape_are_refused) {
    refuse("\"groth16\"", "\"plonk\"", ERR_UNSUPPORTED, "plonk");
    refuse("groth16", "plonk", ERR_UNSUPPORTED, "protocol");
    refuse("\"bn128\"", "\"bw6\"", ERR_UNSUPPORTED, "bw6");
    refuse("\"nPublic\": 3", "\"nPublic\": 2", ERR_INPUT, "IC has 4 points");
    refuse("\"nPublic\": 3", "\"nPublic\": 3.0", ERR_INPUT, "nPublic");
    refuse("\"nPublic\": 3", "\"nPublic\": -1", ERR_INPUT, "nPublic");
    refuse("\"nPublic\": 3", "\"nPublic\": 4294967298", ERR_INPUT, "nPublic");
    refuse("\"IC\"", "\"ic\"", ERR_INPUT, "IC has 0 points");
    refuse("\"vk_alpha_1\"", "\"a\"", ERR_INPUT, "vk_alpha_1: missing");
    refuse("\"vk_delta_2\"", "\"d\"", ERR_INPUT, "vk_delta_2: missing");
    refuse("{", "[", ERR_INPUT, "not valid JSON");
    struct vkey *vkey;
    CHECK_ERR(vkey_from_json("[]", 2, &vkey, &error), ERR_INPUT, "not a JSON object");
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&exports_what_snarkjs_exports, &reads_what_snarkjs_exports,
                                         &a_difference_is_named,
                                         &keys_of_another_shape_are_refused};
    return run_tests("vkey", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
