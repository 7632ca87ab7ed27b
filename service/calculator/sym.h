/* The names of a circuit's input signals, from circom's .sym file. */
#ifndef PROVERQ_SYM_H
#define PROVERQ_SYM_H

#include "service/calculator/calculator.h"

/* Finds in the file the name of every input signal that the calculator has, and gives a JSON object
 * of names and sizes, which the caller frees. ERR_MISMATCH: the file lacks one. ERR_UNSUPPORTED: the
 * calculator does not tell its inputs (circom 1). ERR_IO, ERR_ABSENT. */
MUST_USE enum err sym_name_inputs(const char *path, const struct calculator_facts *facts,
                                  char **json, struct error *error);

#endif
