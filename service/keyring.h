/* The circuits that this prover knows: their keys on the device, or why it does not prove them.
 *
 * The loader adds, the dispatcher looks up; an entry stays at its place until keyring_close.
 */
#ifndef PROVERQ_KEYRING_H
#define PROVERQ_KEYRING_H

#include "gpu/prover.h"
#include "gpu/r1cs.h"
#include "gpu/vkey.h"
#include "gpu/zkey.h"
#include "service/artefact.h"
#include "service/calculator.h"
#include "service/timing.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum held_state {
    HELD_READY,   /* its key is on the device */
    HELD_BAD,     /* its artefacts are wrong: its partitions fail, on any prover */
    HELD_REFUSED, /* this prover cannot: its partitions are left to others */
};

enum { CIRCUIT_NAME_BYTES = 104 };

struct held {
    int64_t circuit_id;
    char name[CIRCUIT_NAME_BYTES];
    int32_t version;
    enum held_state state;
    struct error error; /* unless ready: why */
    int64_t retry_ns;   /* refused: when to try again, CLOCK_MONOTONIC */

    /* While ready; owned. */
    struct zkey *zkey;
    struct vkey *vkey;
    struct key *key;
    struct calculator *calculator; /* NULL: none, or none for this machine */
    bool has_r1cs;
    struct artefact r1cs;
    struct r1cs *constraints; /* opened by the finish stage when a proof does not verify */

    struct timing loading; /* fetch, check, load: goes to the first partition that is claimed */
    struct held *next;
};

struct keyring;

MUST_USE enum err keyring_open(struct keyring **out, struct error *error);

/* Frees the entries and their keys; no proof may be pending. NULL may be closed. */
void keyring_close(struct keyring *keyring);

/* Takes `held` over, in the place of an entry of the same circuit that was refused. */
void keyring_add(struct keyring *keyring, struct held *held);

/* The entry of a circuit, or NULL. */
struct held *keyring_find(struct keyring *keyring, int64_t circuit_id);

/* Circuits whose partitions may be claimed (ready and bad ones), at most `max`. */
size_t keyring_claimable(struct keyring *keyring, int64_t *ids, size_t max);

/* Circuits that need no loading at `now_ns`: all but those refused whose time has come. */
size_t keyring_known(struct keyring *keyring, int64_t now_ns, int64_t *ids, size_t max);

/* Moves the steps of loading, if nobody had them yet, to `timing`. */
void keyring_take_loading(struct keyring *keyring, struct held *held, struct timing *timing);

/* Frees what `held` owns, and it. */
void held_free(struct held *held);

#endif
