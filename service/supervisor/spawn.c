#include "service/supervisor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Between fork and exec: only what is safe there (signal-safety(7)). */
static _Noreturn void exec_self(const char *const *argv, int fd, pid_t parent) {
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0); /* a terminal's Ctrl-C is for the supervisor, which passes it on */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1); /* it died before the line above */
    (void)fcntl(fd, F_SETFD, 0);
    (void)execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(127);
}

enum err spawn(const char *const *argv, char fd_text[SPAWN_FD_BYTES], pid_t *pid, int *fd,
               struct error *error) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return error_set(error, ERR_INTERNAL, "cannot make a pipe: %s", strerror(errno));
    (void)snprintf(fd_text, SPAWN_FD_BYTES, "%d", ends[1]);
    pid_t parent = getpid();
    *pid = fork();
    if (*pid == 0) exec_self(argv, ends[1], parent);
    int cause = errno;
    (void)close(ends[1]);
    *fd = ends[0];
    if (*pid > 0) return ERR_NONE;
    (void)close(ends[0]);
    return error_set(error, ERR_INTERNAL, "cannot fork: %s", strerror(cause));
}
