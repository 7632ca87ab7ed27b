/* When a device was busy: intervals in which kernels or copies ran, merged over all streams.
 *
 * Records come from the device's own clock (CUPTI, see gpu/cuda/records.cu) or, where there are
 * none, from the steps of the proofs; in any order, up to seconds late. They are reduced to
 * intervals: records of a kind that overlap, or are less than ACTIVITY_TOLERANCE_NS apart, become
 * one, and the time in it that some record covers is counted exactly. Private to gpu/ and its
 * tests; users have device_activity_start and device_activity_drain (prover.h).
 */
#ifndef PROVERQ_ACTIVITY_H
#define PROVERQ_ACTIVITY_H

#include "gpu/prover.h"

/* Kernels of one proof follow each other within a few microseconds; what is shorter than this is
 * not told as a gap, but does not count as busy. */
#define ACTIVITY_TOLERANCE_NS INT64_C(5000)

/* Records that nobody takes away are dropped beyond this number. */
enum { ACTIVITY_PENDING_MAX = 1 << 22 };

struct activity; /* any thread may call */

MUST_USE enum err activity_open(struct activity **out, struct error *error);
void activity_close(struct activity *activity); /* NULL may be closed */

/* Something of `kind` ran from start_ns until end_ns (CLOCK_MONOTONIC); it became known at now_ns.
 * What ends before it starts is no time and is left out. */
void activity_add(struct activity *activity, enum activity_kind kind, int64_t start_ns,
                  int64_t end_ns, int64_t now_ns);

/* Until when all records are taken to be here: some seconds before now_ns, and longer when records
 * have come later than that. */
int64_t activity_settled(struct activity *activity, int64_t now_ns);

/* Takes out what happened before until_ns, as *n intervals in the order of kind and start, which
 * the caller frees (NULL when n is 0). A record across until_ns is cut there. One that comes after
 * its time was taken out makes an interval of its own. After ERR_HOST_MEMORY nothing is lost. */
MUST_USE enum err activity_reduce(struct activity *activity, int64_t until_ns,
                                  struct activity_interval **out, size_t *n, struct error *error);

/* Records dropped since the last call. */
size_t activity_dropped(struct activity *activity);

#endif
