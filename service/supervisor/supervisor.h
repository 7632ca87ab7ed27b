/* `proverq serve`: one prover process per device and one finalizer, as children of this process.
 *
 * A CUDA error may poison its process, so each device has a process of its own. A child that ends
 * is reported with the error that it wrote to --report-fd and started again, after a wait that
 * doubles from 1 s to 5 minutes while it keeps failing. One that says nothing for long (report.h) is
 * killed and replaced. When the device may be to blame it is probed first (probe.h), in a process of
 * its own, and a device that fails three times in a row is in quarantine, as the database is told,
 * until a probe succeeds. Leases of a prover that was reaped go back at once: only its parent knows
 * that it is gone; everybody else waits for them to expire. Children are killed with this process,
 * however it ends.
 *
 * The first signal to stop (stop.h) lets the provers, then the finalizer, finish what they have;
 * the second kills them.
 *
 * systemd, if it started this process, is told when everybody is at work, what is going on, and, as
 * its watchdog, that this loop goes round and no child is silent.
 */
#ifndef PROVERQ_SUPERVISOR_H
#define PROVERQ_SUPERVISOR_H

#include "service/common/options.h"

/* Runs until a signal asks it to stop (ERR_NONE). ERR_DEVICE_MISSING when a demanded device is not
 * there, ERR_CONNECTION or ERR_SCHEMA when the database cannot be used at start. Children run this
 * same program (/proc/self/exe) with `prover` or `finalizer` as first argument. Takes the process's
 * signals; logging must be set up; there must be no threads yet. */
MUST_USE enum err supervisor_run(const struct options *options, struct error *error);

#endif
