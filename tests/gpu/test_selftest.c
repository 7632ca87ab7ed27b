/* The test of a device: the CPU passes, one that computes wrongly or fails does not. */
#include "gpu/backend.h"
#include "gpu/selftest.h"
#include "tests/gpu/suite.h"

#include <stdlib.h>

static struct error error;
static struct device *device;
static struct backend broken;

static void setup(void) {
    ck_assert_int_eq(device_open("cpu", 2, &device, &error), ERR_NONE);
    broken = cpu_backend;
}

static void teardown(void) {
    device->backend = &cpu_backend;
    device_close(device);
}

START_TEST(a_device_that_proves_passes) {
    ck_assert_msg(device_selftest(device, &error) == ERR_NONE, "%s", error.text);
}
END_TEST

static enum err finish_wrongly(struct pending *pending, struct proof *proofs,
                               struct prove_span *spans, size_t *n_spans, struct error *e) {
    enum err rc = cpu_backend.finish(pending, proofs, spans, n_spans, e);
    proofs->c = proofs->a;
    return rc;
}

START_TEST(a_device_that_computes_wrongly_does_not) {
    broken.finish = finish_wrongly;
    device->backend = &broken;
    ck_assert_int_eq(device_selftest(device, &error), ERR_DEVICE_FAULT);
}
END_TEST

static enum err load_never(struct device *d, const struct zkey *zkey, struct key **out,
                           struct error *e) {
    (void)d, (void)zkey;
    *out = NULL;
    return error_set(e, ERR_DEVICE_MEMORY, "full");
}

START_TEST(a_device_that_takes_no_key_does_not) {
    broken.key_load = load_never;
    device->backend = &broken;
    ck_assert_int_eq(device_selftest(device, &error), ERR_DEVICE_MEMORY);
}
END_TEST

START_TEST(without_a_place_for_the_key_nothing_is_said_of_the_device) {
    setenv("TMPDIR", "/nonexistent", 1);
    ck_assert_int_eq(device_selftest(device, &error), ERR_IO);
    unsetenv("TMPDIR");
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &a_device_that_proves_passes, &a_device_that_computes_wrongly_does_not,
        &a_device_that_takes_no_key_does_not,
        &without_a_place_for_the_key_nothing_is_said_of_the_device};
    return run_tests("selftest", setup, teardown, tests, sizeof tests / sizeof *tests);
}
