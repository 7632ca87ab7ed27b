/* How many partitions a prover claims ahead of its device: as few as keep the device busy, so that
 * the other provers find work too.
 *
 * It follows from Little's law. A partition reaches the device a claim's round trip and its
 * synthesis after it was asked for; in that time the device takes one every D (a proof's time), or
 * the synthesis threads make one every S / threads when they are the slower ones. So many are on
 * their way at once; two more are kept, ready to be picked up, for what varies. Each time is a
 * moving average of what was measured.
 */
#ifndef PROVERQ_PACING_H
#define PROVERQ_PACING_H

#include <pthread.h>
#include <stdint.h>

/* The bounds of the depth, and what it is until there are measurements. */
enum { PACING_LEAST = 3, PACING_MOST = 32, PACING_FIRST = 4 };

struct pacing {
    pthread_mutex_t mutex;
    double claim_ns, synthesis_ns, device_ns; /* averages; 0 until the first */
};

void pacing_init(struct pacing *pacing);
void pacing_destroy(struct pacing *pacing);

/* What was measured: a claim's round trip, a partition's synthesis, and the time from one proof to
 * the next on a busy device. Any thread. */
void pacing_claimed(struct pacing *pacing, int64_t ns);
void pacing_synthesized(struct pacing *pacing, int64_t ns);
void pacing_proved(struct pacing *pacing, int64_t ns);

/* Partitions that should be claimed and not yet on the device, PACING_LEAST to PACING_MOST. */
int pacing_depth(struct pacing *pacing, int synthesis_threads);

#endif
