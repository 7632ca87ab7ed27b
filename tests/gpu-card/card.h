/* What the programs that need a card share: circuits with keys made on the spot, in memory.
 *
 * What only a card has covered, and only an H200 (sm_90; 80, 86 and 89 are compiled, not run): the
 * carry chains in PTX, the warp sums of matvec.cu, the kernels of proving_key.cu, CUB's sorting and
 * selecting, barriers, and the order of streams. Everything else that kernels do is compiled for the
 * host and tested there (tests/gpu/test_cuda_*.cu), and so is what the host does around them.
 *
 * These programs run on a machine that has nvcc, gcc and nothing else: no file here may include more
 * than gpu/ and libc. They end the process with a message at the first thing that is wrong.
 */
#ifndef PROVERQ_TESTS_CARD_H
#define PROVERQ_TESTS_CARD_H

#ifdef __cplusplus
extern "C" {
#endif
#include "gpu/backend.h"
#include "gpu/cpu/cpu_curve.h"
#include "gpu/vkey.h"
#include "tests/gpu/r1cs_builder.h"

/* Prints and exits with status 1. */
__attribute__((noreturn)) void card_fail(const char *format, ...) PRINTF_LIKE(1, 2);
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) card_fail(__VA_ARGS__);                                                  \
    } while (0)
/* Fails with the error's text. */
#define MUST(call, error)                                                                          \
    do {                                                                                           \
        if ((call) != ERR_NONE) card_fail("%s: %s", #call, (error)->text);                         \
    } while (0)

double card_seconds(void); /* CLOCK_MONOTONIC */

struct card_circuit {
    struct zkey zkey; /* its arrays are `setup`'s, and may be changed by a test */
    struct setup_key setup;
    struct vkey vkey;
    struct scalar *witness; /* n_vars, satisfies the circuit */
};

/* The circuit that tests/gpu/r1cs_builder.h describes, with a key whose secrets are thrown away. */
void card_circuit_make(const struct circuit_spec *spec, struct card_circuit *out);
void card_circuit_free(struct card_circuit *circuit);

/* Whether the proof verifies with the public values of `witness`. */
bool card_verifies(const struct card_circuit *circuit, const struct scalar *witness,
                   const struct proof *proof);

/* The proof for blinding factors drawn from `seed`, by the device of `key`. */
void card_prove(struct key *key, const struct scalar *witness, unsigned seed, struct proof *out);

bool card_same(const struct proof *a, const struct proof *b);

/* Pseudo-random values below r: for scalars that need not be secret. */
void card_random(const struct curve_info *curve, unsigned seed, struct scalar *out, size_t n);

#ifdef __cplusplus
}
#endif
#endif
