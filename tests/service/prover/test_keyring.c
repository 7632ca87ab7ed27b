/* Keys that take turns on a device, and witness buffers, within their bounds: measured by a device
 * that counts what is really allocated on it. */
#include "gpu/backend.h"
#include "service/prover/pipeline.h"
#include "tests/gpu/suite.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- a device that counts --- */

static atomic_size_t key_bytes_now, host_bytes_now, key_peak, host_peak;
static atomic_int live_keys;
static size_t real_memory; /* key_load fails beyond it, whatever the keyring believes */

static void raise_to(atomic_size_t *peak, size_t value) {
    size_t before = atomic_load(peak);
    while (before < value && !atomic_compare_exchange_weak(peak, &before, value)) {
    }
}

/* A key takes its domain's size, in KiB; proofs beside it half of that. */
static enum err fake_memory(struct device *device, const struct zkey *zkey, size_t *key_bytes,
                            size_t *scratch_bytes, struct error *error) {
    (void)device, (void)error;
    *key_bytes = (size_t)zkey->domain_size << 10;
    *scratch_bytes = *key_bytes / 2;
    return ERR_NONE;
}

static enum err fake_load(struct device *device, const struct zkey *zkey, struct key **out,
                          struct error *error) {
    size_t bytes = (size_t)zkey->domain_size << 10;
    if (atomic_fetch_add(&key_bytes_now, bytes) + bytes > real_memory) {
        atomic_fetch_sub(&key_bytes_now, bytes);
        return error_set(error, ERR_DEVICE_MEMORY, "the device is full");
    }
    raise_to(&key_peak, atomic_load(&key_bytes_now));
    atomic_fetch_add(&live_keys, 1);
    *out = calloc(1, sizeof **out);
    ck_assert_ptr_nonnull(*out);
    **out = (struct key){device, zkey};
    return ERR_NONE;
}

static void fake_free(struct key *key) {
    atomic_fetch_sub(&key_bytes_now, (size_t)key->zkey->domain_size << 10);
    atomic_fetch_sub(&live_keys, 1);
    memset(key, 0xdd, sizeof *key); /* whoever uses it still is found out */
    free(key);
}

static enum err fake_host_alloc(struct device *device, size_t bytes, void **out,
                                struct error *error) {
    (void)device, (void)error;
    size_t *memory = malloc(sizeof *memory + bytes);
    ck_assert_ptr_nonnull(memory);
    *memory = bytes;
    raise_to(&host_peak, atomic_fetch_add(&host_bytes_now, bytes) + bytes);
    *out = memory + 1;
    return ERR_NONE;
}

static void fake_host_free(struct device *device, void *memory) {
    (void)device;
    size_t *start = (size_t *)memory - 1;
    atomic_fetch_sub(&host_bytes_now, *start);
    free(start);
}

static const struct backend fake_backend = {.name = "fake",
                                            .key_memory = fake_memory,
                                            .key_load = fake_load,
                                            .key_free = fake_free,
                                            .host_alloc = fake_host_alloc,
                                            .host_free = fake_host_free};
static struct device fake = {.backend = &fake_backend, .name = "fake"};

/* --- circuits --- */

enum { CIRCUITS = 10 };

static struct error error;
static struct keyring *keyring;
static struct zkey zkeys[CIRCUITS];
static struct loaded_circuit *circuits[CIRCUITS];

static void open_keyring(size_t limit) {
    real_memory = SIZE_MAX;
    ck_assert_int_eq(keyring_open(&fake, limit, &keyring, &error), ERR_NONE);
    for (size_t i = 0; i < CIRCUITS; i++) {
        zkeys[i].domain_size = 16u << i % 4; /* 16, 32, 64 and 128 KiB */
        circuits[i] = calloc(1, sizeof **circuits);
        ck_assert_ptr_nonnull(circuits[i]);
        circuits[i]->circuit_id = (int64_t)i + 1;
        circuits[i]->state = CIRCUIT_LOADING;
        circuits[i]->zkey = &zkeys[i];
        keyring_add(keyring, circuits[i]);
    }
}

static void close_keyring(void) {
    for (size_t i = 0; i < CIRCUITS; i++)
        circuits[i]->zkey = NULL; /* they are not files */
    keyring_close(keyring);
    ck_assert_uint_eq(atomic_load(&key_bytes_now), 0);
    ck_assert_int_eq(atomic_load(&live_keys), 0);
}

static void load_all(void) {
    for (size_t i = 0; i < CIRCUITS; i++) {
        ck_assert_int_eq(keyring_preload(keyring, circuits[i], 1, &error), ERR_NONE);
        keyring_settle(keyring, circuits[i], CIRCUIT_READY);
    }
}

