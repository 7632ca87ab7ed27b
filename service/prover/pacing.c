#include "service/prover/pacing.h"

#include <math.h>

/* Weight of a new measurement: some 8 partitions after a change the average has followed. */
static const double WEIGHT = 0.25;

/* Partitions that are ready beyond those on their way. */
static const double READY = 2;

void pacing_init(struct pacing *pacing) {
    *pacing = (struct pacing){.claim_ns = 0};
    pthread_mutex_init(&pacing->mutex, NULL);
}

void pacing_destroy(struct pacing *pacing) {
    pthread_mutex_destroy(&pacing->mutex);
}

static void average(struct pacing *pacing, double *mean, int64_t ns) {
    if (ns < 0) return;
    pthread_mutex_lock(&pacing->mutex);
    *mean = *mean > 0 ? *mean + WEIGHT * ((double)ns - *mean) : (double)ns;
    pthread_mutex_unlock(&pacing->mutex);
}

void pacing_claimed(struct pacing *pacing, int64_t ns) {
    average(pacing, &pacing->claim_ns, ns);
}

void pacing_synthesized(struct pacing *pacing, int64_t ns) {
    average(pacing, &pacing->synthesis_ns, ns);
}

void pacing_proved(struct pacing *pacing, int64_t ns) {
    average(pacing, &pacing->device_ns, ns);
}

int pacing_depth(struct pacing *pacing, int synthesis_threads) {
    pthread_mutex_lock(&pacing->mutex);
    double way = pacing->claim_ns + pacing->synthesis_ns;
    double interval = fmax(pacing->device_ns, pacing->synthesis_ns / synthesis_threads);
    double known = pacing->device_ns;
    pthread_mutex_unlock(&pacing->mutex);
    if (known <= 0) return PACING_FIRST;
    double depth = ceil(way / interval) + READY;
    return depth < PACING_LEAST ? PACING_LEAST : depth > PACING_MOST ? PACING_MOST : (int)depth;
}
