/* Whether a device works, found out in a process of its own, so that no driver state stays in the
 * supervisor and a driver that crashes or hangs ends nothing else.
 *
 * The process is this program again, with PROBE_COMMAND, the device and a descriptor, to which it
 * writes the device's description, and ends with status 0; or the error as "CODE: text", and 1.
 */
#ifndef PROVERQ_PROBE_H
#define PROVERQ_PROBE_H

#include "gpu/error.h"

#include <sys/types.h>

#define PROBE_COMMAND "device-probe"

/* A driver may take a minute for its first answer. */
enum { PROBE_MS = 120 * 1000 };

/* The whole process: opens the device and proves a test statement; returns its exit status. */
int probe_process_main(const char *device, const char *fd);

/* Starts it; the caller reaps *pid and closes *fd, to read from. */
MUST_USE enum err probe_start(const char *device, pid_t *pid, int *fd, struct error *error);

/* What an ended one has found: its wait status, and the text that it wrote. ERR_NONE and the
 * description in error->text, or why the device does not work. */
enum err probe_result(const char *device, int status, const char *text, struct error *error);

/* Both, and waits for it, PROBE_MS at most. */
enum err probe_device(const char *device, struct error *error);

#endif
