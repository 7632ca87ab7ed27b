/* Makes a shared object of a circom calculator in WebAssembly, with wasm2c (of wabt) and the
 * system's C compiler. What it makes depends on the .wasm, the two programs and the machine only.
 *
 * The .wasm is a stranger's: its names are checked (wasm_module.h) before wasm2c sees it, both programs
 * run shut in (tool_process.h), where of all files they can read the system's folders, themselves
 * and `folder`, and what they make is foreign code (calculator_process.h).
 */
#ifndef PROVERQ_TRANSLATE_H
#define PROVERQ_TRANSLATE_H

#include "gpu/error.h"

/* Translates the file `wasm` into `folder`, which is the caller's and gets further files; *object
 * is the path of the result, which the caller frees. The compiler is $CC, cc, gcc or clang; it may
 * take half a minute. ERR_ABSENT names the package that is missing; ERR_FORMAT: no WebAssembly, or
 * no calculator of circom's; ERR_UNSUPPORTED: a wasm2c of another interface than those we know,
 * or a kernel without Landlock or seccomp. */
MUST_USE enum err translate_wasm(const char *wasm, const char *folder, char **object,
                                 struct error *error);

#endif
