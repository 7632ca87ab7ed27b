#include "service/common/thread.h"

#include <signal.h>
#include <string.h>

enum err thread_start(pthread_t *thread, void *(*run)(void *), void *argument,
                      struct error *error) {
    sigset_t all, old;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = pthread_create(thread, NULL, run, argument);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!failed) return ERR_NONE;
    return error_set(error, ERR_INTERNAL, "cannot start a thread: %s", strerror(failed));
}
