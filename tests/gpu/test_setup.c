#include "gpu/setup.h"

#include "gpu/cpu/cpu_curve.h"
#include "gpu/keycheck.h"
#include "gpu/verify.h"
#include "tests/gpu/fixture.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct fixture fixture;
static struct error error;

static void set_up(void) {
    fixture_dir(&fixture);
}

static void tear_down(void) {
    fixture_close(&fixture);
}

static void make_key(const char *name) {
    char path[64];
    (void)snprintf(path, sizeof path, "tests/circuits/%s/%s.r1cs", name, name);
    CHECK_OK(r1cs_open(path, &fixture.r1cs, &error));
    CHECK_OK(setup_write(fixture.r1cs, fixture.zkey_path, &error));
}

static void forget_circuit(void) {
    r1cs_close(fixture.r1cs);
    fixture.r1cs = NULL;
}

/* What of a key does not depend on its secrets is the same in snarkjs's key of the same circuit:
 * protocol, moduli, sizes, coefficients, the lengths of all sections, and gamma2. */
START_TEST(layout_is_that_of_snarkjs) {
    const char *const names[] = {"factor", "factor381", "merkle", "range"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "tests/circuits/%s/%s.zkey", names[i], names[i]);
        make_key(names[i]);
        struct bytes theirs = bytes_read(path), ours = bytes_read(fixture.zkey_path);
        for (uint32_t id = 1; id <= 9; id++) {
            size_t n_theirs, n_ours;
            size_t a = bytes_section(&theirs, id, &n_theirs);
            size_t b = bytes_section(&ours, id, &n_ours);
            ck_assert_uint_eq(n_theirs, n_ours);
            size_t n8q = fixture.r1cs->curve->n8q, sizes = 4 + n8q + 4 + SCALAR_BYTES + 12;
            size_t gamma2 = sizes + 8 * n8q;
            if (id == 1 || id == 4) ck_assert_mem_eq(theirs.data + a, ours.data + b, n_ours);
            if (id != 2) continue;
            ck_assert_mem_eq(theirs.data + a, ours.data + b, sizes);
            ck_assert_mem_eq(theirs.data + a + gamma2, ours.data + b + gamma2, 4 * n8q);
        }
        free(theirs.data);
        free(ours.data);
        forget_circuit();
    }
}
END_TEST

/* Points are at infinity in the same places. */
START_TEST(infinities_are_those_of_snarkjs) {
    const char *const names[] = {"factor", "factor381", "merkle", "range"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        struct zkey *theirs, *ours;
        size_t n_infinity = 0;
        (void)snprintf(path, sizeof path, "tests/circuits/%s/%s.zkey", names[i], names[i]);
        make_key(names[i]);
        CHECK_OK(zkey_open(path, &theirs, &error));
        CHECK_OK(zkey_open(fixture.zkey_path, &ours, &error));
        size_t g1 = zkey_g1_bytes(ours), g2 = zkey_g2_bytes(ours);
        for (size_t k = 0; k < ours->n_vars; k++) {
            ck_assert_int_eq(le_is_zero(theirs->a + k * g1, g1), le_is_zero(ours->a + k * g1, g1));
            ck_assert_int_eq(le_is_zero(theirs->b1 + k * g1, g1),
                             le_is_zero(ours->b1 + k * g1, g1));
            ck_assert_int_eq(le_is_zero(theirs->b2 + k * g2, g2),
                             le_is_zero(ours->b2 + k * g2, g2));
            n_infinity += le_is_zero(ours->b1 + k * g1, g1);
        }
        ck_assert_uint_gt(n_infinity, 0);
        zkey_close(theirs);
        zkey_close(ours);
        forget_circuit();
    }
}
END_TEST

/* Domains that the rows fill exactly, and that one row more doubles. */
START_TEST(the_domain_is_the_smallest) {
    const struct {
        uint32_t n_constraints, n_public, domain;
    } cases[] = {{1, 0, 2}, {2, 0, 4}, {1, 1, 4}, {3, 0, 4}, {4, 0, 8}, {28, 3, 32}, {29, 3, 64}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int curve = 0; curve < CURVE_COUNT; curve++) {
            struct fixture made;
            struct proof proof;
            fixture_open(&made, &(struct circuit_spec){.curve = (enum curve_id)curve,
                                                       .n_constraints = cases[i].n_constraints,
                                                       .n_public = cases[i].n_public,
                                                       .seed = i});
            ck_assert_uint_eq(made.zkey->domain_size, cases[i].domain);
            fixture_prove(&made, NULL, &proof);
            CHECK_OK(
                verify(made.vkey, fixture_publics(&made), made.vkey->n_public, &proof, &error));
            fixture_close(&made);
        }
}
END_TEST

