/* What the CUDA backend does on the host, over a runtime without a card (fake_cuda.inc): it gives back
 * all that it took whatever fails, says so, works again afterwards, and never waits for ever. What
 * the device computes is not looked at here; tests/gpu-card does that.
 */
#include "tests/gpu-card/card.h"
#include "tests/gpu/fake_cuda.inc"

#include <check.h>
#include <pthread.h>

/* gpu/cuda/arena.cuh, without the CUDA headers that it includes */
void allocation_fail(unsigned nth);
unsigned allocation_count(void);

static struct card_circuit small, large;
static struct error error;

static void make_circuits(void) {
    struct circuit_spec s = {CURVE_BN254, CIRCUIT_BITS, 40, 1, 0, 1, 0};
    struct circuit_spec l = {CURVE_BN254, CIRCUIT_DENSE, 300, 2, 0, 2, 0};
    card_circuit_make(&s, &small);
    card_circuit_make(&l, &large);
}
static void free_circuits(void) {
    card_circuit_free(&small);
    card_circuit_free(&large);
}

static void ck_assert_nothing_left(void) {
    ck_assert_uint_eq(fake.device_bytes, 0);
    ck_assert_int_eq(fake.handles, 0);
}

static enum err prove(struct key *key, const struct card_circuit *c) {
    struct pending *pending;
    struct proof proof;
    const struct scalar *witness = c->witness;
    enum err rc;
    TRY(prove_start(key, &witness, 1, &pending, &error));
    TRY(prove_finish(pending, &proof, NULL, NULL, &error));
fail:
    return rc;
}

/* Everything that a prover does with a device; ends with nothing left, whatever fails. */
static enum err whole_life(void) {
    struct device *device = NULL;
    struct key *first = NULL, *second = NULL;
    void *pinned = NULL;
    enum err rc;
    TRY(device_open("cuda:0", 1, &device, &error));
    TRY(key_load(device, &small.zkey, &first, &error));
    TRY(device_host_alloc(device, 100, &pinned, &error));
    TRY(prove(first, &small));
    TRY(key_load(device, &large.zkey, &second, &error));
    TRY(prove(second, &large));
    TRY(prove(first, &small));
fail:
    if (pinned != NULL) device_host_free(device, pinned);
    if (second != NULL) key_free(second);
    if (first != NULL) key_free(first);
    if (device != NULL) device_close(device);
    return rc;
}

START_TEST(a_life_leaves_nothing) {
    fake_reset();
    ck_assert_msg(whole_life() == ERR_NONE, "%s", error.text);
    ck_assert_int_gt(fake.launches, 0);
    ck_assert_nothing_left();
}
END_TEST

START_TEST(every_failed_allocation_is_a_lack_of_memory) {
    fake_reset();
    unsigned points = 0;
    for (;; points++) {
        allocation_fail(points + 1);
        enum err rc = whole_life();
        ck_assert_nothing_left();
        if (rc == ERR_NONE) break;
        ck_assert_int_eq(rc, ERR_DEVICE_MEMORY);
        ck_assert_msg(error.text[0] != '\0', "allocation %u", points);
    }
    allocation_fail(0);
    ck_assert_uint_gt(points, 60);
}
END_TEST

START_TEST(every_failed_call_is_reported_and_survived) {
    fake_reset();
    ck_assert_int_eq(whole_life(), ERR_NONE);
    long calls = fake.calls, silent = 0;
    ck_assert_int_gt(calls, 500);
    for (long n = 1; n <= calls; n++) {
        fake_reset();
        fake.fail_from = n;
        enum err rc = whole_life();
        ck_assert_nothing_left();
        silent += rc == ERR_NONE; /* while cleaning up, and where another device would do */
        ck_assert_msg(rc == ERR_NONE || rc == ERR_DEVICE_FAULT || rc == ERR_DEVICE_MISSING,
                      "call %ld: %s", n, error.text);
    }
    ck_assert_int_lt(silent, calls / 10);
    fake_reset();
    ck_assert_int_eq(whole_life(), ERR_NONE);
}
END_TEST

