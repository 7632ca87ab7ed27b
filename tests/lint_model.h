/* For clang-tidy only: error_set returns the code that it is given, so that a path on which it
 * returned success is not followed. */
#include "gpu/error.h"
#define error_set(error, code, ...) (error_set(error, code, __VA_ARGS__), (code))
