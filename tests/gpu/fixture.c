#include "tests/gpu/fixture.h"

#include "gpu/setup.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- files --- */

struct bytes bytes_read(const char *path) {
    struct bytes bytes = {NULL, 0};
    FILE *in = fopen(path, "rb");
    ck_assert_msg(in != NULL, "cannot open %s", path);
    ck_assert_int_eq(fseek(in, 0, SEEK_END), 0);
    long size = ftell(in);
    ck_assert_int_gt(size, 0);
    rewind(in);
    bytes.size = (size_t)size;
    bytes.data = malloc(bytes.size);
    ck_assert_ptr_nonnull(bytes.data);
    ck_assert_uint_eq(fread(bytes.data, 1, bytes.size, in), bytes.size);
    (void)fclose(in);
    return bytes;
}

struct bytes bytes_copy(const struct bytes *bytes) {
    struct bytes copy = {malloc(bytes->size), bytes->size};
    ck_assert_ptr_nonnull(copy.data);
    memcpy(copy.data, bytes->data, bytes->size);
    return copy;
}

void bytes_write(const char *path, const struct bytes *bytes) {
    (void)unlink(path); /* ext4 syncs a file that is truncated and written again */
    FILE *out = fopen(path, "wb");
    ck_assert_msg(out != NULL, "cannot create %s", path);
    ck_assert_uint_eq(fwrite(bytes->data, 1, bytes->size, out), bytes->size);
    ck_assert_int_eq(fclose(out), 0);
}

void bytes_put_u32(struct bytes *bytes, size_t offset, uint32_t value) {
    ck_assert_uint_le(offset + 4, bytes->size);
    for (size_t i = 0; i < 4; i++)
        bytes->data[offset + i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_le(const struct bytes *bytes, size_t offset, size_t n) {
    uint64_t value = 0;
    ck_assert_uint_le(offset + n, bytes->size);
    for (size_t i = 0; i < n; i++)
        value |= (uint64_t)bytes->data[offset + i] << (8 * i);
    return value;
}

size_t bytes_section(const struct bytes *bytes, uint32_t id, size_t *length) {
    for (size_t offset = 12; offset < bytes->size;) {
        *length = get_le(bytes, offset + 4, 8);
        if (get_le(bytes, offset, 4) == id) return offset + 12;
        offset += 12 + *length;
    }
    ck_abort_msg("no section %u", id);
}

/* --- circuits --- */

void fixture_dir(struct fixture *fixture) {
    const char *parent = getenv("TMPDIR");
    memset(fixture, 0, sizeof *fixture);
    (void)snprintf(fixture->dir, sizeof fixture->dir, "%s/proverq-test-XXXXXX",
                   parent != NULL ? parent : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(fixture->dir));
    (void)snprintf(fixture->r1cs_path, sizeof fixture->r1cs_path, "%s/c.r1cs", fixture->dir);
    (void)snprintf(fixture->wtns_path, sizeof fixture->wtns_path, "%s/c.wtns", fixture->dir);
    (void)snprintf(fixture->zkey_path, sizeof fixture->zkey_path, "%s/c.zkey", fixture->dir);
}

void fixture_open(struct fixture *fixture, const struct circuit_spec *spec) {
    struct error error = {.code = ERR_NONE};
    fixture_dir(fixture);
    CHECK_OK(circuit_write(spec, fixture->r1cs_path, fixture->wtns_path, &error));
    CHECK_OK(r1cs_open(fixture->r1cs_path, &fixture->r1cs, &error));
    CHECK_OK(wtns_open(fixture->wtns_path, &fixture->wtns, &error));
    CHECK_OK(setup_write(fixture->r1cs, fixture->zkey_path, &error));
    CHECK_OK(zkey_open(fixture->zkey_path, &fixture->zkey, &error));
    CHECK_OK(vkey_from_zkey(fixture->zkey, &fixture->vkey, &error));
}

static void remove_dir(const char *path) {
    char name[FIXTURE_PATH + sizeof((struct dirent *)NULL)->d_name + 2];
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        (void)unlink(name);
    }
    (void)closedir(dir);
    ck_assert_int_eq(rmdir(path), 0);
}

void fixture_close(struct fixture *fixture) {
    vkey_free(fixture->vkey);
    zkey_close(fixture->zkey);
    wtns_close(fixture->wtns);
    r1cs_close(fixture->r1cs);
    remove_dir(fixture->dir);
}

void fixture_prove(const struct fixture *fixture, const struct blinding *blinding,
                   struct proof *out) {
    struct error error = {.code = ERR_NONE};
    struct device *device;
    struct key *key;
    struct pending *pending;
    const struct scalar *witness = fixture->wtns->values;
    CHECK_OK(device_open("cpu", 0, &device, &error));
    CHECK_OK(key_load(device, fixture->zkey, &key, &error));
    if (blinding != NULL)
        CHECK_OK(prove_start_blinded(key, &witness, 1, blinding, &pending, &error));
    else
        CHECK_OK(prove_start(key, &witness, 1, &pending, &error));
    CHECK_OK(prove_finish(pending, out, NULL, NULL, &error));
    key_free(key);
    device_close(device);
}
