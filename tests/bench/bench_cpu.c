/* Times of the CPU's arithmetic, each result checked before its time is printed.
 *
 *     bench_cpu [CURVE [LOG_N [THREADS [ISA]]]]     default: bn128 15, all threads, the best ISA
 *
 * Bases are multiples i*G, so that a sum can be checked with one scalar multiplication; transforms
 * are checked by going there and back and at one point against the definition.
 */
#include "gpu/cpu/cpu_curve.h"
#include "tests/gpu/arith.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct bench {
    const struct cpu_curve *curve;
    struct pool *pool;
    size_t n;
    unsigned log_n;
    uint8_t *g1, *g2; /* i*G for i = 1 .. n */
    struct scalar *scalars;
};

/* Wall clock, and processor time of all threads: on a busy machine only the second means much. */
struct moment {
    double wall, cpu;
};

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct moment now(void) {
    return (struct moment){seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID)};
}

static void report(const struct moment *start, const char *what, unsigned log_n) {
    struct moment end = now();
    printf("%-16s 2^%-2u %10.2f ms %10.2f ms of CPU\n", what, log_n, 1e3 * (end.wall - start->wall),
           1e3 * (end.cpu - start->cpu));
}

static void die(const char *what) {
    fprintf(stderr, "bench_cpu: %s\n", what);
    exit(EXIT_FAILURE);
}

static void *need(size_t n, size_t size) {
    void *memory = calloc(n, size);
    if (!memory) die("out of memory");
    return memory;
}

/* --- data --- */

static void scalar_random(const struct cpu_curve *curve, struct scalar *out) {
    static uint64_t state = 0x9e3779b97f4a7c15;
    do {
        for (size_t i = 0; i < sizeof out->le; i++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            out->le[i] = (uint8_t)(state >> 32);
        }
        out->le[SCALAR_BYTES - 1] &= 0x7f;
    } while (!le_less(out->le, curve->info->r, SCALAR_BYTES));
}

static void scalar_small(uint64_t x, struct scalar *out) {
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < sizeof x; i++)
        out->le[i] = (uint8_t)(x >> (8 * i));
}

static void make_bases(struct bench *b) {
    const struct cpu_curve *curve = b->curve;
    struct g1_point p = *curve->g1_generator;
    struct g2_point q = *curve->g2_generator;
    size_t g1_bytes = 2 * curve->info->n8q;
    b->g1 = need(b->n, g1_bytes);
    b->g2 = need(b->n, 2 * g1_bytes);
    for (size_t i = 0; i < b->n; i++) {
        curve->g1_to_zkey(&p, b->g1 + i * g1_bytes);
        curve->g2_to_zkey(&q, b->g2 + i * 2 * g1_bytes);
        curve->g1_add(&p, curve->g1_generator, &p);
        curve->g2_add(&q, curve->g2_generator, &q);
    }
}

/* --- multi-scalar multiplications --- */

/* sum (i+1) * scalars[i] mod r: what the sum is worth in G. */
static void discrete_log(const struct bench *b, struct scalar *out) {
    scalar_small(0, out);
    for (size_t i = 0; i < b->n; i++) {
        struct scalar k;
        scalar_small(i + 1, &k);
        b->curve->fr_mul(&k, &b->scalars[i], &k);
        b->curve->fr_add(out, &k, out);
    }
}

static void bench_msm(const struct bench *b, const char *what1, const char *what2) {
    const struct cpu_curve *curve = b->curve;
    struct scalar log;
    struct g1_point got1, want1;
    struct g2_point got2, want2;
    struct error error;
    discrete_log(b, &log);
    curve->g1_mul(curve->g1_generator, &log, &want1);
    curve->g2_mul(curve->g2_generator, &log, &want2);
    struct moment start = now();
    if (curve->msm_g1(b->pool, b->g1, b->scalars, b->n, &got1, &error) != ERR_NONE) die(error.text);
    if (memcmp(&got1, &want1, sizeof got1) != 0) die("the G1 sum is wrong");
    report(&start, what1, b->log_n);
    start = now();
    if (curve->msm_g2(b->pool, b->g2, b->scalars, b->n, &got2, &error) != ERR_NONE) die(error.text);
    if (memcmp(&got2, &want2, sizeof got2) != 0) die("the G2 sum is wrong");
    report(&start, what2, b->log_n);
}

