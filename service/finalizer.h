/* The finalizer process: completes jobs, gives back expired leases, wakes what is due, and delivers
 * webhooks.
 *
 * Any number may run; each job is finalized once and each delivery claimed by one of them. Two
 * threads with a connection each, so that no slow endpoint holds up a job: one listens to
 * proverq_finalize and polls, one delivers (courier.h). After the first SIGTERM or SIGINT nothing new is begun
 * and deliveries under way are ended; the second ends the process at once.
 */
#ifndef PROVERQ_FINALIZER_H
#define PROVERQ_FINALIZER_H

#include "service/options.h"

/* Runs until a signal asks it to stop (ERR_NONE) or it cannot go on. A lost connection is made
 * again. Takes the process's signals; logging must be set up. */
MUST_USE enum err finalizer_run(const struct options *options, struct error *error);

#endif
