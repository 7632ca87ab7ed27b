/* Whole files in memory, read-only: mapped, or read into memory of our own.
 *
 * A mapped file that somebody truncates kills the process that touches the lost pages (SIGBUS), and
 * one that is rewritten changes under checks that it has passed. So only artefacts are mapped (keys
 * and constraint systems: large, and immutable once they are in a cache of ours or named by an
 * operator); what submitters own, witnesses, is read into private memory instead.
 */
#ifndef PROVERQ_MAPPED_FILE_H
#define PROVERQ_MAPPED_FILE_H

#include "gpu/error.h"

#include <stddef.h>
#include <stdint.h>

struct mapped_file; /* opaque; owned by the caller of the function that made it */

/* Maps the regular file at `path`. ERR_ABSENT when there is none, ERR_IO when it cannot be read,
 * ERR_FORMAT when it is empty. */
MUST_USE enum err mapped_file_open(const char *path, struct mapped_file **out, struct error *error);

/* The same, copied into memory that nobody else can change. */
MUST_USE enum err mapped_file_read(const char *path, struct mapped_file **out, struct error *error);

/* Unmaps, or wipes and frees. NULL may be closed. */
void mapped_file_close(struct mapped_file *file);

const uint8_t *mapped_file_bytes(const struct mapped_file *file);
size_t mapped_file_size(const struct mapped_file *file);
const char *mapped_file_path(const struct mapped_file *file);

/* ERR_IO when the file's size or time of change is no longer what it was when it was opened: what
 * was checked since may not be what is there. */
MUST_USE enum err mapped_file_unchanged(const struct mapped_file *file, struct error *error);

#endif