START_TEST(a_lost_device_tells_the_process_to_end) {
    struct device *device;
    struct key *key;
    fake_reset();
    ck_assert_int_eq(device_open("cuda:0", 1, &device, &error), ERR_NONE);
    ck_assert_int_eq(key_load(device, &small.zkey, &key, &error), ERR_NONE);
    fake.sticky = true;
    fake.fail_from = fake.calls + 5;
    ck_assert_int_eq(prove(key, &small), ERR_DEVICE_FAULT);
    ck_assert_msg(strstr(error.text, "must end") != NULL, "%s", error.text);
    ck_assert_int_eq(prove(key, &small), ERR_DEVICE_FAULT);
    key_free(key);
    device_close(device);
    ck_assert_nothing_left();
}
END_TEST

START_TEST(without_a_driver_cuda_is_missing_and_auto_says_cpu) {
    struct device *device;
    fake_reset();
    fake.no_driver = true;
    ck_assert_int_eq(device_open("cuda:0", 1, &device, &error), ERR_DEVICE_MISSING);
    ck_assert_msg(strstr(error.text, "driver") != NULL, "%s", error.text);
    ck_assert_int_eq(device_open("auto", 1, &device, &error), ERR_NONE);
    ck_assert_str_eq(device_name(device), "cpu");
    device_close(device);
    fake.no_driver = false;
}
END_TEST

static void open_auto(const struct card_circuit *c, const char *device_wanted, const char *reason) {
    struct device *device;
    struct key *key;
    struct error why;
    ck_assert_msg(device_open_for("auto", 1, &c->zkey, &device, &key, &why, &error) == ERR_NONE,
                  "%s", error.text);
    ck_assert_str_eq(device_name(device), device_wanted);
    ck_assert_msg(strstr(why.text, reason) != NULL, "%s", why.text);
    ck_assert(*reason != '\0' || why.text[0] == '\0');
    ck_assert_int_eq(prove(key, c), ERR_NONE);
    key_free(key);
    device_close(device);
    ck_assert_nothing_left();
}

START_TEST(auto_falls_back_to_the_cpu_for_each_key_that_the_card_cannot_take) {
    struct circuit_spec spec = {CURVE_BLS12_381, CIRCUIT_BITS, 40, 1, 0, 1, 0};
    struct card_circuit bls12_381;
    struct device *device;
    struct key *key;
    struct error why;
    card_circuit_make(&spec, &bls12_381);
    fake_reset();
    open_auto(&small, "cuda:0", "");
    open_auto(&bls12_381, "cpu", "the CUDA prover has no bls12381");
    allocation_fail(0);
    ck_assert_int_eq(device_open("cuda:0", 1, &device, &error), ERR_NONE);
    device_close(device);
    allocation_fail(allocation_count() + 1); /* the first for the key */
    open_auto(&small, "cpu", "device memory: no room for");
    allocation_fail(0);
    open_auto(&small, "cuda:0", "");
    ck_assert_int_eq(device_open_for("cuda:0", 1, &bls12_381.zkey, &device, &key, &why, &error),
                     ERR_DEVICE_UNSUPPORTED);
    ck_assert_ptr_null(device);
    ck_assert_nothing_left();
    card_circuit_free(&bls12_381);
}
END_TEST

/* Else a job's partitions would fail, or the device be quarantined, where another prover could take
 * them. */
START_TEST(a_key_that_the_card_cannot_take_is_neither_the_jobs_fault_nor_the_cards) {
    ck_assert_int_eq(error_class(ERR_DEVICE_UNSUPPORTED), ERROR_CLASS_HOST);
    ck_assert(error_retryable(ERR_DEVICE_UNSUPPORTED));
}
END_TEST

START_TEST(the_dry_run_tells_what_loading_takes) {
    struct device *device;
    struct key *key;
    size_t key_bytes, scratch_bytes;
    fake_reset();
    ck_assert_int_eq(device_open("cuda:0", 1, &device, &error), ERR_NONE);
    ck_assert_int_eq(key_memory(device, &large.zkey, &key_bytes, &scratch_bytes, &error), ERR_NONE);
    ck_assert_uint_eq(fake.device_bytes, 0);
    fake.most_device_bytes = 0;
    ck_assert_int_eq(key_load(device, &large.zkey, &key, &error), ERR_NONE);
    ck_assert_uint_eq(fake.most_device_bytes, key_bytes + scratch_bytes);
    size_t loaded = fake.device_bytes;
    long handles = fake.handles;
    ck_assert_int_eq(prove(key, &large), ERR_NONE);
    ck_assert_uint_eq(fake.device_bytes, loaded); /* nothing is allocated on the proving path */
    ck_assert_int_eq(fake.handles, handles);
    key_free(key);
    ck_assert_uint_eq(fake.device_bytes, 0);
    device_close(device);
    ck_assert_nothing_left();
}
END_TEST

