#include "service/calculator/sort.h"

#include <stdint.h>

struct heap {
    uint8_t *items;
    size_t size;
    int (*compare)(const void *, const void *);
};

static void swap(const struct heap *heap, size_t i, size_t j) {
    uint8_t *a = heap->items + i * heap->size, *b = heap->items + j * heap->size;
    for (size_t k = 0; k < heap->size; k++) {
        uint8_t byte = a[k];
        a[k] = b[k];
        b[k] = byte;
    }
}

static int order(const struct heap *heap, size_t i, size_t j) {
    return heap->compare(heap->items + i * heap->size, heap->items + j * heap->size);
}

/* Lets item i sink to its place among the first n, whose other parts are heaps. */
static void sink(const struct heap *heap, size_t i, size_t n) {
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && order(heap, child, child + 1) < 0) child++;
        if (order(heap, i, child) >= 0) return;
        swap(heap, i, child);
    }
}

void sort(void *items, size_t n, size_t size, int (*compare)(const void *, const void *)) {
    const struct heap heap = {items, size, compare};
    for (size_t i = n / 2; i-- > 0;)
        sink(&heap, i, n);
    for (size_t end = n; end-- > 1;) {
        swap(&heap, 0, end);
        sink(&heap, 0, end);
    }
}