static bool use(size_t i) {
    struct timing timing = {.n = 0};
    bool placed = false, was_there = circuits[i]->key != NULL;
    ck_assert_int_eq(keyring_use(keyring, circuits[i], 0, &timing, &placed, &error), ERR_NONE);
    ck_assert_uint_eq(timing.n, placed && !was_there); /* a step load_key, and only then */
    return placed;
}

START_TEST(nothing_is_claimed_for_a_circuit_that_is_being_loaded) {
    int64_t ids[CIRCUITS];
    open_keyring(SIZE_MAX);
    ck_assert_uint_eq(keyring_claimable(keyring, ids, CIRCUITS), 0);
    ck_assert_uint_eq(keyring_known(keyring, 0, ids, CIRCUITS), CIRCUITS);
    load_all();
    ck_assert_uint_eq(keyring_claimable(keyring, ids, CIRCUITS), CIRCUITS);
    ck_assert_int_eq(atomic_load(&live_keys), CIRCUITS);
    close_keyring();
}
END_TEST

START_TEST(loading_ahead_takes_no_key_away) {
    open_keyring(200 << 10);
    load_all();
    ck_assert_ptr_nonnull(circuits[0]->key);
    ck_assert_ptr_nonnull(circuits[1]->key);
    ck_assert_ptr_nonnull(circuits[2]->key);
    ck_assert_ptr_null(circuits[3]->key);
    ck_assert_int_eq(atomic_load(&live_keys), 5); /* smaller ones behind it still fit */
    close_keyring();
}
END_TEST

START_TEST(the_key_that_was_used_longest_ago_makes_room) {
    open_keyring((128 + 32 + 16 + 64) << 10);
    ck_assert(use(0) && use(1));
    keyring_leave(keyring, circuits[0]);
    keyring_leave(keyring, circuits[1]);
    ck_assert(use(0)); /* now 1 is the older one */
    keyring_leave(keyring, circuits[0]);
    ck_assert(use(3));
    ck_assert(use(4)); /* 128 + 16 + 32 + 16: one has to go */
    ck_assert_ptr_null(circuits[1]->key);
    ck_assert_ptr_nonnull(circuits[0]->key);
    close_keyring();
}
END_TEST

START_TEST(a_key_in_use_stays_and_others_wait_for_it) {
    open_keyring((128 + 64) << 10);
    ck_assert(use(3));
    ck_assert(!use(0));
    ck_assert(!use(7));
    ck_assert(use(3)); /* a second user */
    keyring_leave(keyring, circuits[3]);
    ck_assert(!use(7));
    keyring_leave(keyring, circuits[3]);
    ck_assert(use(7));
    ck_assert_ptr_null(circuits[3]->key);
    close_keyring();
}
END_TEST

