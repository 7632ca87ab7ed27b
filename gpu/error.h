/* Errors are values: a code that says what kind of thing went wrong, and a text that says what,
 * where, and what to do.
 *
 * Every function that can fail returns an `enum err` (0 is success) that must be used, and fills
 * the `struct error` it was given (never NULL). Callers unwind through one `fail` label:
 *
 *     enum err rc;
 *     TRY(zkey_open(path, &key, error));
 *     TRY(...);
 * fail:
 *     zkey_close(key);
 *     return rc;
 *
 * The class of a code decides what the queue does with the partition that met it: `input` and
 * `circuit` fail it at once, `device` blames the device and not the job, `database` and `internal`
 * are tried again where the table says so.
 */
#ifndef PROVERQ_ERROR_H
#define PROVERQ_ERROR_H

#include <stdbool.h>
#include <stddef.h>

/* X(code, name, class, whether it is retried, meaning for readers) */
#define ERROR_TABLE(X)                                                                             \
    X(ERR_NONE, "none", NONE, false, "success")                                                    \
    X(ERR_USAGE, "usage", INPUT, false, "the command line is wrong")                               \
    X(ERR_IO, "io", INPUT, false, "a file cannot be read or written")                              \
    X(ERR_ABSENT, "absent", HOST, true, "a file is not on this host")                              \
    X(ERR_FORMAT, "format", INPUT, false, "a file is truncated or corrupt")                        \
    X(ERR_UNSUPPORTED, "unsupported", INPUT, false, "a protocol, curve or size we do not have")    \
    X(ERR_MISMATCH, "mismatch", INPUT, false, "two inputs do not belong together")                 \
    X(ERR_WITNESS, "witness", INPUT, false, "the witness does not satisfy the circuit")            \
    X(ERR_INPUT, "input", INPUT, false, "the inputs of a partition are wrong")                     \
    X(ERR_CALCULATOR, "calculator", INPUT, false, "the witness calculator failed")                 \
    X(ERR_KEY, "key", CIRCUIT, false, "the proving or verification key is bad")                    \
    X(ERR_INVALID_PROOF, "invalid_proof", INPUT, false, "the proof does not verify")               \
    X(ERR_HOST_MEMORY, "host_memory", HOST, true, "the host is out of memory")                     \
    X(ERR_DEVICE_UNSUPPORTED, "device_unsupported", HOST, true, "the device cannot take the key")  \
    X(ERR_DEVICE_MISSING, "device_missing", DEVICE, true, "the demanded device is not there")      \
    X(ERR_DEVICE_MEMORY, "device_memory", DEVICE, true, "the device is out of memory")             \
    X(ERR_DEVICE_FAULT, "device_fault", DEVICE, true, "the device computed wrongly or failed")     \
    X(ERR_DATABASE, "database", DATABASE, true, "the database refused a statement")                \
    X(ERR_CONNECTION, "connection", DATABASE, true, "the database cannot be reached")              \
    X(ERR_SCHEMA, "schema", DATABASE, false, "the database's schema is not the one expected")      \
    X(ERR_LOST_LEASE, "lost_lease", DATABASE, false, "the lease was taken away")                   \
    X(ERR_INTERNAL, "internal", INTERNAL, true, "a fault of ours")

enum err {
#define X(code, name, class, retry, meaning) code,
    ERROR_TABLE(X)
#undef X
};

enum error_class {
    ERROR_CLASS_NONE,
    ERROR_CLASS_INPUT,    /* what the user gave is wrong: never retried */
    ERROR_CLASS_CIRCUIT,  /* the circuit's artefacts are wrong: never retried */
    ERROR_CLASS_HOST,     /* this host cannot, another may: retried, spends nothing */
    ERROR_CLASS_DEVICE,   /* the device cannot: the device is blamed, not the job */
    ERROR_CLASS_DATABASE, /* the database */
    ERROR_CLASS_INTERNAL, /* a fault of ours */
};

struct error {
    enum err code;
    char text[512]; /* one line, no newline at its end; empty while code is ERR_NONE */
};

#define MUST_USE                  __attribute__((warn_unused_result))
#define PRINTF_LIKE(index, first) __attribute__((format(printf, index, first)))

/* Unwinds to `fail` with `rc` set when `call` fails. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        if ((rc = (call)) != ERR_NONE) goto fail;                                                  \
    } while (0)

/* Fills `error` and returns `code`. The text is cut at the size of `error->text`. */
enum err error_set(struct error *error, enum err code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Puts "<formatted>: " before the text that `error` has already; returns its code. */
enum err error_prefix(struct error *error, const char *format, ...) PRINTF_LIKE(2, 3);

const char *error_name(enum err code);

/* The code whose name these n bytes are; ERR_INTERNAL for any other text. */
enum err error_by_name(const char *name, size_t n);

enum error_class error_class(enum err code);
bool error_retryable(enum err code);

#endif
