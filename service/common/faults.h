/* Disturbances of a build that tests whether the evidence finds them, and measures what the design
 * is worth (PROVERQ_FAULTS; never the product's, in which these functions are nothing).
 *
 * PROVERQ_SLEEP=BOUNDARY:MS makes the step of that name last so much longer, each time.
 * PROVERQ_PAGEABLE=1 takes witness buffers that are not pinned.
 * PROVERQ_RACING=1 lets claimed partitions race each other for their memory.
 * PROVERQ_WORKERS=N starts no more GPU workers than that.
 * PROVERQ_NO_RESCAN=1 claims from the last bound on, always, and never looks below it (claims.h).
 * PROVERQ_DEPTH=N claims so many partitions ahead of the device, whatever was measured.
 * PROVERQ_DEVICE_FAULT=FILE lets the device fail while that file is there.
 * PROVERQ_FAIL=N fails N of a hundred attempts, chosen by job, partition and attempt, as if by chance.
 */
#ifndef PROVERQ_FAULTS_H
#define PROVERQ_FAULTS_H

#include "gpu/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef PROVERQ_FAULTS

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void fault_sleep(const char *boundary) {
    const char *wish = getenv("PROVERQ_SLEEP");
    size_t n = strlen(boundary);
    if (wish && strncmp(wish, boundary, n) == 0 && wish[n] == ':')
        (void)poll(NULL, 0, (int)strtol(wish + n + 1, NULL, 10));
}

/* The number that the environment gives, else 0. */
static inline int fault_switch(const char *name) {
    const char *value = getenv(name);
    return value ? (int)strtol(value, NULL, 10) : 0;
}

static inline enum err fault_device(struct error *error) {
    const char *file = getenv("PROVERQ_DEVICE_FAULT");
    if (!file || access(file, F_OK) != 0) return ERR_NONE;
    return error_set(error, ERR_DEVICE_FAULT, "a fault that a test wants");
}

static inline bool fault_strikes(int64_t job, int32_t partition, int32_t attempt) {
    uint64_t mix = (uint64_t)job * 1000003u + (uint64_t)partition * 10007u + (uint64_t)attempt;
    mix *= UINT64_C(0x9e3779b97f4a7c15);
    return (int)((mix >> 32) % 100) < fault_switch("PROVERQ_FAIL");
}

#else

static inline void fault_sleep(const char *boundary) {
    (void)boundary;
}

static inline int fault_switch(const char *name) {
    (void)name;
    return 0;
}

static inline enum err fault_device(struct error *error) {
    (void)error;
    return ERR_NONE;
}

static inline bool fault_strikes(int64_t job, int32_t partition, int32_t attempt) {
    (void)job, (void)partition, (void)attempt;
    return false;
}

#endif

#endif
