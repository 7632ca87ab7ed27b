#include "service/calculator/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#else
#error "the sandbox knows the system calls of x86-64 and ARM64 only"
#endif

/* Instructions of one condition; the two halves of an argument, on little-endian machines. */
enum { CONDITION_CODE = 5, LOWER = 0, UPPER = 4 };

static void emit(struct filter *f, struct sock_filter instruction) {
    if (f->n < FILTER_MAX)
        f->code[f->n++] = instruction;
    else
        f->is_full = true;
}

static void load(struct filter *f, size_t offset) {
    emit(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void load_argument(struct filter *f, unsigned argument, size_t half) {
    load(f, offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t) + half);
}

static void load_call(struct filter *f) {
    load(f, offsetof(struct seccomp_data, nr));
}

static void finish_with(struct filter *f, uint32_t outcome) {
    emit(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, outcome));
}

/* The next `skip` instructions are for the loaded value `value` alone. */
static void unless_equal(struct filter *f, uint32_t value, size_t skip) {
    emit(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, (uint8_t)skip));
}

/* Between two rules the number of the call is loaded; those of x32 are equal to none of ours. */
void filter_begin(struct filter *f) {
    f->n = 0;
    f->is_full = false;
    load(f, offsetof(struct seccomp_data, arch));
    emit(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0));
    finish_with(f, SECCOMP_RET_KILL_PROCESS);
    load_call(f);
}

void filter_decide(struct filter *f, long call, uint32_t outcome) {
    unless_equal(f, (uint32_t)call, 1);
    finish_with(f, outcome);
}

void filter_allow(struct filter *f, const long *calls, size_t n) {
    for (size_t i = 0; i < n; i++)
        filter_decide(f, calls[i], SECCOMP_RET_ALLOW);
}

void filter_allow_if(struct filter *f, long call, const struct filter_condition *conditions,
                     size_t n) {
    size_t rest = n * CONDITION_CODE + 1; /* instructions before the number is loaded again */
    unless_equal(f, (uint32_t)call, rest + 1);
    for (size_t i = 0; i < n; i++, rest -= CONDITION_CODE) {
        load_argument(f, conditions[i].argument, UPPER);
        unless_equal(f, 0, rest - 2);
        load_argument(f, conditions[i].argument, LOWER);
        emit(f, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, conditions[i].mask));
        unless_equal(f, conditions[i].value, rest - 5);
    }
    finish_with(f, SECCOMP_RET_ALLOW);
    load_call(f);
}

void filter_allow_values(struct filter *f, long call, unsigned argument, const uint32_t *values,
                         size_t n, uint32_t otherwise) {
    for (size_t i = 0; i < n; i++)
        filter_allow_if(f, call, &(struct filter_condition){argument, FILTER_WHOLE, values[i]}, 1);
    filter_decide(f, call, otherwise);
}

enum err filter_install(struct filter *f, uint32_t otherwise, struct error *error) {
    finish_with(f, otherwise);
    struct sock_fprog program = {f->n, f->code};
    if (f->is_full) return error_set(error, ERR_INTERNAL, "a filter of system calls is too long");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0) return ERR_NONE;
    return error_set(error, ERR_UNSUPPORTED,
                     "the kernel of this host does not filter system calls (seccomp): %s",
                     strerror(errno));
}
