/* Artefacts (proving keys, constraint systems, calculators): found by their SHA-256, in the database in chunks
 * or in a folder that every host sees; kept in a cache on this host.
 *
 * A file of the cache is called by its hash; it appears whole or not at all, however many processes
 * fetch it at once, and its hash is checked each time before it is used.
 */
#ifndef PROVERQ_ARTEFACT_H
#define PROVERQ_ARTEFACT_H

#include "gpu/error.h"
#include "service/db/db.h"

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_HEX_BYTES = 65, ARTEFACT_CHUNK_BYTES = 1048576 };

struct sha256 {
    uint8_t bytes[SHA256_BYTES];
};

enum artefact_kind {
    ARTEFACT_ZKEY,
    ARTEFACT_R1CS,
    ARTEFACT_WASM,       /* a calculator as circom made it */
    ARTEFACT_CALCULATOR, /* the same compiled, or a program, for one machine */
    ARTEFACT_DAT,        /* a program's data */
};

struct artefact {
    enum artefact_kind kind;
    struct sha256 sha256;
    uint64_t bytes;
    char path[512]; /* below the artefact folder; "" when its chunks are in the database */
};

/* Where to keep and find files. Both strings are the caller's. */
struct artefact_places {
    const char *cache; /* artefact_cache_dir */
    const char *root;  /* the artefact folder; "" when this host has none */
};

/* The statements that artefact_fetch, and artefact_store, run: give them to db_open. */
extern const struct db_statement artefact_chunk_get;
extern const struct db_statement artefact_put, artefact_chunk_put;

/* "zkey", "r1cs", "wasm", "calculator" or "dat": also how its file's name ends. */
const char *artefact_kind_name(enum artefact_kind kind);

void sha256_format(const struct sha256 *hash, char out[SHA256_HEX_BYTES]);

/* The folder of the cache, made if it is missing: `option` if not empty, else $CACHE_DIRECTORY,
 * $XDG_CACHE_HOME/proverq, $HOME/.cache/proverq, or /var/cache/proverq. The caller frees *out. */
MUST_USE enum err artefact_cache_dir(const char *option, char **out, struct error *error);

/* The hash and size of the file at `path`. */
MUST_USE enum err artefact_hash(const char *path, struct sha256 *hash, uint64_t *bytes,
                                struct error *error);

/* A path of the artefact on this host, its hash checked: in the artefact folder, in the cache, or
 * fetched into it. ERR_MISMATCH when what the database or the folder has is not what the hash says;
 * ERR_ABSENT when it is in an artefact folder that this host does not have; ERR_IO when the cache
 * cannot be written. *fetched says whether it came over the network. The caller frees *path. */
MUST_USE enum err artefact_fetch(const struct artefact_places *places, struct db *db,
                                 const struct artefact *artefact, char **path, bool *fetched,
                                 struct error *error);

/* What the file would be stored as: in chunks when it has at most `limit` bytes, else as a copy in
 * the artefact folder (ERR_USAGE when there is none). */
MUST_USE enum err artefact_describe(const struct artefact_places *places, enum artefact_kind kind,
                                    const char *file, uint64_t limit, struct artefact *out,
                                    struct error *error);

/* Stores the file as it was described, in the caller's transaction. Harmless when it is stored
 * already; ERR_IO when it has changed since. */
MUST_USE enum err artefact_store(const struct artefact_places *places, struct db *db,
                                 const char *file, const struct artefact *artefact,
                                 struct error *error);

/* Remembers beside the cache's file that the artefact passed a check, and tells whether it did. */
MUST_USE enum err artefact_mark_checked(const struct artefact_places *places,
                                        const struct sha256 *hash, struct error *error);
bool artefact_is_checked(const struct artefact_places *places, const struct sha256 *hash);

#endif
