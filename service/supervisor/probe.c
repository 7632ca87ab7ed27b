#include "service/supervisor/probe.h"
#include "gpu/monotonic.h"
#include "gpu/prover.h"
#include "gpu/selftest.h"
#include "service/common/faults.h"
#include "service/supervisor/spawn.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- the process --- */

static enum err examine(const char *spec, char *description, size_t size, struct error *error) {
    struct device *device = NULL;
    enum err rc;
    TRY(device_open(spec, 0, &device, error));
    (void)snprintf(description, size, "%s", device_description(device));
    TRY(fault_device(error));
    rc = device_selftest(device, error);
    if (rc == ERR_IO)
        rc = ERR_NONE; /* there is no place for a key: that is not the device's fault */
fail:
    if (device) device_close(device);
    return rc;
}

int probe_process_main(const char *device, const char *fd) {
    char text[sizeof((struct error *)0)->text + 32] = "";
    struct error error = {.code = ERR_NONE};
    (void)prctl(PR_SET_NAME, "proverq");
    enum err rc = examine(device, text, sizeof text, &error);
    if (rc != ERR_NONE) (void)snprintf(text, sizeof text, "%s: %s", error_name(rc), error.text);
    (void)!write((int)strtol(fd, NULL, 10), text, strlen(text));
    return rc == ERR_NONE ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* --- its parent --- */

enum err probe_start(const char *device, pid_t *pid, int *fd, struct error *error) {
    char fd_text[SPAWN_FD_BYTES];
    const char *const argv[] = {"proverq", PROBE_COMMAND, device, fd_text, NULL};
    return spawn(argv, fd_text, pid, fd, error);
}

enum err probe_result(const char *device, int status, const char *text, struct error *error) {
    const char *colon = strstr(text, ": ");
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) {
        (void)snprintf(error->text, sizeof error->text, "%s", text);
        return error->code = ERR_NONE;
    }
    if (WIFEXITED(status) && colon)
        return error_set(error, error_by_name(text, (size_t)(colon - text)), "%s", colon + 2);
    return error_set(error, ERR_DEVICE_FAULT, "%s: the process that opened it %s", device,
                     WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL
                         ? "crashed"
                         : "ended without an answer or hung");
}

/* Reads to the end of the stream, or of the time. */
static bool read_all(int fd, char *text, size_t size, int64_t until_ns) {
    for (size_t n = 0; n < size - 1;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left_ms = (until_ns - monotonic_ns()) / 1000000;
        int ready = left_ms > 0 ? poll(&p, 1, (int)left_ms) : 0;
        ssize_t got = ready > 0 ? read(fd, text + n, size - 1 - n) : -1;
        if ((ready < 0 || (ready > 0 && got < 0)) && errno == EINTR) continue;
        if (got <= 0) return got == 0;
        n += (size_t)got;
        text[n] = '\0';
    }
    return true;
}

enum err probe_device(const char *device, struct error *error) {
    char text[sizeof error->text + 32] = "";
    pid_t pid;
    int fd, status = 0;
    enum err rc = probe_start(device, &pid, &fd, error);
    if (rc != ERR_NONE) return rc;
    if (!read_all(fd, text, sizeof text, monotonic_ns() + PROBE_MS * INT64_C(1000000)))
        (void)kill(pid, SIGKILL);
    (void)close(fd);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return probe_result(device, status, text, error);
}
