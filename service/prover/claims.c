#include "service/prover/claims.h"
#include "gpu/monotonic.h"
#include "service/common/faults.h"
#include "service/prover/timing.h"

#include <string.h>

enum { FULL_SCANS_SHARE = 10 }; /* of the time: one in so many parts */

/* Slower than any scan that does not read past thousands of dead entries. */
#define SLOW_NS INT64_C(5000000)

const struct db_statement claims_statement = {"claim", "iLiiLILI", CLAIM_COLUMNS(DB_COLUMN_TYPE)};

bool claims_is_bounded(const struct claims *claims, int64_t now_ns) {
    if (fault_switch("PROVERQ_NO_RESCAN")) return claims->n > 0;
    return claims->n > 0 && claims->full_ns >= SLOW_NS &&
           now_ns - claims->full_at_ns < (FULL_SCANS_SHARE - 1) * claims->full_ns;
}

void claims_scanned(struct claims *claims, bool bounded, int64_t start_ns, int64_t end_ns) {
    int64_t ns = end_ns - start_ns;
    if (!bounded) {
        claims->full_ns = ns;
        claims->full_at_ns = end_ns;
    } else if (2 * ns > claims->full_ns) {
        claims->full_ns = 0; /* it was the network, or a large witness */
    }
}

static void forget_first(struct claims *claims) {
    size_t n = (size_t)--claims->n;
    memmove(claims->circuits, claims->circuits + 1, n * sizeof *claims->circuits);
    memmove(claims->priorities, claims->priorities + 1, n * sizeof *claims->priorities);
    memmove(claims->jobs, claims->jobs + 1, n * sizeof *claims->jobs);
    memmove(claims->partitions, claims->partitions + 1, n * sizeof *claims->partitions);
}

/* A scan without bounds may have found what is below the old one; more may follow there. */
void claims_saw(struct claims *claims, int64_t circuit, int32_t priority, int64_t job,
                int32_t partition) {
    int i = 0;
    while (i < claims->n && (claims->circuits[i] != circuit || claims->priorities[i] != priority))
        i++;
    if (i == CLAIMS_BOUNDS) {
        forget_first(claims);
        i = claims->n;
    }
    if (i == claims->n) claims->n++;
    claims->circuits[i] = circuit;
    claims->priorities[i] = priority;
    claims->jobs[i] = job;
    claims->partitions[i] = partition;
}

static enum err scan(struct claims *claims, bool bounded, struct db *db,
                     const struct claims_wish *wish, struct db_result **out, struct error *error) {
    size_t n = bounded ? (size_t)claims->n : 0;
    int64_t start = monotonic_ns();
    enum err rc;
    TRY(db_run(db, &claims_statement,
               DB_PARAMS(db_int(wish->prover), db_int8_array(wish->circuits, wish->n_circuits),
                         db_int(wish->lease_ms), db_int(wish->most),
                         db_int8_array(claims->circuits, n), db_int4_array(claims->priorities, n),
                         db_int8_array(claims->jobs, n), db_int4_array(claims->partitions, n)),
               out, error));
    claims_scanned(claims, bounded, start, monotonic_ns());
    for (int row = 0; row < db_rows(*out); row++)
        claims_saw(claims, db_get_int(*out, row, CLAIM_CIRCUIT),
                   (int32_t)db_get_int(*out, row, CLAIM_PRIORITY), db_get_int(*out, row, CLAIM_JOB),
                   (int32_t)db_get_int(*out, row, CLAIM_PARTITION));
fail:
    return rc;
}

enum err claims_take(struct claims *claims, struct db *db, const struct claims_wish *wish,
                     struct db_result **out, struct error *error) {
    bool bounded = claims_is_bounded(claims, monotonic_ns());
    enum err rc;
    TRY(scan(claims, bounded, db, wish, out, error));
    if (!bounded || wish->is_poll || db_rows(*out) > 0 || fault_switch("PROVERQ_NO_RESCAN"))
        return ERR_NONE;
    db_free(*out);
    *out = NULL;
    TRY(scan(claims, false, db, wish, out, error));
fail:
    return rc;
}
