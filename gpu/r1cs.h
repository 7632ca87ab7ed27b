/* Rank-1 constraint systems as circom writes them (.r1cs version 1), and their making.
 *
 * Constraint i says <a_i, w> * <b_i, w> = <c_i, w>. The file is read in place; every wire index is
 * below n_vars and every coefficient below r after r1cs_open.
 */
#ifndef PROVERQ_R1CS_H
#define PROVERQ_R1CS_H

#include "gpu/curve.h"
#include "gpu/error.h"
#include "gpu/wtns.h"

/* A term of a linear combination: wire times coefficient (plain). Packed as in the file. */
struct r1cs_term {
    uint8_t wire_le[4];
    struct scalar coefficient;
};

struct r1cs_row {
    const struct r1cs_term *terms;
    uint32_t n;
};

struct r1cs_constraint {
    struct r1cs_row a, b, c;
};

struct r1cs {
    const struct curve_info *curve;
    uint32_t n_vars;   /* wires, the constant 1 included */
    uint32_t n_public; /* outputs + public inputs: wires 1 .. n_public */
    uint32_t n_constraints;
    struct r1cs_constraint *constraints; /* rows point into the file */
    struct mapped_file *file;            /* NULL: it was made in memory */
};

static inline uint32_t r1cs_wire(const struct r1cs_term *term) {
    return (uint32_t)term->wire_le[0] | (uint32_t)term->wire_le[1] << 8 |
           (uint32_t)term->wire_le[2] << 16 | (uint32_t)term->wire_le[3] << 24;
}

/* Maps and checks the system at `path`. The caller closes it; NULL may be closed. */
MUST_USE enum err r1cs_open(const char *path, struct r1cs **out, struct error *error);
void r1cs_close(struct r1cs *r1cs);

/* ERR_WITNESS, naming the first constraint that `wtns` does not satisfy; ERR_MISMATCH when curve or
 * number of wires differ. */
MUST_USE enum err r1cs_check_witness(const struct r1cs *r1cs, const struct wtns *wtns,
                                     struct error *error);

#endif