static void bench_msms(struct bench *b) {
    make_bases(b);
    for (size_t i = 0; i < b->n; i++)
        scalar_random(b->curve, &b->scalars[i]);
    bench_msm(b, "msm g1 dense", "msm g2 dense");
    for (size_t i = 0; i < b->n; i++)
        if (i % 64 != 0) scalar_small(b->scalars[i].le[0] & 1, &b->scalars[i]);
    bench_msm(b, "msm g1 bits", "msm g2 bits");
}

/* --- transforms --- */

/* sum of all values: what the transform has at index 0. */
static void sum_values(const struct bench *b, struct scalar *out) {
    scalar_small(0, out);
    for (size_t i = 0; i < b->n; i++)
        b->curve->fr_add(&b->scalars[i], out, out);
}

static void bench_ntt(const struct bench *b) {
    struct scalar *values = need(b->n, sizeof *values), sum;
    struct error error;
    for (int warm = 0; warm < 2; warm++) { /* the first makes the twiddles */
        memcpy(values, b->scalars, b->n * sizeof *values);
        sum_values(b, &sum);
        struct moment start = now();
        if (b->curve->ntt(b->pool, values, b->log_n, false, &error) != ERR_NONE) die(error.text);
        struct moment middle = now();
        if (memcmp(&values[0], &sum, sizeof sum) != 0) die("the transform is wrong at 1");
        if (warm) report(&start, "ntt", b->log_n);
        if (b->curve->ntt(b->pool, values, b->log_n, true, &error) != ERR_NONE) die(error.text);
        if (memcmp(values, b->scalars, b->n * sizeof *values) != 0)
            die("the inverse transform does not go back");
        if (warm) report(&middle, "inverse ntt", b->log_n);
    }
    free(values);
}

/* --- products --- */

/* A chain of products, which must end like the portable code's (that is what the tests compare with
 * GMP). */
static void bench_mul(const struct field_access *portable, const struct field_access *field) {
    enum { N = 2000000 };
    uint8_t want[COORD_BYTES], got[COORD_BYTES];
    portable->mul_chain(N, want);
    double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
    field->mul_chain(N, got);
    double ns = 1e9 * (seconds(CLOCK_PROCESS_CPUTIME_ID) - start) / N;
    if (memcmp(got, want, field->bytes) != 0) die("a product is wrong");
    printf("product %-20s %6.2f ns of CPU\n", field->name, ns);
}

static void bench_muls(enum curve_id id) {
    const struct arith *portable = NULL;
    for (const struct arith *const *t = arith_tables(); *t; t++) {
        if ((*t)->id != id) continue;
        if (!portable) portable = *t; /* the first of a curve */
        bench_mul(&portable->fr, &(*t)->fr);
        bench_mul(&portable->fq, &(*t)->fq);
    }
}

int main(int argc, char **argv) {
    struct bench b = {.log_n = 15};
    const struct curve_info *info = curve_by_name(argc > 1 ? argv[1] : "bn128");
    struct error error;
    if (!info) die("unknown curve");
    if (argc > 2) b.log_n = (unsigned)strtoul(argv[2], NULL, 10);
    if (b.log_n < 1 || b.log_n > 24) die("LOG_N is 1 to 24");
    unsigned threads = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    b.curve = argc > 4 ? cpu_curve_isa(info->id, argv[4]) : cpu_curve(info->id);
    if (!b.curve) die("this processor does not have that ISA");
    if (pool_open(threads, &b.pool, &error) != ERR_NONE) die(error.text);
    b.n = (size_t)1 << b.log_n;
    b.scalars = need(b.n, sizeof *b.scalars);
    printf("%s, %s, %u threads\n", info->name, b.curve->isa, pool_threads(b.pool));
    bench_muls(info->id);
    bench_msms(&b);
    bench_ntt(&b);
    free(b.g1);
    free(b.g2);
    free(b.scalars);
    pool_close(b.pool);
    return EXIT_SUCCESS;
}
