/* Rules of filters, each in a process of its own, on getpgid and prlimit64. */
#include "service/calculator/filter.h"
#include "tests/gpu/suite.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct filter f;

/* Installs the filter, with EPERM for what no rule allows. */
static void install(void) {
    static const long needed[] = {SYS_exit_group, SYS_write, SYS_futex};
    struct error error;
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    filter_allow(&f, needed, sizeof needed / sizeof *needed);
    if (filter_install(&f, SECCOMP_RET_ERRNO | EPERM, &error) != ERR_NONE) _exit(99);
}

static bool is_denied(long result) {
    return result == -1 && errno == EPERM;
}

/* Runs the checks in a process, which ends with the number of those that failed. */
static void in_process(int (*checks)(void)) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        filter_begin(&f);
        int failures = checks();
        for (;;) /* not _exit: a sanitizer's makes system calls that the filter denies */
            (void)syscall(SYS_exit_group, failures);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

static int check_whole(void) {
    const struct filter_condition zero[] = {{0, FILTER_WHOLE, 0}};
    filter_allow_if(&f, SYS_getpgid, zero, 1);
    install();
    return is_denied(syscall(SYS_getpgid, 0L)) + !is_denied(syscall(SYS_getpgid, 1L)) +
           !is_denied(syscall(SYS_getpgid, 1L << 32));
}

static int check_all_conditions(void) {
    const struct filter_condition both[] = {{0, FILTER_WHOLE, 0}, {2, FILTER_WHOLE, 0}};
    filter_allow_if(&f, SYS_prlimit64, both, 2);
    install();
    return is_denied(syscall(SYS_prlimit64, 0L, 0L, 0L, 0L)) +
           !is_denied(syscall(SYS_prlimit64, 1L, 0L, 0L, 0L)) +
           !is_denied(syscall(SYS_prlimit64, 1L << 40, 0L, 0L, 0L)) +
           !is_denied(syscall(SYS_prlimit64, 0L, 0L, 4096L, 0L)) +
           !is_denied(syscall(SYS_prlimit64, 0L, 0L, 1L << 32, 0L));
}

static int check_masks(void) {
    const struct filter_condition even[] = {{0, 1, 0}};
    filter_allow_if(&f, SYS_getpgid, even, 1);
    install();
    return is_denied(syscall(SYS_getpgid, 0L)) + !is_denied(syscall(SYS_getpgid, 1L)) +
           !is_denied(syscall(SYS_getpgid, 1L << 32)) + is_denied(syscall(SYS_getpgid, 1L << 30));
}

static int check_values(void) {
    static const uint32_t known[] = {0, 7};
    filter_allow_values(&f, SYS_getpgid, 0, known, 2, SECCOMP_RET_ERRNO | EINVAL);
    install();
    bool is_otherwise = syscall(SYS_getpgid, 8L) == -1 && errno == EINVAL;
    bool is_whole = syscall(SYS_getpgid, 7L | 1L << 32) == -1 && errno == EINVAL;
    return is_denied(syscall(SYS_getpgid, 0L)) + !is_otherwise + !is_whole +
           !is_denied(syscall(SYS_getuid));
}

START_TEST(arguments_are_compared_whole) {
    in_process(check_whole);
    in_process(check_all_conditions);
    in_process(check_masks);
    in_process(check_values);
}
END_TEST

START_TEST(a_filter_that_is_too_long_is_not_installed) {
    struct error error;
    filter_begin(&f);
    for (int i = 0; i < FILTER_MAX; i++)
        filter_decide(&f, SYS_getpgid, SECCOMP_RET_ALLOW);
    CHECK_ERR(filter_install(&f, SECCOMP_RET_KILL_PROCESS, &error), ERR_INTERNAL, "too long");
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&arguments_are_compared_whole,
                                         &a_filter_that_is_too_long_is_not_installed};
    return run_tests("filter", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
