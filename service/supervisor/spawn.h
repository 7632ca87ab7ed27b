/* Starts this program again as a child, which writes to a pipe. */
#ifndef PROVERQ_SPAWN_H
#define PROVERQ_SPAWN_H

#include "gpu/error.h"

#include <sys/types.h>

enum { SPAWN_FD_BYTES = 16 };

/* Runs /proc/self/exe with `argv` (ended by NULL; argv[0] is the name that ps shows), no signal
 * blocked, in a process group of its own, and killed when the calling process dies. The number of the
 * descriptor that the child writes to is put into `fd_text`, to which one of `argv` points. The caller
 * reaps *pid and closes *fd, to read from. */
MUST_USE enum err spawn(const char *const *argv, char fd_text[SPAWN_FD_BYTES], pid_t *pid, int *fd,
                        struct error *error);

#endif
