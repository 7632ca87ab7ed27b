/* A circuit version as the database describes it to those that use it: provers, and people who ask.
 */
#ifndef PROVERQ_CIRCUIT_ROW_H
#define PROVERQ_CIRCUIT_ROW_H

#include "service/db/db.h"

/* No row: there is no such version. An artefact that the circuit does not have, or that is not for
 * this machine, is NULL; the path of one whose chunks are in the database is NULL, too. */
#define CIRCUIT_COLUMNS(X)                                                                         \
    X(CIRCUIT_NAME, "name", "t")                                                                   \
    X(CIRCUIT_VERSION, "version", "i")                                                             \
    X(CIRCUIT_CURVE, "curve", "t")                                                                 \
    X(CIRCUIT_N_VARS, "n_vars", "i")                                                               \
    X(CIRCUIT_N_PUBLIC, "n_public", "i")                                                           \
    X(CIRCUIT_LOG_DOMAIN, "log_domain", "i")                                                       \
    X(CIRCUIT_ZKEY, "zkey", "x")                                                                   \
    X(CIRCUIT_ZKEY_BYTES, "zkey_bytes", "l")                                                       \
    X(CIRCUIT_ZKEY_PATH, "zkey_path", "t")                                                         \
    X(CIRCUIT_R1CS, "r1cs", "x")                                                                   \
    X(CIRCUIT_R1CS_BYTES, "r1cs_bytes", "l")                                                       \
    X(CIRCUIT_R1CS_PATH, "r1cs_path", "t")                                                         \
    X(CIRCUIT_VKEY, "vkey", "t")                                                                   \
    X(CIRCUIT_INSECURE, "insecure", "b")                                                           \
    X(CIRCUIT_CALCULATOR, "calculator", "t")                                                       \
    X(CIRCUIT_COMPILED, "compiled", "x")                                                           \
    X(CIRCUIT_COMPILED_BYTES, "compiled_bytes", "l")                                               \
    X(CIRCUIT_COMPILED_PATH, "compiled_path", "t")                                                 \
    X(CIRCUIT_DAT, "dat", "x")                                                                     \
    X(CIRCUIT_DAT_BYTES, "dat_bytes", "l")                                                         \
    X(CIRCUIT_DAT_PATH, "dat_path", "t")                                                           \
    X(CIRCUIT_N_INPUTS, "n_inputs", "i")                                                           \
    X(CIRCUIT_INPUT_SIGNALS, "input_signals", "t")

enum circuit_column { CIRCUIT_COLUMNS(DB_COLUMN) };

/* The three columns of an artefact. */
struct circuit_artefact {
    enum circuit_column sha256, bytes, path;
};
#define CIRCUIT_ARTEFACT(name)                                                                     \
    ((struct circuit_artefact){CIRCUIT_##name, CIRCUIT_##name##_BYTES, CIRCUIT_##name##_PATH})

/* Parameters: the version's id, the machine (uname -m). */
extern const struct db_statement circuit_get;

#endif
