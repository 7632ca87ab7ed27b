/* Getting a witness: computed from inputs, from the row, or from a file below the witness root; then
 * checked against the key. */
#ifndef PROVERQ_SYNTHESIS_H
#define PROVERQ_SYNTHESIS_H

#include "gpu/wtns.h"
#include "service/prover/buffers.h"

/* Bytes of a buffer that holds any .wtns file of this key: its values, and room for the headers. */
size_t witness_buffer_bytes(const struct zkey *zkey);

/* Reads the file `path`, relative to the folder `root` ("": this host has none), which it must not
 * leave, by a symbolic link neither. ERR_ABSENT: not on this host. ERR_INPUT: it is outside, or no
 * regular file. ERR_MISMATCH: larger than the buffer. ERR_IO. */
MUST_USE enum err witness_read_file(const char *root, const char *path, struct buffer *buffer,
                                    struct error *error);

/* Copies the bytes of a row. ERR_MISMATCH: larger than the buffer. */
MUST_USE enum err witness_copy(const uint8_t *bytes, size_t n, struct buffer *buffer,
                               struct error *error);

/* Parses what the buffer holds, range checks every value, and compares with the key. The caller
 * closes *out before the buffer is used again. */
MUST_USE enum err witness_check(const struct buffer *buffer, const struct zkey *zkey,
                                struct wtns **out, struct error *error);

#endif
