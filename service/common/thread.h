/* Threads that leave signals to others. */
#ifndef PROVERQ_THREAD_H
#define PROVERQ_THREAD_H

#include "gpu/error.h"

#include <pthread.h>

/* Starts `run(argument)` with all signals blocked; the caller joins it. */
MUST_USE enum err thread_start(pthread_t *thread, void *(*run)(void *), void *argument,
                               struct error *error);

#endif