START_TEST(one_thread_may_start_more_proofs_than_slots) {
    struct device *device;
    struct key *key;
    struct pending *pending[5];
    struct proof proof;
    const struct scalar *witness = small.witness;
    fake_reset();
    ck_assert_int_eq(device_open("cuda:0", 1, &device, &error), ERR_NONE);
    ck_assert_int_eq(key_load(device, &small.zkey, &key, &error), ERR_NONE);
    for (auto &p : pending)
        ck_assert_int_eq(prove_start(key, &witness, 1, &p, &error), ERR_NONE);
    for (auto &p : pending) {
        ck_assert_int_eq(prove_wait_inputs(p, &error), ERR_NONE);
        ck_assert_int_eq(prove_wait_device(p, &error), ERR_NONE);
        ck_assert_int_eq(prove_finish(p, &proof, NULL, NULL, &error), ERR_NONE);
    }
    key_free(key);
    device_close(device);
    ck_assert_nothing_left();
}
END_TEST

enum { THREADS = 6, PROOFS = 40 };

static void *prover_thread(void *arg) {
    struct key *key = (struct key *)arg;
    struct error e;
    struct pending *pending;
    struct proof proof;
    const struct scalar *witness = small.witness;
    for (int i = 0; i < PROOFS; i++) {
        if (prove_start(key, &witness, 1, &pending, &e) != ERR_NONE) return arg;
        if (i % 7 == 0)
            prove_abandon(pending);
        else if (prove_finish(pending, &proof, NULL, NULL, &e) != ERR_NONE)
            return arg;
    }
    return NULL;
}

START_TEST(threads_share_two_slots_while_keys_come_and_go) {
    struct device *device;
    struct key *key, *other;
    pthread_t threads[THREADS];
    fake_reset();
    ck_assert_int_eq(device_open("cuda:0", 1, &device, &error), ERR_NONE);
    ck_assert_int_eq(key_load(device, &small.zkey, &key, &error), ERR_NONE);
    for (pthread_t &t : threads)
        ck_assert_int_eq(pthread_create(&t, NULL, prover_thread, key), 0);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(key_load(device, &large.zkey, &other, &error), ERR_NONE);
        ck_assert_int_eq(prove(other, &large), ERR_NONE);
        key_free(other);
    }
    for (pthread_t t : threads) {
        void *failed;
        ck_assert_int_eq(pthread_join(t, &failed), 0);
        ck_assert_ptr_null(failed);
    }
    key_free(key);
    device_close(device);
    ck_assert_nothing_left();
}
END_TEST

int main(void) {
    Suite *s = suite_create("cuda_backend");
    TCase *t = tcase_create("host");
    tcase_set_timeout(t, 300);
    tcase_add_checked_fixture(t, make_circuits, free_circuits);
    tcase_add_test(t, a_life_leaves_nothing);
    tcase_add_test(t, every_failed_allocation_is_a_lack_of_memory);
    tcase_add_test(t, every_failed_call_is_reported_and_survived);
    tcase_add_test(t, a_lost_device_tells_the_process_to_end);
    tcase_add_test(t, without_a_driver_cuda_is_missing_and_auto_says_cpu);
    tcase_add_test(t, auto_falls_back_to_the_cpu_for_each_key_that_the_card_cannot_take);
    tcase_add_test(t, a_key_that_the_card_cannot_take_is_neither_the_jobs_fault_nor_the_cards);
    tcase_add_test(t, the_dry_run_tells_what_loading_takes);
    tcase_add_test(t, one_thread_may_start_more_proofs_than_slots);
    tcase_add_test(t, threads_share_two_slots_while_keys_come_and_go);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
