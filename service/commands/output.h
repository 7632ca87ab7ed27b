/* The files that a command writes.
 *
 * A regular file appears whole or not at all, also behind a symbolic link, which stays a link to
 * it. What cannot be replaced is written in place: a device, a pipe, and what a link in /proc leads
 * to (/dev/stdout).
 */
#ifndef PROVERQ_COMMANDS_OUTPUT_H
#define PROVERQ_COMMANDS_OUTPUT_H

#include "gpu/error.h"

#include <stddef.h>

struct output {
    const char *path;
    const void *bytes;
    size_t size;
};

/* Call it before anything is read or computed: ERR_USAGE when an output is an input or another
 * output, under whatever names. Files are compared by device and inode, those that are not there
 * yet by their folder and name. Devices and pipes are never the same file. An empty path stands for
 * an output that was not asked for. */
MUST_USE enum err output_check(const char *const *inputs, size_t n_inputs,
                               const char *const *outputs, size_t n_outputs, struct error *error);

/* The regular file, or the name without a file, that `path` leads to: what may be written under a
 * temporary name and renamed. The caller frees *target; NULL for what is written in place. */
MUST_USE enum err output_target(const char *path, char **target, struct error *error);

/* Writes them all. The first file is put in place when everything else is written and on disk. */
MUST_USE enum err output_write(const struct output *outputs, size_t n, struct error *error);

#endif