START_TEST(a_key_that_never_fits_is_refused) {
    struct timing timing = {.n = 0};
    bool placed;
    open_keyring((128 + 63) << 10);
    ck_assert_int_eq(keyring_preload(keyring, circuits[3], 1, &error), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(keyring_use(keyring, circuits[3], 0, &timing, &placed, &error),
                     ERR_DEVICE_MEMORY);
    ck_assert(!placed);
    ck_assert_ptr_nonnull(strstr(error.text, "--device-memory"));
    close_keyring();
}
END_TEST

START_TEST(a_device_that_is_full_sooner_than_planned_loses_idle_keys_too) {
    struct timing timing = {.n = 0};
    bool placed;
    open_keyring(SIZE_MAX);
    real_memory = 140 << 10;
    ck_assert(use(0) && use(1));
    keyring_leave(keyring, circuits[0]);
    keyring_leave(keyring, circuits[1]);
    ck_assert(use(3));
    ck_assert_int_eq(atomic_load(&live_keys), 1);
    ck_assert(!use(2));
    keyring_leave(keyring, circuits[3]);
    real_memory = 30 << 10;
    ck_assert_int_eq(keyring_use(keyring, circuits[1], 0, &timing, &placed, &error),
                     ERR_DEVICE_MEMORY);
    close_keyring();
}
END_TEST

/* --- a mixed load --- */

enum { PARTITIONS = 20000, WORKERS = 4, BUFFERS_MAX = 12 };

struct work {
    size_t circuit;
    struct buffer *buffer;
};

/* The stages behind the dispatcher: a ring that workers empty. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct work items[PARTITIONS];
    size_t begin, end, done;
    bool is_over;
    struct buffers *buffers;
} stage;

static void *work_main(void *arg) {
    unsigned seed = (unsigned)(uintptr_t)arg;
    pthread_mutex_lock(&stage.mutex);
    for (;;) {
        while (stage.begin == stage.end && !stage.is_over)
            pthread_cond_wait(&stage.changed, &stage.mutex);
        if (stage.begin == stage.end) break;
        struct work work = stage.items[stage.begin++];
        pthread_mutex_unlock(&stage.mutex);
        if (rand_r(&seed) % 16 == 0) usleep((unsigned)rand_r(&seed) % 200);
        ck_assert_ptr_eq(circuits[work.circuit]->key->zkey, &zkeys[work.circuit]);
        memset(work.buffer->bytes, 0xaa, 64);
        work.buffer->used = 64;
        buffers_give(stage.buffers, work.buffer);
        keyring_leave(keyring, circuits[work.circuit]);
        pthread_mutex_lock(&stage.mutex);
        stage.done++;
        pthread_cond_broadcast(&stage.changed);
    }
    pthread_mutex_unlock(&stage.mutex);
    return NULL;
}

/* The dispatcher: in order, and nothing behind what does not fit. */
static void place_in_order(unsigned *seed) {
    struct work work = {.circuit = (size_t)rand_r(seed) % CIRCUITS};
    size_t bytes = ((size_t)zkeys[work.circuit].domain_size << 10) / 2;
    bool placed = false;
    for (;;) {
        if (!placed) placed = use(work.circuit);
        if (placed)
            ck_assert_int_eq(buffers_take(stage.buffers, bytes, &work.buffer, &error), ERR_NONE);
        if (work.buffer) break;
        usleep(20);
    }
    ck_assert_uint_ge(work.buffer->capacity, bytes);
    pthread_mutex_lock(&stage.mutex);
    stage.items[stage.end++] = work;
    pthread_cond_broadcast(&stage.changed);
    pthread_mutex_unlock(&stage.mutex);
}

START_TEST(ten_circuits_of_which_few_fit_never_exceed_their_bounds_and_all_get_their_turn) {
    const size_t device_limit = 300 << 10, host_limit = 256 << 10;
    struct budget budget;
    pthread_t threads[WORKERS];
    unsigned seed = 12345;
    atomic_store(&key_peak, 0);
    atomic_store(&host_peak, 0);
    open_keyring(device_limit);
    load_all();
    budget_init(&budget, host_limit);
    pthread_mutex_init(&stage.mutex, NULL);
    pthread_cond_init(&stage.changed, NULL);
    ck_assert_int_eq(buffers_open(&fake, &budget, BUFFERS_MAX, &stage.buffers, &error), ERR_NONE);
    for (size_t i = 0; i < WORKERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work_main, (void *)(uintptr_t)(i + 1)),
                         0);
    for (size_t order = 0; order < PARTITIONS; order++)
        place_in_order(&seed);
    pthread_mutex_lock(&stage.mutex);
    stage.is_over = true;
    pthread_cond_broadcast(&stage.changed);
    pthread_mutex_unlock(&stage.mutex);
    for (size_t i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(stage.done, PARTITIONS);

    size_t planned;
    uint64_t evictions;
    keyring_figures(keyring, &planned, &evictions);
    ck_assert_uint_gt(evictions, 100);
    ck_assert_uint_le(planned, device_limit);
    ck_assert_uint_le(atomic_load(&key_peak), planned);
    ck_assert_uint_gt(atomic_load(&key_peak), device_limit / 3);
    ck_assert_uint_le(atomic_load(&host_peak), host_limit);
    ck_assert_uint_eq(atomic_load(&host_peak), budget_peak(&budget));
    buffers_close(stage.buffers);
    ck_assert_uint_eq(atomic_load(&host_bytes_now), 0);
    ck_assert_uint_eq(budget.used, 0);
    budget_destroy(&budget);
    close_keyring();
}
END_TEST

/* --- budgets --- */

START_TEST(a_budget_is_never_exceeded) {
    struct budget budget;
    budget_init(&budget, 100);
    ck_assert(budget_reserve(&budget, 60));
    ck_assert(!budget_reserve(&budget, 41));
    ck_assert(!budget_reserve(&budget, SIZE_MAX));
    ck_assert(budget_reserve(&budget, 40));
    budget_give_back(&budget, 60);
    ck_assert(budget_reserve(&budget, 1));
    ck_assert_uint_eq(budget_peak(&budget), 100);
    budget_destroy(&budget);
}
END_TEST

START_TEST(this_machine_has_some_memory) {
    ck_assert_uint_gt(host_memory(), 1 << 20);
    ck_assert_uint_lt(host_memory(), SIZE_MAX);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &nothing_is_claimed_for_a_circuit_that_is_being_loaded,
        &loading_ahead_takes_no_key_away,
        &the_key_that_was_used_longest_ago_makes_room,
        &a_key_in_use_stays_and_others_wait_for_it,
        &a_key_that_never_fits_is_refused,
        &a_device_that_is_full_sooner_than_planned_loses_idle_keys_too,
        &ten_circuits_of_which_few_fit_never_exceed_their_bounds_and_all_get_their_turn,
        &a_budget_is_never_exceeded,
        &this_machine_has_some_memory};
    return run_tests("keyring", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
