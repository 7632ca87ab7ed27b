#include "service/common/report.h"
#include "gpu/monotonic.h"
#include "service/common/log.h"
#include "service/common/thread.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EVERY_MS = 1000 };

static int report_fd = -1;
static _Atomic(int64_t) ticked_ns; /* 0: not yet */

static void say(const char *text) {
    if (report_fd >= 0) (void)!write(report_fd, text, strlen(text)); /* it never blocks */
}

static void *alive_main(void *arg) {
    bool was_stuck = false;
    (void)arg;
    for (;;) {
        int64_t ticked = atomic_load(&ticked_ns);
        bool is_stuck = ticked && monotonic_ns() - ticked > REPORT_STUCK_MS * INT64_C(1000000);
        if (!is_stuck) say(REPORT_ALIVE "\n");
        if (is_stuck && !was_stuck) log_error("this process is stuck and says so");
        was_stuck = is_stuck;
        (void)poll(NULL, 0, EVERY_MS);
    }
    return NULL;
}

void report_open(uint32_t fd) {
    pthread_t thread;
    struct error error;
    if (fd == 0) return;
    report_fd = (int)fd;
    (void)fcntl(report_fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(report_fd, F_SETFL, O_NONBLOCK); /* a supervisor that hangs must not hold us up */
    if (thread_start(&thread, alive_main, NULL, &error) == ERR_NONE)
        (void)pthread_detach(thread);
    else
        log_error("a thread cannot be started");
}

void report_ready(void) {
    say(REPORT_READY "\n");
}

void report_tick(void) {
    atomic_store(&ticked_ns, monotonic_ns());
}

void report_end(const struct error *error) {
    char text[sizeof error->text + 32];
    (void)snprintf(text, sizeof text, "%s: %s", error_name(error->code), error->text);
    say(text);
}
