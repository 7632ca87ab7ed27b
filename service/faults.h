/* Sleeps at the boundaries between steps, for a build that tests whether the evidence finds them
 * (PROVERQ_FAULTS; never the product's, in which fault_sleep is nothing).
 *
 * PROVERQ_SLEEP=BOUNDARY:MS makes the step of that name last so much longer, each time.
 */
#ifndef PROVERQ_FAULTS_H
#define PROVERQ_FAULTS_H

#ifdef PROVERQ_FAULTS

#include <poll.h>
#include <stdlib.h>
#include <string.h>

static inline void fault_sleep(const char *boundary) {
    const char *wish = getenv("PROVERQ_SLEEP");
    size_t n = strlen(boundary);
    if (wish && strncmp(wish, boundary, n) == 0 && wish[n] == ':')
        (void)poll(NULL, 0, (int)strtol(wish + n + 1, NULL, 10));
}

#else

static inline void fault_sleep(const char *boundary) {
    (void)boundary;
}

#endif

#endif
