#include "tests/gpu-card/card.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void card_fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)fputs("FAIL: ", stdout);
    (void)vprintf(format, args);
    (void)putchar('\n');
    va_end(args);
    exit(1);
}

double card_seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014) */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

void card_random(const struct curve_info *curve, unsigned seed, struct scalar *out, size_t n) {
    uint64_t state = (uint64_t)seed << 32 | 0x5eed, word[4];
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < 4; k++)
            word[k] = next_random(&state);
        memcpy(out[i].le, word, sizeof word);
        uint8_t *top = &out[i].le[SCALAR_BYTES - 1];
        *top = (uint8_t)(*top % curve->r[SCALAR_BYTES - 1]);
    }
}
