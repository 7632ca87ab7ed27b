/* A bound on bytes: what is reserved never exceeds it.
 *
 * Memory is reserved before it is allocated and given back after it is freed, so that the sum of
 * what is allocated stays within the bound at every moment. Any thread may call.
 */
#ifndef PROVERQ_BUDGET_H
#define PROVERQ_BUDGET_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUDGET_UNLIMITED SIZE_MAX

struct budget {
    pthread_mutex_t mutex;
    size_t limit, used, peak;
};

void budget_init(struct budget *budget, size_t limit);
void budget_destroy(struct budget *budget); /* all must be given back */

/* False, and nothing is reserved, when it does not fit beside what is reserved now. */
bool budget_reserve(struct budget *budget, size_t bytes);
void budget_give_back(struct budget *budget, size_t bytes);

/* The most that was ever reserved. */
size_t budget_peak(struct budget *budget);

/* Bytes of memory that this process may use: the machine's, or its control group's when that has
 * less (cgroup v2 memory.max, v1 memory.limit_in_bytes). */
size_t host_memory(void);

#endif
