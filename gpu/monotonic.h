/* Time since some moment, which setting the wall clock does not change (CLOCK_MONOTONIC). */
#ifndef PROVERQ_MONOTONIC_H
#define PROVERQ_MONOTONIC_H

#include <stdint.h>
#include <time.h>

static inline int64_t monotonic_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t monotonic_ms(void) {
    return monotonic_ns() / 1000000;
}

#endif
