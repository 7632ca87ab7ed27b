/* A child process of the supervisor: a prover, the finalizer, or the probe of a device between two
 * provers. What it says (report.h) is heard, and why it ended is told.
 */
#ifndef PROVERQ_CHILD_H
#define PROVERQ_CHILD_H

#include "gpu/error.h"
#include "service/common/uuid.h"

#include <stdint.h>
#include <sys/types.h>

struct child {
    const char *role, *device; /* "prover" and its device, or "finalizer" and "" */
    struct uuid instance;
    pid_t pid;     /* 0: not running */
    bool is_probe; /* what runs is a probe of the device */
    bool is_ready; /* it said so */
    bool was_silent;
    int report_fd; /* -1: none */
    int64_t started_ms, heard_ms, restart_ms;
    unsigned failures; /* quick ends in a row */

    bool has_ended;      /* once at least */
    bool is_suspect;     /* the device may be to blame: it is probed before the next prover */
    unsigned faults;     /* of the device, in a row */
    bool is_quarantined; /* so many that everybody is told */

    char words[sizeof((struct error *)0)->text + 32]; /* that are no report; the last ones, once it
                                                        has ended */
    size_t n_words;
};

/* What every child of a kind is started with. */
struct child_setting {
    const char *program;               /* as ps shows it */
    const char *threads, *host_memory; /* of a prover */
};

/* Starts this program again as a prover or the finalizer, or as a probe. */
MUST_USE enum err child_start(struct child *child, const struct child_setting *setting,
                              struct error *error);
MUST_USE enum err child_start_probe(struct child *child, struct error *error);

/* Reads what it has said; never waits. */
void child_hear(struct child *child);

/* It was reaped with this status: it does not run any more, and `words` say why. */
void child_end(struct child *child, int status);

/* Whether the way in which a prover ended, its status and its words, makes its device a suspect. */
bool child_blames_device(const struct child *child, int status);

#endif
