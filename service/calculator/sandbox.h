/* What a process may still do once code from outside runs in it. None of this can be taken back.
 *
 * A system call that is not allowed kills the process (SIGSYS). Rules of seccomp(2), for x86-64 and
 * ARM64; files by landlock(7).
 */
#ifndef PROVERQ_SANDBOX_H
#define PROVERQ_SANDBOX_H

#include "gpu/error.h"

#include <stdint.h>

/* No core dump, `memory_bytes` of data, few descriptors, no new privileges, and the end when the
 * thread that started the process ends. ERR_INTERNAL. */
MUST_USE enum err sandbox_limit(uint64_t memory_bytes, struct error *error);

/* From now on: reading and writing what is open, memory that cannot be executed, and the end. No
 * file is opened, no process or thread made, no connection. ERR_UNSUPPORTED: the kernel cannot. */
MUST_USE enum err sandbox_enter(struct error *error);

/* The same for a program that is about to be executed (execveat): it may also load its libraries
 * from the system's folders, read the file `readable` ("": none), reopen what is open already, and
 * make threads; it has `memory_bytes` of address space and writes no file beyond `file_bytes`.
 * ERR_UNSUPPORTED: the kernel has no Landlock (Linux 5.13). */
MUST_USE enum err sandbox_enter_program(const char *readable, uint64_t memory_bytes,
                                        uint64_t file_bytes, struct error *error);

#endif
