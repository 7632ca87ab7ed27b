#include "service/supervisor/child.h"
#include "gpu/monotonic.h"
#include "service/common/log.h"
#include "service/common/report.h"
#include "service/supervisor/probe.h"
#include "service/supervisor/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- starting --- */

static void has_started(struct child *child, pid_t pid, int report_fd, bool is_probe) {
    child->pid = pid;
    child->is_probe = is_probe;
    child->is_ready = child->was_silent = false;
    child->report_fd = report_fd;
    child->started_ms = child->heard_ms = monotonic_ms();
    child->words[0] = '\0';
    child->n_words = 0;
    (void)fcntl(report_fd, F_SETFL, O_NONBLOCK);
    log_info(is_probe ? "device probed" : "child started", log_text("role", child->role),
             log_text("device", child->device), log_number("pid", pid));
}

enum err child_start(struct child *child, const struct child_setting *setting,
                     struct error *error) {
    char fd_text[SPAWN_FD_BYTES], instance[UUID_TEXT_BYTES];
    pid_t pid;
    int fd;
    enum err rc = uuid_random(&child->instance, error);
    if (rc) return rc;
    uuid_format(&child->instance, instance);
    const char *const prover[] = {setting->program,
                                  "prover",
                                  "--device",
                                  child->device,
                                  "--threads",
                                  setting->threads,
                                  "--instance",
                                  instance,
                                  "--report-fd",
                                  fd_text,
                                  "--host-memory",
                                  setting->host_memory,
                                  NULL};
    const char *const finalizer[] = {setting->program, "finalizer", "--report-fd", fd_text, NULL};
    rc = spawn(*child->device ? prover : finalizer, fd_text, &pid, &fd, error);
    if (rc == ERR_NONE) has_started(child, pid, fd, false);
    return rc;
}

enum err child_start_probe(struct child *child, struct error *error) {
    pid_t pid;
    int fd;
    enum err rc = probe_start(child->device, &pid, &fd, error);
    if (rc == ERR_NONE) has_started(child, pid, fd, true);
    return rc;
}

/* --- hearing --- */

/* A line is a report, or something else that is not known and dropped. */
static void take_line(struct child *child) {
    child->words[child->n_words] = '\0';
    if (strcmp(child->words, REPORT_READY) == 0) {
        child->is_ready = true;
        log_info("child is ready", log_text("role", child->role), log_text("device", child->device),
                 log_number("pid", child->pid));
    }
    child->n_words = 0;
}

void child_hear(struct child *child) {
    char bytes[512];
    ssize_t n = 0;
    while (child->report_fd >= 0 && (n = read(child->report_fd, bytes, sizeof bytes)) > 0) {
        child->heard_ms = monotonic_ms();
        for (ssize_t i = 0; i < n; i++) {
            if (bytes[i] == '\n' && !child->is_probe)
                take_line(child);
            else if (child->n_words < sizeof child->words - 1)
                child->words[child->n_words++] = bytes[i];
        }
    }
    child->words[child->n_words] = '\0';
    if (n == 0 && child->report_fd >= 0) { /* it has closed its end, or ended */
        (void)close(child->report_fd);
        child->report_fd = -1;
    }
}

void child_end(struct child *child, int status) {
    child_hear(child);
    if (child->report_fd >= 0) (void)close(child->report_fd);
    child->report_fd = -1;
    child->pid = 0;
    child->is_ready = false;
    child->has_ended = true;
    if (child->is_probe || child->n_words > 0) return;
    if (child->was_silent)
        (void)snprintf(child->words, sizeof child->words, "it was silent and was killed");
    else if (WIFSIGNALED(status))
        (void)snprintf(child->words, sizeof child->words, "killed by signal %d (%s)",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        (void)snprintf(child->words, sizeof child->words, "exit status %d", WEXITSTATUS(status));
}

/* SIGKILL comes from people and from a kernel that is out of memory. */
bool child_blames_device(const struct child *child, int status) {
    const char *colon = strstr(child->words, ": ");
    if (child->was_silent) return true;
    if (WIFSIGNALED(status)) return WTERMSIG(status) != SIGKILL && WTERMSIG(status) != SIGTERM;
    return colon && error_class(error_by_name(child->words, (size_t)(colon - child->words))) ==
                        ERROR_CLASS_DEVICE;
}
