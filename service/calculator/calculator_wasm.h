/* A circom calculator that `proverq circuit add` made a shared object of: inputs in, witness out.
 *
 * For the process that does nothing else (calculator_process.h): there is one calculator in it, a
 * trap of the calculator jumps back into the call, and SIGSEGV is its own. Known are three
 * interfaces: today's circom 2; the first versions of circom 2, which have no getInputSignalSize
 * and no messages; and circom 1 (its memory is imported, signals are told by getSignalOffset32).
 * Learned from circom_runtime 0.1.28 (js/witness_calculator.js) and from the calculators' code.
 */
#ifndef PROVERQ_CALCULATOR_WASM_H
#define PROVERQ_CALCULATOR_WASM_H

#include "service/calculator/inputs.h"

enum wasm_abi { WASM_CIRCOM_2, WASM_CIRCOM_2_FIRST, WASM_CIRCOM_1 };

/* Inputs are not known from a circom 1 calculator. */
#define WASM_INPUTS_UNKNOWN UINT32_MAX

struct wasm_facts {
    enum wasm_abi abi;
    uint8_t prime[SCALAR_BYTES];
    uint32_t n_vars;   /* of the witness */
    uint32_t n_inputs; /* values of all input signals together */
};

/* Loads the object, whose constructors run: whoever calls it is in a sandbox already. ERR_FORMAT: it
 * is none of ours. */
MUST_USE enum err wasm_load(const char *path, struct error *error);

/* Runs it as far as it takes to know these. ERR_CALCULATOR, ERR_UNSUPPORTED. */
MUST_USE enum err wasm_facts(struct wasm_facts *out, struct error *error);

/* An input signal of a circom 2 calculator: the hash of its name, the place of its first value among
 * all signals, and how many it has. */
enum { WASM_INPUTS_MAX = 256 };
struct wasm_input {
    uint64_t hash;
    uint32_t position, size;
};

/* The input signals by position, at most WASM_INPUTS_MAX, to be called after wasm_facts; 0: they are
 * not known. */
size_t wasm_inputs(const struct wasm_input **out);

/* Computes a witness in a fresh instance and writes it as a .wtns file; *used gets its size.
 * ERR_INPUT names the signal that is missing, unknown, too short or too long, or gives the circuit's
 * message; ERR_CALCULATOR when it traps; ERR_MISMATCH when the file would not fit. */
MUST_USE enum err wasm_compute(const struct inputs *inputs, uint8_t *wtns, size_t capacity,
                               size_t *used, struct error *error);

#endif
