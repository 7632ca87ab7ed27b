/* The finalizer process: completes jobs, delivers webhooks (courier.h), and keeps the queue in order
 * (janitor.h).
 *
 * Any number may run; each job is finalized once, each delivery claimed by one of them, and old rows
 * deleted by one at a time. Three threads with a connection each, so that neither a slow endpoint
 * nor a long deletion holds up a job; the first listens to proverq_finalize and polls. After the
 * first signal to stop (stop.h) nothing new is begun and deliveries under way are ended; the second
 * ends the process at once.
 */
#ifndef PROVERQ_FINALIZER_H
#define PROVERQ_FINALIZER_H

#include "service/common/options.h"

/* Runs until a signal asks it to stop (ERR_NONE) or it cannot go on. A lost connection is made
 * again. Takes the process's signals; logging must be set up. */
MUST_USE enum err finalizer_run(const struct options *options, struct error *error);

#endif
