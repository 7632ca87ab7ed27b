/* Whether a device proves: a small statement with full-size values, and its proof verified. */
#ifndef PROVERQ_SELFTEST_H
#define PROVERQ_SELFTEST_H

#include "gpu/prover.h"

/* Makes a throw-away key in a new folder of $TMPDIR (or /tmp), which is deleted again. Takes some
 * tenths of a second. ERR_DEVICE_FAULT: the proof is wrong. ERR_IO: there is no place for the key.
 * Else what loading and proving fail with. No other proof may be under way on the device. */
MUST_USE enum err device_selftest(struct device *device, struct error *error);

#endif
