#include "service/supervisor/systemd.h"
#include "service/common/log.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_address(const char *path, struct systemd *systemd) {
    size_t n = path ? strlen(path) : 0;
    if (n < 2 || n >= sizeof systemd->address.sun_path || (*path != '/' && *path != '@'))
        return false;
    systemd->address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(systemd->address.sun_path, path, n);
    if (*path == '@') systemd->address.sun_path[0] = '\0';
    systemd->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    return true;
}

/* Microseconds, for this process if WATCHDOG_PID says so or is not there. */
static int64_t read_watchdog(void) {
    const char *pid = getenv("WATCHDOG_PID"), *us = getenv("WATCHDOG_USEC");
    if (!us || (pid && strtol(pid, NULL, 10) != getpid())) return 0;
    int64_t ms = strtoll(us, NULL, 10) / 1000;
    return ms > 0 ? ms : 0;
}

void systemd_open(struct systemd *systemd) {
    static const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};
    const char *path = getenv("NOTIFY_SOCKET");
    *systemd = (struct systemd){.fd = -1};
    if (read_address(path, systemd)) {
        systemd->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        systemd->watchdog_ms = read_watchdog();
    } else if (path) {
        log_warn("NOTIFY_SOCKET names no socket; nothing is sent there", log_text("path", path));
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)unsetenv(names[i]);
}

void systemd_send(const struct systemd *systemd, const char *lines) {
    if (systemd->fd < 0) return;
    ssize_t n = sendto(systemd->fd, lines, strlen(lines), MSG_NOSIGNAL,
                       (const struct sockaddr *)&systemd->address, systemd->size);
    if (n < 0) log_debug("systemd cannot be notified", log_text("error", strerror(errno)));
}

void systemd_close(struct systemd *systemd) {
    if (systemd->fd >= 0) (void)close(systemd->fd);
    systemd->fd = -1;
}
