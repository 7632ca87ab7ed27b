#include "service/prover/keyring.h"
#include "gpu/monotonic.h"
#include "service/common/log.h"

#include <stdlib.h>

/* `placing` is held while a key comes or goes, before `mutex`, under which everything else changes;
 * nothing is loaded or freed under `mutex`. */
struct keyring {
    pthread_mutex_t placing, mutex;
    struct device *device;
    size_t limit, peak;
    uint64_t placements, evictions;
    struct loaded_circuit *first;
};

enum err keyring_open(struct device *device, size_t limit, struct keyring **out,
                      struct error *error) {
    struct keyring *keyring = calloc(1, sizeof *keyring);
    if (!keyring) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    pthread_mutex_init(&keyring->placing, NULL);
    pthread_mutex_init(&keyring->mutex, NULL);
    keyring->device = device;
    keyring->limit = limit;
    *out = keyring;
    return ERR_NONE;
}

void loaded_circuit_free(struct loaded_circuit *circuit) {
    if (!circuit) return;
    key_free(circuit->key);
    vkey_free(circuit->vkey);
    zkey_close(circuit->zkey);
    r1cs_close(circuit->constraints);
    calculator_free(circuit->calculator);
    free(circuit);
}

void keyring_close(struct keyring *keyring) {
    if (!keyring) return;
    while (keyring->first) {
        struct loaded_circuit *circuit = keyring->first;
        keyring->first = circuit->next;
        loaded_circuit_free(circuit);
    }
    pthread_mutex_destroy(&keyring->mutex);
    pthread_mutex_destroy(&keyring->placing);
    free(keyring);
}

/* An entry that was refused has no tasks: it was never claimable. */
void keyring_add(struct keyring *keyring, struct loaded_circuit *circuit) {
    struct loaded_circuit *old = NULL;
    pthread_mutex_lock(&keyring->mutex);
    for (struct loaded_circuit **at = &keyring->first; *at; at = &(*at)->next)
        if ((*at)->circuit_id == circuit->circuit_id) {
            old = *at;
            *at = old->next;
            break;
        }
    circuit->next = keyring->first;
    keyring->first = circuit;
    pthread_mutex_unlock(&keyring->mutex);
    loaded_circuit_free(old);
}

struct loaded_circuit *keyring_find(struct keyring *keyring, int64_t circuit_id) {
    struct loaded_circuit *circuit;
    pthread_mutex_lock(&keyring->mutex);
    for (circuit = keyring->first; circuit && circuit->circuit_id != circuit_id;)
        circuit = circuit->next;
    pthread_mutex_unlock(&keyring->mutex);
    return circuit;
}

size_t keyring_claimable(struct keyring *keyring, int64_t *ids, size_t max) {
    size_t n = 0;
    pthread_mutex_lock(&keyring->mutex);
    for (struct loaded_circuit *circuit = keyring->first; circuit && n < max;
         circuit = circuit->next)
        if (circuit->state == CIRCUIT_READY || circuit->state == CIRCUIT_BAD)
            ids[n++] = circuit->circuit_id;
    pthread_mutex_unlock(&keyring->mutex);
    return n;
}

size_t keyring_known(struct keyring *keyring, int64_t now_ns, int64_t *ids, size_t max) {
    size_t n = 0;
    pthread_mutex_lock(&keyring->mutex);
    for (struct loaded_circuit *circuit = keyring->first; circuit && n < max;
         circuit = circuit->next)
        if (circuit->state != CIRCUIT_REFUSED || circuit->retry_ns > now_ns)
            ids[n++] = circuit->circuit_id;
    pthread_mutex_unlock(&keyring->mutex);
    return n;
}

void keyring_take_loading(struct keyring *keyring, struct loaded_circuit *circuit,
                          struct timing *timing) {
    pthread_mutex_lock(&keyring->mutex);
    for (size_t i = 0; i < circuit->loading.n && timing->n < TIMING_MAX; i++)
        timing->spans[timing->n++] = circuit->loading.spans[i];
    circuit->loading.n = 0;
    pthread_mutex_unlock(&keyring->mutex);
}

/* --- keys on the device: with `placing` --- */

