/* Keeps a process from files, TCP and other processes (landlock(7)): what no rule allows is denied,
 * to it and to what it executes, and cannot be given back. A process that is kept so can neither
 * trace processes outside nor read what /proc tells of their memory and environment, even as root.
 */
#ifndef PROVERQ_LANDLOCK_H
#define PROVERQ_LANDLOCK_H

#include "gpu/error.h"

#include <stddef.h>

enum landlock_use {
    LANDLOCK_READ,    /* read a file */
    LANDLOCK_RUN,     /* read files and folders, and execute */
    LANDLOCK_DEVICE,  /* read and write a file */
    LANDLOCK_SCRATCH, /* read, make, write and remove regular files; no links, sockets or pipes */
};

struct landlock_rule {
    const char *path; /* and all below it; one that is not on this host is passed over */
    enum landlock_use use;
};

/* Applies to the calling thread; no_new_privs is set. ERR_UNSUPPORTED: no Landlock (Linux 5.13). */
MUST_USE enum err landlock_enter(const struct landlock_rule *rules, size_t n, struct error *error);

#endif
