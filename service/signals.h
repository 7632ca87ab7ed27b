/* The names of a circuit's input signals, from circom's .sym file. */
#ifndef PROVERQ_SIGNALS_H
#define PROVERQ_SIGNALS_H

#include "service/calculator.h"

/* Finds in the file the name of every input signal that the calculator has, and gives a JSON object
 * of names and sizes, which the caller frees. ERR_MISMATCH: the file lacks one. ERR_UNSUPPORTED: the
 * calculator does not tell its inputs (circom 1). ERR_IO, ERR_ABSENT. */
MUST_USE enum err signals_name(const char *path, const struct calculator_facts *facts, char **json,
                               struct error *error);

#endif
