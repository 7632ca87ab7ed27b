/* Witnesses as circom's calculators write them (.wtns version 2).
 *
 * Checked on opening: the magic, version and sections; that the file has exactly the values that it
 * announces; that element 0 is 1 and every value is below r. Whether it belongs to a key is
 * wtns_matches's to say.
 */
#ifndef PROVERQ_WTNS_H
#define PROVERQ_WTNS_H

#include "gpu/curve.h"
#include "gpu/error.h"
#include "gpu/zkey.h"

struct wtns {
    const struct curve_info *curve;
    const struct scalar *values; /* n_vars plain values; values[0] is 1 */
    uint32_t n_vars;
    struct mapped_file *file; /* NULL when parsed from memory */
};

/* Reads and checks the witness at `path`, in memory that nobody else can change afterwards (see
 * mapped_file.h) and that is wiped on closing. The caller closes it; NULL may be closed. */
MUST_USE enum err wtns_open(const char *path, struct wtns **out, struct error *error);

/* The same for `size` bytes at `bytes`, which stay the caller's and must outlive the result. */
MUST_USE enum err wtns_parse(const uint8_t *bytes, size_t size, struct wtns **out,
                             struct error *error);
void wtns_close(struct wtns *wtns);

/* ERR_MISMATCH, with the reason, unless curve and number of signals are the key's. */
MUST_USE enum err wtns_matches(const struct wtns *wtns, const struct zkey *zkey,
                               struct error *error);

/* Writes n_vars values as a version 2 file. */
MUST_USE enum err wtns_write(const char *path, const struct curve_info *curve,
                             const struct scalar *values, uint32_t n_vars, struct error *error);

#endif
