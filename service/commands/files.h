/* The commands that work on files alone: no database, no network.
 *
 * Each takes the parsed command line, prints its result to standard output and remarks (warnings,
 * what `--device auto` chose, times) to standard error, so that output can be piped. The argument
 * order of prove and verify is that of rapidsnark and snarkjs.
 */
#ifndef PROVERQ_COMMANDS_FILES_H
#define PROVERQ_COMMANDS_FILES_H

#include "service/common/options.h"

/* Proves, verifies the proof with the key's own verification key, and only then writes proof and
 * public values, each file whole or not at all. A proof that does not verify is not written: it is
 * ERR_KEY when the key fails its check, ERR_DEVICE_FAULT when the CPU finds a valid proof where the
 * device did not, else ERR_WITNESS. Warns of keys whose proofs can be forged. */
MUST_USE enum err files_prove(const struct options *options, struct error *error);

/* Prints "valid" and returns ERR_NONE, or prints "invalid: " and the reason and returns the error,
 * with *printed set; other errors (a missing file) leave *printed false. */
MUST_USE enum err files_verify(const struct options *options, bool *printed, struct error *error);

/* Prints the verification key of a proving key as snarkjs's JSON. */
MUST_USE enum err files_vkey(const struct options *options, struct error *error);

/* Writes a development key, and says that it is one. */
MUST_USE enum err files_setup(const struct options *options, struct error *error);

#endif
