/* A WebAssembly module from a stranger, before any tool reads it.
 *
 * wasm2c writes names into the C that it makes, older versions without escaping them: a name that
 * closes a comment and goes on would be compiled. So every name is checked here first. Sections as in
 * the WebAssembly specification 2.0, chapter 5.5, and the name section as in its appendix.
 */
#ifndef PROVERQ_WASM_MODULE_H
#define PROVERQ_WASM_MODULE_H

#include "gpu/error.h"

/* Reads the file `wasm` once, checks it, and writes it without its custom sections, which no
 * calculator needs, to the new file `out`. Names of imports, exports and custom sections, and all
 * names in the name section, have 1 to 128 letters, digits, '_', '$', '.' and '-'; what is code or
 * data is not looked at. ERR_FORMAT names the file and, of a name that is rejected, its printable
 * form; ERR_ABSENT and ERR_IO as in gpu/mapped_file.h. */
MUST_USE enum err wasm_module_copy(const char *wasm, const char *out, struct error *error);

#endif
