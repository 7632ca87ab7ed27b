/* What systemd is told about the service: sd_notify(3) in a few lines, without its library.
 *
 * Datagrams of lines NAME=VALUE to the socket that NOTIFY_SOCKET names (a path, or an abstract name
 * that begins with @). Without it nothing is sent.
 */
#ifndef PROVERQ_SYSTEMD_H
#define PROVERQ_SYSTEMD_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct systemd {
    int fd; /* -1: nobody wants to know */
    struct sockaddr_un address;
    socklen_t size;
    int64_t watchdog_ms; /* WATCHDOG=1 is expected at least that often; 0: it is not */
};

/* Reads the environment, and takes the variables out of it: they are for this process and not for
 * its children. There must be no threads yet. */
void systemd_open(struct systemd *systemd);

/* Sends lines, such as "READY=1\nSTATUS=...". Never waits; what cannot be sent is lost. */
void systemd_send(const struct systemd *systemd, const char *lines);

void systemd_close(struct systemd *systemd);

#endif
