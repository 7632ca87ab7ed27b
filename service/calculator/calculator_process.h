/* The process that runs a witness calculator, and what is said between it and the prover.
 *
 * The prover starts its own program again with one word, CALCULATOR_COMMAND, and these descriptors.
 * It sends a calculator_start, and then requests, each followed by its bytes; for each comes a
 * reply. The witness, a .wtns file, is left in the shared memory. A calculator that is a program
 * (circom's C++) gets one request and no reply: the process becomes it, and its exit status says
 * how it went; what it prints goes to the standard error.
 */
#ifndef PROVERQ_CALCULATOR_PROCESS_H
#define PROVERQ_CALCULATOR_PROCESS_H

#include "service/calculator/calculator_wasm.h"

#include <stddef.h>
#include <sys/types.h>

#define CALCULATOR_COMMAND "calculator-process"

enum { CALCULATOR_SOCKET_FD = 3, CALCULATOR_WITNESS_FD = 4, CALCULATOR_OBJECT_FD = 5 };

enum calculator_kind { CALCULATOR_WASM, CALCULATOR_PROGRAM };

enum { CALCULATOR_PATH_BYTES = 1024 };

/* Exit status when a program could not be started: the standard error says why. */
enum { CALCULATOR_NOT_STARTED = 125 };

struct calculator_start {
    enum calculator_kind kind;
    pid_t parent;
    uint64_t memory_bytes;  /* limit */
    uint64_t witness_bytes; /* size of the shared memory */
    uint8_t prime[SCALAR_BYTES];
    char data[CALCULATOR_PATH_BYTES]; /* a program's .dat file; "": none */
};

enum calculator_what {
    CALCULATOR_FACTS,   /* no bytes; the input signals come in the shared memory */
    CALCULATOR_WITNESS, /* bytes: inputs.h */
};

struct calculator_request {
    enum calculator_what what;
    uint64_t bytes;
};

struct calculator_reply {
    struct error error;
    uint64_t bytes; /* of the witness, or of the array of struct wasm_input */
    struct wasm_facts facts;
};

/* The whole process; returns its exit status. */
int calculator_process_main(void);

/* Reads or writes all of it; false at the end of the stream. For blocking descriptors. */
MUST_USE bool calculator_read(int fd, void *bytes, size_t n);
MUST_USE bool calculator_write(int fd, const void *bytes, size_t n);

#endif
