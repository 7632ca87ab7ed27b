#include "service/common/budget.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void budget_init(struct budget *budget, size_t limit) {
    pthread_mutex_init(&budget->mutex, NULL);
    budget->limit = limit;
    budget->used = 0;
    budget->peak = 0;
}

void budget_destroy(struct budget *budget) {
    pthread_mutex_destroy(&budget->mutex);
}

bool budget_reserve(struct budget *budget, size_t bytes) {
    pthread_mutex_lock(&budget->mutex);
    bool fits = bytes <= budget->limit - budget->used;
    if (fits) budget->used += bytes;
    if (budget->used > budget->peak) budget->peak = budget->used;
    pthread_mutex_unlock(&budget->mutex);
    return fits;
}

void budget_give_back(struct budget *budget, size_t bytes) {
    pthread_mutex_lock(&budget->mutex);
    budget->used -= bytes;
    pthread_mutex_unlock(&budget->mutex);
}

size_t budget_peak(struct budget *budget) {
    pthread_mutex_lock(&budget->mutex);
    size_t peak = budget->peak;
    pthread_mutex_unlock(&budget->mutex);
    return peak;
}

/* The number in a control group's file; SIZE_MAX for "max", or without the file. */
static size_t read_limit(const char *path) {
    char text[32] = "", *end;
    FILE *file = fopen(path, "re");
    if (!file) return SIZE_MAX;
    size_t n = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    errno = 0;
    unsigned long long limit = strtoull(text, &end, 10);
    return errno || end == text ? SIZE_MAX : (size_t)limit;
}

size_t host_memory(void) {
    static const char *const files[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t least = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t limit = read_limit(files[i]);
        if (limit < least) least = limit;
    }
    return least;
}
