/* Files that appear whole or not at all: written under a temporary name in the same folder, synced,
 * then renamed into place. */
#ifndef PROVERQ_ATOMIC_FILE_H
#define PROVERQ_ATOMIC_FILE_H

#include "gpu/error.h"

#include <stddef.h>
#include <sys/types.h>

struct atomic_file; /* opaque; the caller of atomic_file_create closes it */

/* Begins a file that will be `path`, with the permissions `mode` less the umask. */
MUST_USE enum err atomic_file_create(const char *path, mode_t mode, struct atomic_file **out,
                                     struct error *error);
MUST_USE enum err atomic_file_write(struct atomic_file *file, const void *bytes, size_t n,
                                    struct error *error);

/* Brings all bytes to the disk, still under the temporary name: after it little but the loss of the
 * folder can make atomic_file_commit fail. */
MUST_USE enum err atomic_file_sync(struct atomic_file *file, struct error *error);

/* Syncs the file and puts it in place, replacing an older one. */
MUST_USE enum err atomic_file_commit(struct atomic_file *file, struct error *error);

/* Ends it; nothing remains of a file that was not committed. NULL may be closed. */
void atomic_file_close(struct atomic_file *file);

#endif
