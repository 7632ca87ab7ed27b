/* What systemd is told about the service: sd_notify(3) in a few lines, without its library.
 *
 * Datagrams of lines NAME=VALUE to the socket that NOTIFY_SOCKET names (a path, or an abstract name
 * that begins with @). Without it nothing is sent.
 */
#ifndef PROVERQ_NOTIFY_H
#define PROVERQ_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
    int fd; /* -1: nobody wants to know */
    struct sockaddr_un address;
    socklen_t size;
    int64_t watchdog_ms; /* WATCHDOG=1 is expected at least that often; 0: it is not */
};

/* Reads the environment, and takes the variables out of it: they are for this process and not for
 * its children. There must be no threads yet. */
void notify_open(struct notify *notify);

/* Sends lines, such as "READY=1\nSTATUS=...". Never waits; what cannot be sent is lost. */
void notify_send(const struct notify *notify, const char *lines);

void notify_close(struct notify *notify);

#endif
