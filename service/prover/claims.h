/* Claiming in order, also where the index of ready partitions is full of dead entries.
 *
 * While somebody holds an old snapshot open, PostgreSQL keeps what was claimed in the index, and a
 * claim reads past all of it: 0.2 s for a million. So the keys of what was claimed last are kept as
 * bounds, one for each circuit and priority, from which the next scan may start. A bound is only a
 * hint: what becomes ready below it, by a retry or a late commit, it hides. Therefore
 *
 * - bounds are used only when the last scan without them was slow and those with them are faster,
 * - a scan with bounds that finds nothing is repeated without them,
 * - scans without them are made again so often that they take a tenth of the time: what is hidden,
 *   is so for ten times as long as a slow scan takes.
 */
#ifndef PROVERQ_CLAIMS_H
#define PROVERQ_CLAIMS_H

#include "service/db/db.h"

enum { CLAIMS_BOUNDS = 256 };

struct claims {
    int n;
    int64_t circuits[CLAIMS_BOUNDS], jobs[CLAIMS_BOUNDS];
    int32_t priorities[CLAIMS_BOUNDS], partitions[CLAIMS_BOUNDS];
    int64_t full_ns;    /* how long the last scan without bounds took; 0: bounds are of no use */
    int64_t full_at_ns; /* when it ended */
};

/* What to claim. */
struct claims_wish {
    int32_t prover;
    const int64_t *circuits;
    size_t n_circuits;
    uint32_t lease_ms;
    int most;
    /* Nobody said that there is work: a scan with bounds is enough until another is due. */
    bool is_poll;
};

/* Its rows come in the order of claims. */
#define CLAIM_COLUMNS(X)                                                                           \
    X(CLAIM_JOB, "job_seq", "l")                                                                   \
    X(CLAIM_PARTITION, "partition_idx", "i")                                                       \
    X(CLAIM_ATTEMPT, "attempt", "i")                                                               \
    X(CLAIM_TOKEN, "token", "u")                                                                   \
    X(CLAIM_CIRCUIT, "circuit_id", "l")                                                            \
    X(CLAIM_KEEP_INPUTS, "keep_inputs", "b")                                                       \
    X(CLAIM_WITNESS, "witness", "x")                                                               \
    X(CLAIM_WITNESS_PATH, "witness_path", "t")                                                     \
    X(CLAIM_INPUTS, "inputs", "t")                                                                 \
    X(CLAIM_PRIORITY, "priority", "i")

enum claim_column { CLAIM_COLUMNS(DB_COLUMN) };

extern const struct db_statement claims_statement;

/* Leases partitions; *out gets at least the columns, and no rows when there is nothing. Bounds are
 * all zero at first. */
MUST_USE enum err claims_take(struct claims *claims, struct db *db, const struct claims_wish *wish,
                              struct db_result **out, struct error *error);

/* Whether the next scan should use the bounds. */
bool claims_is_bounded(const struct claims *claims, int64_t now_ns);

/* A scan ended, with or without bounds. */
void claims_scanned(struct claims *claims, bool bounded, int64_t start_ns, int64_t end_ns);

/* This partition came: what follows in its circuit and priority comes behind it. */
void claims_saw(struct claims *claims, int64_t circuit, int32_t priority, int64_t job,
                int32_t partition);

#endif
