/* What a child tells its supervisor, through the descriptor --report-fd: "ready" when it works,
 * "alive" every second, lines both, and as its last words, without a newline, the error that ended
 * it, as "CODE: text".
 *
 * A thread of its own says "alive", so that nothing that takes long makes a healthy child look
 * dead; but only while the loop that matters most goes round, which says so by report_tick.
 */
#ifndef PROVERQ_REPORT_H
#define PROVERQ_REPORT_H

#include "gpu/error.h"

#include <stdint.h>

/* Longer than any statement and attempt to connect may take. */
enum { REPORT_STUCK_MS = 90 * 1000 };

#define REPORT_READY "ready"
#define REPORT_ALIVE "alive"

/* Once, at the start of the process; 0: nobody listens, and nothing below does anything. */
void report_open(uint32_t fd);

/* Connected and at work. */
void report_ready(void);

/* The loop goes round. From the first call on it is expected every REPORT_STUCK_MS; any thread. */
void report_tick(void);

void report_end(const struct error *error);

#endif
