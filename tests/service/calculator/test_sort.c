/* Our sort against the C library's. */
#include "service/calculator/sort.h"
#include "tests/gpu/suite.h"

#include <stdint.h>
#include <stdlib.h>

enum { MOST = 3000 };

struct item {
    uint32_t key;
    uint8_t rest[8]; /* goes where the key goes */
};

static int by_key(const void *a, const void *b) {
    const struct item *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static void check(size_t n, uint32_t different) {
    static struct item ours[MOST], theirs[MOST];
    for (size_t i = 0; i < n; i++) {
        ours[i].key = (uint32_t)((i * 2654435761u) >> 3) % different;
        memset(ours[i].rest, (uint8_t)ours[i].key, sizeof ours[i].rest);
        theirs[i] = ours[i];
    }
    sort(ours, n, sizeof *ours, by_key);
    qsort(theirs, n, sizeof *theirs, by_key);
    ck_assert_int_eq(memcmp(ours, theirs, n * sizeof *ours), 0);
}

START_TEST(it_sorts_as_the_c_library_does) {
    static const size_t counts[] = {0, 1, 2, 3, 4, 7, 64, 65, 1000, MOST};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        check(counts[i], 1);
        check(counts[i], 5);
        check(counts[i], UINT32_MAX);
    }
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&it_sorts_as_the_c_library_does};
    return run_tests("sort", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
