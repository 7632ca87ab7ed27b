/* What a process may still do once code from outside runs in it. None of this can be taken back.
 *
 * Files by landlock.h, system calls by filter.h. Except for a tool, a system call that is not allowed
 * kills the process (SIGSYS). Where the kernel has no Landlock (Linux 5.13) or no seccomp, each
 * sandbox_enter_... fails with ERR_UNSUPPORTED, and foreign code does not run on that host.
 */
#ifndef PROVERQ_SANDBOX_H
#define PROVERQ_SANDBOX_H

#include "gpu/error.h"

#include <stdint.h>

/* No core dump, no capabilities, no new privileges, `memory_bytes` of data, few descriptors, memory
 * that other processes of the user cannot read, and the end when the thread that started the process
 * ends. ERR_INTERNAL. */
MUST_USE enum err sandbox_limit(uint64_t memory_bytes, struct error *error);

/* For loading an object (dlopen runs its constructors): of all files only `object` may be opened, to
 * read it. No process or thread is made, no connection, no signal sent; what is open may be read
 * and written, to `file_bytes` at most; memory may become executable. */
MUST_USE enum err sandbox_enter_loader(const char *object, uint64_t file_bytes,
                                       struct error *error);

/* After sandbox_enter_loader: no file is opened any more, and no memory becomes executable. */
MUST_USE enum err sandbox_enter(struct error *error);

/* The same for a program that is about to be executed from the descriptor `program` (execveat): it may
 * also load its libraries from the system's folders, read the file `readable` ("": none), reopen
 * what is open already, and make threads, which the process that waits for it counts; it has
 * `memory_bytes` of address space and writes no file beyond `file_bytes`. */
MUST_USE enum err sandbox_enter_program(int program, const char *readable, uint64_t memory_bytes,
                                        uint64_t file_bytes, struct error *error);

/* For a compiler that is about to be executed on a stranger's text: it may run `program` and what is
 * in the system's folders, and read and write regular files in `folder`; it has limits of time,
 * memory, file size and processes. It has no network and no signals, and does not change the
 * permissions of files: such calls seem to succeed. A call that is not known fails (ENOSYS), since
 * tools of other releases make other calls, and have a way round. */
MUST_USE enum err sandbox_enter_tool(const char *program, const char *folder, struct error *error);

#endif
