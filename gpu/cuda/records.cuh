/* Kernels and copies as the device itself timed them: CUPTI's activity records, of all streams.
 *
 * libcupti is part of the CUDA Toolkit, not of the driver, so it is loaded when it is wanted, and
 * proving works without it. Its records carry the host's CLOCK_MONOTONIC: CUPTI converts the
 * device's time stamps with the clock that we give it. One device per process: the state is the
 * process's. Source: NVIDIA, CUPTI documentation, "CUPTI Activity API" (asynchronous buffering).
 */
#ifndef PROVERQ_CUDA_RECORDS_CUH
#define PROVERQ_CUDA_RECORDS_CUH

extern "C" {
#include "gpu/backend.h"
}

/* The members of struct backend (gpu/backend.h). */
bool cupti_start(struct activity *activity, char source[ACTIVITY_SOURCE_BYTES]);
void cupti_flush(void);
void cupti_stop(void);

#endif