START_TEST(secrets_are_new_each_time) {
    struct vkey *vkeys[2];
    make_key("factor");
    for (int i = 0; i < 2; i++) {
        struct zkey *zkey;
        CHECK_OK(setup_write(fixture.r1cs, fixture.zkey_path, &error));
        CHECK_OK(zkey_open(fixture.zkey_path, &zkey, &error));
        CHECK_OK(vkey_from_zkey(zkey, &vkeys[i], &error));
        zkey_close(zkey);
    }
    ck_assert_mem_ne(&vkeys[0]->alpha1, &vkeys[1]->alpha1, sizeof vkeys[0]->alpha1);
    ck_assert_mem_ne(&vkeys[0]->beta2, &vkeys[1]->beta2, sizeof vkeys[0]->beta2);
    ck_assert_mem_ne(&vkeys[0]->delta2, &vkeys[1]->delta2, sizeof vkeys[0]->delta2);
    ck_assert_mem_ne(vkeys[0]->ic, vkeys[1]->ic, sizeof *vkeys[0]->ic);
    vkey_free(vkeys[0]);
    vkey_free(vkeys[1]);
}
END_TEST

/* Section 10 as snarkjs reads it: hash, one contribution with our name, nothing behind. */
START_TEST(the_mark_is_a_contribution) {
    make_key("factor");
    struct bytes key = bytes_read(fixture.zkey_path);
    size_t length, begin = bytes_section(&key, 10, &length), n8q = fixture.r1cs->curve->n8q;
    size_t parameters = 64 + 4 + 3 * 2 * n8q + 4 * n8q + 64 + 4;
    const size_t name = sizeof ZKEY_INSECURE_NAME - 1;
    ck_assert_uint_eq(length, parameters + 4 + 2 + name);
    ck_assert_uint_eq(key.data[begin + 64], 1);
    ck_assert_uint_eq(key.data[begin + parameters], 2 + name);
    ck_assert_uint_eq(key.data[begin + parameters + 4], 1);
    ck_assert_uint_eq(key.data[begin + parameters + 5], name);
    ck_assert_mem_eq(key.data + begin + parameters + 6, ZKEY_INSECURE_NAME, name);
    ck_assert_uint_le(name, 64); /* snarkjs's limit */
    free(key.data);
}
END_TEST

/* Ours is in place, or nothing is; never a part, and no temporary file. */
START_TEST(a_key_appears_whole_or_not_at_all) {
    struct stat status;
    char path[sizeof fixture.dir + 32];
    CHECK_OK(r1cs_open("tests/circuits/factor/factor.r1cs", &fixture.r1cs, &error));
    (void)snprintf(path, sizeof path, "%s/missing/c.zkey", fixture.dir);
    CHECK_ERR(setup_write(fixture.r1cs, path, &error), ERR_IO, "missing/c.zkey");
    CHECK_ERR(setup_write(fixture.r1cs, fixture.dir, &error), ERR_IO, "rename");
    struct bytes old = {(uint8_t *)strdup("old"), 3};
    bytes_write(fixture.zkey_path, &old);
    free(old.data);
    CHECK_OK(setup_write(fixture.r1cs, fixture.zkey_path, &error));
    ck_assert_int_eq(stat(fixture.zkey_path, &status), 0);
    ck_assert_int_gt(status.st_size, 1000);
    mode_t mask = umask(0);
    (void)umask(mask);
    ck_assert_uint_eq(status.st_mode & 0777, 0666 & ~mask);
    size_t n_files = 0;
    DIR *dir = opendir(fixture.dir);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n_files += entry->d_name[0] != '.';
    (void)closedir(dir);
    ck_assert_uint_eq(n_files, 1);
}
END_TEST

/* A size of every day, with all threads, a dense and a bit-like circuit: checked and used. */
START_TEST(larger_keys_prove) {
    for (int i = 0; i < 2 * CURVE_COUNT; i++) {
        struct fixture made;
        struct proof proof;
        bool forgeable;
        fixture_open(&made,
                     &(struct circuit_spec){.curve = (enum curve_id)(i / 2),
                                            .kind = i % 2 == 0 ? CIRCUIT_DENSE : CIRCUIT_BITS,
                                            .n_constraints = circuit_constraints(11, 4),
                                            .n_public = 4,
                                            .n_unused = 5,
                                            .seed = 11});
        ck_assert_uint_eq(made.zkey->log_domain, 11);
        CHECK_OK(keycheck(made.zkey, &forgeable, &error));
        fixture_prove(&made, NULL, &proof);
        CHECK_OK(verify(made.vkey, fixture_publics(&made), 4, &proof, &error));
        fixture_close(&made);
    }
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &layout_is_that_of_snarkjs,  &infinities_are_those_of_snarkjs,
        &the_domain_is_the_smallest, &secrets_are_new_each_time,
        &the_mark_is_a_contribution, &a_key_appears_whole_or_not_at_all,
        &larger_keys_prove};
    return run_tests("setup", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