static size_t plus(size_t a, size_t b) {
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

/* Device memory that the keys take with `circuit` among them: all of them, and the memory of proofs,
 * which they share. */
static size_t needed_with(struct keyring *keyring, const struct loaded_circuit *circuit) {
    size_t keys = circuit->key_bytes, scratch = circuit->scratch_bytes;
    pthread_mutex_lock(&keyring->mutex);
    for (const struct loaded_circuit *at = keyring->first; at; at = at->next) {
        if (!at->key || at == circuit) continue;
        keys = plus(keys, at->key_bytes);
        if (at->scratch_bytes > scratch) scratch = at->scratch_bytes;
    }
    pthread_mutex_unlock(&keyring->mutex);
    return plus(keys, scratch);
}

static bool any_on_device(struct keyring *keyring) {
    bool any = false;
    pthread_mutex_lock(&keyring->mutex);
    for (const struct loaded_circuit *at = keyring->first; at; at = at->next)
        any = any || at->key;
    pthread_mutex_unlock(&keyring->mutex);
    return any;
}

/* Frees the key that was used longest ago; false when all are in use. */
static bool evict_one(struct keyring *keyring) {
    struct loaded_circuit *oldest = NULL;
    struct key *key = NULL;
    pthread_mutex_lock(&keyring->mutex);
    for (struct loaded_circuit *at = keyring->first; at; at = at->next)
        if (at->key && at->users == 0 && (!oldest || at->last_use < oldest->last_use)) oldest = at;
    if (oldest) {
        key = oldest->key;
        oldest->key = NULL;
        keyring->evictions++;
    }
    pthread_mutex_unlock(&keyring->mutex);
    if (!oldest) return false;
    key_free(key);
    log_debug("a key made room for another", log_text("circuit", oldest->name),
              log_number("version", oldest->version),
              log_number("bytes", (int64_t)oldest->key_bytes));
    return true;
}

static enum err plan(struct keyring *keyring, struct loaded_circuit *circuit, struct error *error) {
    enum err rc;
    TRY(key_memory(keyring->device, circuit->zkey, &circuit->key_bytes, &circuit->scratch_bytes,
                   error));
    if (plus(circuit->key_bytes, circuit->scratch_bytes) > keyring->limit)
        TRY(error_set(error, ERR_DEVICE_MEMORY,
                      "the key needs %zu bytes of the device and a proof %zu; the prover may use "
                      "%zu (--device-memory, on the CPU also --host-memory)",
                      circuit->key_bytes, circuit->scratch_bytes, keyring->limit));
fail:
    return rc;
}

/* Loads the key, after others have made room if `evicts`. Without room it is not loaded: no error
 * as long as there are keys that may go one day. */
static enum err load(struct keyring *keyring, struct loaded_circuit *circuit, bool evicts,
                     struct error *error) {
    struct key *key = NULL;
    size_t bytes;
    enum err rc;
    do {
        TRY(plan(keyring, circuit, error)); /* a device may plan for what is free now */
        while ((bytes = needed_with(keyring, circuit)) > keyring->limit)
            if (!evicts || !evict_one(keyring)) return ERR_NONE;
        rc = key_load(keyring->device, circuit->zkey, &key, error);
    } while (rc == ERR_DEVICE_MEMORY && evicts && evict_one(keyring));
    if (rc == ERR_DEVICE_MEMORY && any_on_device(keyring)) return ERR_NONE;
    if (rc != ERR_NONE) goto fail;
    pthread_mutex_lock(&keyring->mutex);
    circuit->key = key;
    circuit->last_use = ++keyring->placements;
    if (bytes > keyring->peak) keyring->peak = bytes;
    pthread_mutex_unlock(&keyring->mutex);
fail:
    return rc;
}

enum err keyring_use(struct keyring *keyring, struct loaded_circuit *circuit, int16_t worker,
                     struct timing *timing, bool *placed, struct error *error) {
    enum err rc = ERR_NONE;
    pthread_mutex_lock(&keyring->placing);
    if (!circuit->key) {
        int64_t start = monotonic_ns();
        rc = load(keyring, circuit, true, error);
        if (circuit->key) timing_end(timing, STEP_LOAD_KEY, worker, start);
    }
    pthread_mutex_lock(&keyring->mutex);
    *placed = rc == ERR_NONE && circuit->key;
    if (*placed) {
        circuit->users++;
        circuit->last_use = ++keyring->placements;
    }
    pthread_mutex_unlock(&keyring->mutex);
    pthread_mutex_unlock(&keyring->placing);
    return rc;
}

void keyring_leave(struct keyring *keyring, struct loaded_circuit *circuit) {
    pthread_mutex_lock(&keyring->mutex);
    circuit->users--;
    pthread_mutex_unlock(&keyring->mutex);
}

enum err keyring_preload(struct keyring *keyring, struct loaded_circuit *circuit, int16_t worker,
                         struct error *error) {
    int64_t start = monotonic_ns();
    pthread_mutex_lock(&keyring->placing);
    enum err rc = load(keyring, circuit, false, error);
    pthread_mutex_unlock(&keyring->placing);
    if (circuit->key) timing_end(&circuit->loading, STEP_LOAD_KEY, worker, start);
    return rc;
}

void keyring_settle(struct keyring *keyring, struct loaded_circuit *circuit,
                    enum circuit_state state) {
    pthread_mutex_lock(&keyring->mutex);
    circuit->state = state;
    pthread_mutex_unlock(&keyring->mutex);
}

void keyring_figures(struct keyring *keyring, size_t *peak_bytes, uint64_t *evictions) {
    pthread_mutex_lock(&keyring->mutex);
    *peak_bytes = keyring->peak;
    *evictions = keyring->evictions;
    pthread_mutex_unlock(&keyring->mutex);
}
