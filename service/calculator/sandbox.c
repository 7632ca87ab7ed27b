#include "service/calculator/sandbox.h"
#include "service/calculator/filter.h"
#include "service/calculator/landlock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* --- limits --- */

static bool limit(__rlimit_resource_t what, uint64_t most) {
    return setrlimit(what, &(struct rlimit){most, most}) == 0;
}

/* Those of root. One that has none needs no call, which a unit's filter may forbid. */
static bool drop_capabilities(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}}, none[2] = {{0}};
    if (syscall(SYS_capget, &header, data) != 0) return false;
    if (memcmp(data, none, sizeof none) == 0) return true;
    return syscall(SYS_capset, &header, none) == 0;
}

enum err sandbox_limit(uint64_t memory_bytes, struct error *error) {
    enum { DESCRIPTORS = 64 };
    if (limit(RLIMIT_CORE, 0) && limit(RLIMIT_DATA, memory_bytes) &&
        limit(RLIMIT_NOFILE, DESCRIPTORS) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        drop_capabilities() && prctl(PR_SET_DUMPABLE, 0) == 0 &&
        prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
        return ERR_NONE;
    return error_set(error, ERR_INTERNAL, "a calculator's process cannot be limited: %s",
                     strerror(errno));
}

static enum err not_limited(struct error *error) {
    return error_set(error, ERR_INTERNAL, "the process cannot be limited: %s", strerror(errno));
}

/* --- system calls --- */

static const long basic_calls[] = {
    SYS_read,           SYS_write,       SYS_munmap,     SYS_brk,
    SYS_rt_sigreturn,   SYS_futex,       SYS_exit_group, SYS_exit,
    SYS_clock_gettime,  SYS_mremap,      SYS_getrandom,  SYS_restart_syscall,
    SYS_rt_sigprocmask, SYS_sigaltstack, SYS_gettid,     SYS_getpid};

/* What the C library needs besides to load an object. */
static const long loader_calls[] = {
    SYS_openat,   SYS_close,      SYS_fstat,    SYS_newfstatat, SYS_lseek,        SYS_pread64,
    SYS_mprotect, SYS_readlinkat, SYS_getcwd,   SYS_faccessat,  SYS_rt_sigaction,
#ifdef __x86_64__
    SYS_open,     SYS_access,     SYS_readlink, SYS_stat,       SYS_lstat,
#endif
};

/* What the C and C++ libraries need besides to start a program, and circom's to read and write. */
static const long program_calls[] = {
    SYS_mmap,         SYS_readv, SYS_writev,  SYS_set_tid_address, SYS_set_robust_list,
    SYS_sched_yield,  SYS_uname, SYS_sysinfo, SYS_nanosleep,       SYS_clock_nanosleep,
    SYS_gettimeofday,
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef __x86_64__
    SYS_time,
#endif
};

/* What compilers, linkers and shells need besides. */
static const long tool_calls[] = {
    SYS_execve,
    SYS_wait4,
    SYS_waitid,
    SYS_pipe2,
    SYS_dup,
    SYS_dup3,
    SYS_unlinkat,
    SYS_renameat,
    SYS_renameat2,
    SYS_umask,
    SYS_getrusage,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_statx,
    SYS_statfs,
    SYS_fstatfs,
    SYS_getdents64,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_fadvise64,
    SYS_sendfile,
    SYS_ppoll,
    SYS_pselect6,
    SYS_times,
    SYS_getpgid,
    SYS_pwrite64,
    SYS_chdir,
    SYS_fchdir,
    SYS_sched_getaffinity,
    SYS_copy_file_range,
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef SYS_close_range
    SYS_close_range,
#endif
#ifdef __x86_64__
    SYS_vfork,
    SYS_fork,
    SYS_pipe,
    SYS_dup2,
    SYS_unlink,
    SYS_rename,
    SYS_getpgrp,
    SYS_poll,
    SYS_select,
    SYS_getdents,
#endif
};

/* Landlock does not know these. */
static const long seeming_calls[] = {
    SYS_fchmod,
    SYS_fchmodat,
    SYS_utimensat,
#ifdef __x86_64__
    SYS_chmod,
#endif
};

/* Memory that is shared is not counted by RLIMIT_DATA. */
static const struct filter_condition not_shared[] = {{3, MAP_SHARED, 0}};
static const struct filter_condition plain_memory[] = {{2, PROT_EXEC, 0}, {3, MAP_SHARED, 0}};
static const struct filter_condition not_executable[] = {{2, PROT_EXEC, 0}};

/* Advice about one's own memory; as root one could also take memory from the machine. */
static void allow_advice(struct filter *f) {
    static const uint32_t known[] = {MADV_NORMAL,   MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED,
                                     MADV_DONTNEED, MADV_FREE,   MADV_HUGEPAGE,   MADV_NOHUGEPAGE,
                                     MADV_DONTDUMP, MADV_DODUMP};
    filter_allow_values(f, SYS_madvise, 2, known, COUNT(known), SECCOMP_RET_ERRNO | EINVAL);
}

/* Neither locks, leases nor who gets signals. */
static void allow_fcntl(struct filter *f, uint32_t otherwise) {
    static const uint32_t known[] = {F_GETFD, F_SETFD, F_GETFL, F_DUPFD, F_DUPFD_CLOEXEC};
    filter_allow_values(f, SYS_fcntl, 1, known, COUNT(known), otherwise);
}

/* abort() */
static void allow_own_signals(struct filter *f) {
    const struct filter_condition own[] = {{0, FILTER_WHOLE, (uint32_t)getpid()}};
    filter_allow_if(f, SYS_tgkill, own, COUNT(own));
}

static void begin(struct filter *f) {
    filter_begin(f);
    filter_allow(f, basic_calls, COUNT(basic_calls));
    allow_advice(f);
}

enum err sandbox_enter_loader(const char *object, uint64_t file_bytes, struct error *error) {
    const struct landlock_rule rules[] = {{object, LANDLOCK_READ}};
    const struct filter_condition filters[] = {{0, FILTER_WHOLE, PR_SET_SECCOMP}};
    struct filter f;
    enum err rc;
    TRY(landlock_enter(rules, COUNT(rules), error));
    if (!limit(RLIMIT_FSIZE, file_bytes)) TRY(not_limited(error));
    begin(&f);
    filter_allow(&f, loader_calls, COUNT(loader_calls));
    filter_allow_if(&f, SYS_mmap, not_shared, COUNT(not_shared));
    filter_allow_if(&f, SYS_prctl, filters, COUNT(filters)); /* for sandbox_enter */
    allow_own_signals(&f);
    TRY(filter_install(&f, SECCOMP_RET_KILL_PROCESS, error));
fail:
    return rc;
}

enum err sandbox_enter(struct error *error) {
    struct filter f;
    begin(&f);
    filter_allow_if(&f, SYS_mmap, plain_memory, COUNT(plain_memory));
    filter_allow_if(&f, SYS_mprotect, not_executable, COUNT(not_executable));
    allow_own_signals(&f);
    return filter_install(&f, SECCOMP_RET_KILL_PROCESS, error);
}

/* --- programs --- */

/* What all three sorts of C libraries call to start a program, without effect on others. */
static void allow_start(struct filter *f) {
    filter_allow(f, loader_calls, COUNT(loader_calls));
    filter_allow(f, program_calls, COUNT(program_calls));
    filter_decide(f, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS); /* clone is used then */
    filter_decide(f, SYS_ioctl, SECCOMP_RET_ERRNO | ENOTTY);
#ifdef __x86_64__
    static const uint32_t bases[] = {0x1002, 0x1003}; /* ARCH_SET_FS, ARCH_GET_FS */
    filter_allow_values(f, SYS_arch_prctl, 0, bases, COUNT(bases), SECCOMP_RET_ERRNO | EINVAL);
#endif
}

/* What pthread_create asks for; musl adds a flag without meaning. */
static void allow_threads(struct filter *f) {
    enum {
        THREAD = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID
    };
    const struct filter_condition thread[] = {{0, ~(uint32_t)CLONE_DETACHED, THREAD}};
    filter_allow_if(f, SYS_clone, thread, COUNT(thread));
}

/* Of the process itself: reading its limits, and the processors that it may use. */
static void allow_questions(struct filter *f) {
    const uint32_t selves[] = {0, (uint32_t)getpid()};
    for (size_t i = 0; i < COUNT(selves); i++) {
        const struct filter_condition to_read[] = {{0, FILTER_WHOLE, selves[i]},
                                                   {2, FILTER_WHOLE, 0}};
        filter_allow_if(f, SYS_prlimit64, to_read, COUNT(to_read));
        filter_allow_if(f, SYS_sched_getaffinity, to_read, 1);
    }
}

enum err sandbox_enter_program(int program, const char *readable, uint64_t memory_bytes,
                               uint64_t file_bytes, struct error *error) {
    const struct landlock_rule rules[] = {
        {"/lib", LANDLOCK_RUN},           {"/lib64", LANDLOCK_RUN},
        {"/usr/lib", LANDLOCK_RUN},       {"/usr/lib64", LANDLOCK_RUN},
        {"/usr/local/lib", LANDLOCK_RUN}, {"/etc/ld.so.cache", LANDLOCK_READ},
        {readable, LANDLOCK_READ}};
    const struct filter_condition itself[] = {{0, FILTER_WHOLE, (uint32_t)program},
                                              {4, FILTER_WHOLE, AT_EMPTY_PATH}};
    struct filter f;
    enum err rc;
    TRY(landlock_enter(rules, COUNT(rules), error)); /* "" is no file */
    if (!limit(RLIMIT_AS, memory_bytes) || !limit(RLIMIT_FSIZE, file_bytes))
        TRY(not_limited(error));
    begin(&f);
    allow_start(&f);
    allow_threads(&f);
    allow_questions(&f);
    allow_own_signals(&f);
    allow_fcntl(&f, SECCOMP_RET_KILL_PROCESS);
    filter_allow_if(&f, SYS_execveat, itself, COUNT(itself));
    TRY(filter_install(&f, SECCOMP_RET_KILL_PROCESS, error));
fail:
    return rc;
}

/* --- tools --- */

/* Threads of all processes of this user; a task's folder has a link for each, and two. */
static uint64_t count_tasks(void) {
    char path[300];
    struct stat status;
    uint64_t n = 0;
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; processes && (entry = readdir(processes)) != NULL;) {
        if (*entry->d_name < '0' || *entry->d_name > '9') continue;
        (void)snprintf(path, sizeof path, "/proc/%s/task", entry->d_name);
        if (stat(path, &status) == 0 && status.st_uid == getuid() && status.st_nlink > 2)
            n += status.st_nlink - 2;
    }
    if (processes) (void)closedir(processes);
    return n;
}

