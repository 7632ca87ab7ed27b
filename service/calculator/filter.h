/* Filters of system calls (seccomp(2)), for x86-64 and ARM64: rules in order, the first one that fits
 * decides. A process's filters add up: a later one can only forbid more.
 *
 * Arguments are compared whole, all 64 bits of them: the upper half must be zero even where the
 * kernel reads the lower half only.
 */
#ifndef PROVERQ_FILTER_H
#define PROVERQ_FILTER_H

#include "gpu/error.h"

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

enum { FILTER_MAX = 1000 };

struct filter {
    struct sock_filter code[FILTER_MAX];
    unsigned short n;
    bool is_full;
};

/* Begins an empty filter. */
void filter_begin(struct filter *f);

/* These calls are allowed, whatever their arguments are. */
void filter_allow(struct filter *f, const long *calls, size_t n);

/* The call has this outcome: SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ERRNO | number ... */
void filter_decide(struct filter *f, long call, uint32_t outcome);

/* An argument that is `value` in the bits of `mask`, and zero above its lower 32 bits. */
struct filter_condition {
    unsigned argument;
    uint32_t mask, value;
};

#define FILTER_WHOLE UINT32_MAX

/* The call is allowed if all `n` conditions hold; else later rules decide. */
void filter_allow_if(struct filter *f, long call, const struct filter_condition *conditions,
                     size_t n);

/* The call is allowed if the argument is one of these values, and else has this outcome. */
void filter_allow_values(struct filter *f, long call, unsigned argument, const uint32_t *values,
                         size_t n, uint32_t otherwise);

/* Installs it: a call that no rule decides has the outcome `otherwise`. ERR_UNSUPPORTED: the kernel
 * has no such filters. */
MUST_USE enum err filter_install(struct filter *f, uint32_t otherwise, struct error *error);

#endif
