/* How a process, or one of its threads, is asked to stop.
 *
 * SIGTERM and SIGINT are handled here and nowhere else: a thread waits for them, and the first one
 * makes a descriptor readable for good, which ends every wait that includes it. The handler of the
 * process decides what the second signal does; without a handler it has no effect.
 */
#ifndef PROVERQ_STOP_H
#define PROVERQ_STOP_H

#include "gpu/error.h"

/* --- the process --- */

/* Called for each signal by the thread that waits for them, after the descriptor has become readable.
 * `is_again`: the process had been asked to stop before, by a signal or by stop_request(). */
typedef void stop_handler(void *context, int number, bool is_again);

/* Blocks both signals in the calling thread and in the threads that it starts afterwards: call it
 * before other threads exist. `handler` may be NULL. Call stop_close() in each case, and before
 * opening it again. */
MUST_USE enum err stop_open(stop_handler *handler, void *context, struct error *error);

/* Readable for good once the process is to stop (never read it); -1 unless open. */
int stop_fd(void);
bool stop_is_requested(void);

/* The process asks itself; any thread. */
void stop_request(void);

/* Afterwards the handler is not called any more, and the calling thread has its signal mask of before
 * stop_open(). Harmless unless open. */
void stop_close(void);

/* --- a descriptor of the same kind for a single thread --- */

/* The caller closes it. */
MUST_USE enum err stop_event_open(int *fd, struct error *error);

/* Makes it readable, for good. */
void stop_event_set(int fd);

/* False, too, for the descriptor -1. */
bool stop_event_is_set(int fd);

#endif