/* RLIMIT_NPROC counts all that the user has (and nothing for root). */
static bool limit_tool(void) {
    const uint64_t gib = UINT64_C(1) << 30;
    enum { SECONDS = 1800, TASKS = 256 };
    return limit(RLIMIT_AS, 8 * gib) && limit(RLIMIT_FSIZE, 4 * gib) &&
           limit(RLIMIT_CPU, SECONDS) && limit(RLIMIT_NPROC, count_tasks() + TASKS);
}

static void allow_processes(struct filter *f) {
    const uint32_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
    const struct filter_condition plain[] = {{0, namespaces, 0}};
    const struct filter_condition own[] = {{0, FILTER_WHOLE, 0}};
    filter_allow_if(f, SYS_clone, plain, COUNT(plain));
    filter_allow_if(f, SYS_prlimit64, own, COUNT(own));
}

enum err sandbox_enter_tool(const char *program, const char *folder, struct error *error) {
    const struct landlock_rule rules[] = {
        {"/usr", LANDLOCK_RUN},         {"/bin", LANDLOCK_RUN},
        {"/lib", LANDLOCK_RUN},         {"/lib64", LANDLOCK_RUN},
        {"/nix/store", LANDLOCK_RUN},   {"/etc/ld.so.cache", LANDLOCK_READ},
        {"/dev/null", LANDLOCK_DEVICE}, {program, LANDLOCK_RUN},
        {folder, LANDLOCK_SCRATCH}};
    struct filter f;
    enum err rc;
    if (!limit_tool()) TRY(not_limited(error));
    TRY(landlock_enter(rules, COUNT(rules), error));
    begin(&f);
    allow_start(&f);
    allow_processes(&f);
    allow_fcntl(&f, SECCOMP_RET_ERRNO | EINVAL);
    filter_allow(&f, tool_calls, COUNT(tool_calls));
    for (size_t i = 0; i < COUNT(seeming_calls); i++)
        filter_decide(&f, seeming_calls[i], SECCOMP_RET_ERRNO);
    TRY(filter_install(&f, SECCOMP_RET_ERRNO | ENOSYS, error));
fail:
    return rc;
}
