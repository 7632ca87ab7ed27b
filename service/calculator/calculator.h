/* Witness calculators, seen from the prover: processes of their own (calculator_process.h), started
 * when they are needed, used again, and ended when they are idle, hang, crash or ask for too much.
 */
#ifndef PROVERQ_CALCULATOR_H
#define PROVERQ_CALCULATOR_H

#include "gpu/zkey.h"
#include "service/calculator/calculator_process.h"

/* A circuit's calculator on this host; all of it outlives the calls that get it. */
struct calculator {
    int64_t id; /* processes are kept by it: the circuit's */
    enum calculator_kind kind;
    char *path, *data; /* its file, and a program's .dat file or NULL */
    const struct curve_info *curve;
    uint32_t n_vars;
};

/* Frees it and its strings; NULL is allowed. */
void calculator_free(struct calculator *calculator);

struct calculator_limits {
    uint32_t timeout_ms;   /* for one witness */
    uint64_t memory_bytes; /* of one process */
};

/* --- the prover's --- */

struct calculators;

/* At most `most` processes, one for each thread that computes at once. A thread of its own starts
 * them. */
MUST_USE enum err calculators_open(const struct calculator_limits *limits, size_t most,
                                   struct calculators **out, struct error *error);
void calculators_close(struct calculators *calculators); /* ends them; NULL may be closed */

/* Where a witness goes; the caller's. */
struct witness_memory {
    uint8_t *bytes;
    size_t capacity;
    size_t used; /* bytes that were written, also by a call that failed */
};

/* Computes the witness of `size` bytes of inputs (inputs.h) and copies it, a .wtns file that nobody
 * has checked, to `memory`. Any thread. ERR_INPUT: the inputs; the text names the signal.
 * ERR_CALCULATOR: it failed, or was ended for its time, its memory or a forbidden system call; it is
 * replaced. ERR_HOST_MEMORY, ERR_INTERNAL, ERR_UNSUPPORTED: this host. When `cancel_fd` (-1: none)
 * becomes readable it is given up: ERR_LOST_LEASE. */
MUST_USE enum err calculators_compute(struct calculators *calculators,
                                      const struct calculator *calculator, const char *inputs,
                                      size_t size, int cancel_fd, struct witness_memory *memory,
                                      struct error *error);

/* How many processes there are, for tests. */
size_t calculators_count(struct calculators *calculators);

/* --- for registering one --- */

struct calculator_facts {
    struct wasm_facts facts;
    struct wasm_input inputs[WASM_INPUTS_MAX];
    size_t n_inputs; /* 0: not known */
};

/* Runs the compiled calculator (CALCULATOR_WASM) at `path` once. Errors as above, and ERR_FORMAT. */
MUST_USE enum err calculator_examine(const char *path, const struct calculator_limits *limits,
                                     struct calculator_facts *out, struct error *error);

/* "x86_64", "aarch64": compiled calculators are for one machine. */
const char *calculator_machine(void);

#endif
