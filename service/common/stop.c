#include "service/common/stop.h"
#include "service/common/thread.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Signals are the process's, so this is, too. */
static struct {
    stop_handler *handler;
    void *context;
    int requested, signals, quit; /* descriptors; quit ends the thread */
    pthread_t thread;
    bool is_blocked, is_started;
    sigset_t before;
} self = {.requested = -1, .signals = -1, .quit = -1};

/* --- events --- */

enum err stop_event_open(int *fd, struct error *error) {
    *fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return *fd < 0 ? error_set(error, ERR_INTERNAL, "eventfd: %s", strerror(errno)) : ERR_NONE;
}

void stop_event_set(int fd) {
    uint64_t one = 1;
    (void)!write(fd, &one, sizeof one);
}

bool stop_event_is_set(int fd) {
    struct pollfd look = {.fd = fd, .events = POLLIN};
    return poll(&look, 1, 0) > 0;
}

/* --- the process --- */

int stop_fd(void) {
    return self.requested;
}

bool stop_is_requested(void) {
    return stop_event_is_set(self.requested);
}

void stop_request(void) {
    stop_event_set(self.requested);
}

static void *wait_for_signals(void *arg) {
    struct pollfd fds[2] = {{self.signals, POLLIN, 0}, {self.quit, POLLIN, 0}};
    struct signalfd_siginfo info;
    (void)arg;
    for (;;) {
        if (poll(fds, 2, -1) < 0) continue;
        if (fds[1].revents) return NULL;
        if (read(self.signals, &info, sizeof info) != (ssize_t)sizeof info) continue;
        bool is_again = stop_is_requested();
        stop_request();
        if (self.handler) self.handler(self.context, (int)info.ssi_signo, is_again);
    }
}

enum err stop_open(stop_handler *handler, void *context, struct error *error) {
    sigset_t set;
    enum err rc;
    self.handler = handler;
    self.context = context;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    TRY(stop_event_open(&self.requested, error));
    TRY(stop_event_open(&self.quit, error));
    (void)pthread_sigmask(SIG_BLOCK, &set, &self.before);
    self.is_blocked = true;
    self.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (self.signals < 0)
        TRY(error_set(error, ERR_INTERNAL, "cannot set up signals: %s", strerror(errno)));
    TRY(thread_start(&self.thread, wait_for_signals, NULL, error));
    self.is_started = true;
fail:
    return rc;
}

static void close_fd(int *fd) {
    if (*fd >= 0) (void)close(*fd);
    *fd = -1;
}

void stop_close(void) {
    if (self.is_started) {
        stop_event_set(self.quit);
        (void)pthread_join(self.thread, NULL);
    }
    if (self.is_blocked) (void)pthread_sigmask(SIG_SETMASK, &self.before, NULL);
    self.is_started = self.is_blocked = false;
    close_fd(&self.requested);
    close_fd(&self.signals);
    close_fd(&self.quit);
}
