#include "service/notify.h"
#include "service/log.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_address(const char *path, struct notify *notify) {
    size_t n = path ? strlen(path) : 0;
    if (n < 2 || n >= sizeof notify->address.sun_path || (*path != '/' && *path != '@'))
        return false;
    notify->address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(notify->address.sun_path, path, n);
    if (*path == '@') notify->address.sun_path[0] = '\0';
    notify->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    return true;
}

/* Microseconds, for this process if WATCHDOG_PID says so or is not there. */
static int64_t read_watchdog(void) {
    const char *pid = getenv("WATCHDOG_PID"), *us = getenv("WATCHDOG_USEC");
    if (!us || (pid && strtol(pid, NULL, 10) != getpid())) return 0;
    int64_t ms = strtoll(us, NULL, 10) / 1000;
    return ms > 0 ? ms : 0;
}

void notify_open(struct notify *notify) {
    static const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};
    const char *path = getenv("NOTIFY_SOCKET");
    *notify = (struct notify){.fd = -1};
    if (read_address(path, notify)) {
        notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        notify->watchdog_ms = read_watchdog();
    } else if (path) {
        log_warn("NOTIFY_SOCKET names no socket; nothing is sent there", log_text("path", path));
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)unsetenv(names[i]);
}

void notify_send(const struct notify *notify, const char *lines) {
    if (notify->fd < 0) return;
    ssize_t n = sendto(notify->fd, lines, strlen(lines), MSG_NOSIGNAL,
                       (const struct sockaddr *)&notify->address, notify->size);
    if (n < 0) log_debug("systemd cannot be notified", log_text("error", strerror(errno)));
}

void notify_close(struct notify *notify) {
    if (notify->fd >= 0) (void)close(notify->fd);
    notify->fd = -1;
}
