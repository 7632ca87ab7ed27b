/* Circuits of any size with a witness that satisfies them: .r1cs and .wtns files for tests and
 * benchmarks, the same for the same seed.
 *
 * Dense: a chain of full-size values, seven terms a constraint, as a MiMC hash makes. Bits: boolean
 * checks, XOR, AND and packing into words, as SHA-256 makes; most values are 0 or 1.
 */
#ifndef PROVERQ_TESTS_R1CS_BUILDER_H
#define PROVERQ_TESTS_R1CS_BUILDER_H

#include "gpu/curve.h"
#include "gpu/error.h"

enum circuit_kind { CIRCUIT_DENSE, CIRCUIT_BITS };

struct circuit_spec {
    enum curve_id curve;
    enum circuit_kind kind;
    uint32_t n_constraints; /* >= 1 */
    uint32_t n_public;      /* may be 0 */
    uint32_t n_unused;      /* wires in no constraint: their points in a key are infinity */
    uint64_t seed;
    uint64_t inputs; /* dense: another witness of the same constraints for each number */
};

/* The number of constraints that makes a key's domain exactly 2^log2, with no row to spare. */
uint32_t circuit_constraints(unsigned log2, uint32_t n_public);

/* Writes both files. */
MUST_USE enum err circuit_write(const struct circuit_spec *spec, const char *r1cs_path,
                                const char *wtns_path, struct error *error);

#endif
