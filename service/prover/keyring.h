/* The circuits that this prover knows: their keys, or why it does not prove them.
 *
 * The loader adds, the dispatcher looks up; an entry stays at its place until keyring_close. Keys
 * come and go on the device: when all do not fit at once, the one that was used longest ago makes
 * room, but never one in use. The order in which keys are placed is the dispatcher's, which is that
 * of the claims, so two partitions never wait for each other's keys.
 */
#ifndef PROVERQ_KEYRING_H
#define PROVERQ_KEYRING_H

#include "gpu/prover.h"
#include "gpu/r1cs.h"
#include "gpu/vkey.h"
#include "gpu/zkey.h"
#include "service/calculator/calculator.h"
#include "service/db/artefact.h"
#include "service/prover/timing.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum circuit_state {
    CIRCUIT_LOADING, /* nothing is claimed for it yet */
    CIRCUIT_READY,   /* its key is checked, and on the device when it is needed */
    CIRCUIT_BAD,     /* its artefacts are wrong: its partitions fail, on any prover */
    CIRCUIT_REFUSED, /* this prover cannot: its partitions are left to others */
};

enum { CIRCUIT_NAME_BYTES = 104 };

struct loaded_circuit {
    int64_t circuit_id;
    char name[CIRCUIT_NAME_BYTES];
    int32_t version;
    enum circuit_state state;
    struct error error; /* unless ready: why */
    int64_t retry_ns;   /* refused: when to try again, CLOCK_MONOTONIC */

    /* While ready; owned. */
    struct zkey *zkey;
    struct vkey *vkey;
    struct calculator *calculator; /* NULL: none, or none for this machine */
    bool has_r1cs;
    struct artefact r1cs;
    struct r1cs *constraints; /* opened by the verify stage when a proof does not verify */

    /* The key on the device; NULL while it is not there. Stays while there are users. */
    struct key *key;
    size_t key_bytes, scratch_bytes; /* of device memory: for the key, for proofs beside it */
    unsigned users;
    uint64_t last_use; /* counts placements */

    struct timing loading; /* fetch, check, load: goes to the first partition that is claimed */
    struct loaded_circuit *next;
};

struct keyring;

/* For keys on `device`, which together, and with the memory of proofs beside the largest, take at
 * most `limit` bytes of it (SIZE_MAX: what there is). */
MUST_USE enum err keyring_open(struct device *device, size_t limit, struct keyring **out,
                               struct error *error);

/* Frees the entries and their keys; no proof may be pending. NULL may be closed. */
void keyring_close(struct keyring *keyring);

/* Takes `circuit` over, in the place of an entry of the same circuit that was refused. */
void keyring_add(struct keyring *keyring, struct loaded_circuit *circuit);

/* The entry of a circuit, or NULL. */
struct loaded_circuit *keyring_find(struct keyring *keyring, int64_t circuit_id);

/* Circuits whose partitions may be claimed (ready and bad ones), at most `max`. */
size_t keyring_claimable(struct keyring *keyring, int64_t *ids, size_t max);

/* Circuits that need no loading at `now_ns`: all but those refused whose time has come. */
size_t keyring_known(struct keyring *keyring, int64_t now_ns, int64_t *ids, size_t max);

/* Puts the key of a ready entry on the device and makes the caller one of its users (*placed), or
 * finds that keys in use leave no room for it: then it is to be tried again when one has lost a
 * user. ERR_DEVICE_MEMORY when it does not fit even alone. Adds a step load_key of `worker` to
 * `timing` if it had to be loaded. For the dispatcher. */
MUST_USE enum err keyring_use(struct keyring *keyring, struct loaded_circuit *circuit,
                              int16_t worker, struct timing *timing, bool *placed,
                              struct error *error);
void keyring_leave(struct keyring *keyring, struct loaded_circuit *circuit);

/* Puts the key of a loading entry on the device if there is room without taking another away, which
 * is no error. ERR_DEVICE_MEMORY when it does not fit even alone. Adds to its `loading`. For the
 * loader. */
MUST_USE enum err keyring_preload(struct keyring *keyring, struct loaded_circuit *circuit,
                                  int16_t worker, struct error *error);

/* Ends the loading of an entry: ready, bad or refused. */
void keyring_settle(struct keyring *keyring, struct loaded_circuit *circuit,
                    enum circuit_state state);

/* What keys and proofs took of the device at most, and how many keys had to make room. */
void keyring_figures(struct keyring *keyring, size_t *peak_bytes, uint64_t *evictions);

/* Moves the steps of loading, if nobody had them yet, to `timing`. */
void keyring_take_loading(struct keyring *keyring, struct loaded_circuit *circuit,
                          struct timing *timing);

/* Frees what `circuit` owns, and it. */
void loaded_circuit_free(struct loaded_circuit *circuit);

#endif
