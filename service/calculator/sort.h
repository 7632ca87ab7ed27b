/* Sorts as qsort(3) does, but in place and without any system call: the C library's asks for the size
 * of the machine's memory when there is much to sort, which the sandbox does not allow.
 */
#ifndef PROVERQ_SORT_H
#define PROVERQ_SORT_H

#include <stddef.h>

/* Heapsort (Williams 1964): n log n comparisons at most, no recursion. Not stable. */
void sort(void *items, size_t n, size_t size, int (*compare)(const void *, const void *));

#endif
