#include "service/keyring.h"

#include <stdlib.h>

struct keyring {
    pthread_mutex_t mutex;
    struct held *first;
};

enum err keyring_open(struct keyring **out, struct error *error) {
    struct keyring *keyring = calloc(1, sizeof *keyring);
    if (!keyring) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    pthread_mutex_init(&keyring->mutex, NULL);
    *out = keyring;
    return ERR_NONE;
}

void held_free(struct held *held) {
    if (!held) return;
    key_free(held->key);
    vkey_free(held->vkey);
    zkey_close(held->zkey);
    r1cs_close(held->constraints);
    calculator_free(held->calculator);
    free(held);
}

void keyring_close(struct keyring *keyring) {
    if (!keyring) return;
    while (keyring->first) {
        struct held *held = keyring->first;
        keyring->first = held->next;
        held_free(held);
    }
    pthread_mutex_destroy(&keyring->mutex);
    free(keyring);
}

/* An entry that was refused has no tasks: it was never claimable. */
void keyring_add(struct keyring *keyring, struct held *held) {
    struct held *old = NULL;
    pthread_mutex_lock(&keyring->mutex);
    for (struct held **at = &keyring->first; *at; at = &(*at)->next)
        if ((*at)->circuit_id == held->circuit_id) {
            old = *at;
            *at = old->next;
            break;
        }
    held->next = keyring->first;
    keyring->first = held;
    pthread_mutex_unlock(&keyring->mutex);
    held_free(old);
}

struct held *keyring_find(struct keyring *keyring, int64_t circuit_id) {
    struct held *held;
    pthread_mutex_lock(&keyring->mutex);
    for (held = keyring->first; held && held->circuit_id != circuit_id;)
        held = held->next;
    pthread_mutex_unlock(&keyring->mutex);
    return held;
}

size_t keyring_claimable(struct keyring *keyring, int64_t *ids, size_t max) {
    size_t n = 0;
    pthread_mutex_lock(&keyring->mutex);
    for (struct held *held = keyring->first; held && n < max; held = held->next)
        if (held->state != HELD_REFUSED) ids[n++] = held->circuit_id;
    pthread_mutex_unlock(&keyring->mutex);
    return n;
}

size_t keyring_known(struct keyring *keyring, int64_t now_ns, int64_t *ids, size_t max) {
    size_t n = 0;
    pthread_mutex_lock(&keyring->mutex);
    for (struct held *held = keyring->first; held && n < max; held = held->next)
        if (held->state != HELD_REFUSED || held->retry_ns > now_ns) ids[n++] = held->circuit_id;
    pthread_mutex_unlock(&keyring->mutex);
    return n;
}

void keyring_take_loading(struct keyring *keyring, struct held *held, struct timing *timing) {
    pthread_mutex_lock(&keyring->mutex);
    for (size_t i = 0; i < held->loading.n && timing->n < TIMING_MAX; i++)
        timing->spans[timing->n++] = held->loading.spans[i];
    held->loading.n = 0;
    pthread_mutex_unlock(&keyring->mutex);
}
