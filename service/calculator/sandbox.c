#include "service/calculator/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#else
#error "the sandbox knows the system calls of x86-64 and ARM64 only"
#endif

/* --- limits --- */

static bool limit(__rlimit_resource_t what, uint64_t most) {
    return setrlimit(what, &(struct rlimit){most, most}) == 0;
}

enum err sandbox_limit(uint64_t memory_bytes, struct error *error) {
    enum { DESCRIPTORS = 64 };
    if (limit(RLIMIT_CORE, 0) && limit(RLIMIT_DATA, memory_bytes) &&
        limit(RLIMIT_NOFILE, DESCRIPTORS) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
        return ERR_NONE;
    return error_set(error, ERR_INTERNAL, "a calculator's process cannot be limited: %s",
                     strerror(errno));
}

/* --- system calls --- */

enum { FILTER_MAX = 400 };

struct filter {
    struct sock_filter code[FILTER_MAX];
    unsigned short n;
};

static void emit(struct filter *f, struct sock_filter instruction) {
    if (f->n < FILTER_MAX) f->code[f->n++] = instruction;
}

static void load(struct filter *f, size_t offset) {
    emit(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void finish_with(struct filter *f, uint32_t action) {
    emit(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* The next `skip` instructions are for the loaded value `value` alone. */
static void unless_equal(struct filter *f, uint32_t value, uint8_t skip) {
    emit(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip));
}

/* Leaves the number of the call loaded. */
static void begin(struct filter *f) {
    f->n = 0;
    load(f, offsetof(struct seccomp_data, arch));
    emit(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0));
    finish_with(f, SECCOMP_RET_KILL_PROCESS);
    load(f, offsetof(struct seccomp_data, nr)); /* those of x32 are equal to none below */
}

static void decide(struct filter *f, long call, uint32_t action) {
    unless_equal(f, (uint32_t)call, 1);
    finish_with(f, action);
}

/* Allowed when the lower half of an argument, masked, has this value; else it kills. */
static void allow_if(struct filter *f, long call, unsigned argument, uint32_t mask,
                     uint32_t value) {
    unless_equal(f, (uint32_t)call, 5);
    load(f, offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t));
    emit(f, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
    unless_equal(f, value, 1);
    finish_with(f, SECCOMP_RET_ALLOW);
    finish_with(f, SECCOMP_RET_KILL_PROCESS);
}

/* Kills when the lower half of an argument has one of these bits; decides nothing otherwise. */
static void kill_if(struct filter *f, long call, unsigned argument, uint32_t bits) {
    unless_equal(f, (uint32_t)call, 4);
    load(f, offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t));
    emit(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
    finish_with(f, SECCOMP_RET_KILL_PROCESS);
    load(f, offsetof(struct seccomp_data, nr));
}

static void allow_all(struct filter *f, const long *calls, size_t n) {
    for (size_t i = 0; i < n; i++)
        decide(f, calls[i], SECCOMP_RET_ALLOW);
}

static enum err install(struct filter *f, struct error *error) {
    struct sock_fprog program = {f->n, f->code};
    finish_with(f, SECCOMP_RET_KILL_PROCESS);
    program.len = f->n;
    if (f->n < FILTER_MAX && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
        return ERR_NONE;
    return error_set(error, ERR_UNSUPPORTED,
                     "the kernel of this host does not filter system calls (seccomp): %s",
                     strerror(errno));
}

static const long basic_calls[] = {
    SYS_read,           SYS_write,  SYS_munmap,     SYS_madvise,     SYS_brk,
    SYS_rt_sigreturn,   SYS_futex,  SYS_exit_group, SYS_exit,        SYS_clock_gettime,
    SYS_rt_sigprocmask, SYS_mremap, SYS_getrandom,  SYS_sigaltstack, SYS_restart_syscall};

enum err sandbox_enter(struct error *error) {
    struct filter f;
    begin(&f);
    allow_all(&f, basic_calls, sizeof basic_calls / sizeof *basic_calls);
    kill_if(&f, SYS_mmap, 3, MAP_SHARED); /* RLIMIT_DATA does not count it */
    allow_if(&f, SYS_mmap, 2, PROT_EXEC, 0);
    allow_if(&f, SYS_mprotect, 2, PROT_EXEC, 0);
    return install(&f, error);
}

/* --- programs --- */

/* What the C and C++ libraries need to start a program, and circom's to read and write its files. */
static const long program_calls[] = {
    SYS_execveat,
    SYS_openat,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_lseek,
    SYS_mmap,
    SYS_mprotect,
    SYS_pread64,
    SYS_readv,
    SYS_writev,
    SYS_set_tid_address,
    SYS_set_robust_list,
    SYS_rt_sigaction,
    SYS_faccessat,
    SYS_readlinkat,
    SYS_getcwd,
    SYS_gettid,
    SYS_getpid,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sysinfo,
    SYS_uname,
    SYS_fcntl,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_gettimeofday,
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef __x86_64__
    SYS_arch_prctl,
    SYS_open,
    SYS_access,
    SYS_readlink,
    SYS_stat,
    SYS_lstat,
    SYS_time,
#endif
};

/* The files: numbers of landlock(7), where the headers may be older than the kernel. */
#define FS_EXECUTE   (UINT64_C(1) << 0)
#define FS_READ_FILE (UINT64_C(1) << 2)
#define FS_READ_DIR  (UINT64_C(1) << 3)
#define FS_ALL_OF_1  ((UINT64_C(1) << 13) - 1)
#define FS_REFER     (UINT64_C(1) << 13)
#define FS_TRUNCATE  (UINT64_C(1) << 14)
#define FS_IOCTL_DEV (UINT64_C(1) << 15)

static uint64_t all_rights(long abi) {
    return FS_ALL_OF_1 | (abi >= 2 ? FS_REFER : 0) | (abi >= 3 ? FS_TRUNCATE : 0) |
           (abi >= 5 ? FS_IOCTL_DEV : 0);
}

/* A path that is not on this host needs no rule. */
static bool allow_path(int rules, const char *path, uint64_t rights) {
    struct landlock_path_beneath_attr rule = {.allowed_access = rights};
    rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (rule.parent_fd < 0) return errno == ENOENT || errno == ENOTDIR;
    long failed = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    (void)close(rule.parent_fd);
    return failed == 0;
}

static enum err restrict_files(const char *readable, struct error *error) {
    static const char *const folders[] = {"/lib", "/lib64", "/usr/lib", "/usr/lib64",
                                          "/usr/local/lib"};
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    struct landlock_ruleset_attr attributes = {.handled_access_fs = all_rights(abi)};
    if (abi < 1)
        return error_set(error, ERR_UNSUPPORTED,
                         "the kernel of this host cannot keep a program from files (Landlock, "
                         "Linux 5.13); a calculator in .wasm needs no such thing");
    int rules = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    bool done = rules >= 0 && allow_path(rules, "/etc/ld.so.cache", FS_READ_FILE) &&
                (!*readable || allow_path(rules, readable, FS_READ_FILE));
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        done = done && allow_path(rules, folders[i], FS_EXECUTE | FS_READ_FILE | FS_READ_DIR);
    done = done && syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    if (rules >= 0) (void)close(rules);
    if (done) return ERR_NONE;
    return error_set(error, ERR_UNSUPPORTED, "Landlock: %s", strerror(errno));
}

enum err sandbox_enter_program(const char *readable, uint64_t memory_bytes, uint64_t file_bytes,
                               struct error *error) {
    struct filter f;
    enum err rc;
    TRY(restrict_files(readable, error));
    if (!limit(RLIMIT_AS, memory_bytes) || !limit(RLIMIT_FSIZE, file_bytes))
        TRY(error_set(error, ERR_INTERNAL, "the program cannot be limited: %s", strerror(errno)));
    begin(&f);
    allow_all(&f, basic_calls, sizeof basic_calls / sizeof *basic_calls);
    allow_all(&f, program_calls, sizeof program_calls / sizeof *program_calls);
    allow_if(&f, SYS_clone, 0, CLONE_THREAD, CLONE_THREAD);
    allow_if(&f, SYS_prlimit64, 2, UINT32_MAX, 0);               /* to read them */
    allow_if(&f, SYS_tgkill, 0, UINT32_MAX, (uint32_t)getpid()); /* abort() */
    decide(&f, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);          /* clone is used then */
    decide(&f, SYS_ioctl, SECCOMP_RET_ERRNO | ENOTTY);
    TRY(install(&f, error));
fail:
    return rc;
}
