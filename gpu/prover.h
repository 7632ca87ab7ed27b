/* Proving: a device, keys on it, and proofs under way.
 *
 *     device_open("auto") -> key_load(device, zkey) -> prove_start(key, k witnesses)
 *         -> prove_wait_inputs   the witness buffers may be reused
 *         -> prove_wait_device   the device has done its part
 *         -> prove_finish        host tail; the proofs
 *
 * A device belongs to one process. At most PROVE_SLOTS proofs are under way per device: prove_start
 * blocks while both slots are taken. prove_start may be called from several threads; each pending
 * proof belongs to one thread at a time. Results are not verified here (verify.h).
 */
#ifndef PROVERQ_PROVER_H
#define PROVERQ_PROVER_H

#include "gpu/error.h"
#include "gpu/proof.h"
#include "gpu/zkey.h"

enum { PROVE_SLOTS = 2 };

/* The steps of a proof, in the order in which a timeline shows them.
 * X(id, name, meaning) */
#define PROVE_STEP_TABLE(X)                                                                        \
    X(PROVE_STEP_COPY_IN, "copy_in", "the witness goes to the device")                             \
    X(PROVE_STEP_MATVEC, "matvec", "A*w and B*w, sparse matrix times witness")                     \
    X(PROVE_STEP_NTT, "ntt", "the quotient's coefficients: transforms on the odd coset")           \
    X(PROVE_STEP_MSM_A, "msm_a", "multi-scalar multiplication over A, G1")                         \
    X(PROVE_STEP_MSM_B1, "msm_b1", "multi-scalar multiplication over B, G1")                       \
    X(PROVE_STEP_MSM_B2, "msm_b2", "multi-scalar multiplication over B, G2")                       \
    X(PROVE_STEP_MSM_C, "msm_c", "multi-scalar multiplication over C, G1")                         \
    X(PROVE_STEP_MSM_H, "msm_h", "multi-scalar multiplication over H, G1")                         \
    X(PROVE_STEP_COPY_OUT, "copy_out", "the sums come back from the device")                       \
    X(PROVE_STEP_FINISH, "finish", "host tail: blinding, affine form")

enum prove_step {
#define X(id, name, meaning) id,
    PROVE_STEP_TABLE(X)
#undef X
        PROVE_STEP_COUNT
};

const char *prove_step_name(enum prove_step step);
const char *prove_step_meaning(enum prove_step step);

/* When a step ran, on the host's CLOCK_MONOTONIC in nanoseconds. Steps of a CUDA device overlap. */
struct prove_span {
    enum prove_step step;
    int64_t start_ns, duration_ns;
};

struct device;  /* opaque; owned by the caller of device_open */
struct key;     /* a key on a device; owned by the caller of key_load */
struct pending; /* a proof under way; prove_finish or prove_abandon ends it */

/* Opens `spec`: "cpu" (all cores), "cuda:N", or "auto" (the first CUDA device that works, else the
 * CPU; say which with device_name). A demanded device that is missing is ERR_DEVICE_MISSING.
 * `threads` bounds the CPU threads used by a CPU device, 0 for all. */
MUST_USE enum err device_open(const char *spec, unsigned threads, struct device **out,
                              struct error *error);
void device_close(struct device *device); /* after its keys are freed */

/* "cpu" or "cuda:N", and one line that describes it for people. Both live as long as the device. */
const char *device_name(const struct device *device);
const char *device_description(const struct device *device);

/* Bytes of device memory that key_load would take for this key and that PROVE_SLOTS proofs need
 * beside it: a dry run of the code that allocates. */
MUST_USE enum err key_memory(struct device *device, const struct zkey *zkey, size_t *key_bytes,
                             size_t *scratch_bytes, struct error *error);

/* Puts the key on the device. `zkey` must stay open until key_free. ERR_DEVICE_MEMORY when it does
 * not fit, ERR_DEVICE_UNSUPPORTED when the device takes no keys of this curve or size. */
MUST_USE enum err key_load(struct device *device, const struct zkey *zkey, struct key **out,
                           struct error *error);
void key_free(struct key *key); /* NULL may be freed; no proof may be pending */

/* Opens `spec` and puts the key on it; the caller frees the key and closes the device. If the CUDA
 * device of "auto" cannot take the key, the CPU takes it, and *passed_over says why; else its text
 * is empty. */
MUST_USE enum err device_open_for(const char *spec, unsigned threads, const struct zkey *zkey,
                                  struct device **device, struct key **key,
                                  struct error *passed_over, struct error *error);

/* Memory for witnesses that the device reads at full speed (pinned on CUDA). */
MUST_USE enum err device_host_alloc(struct device *device, size_t bytes, void **out,
                                    struct error *error);
void device_host_free(struct device *device, void *memory);

/* Starts k proofs (1 <= k; only 1 is supported now: ERR_UNSUPPORTED otherwise) of witnesses[i],
 * each the key's n_vars plain values below r with value 0 equal to 1 (wtns.h checks that). The
 * witnesses must stay unchanged until prove_wait_inputs returns. r and s of each proof are drawn
 * from getrandom by rejection, full width. */
MUST_USE enum err prove_start(struct key *key, const struct scalar *const *witnesses, size_t k,
                              struct pending **out, struct error *error);
MUST_USE enum err prove_wait_inputs(struct pending *pending, struct error *error);
MUST_USE enum err prove_wait_device(struct pending *pending, struct error *error);

/* When prove_start had got its slot on the device (the CPU: its turn), on CLOCK_MONOTONIC. */
int64_t prove_slot_ns(const struct pending *pending);

/* Waits for what is left, writes k proofs and ends `pending`, also when it fails. `spans`
 * (PROVE_STEP_COUNT of them, or NULL) gets *n_spans steps. */
MUST_USE enum err prove_finish(struct pending *pending, struct proof *proofs,
                               struct prove_span *spans, size_t *n_spans, struct error *error);

/* Waits and drops the result. NULL is allowed. */
void prove_abandon(struct pending *pending);

/* --- when the device was busy --- */

/* A kernel and a copy are measured on the device itself; spans are all that is known without that:
 * those between events of a stream include waiting for other streams.
 * X(id, name, meaning) */
#define ACTIVITY_KIND_TABLE(X)                                                                     \
    X(ACTIVITY_KERNEL, "kernel", "a kernel ran, by the device's clock")                            \
    X(ACTIVITY_COPY, "copy", "a copy or fill ran, by the device's clock")                          \
    X(ACTIVITY_DEVICE_SPAN, "device_span", "between events of a proof's step; may include waits")  \
    X(ACTIVITY_CPU_SPAN, "cpu_span", "the CPU computed a proof's step")

enum activity_kind {
#define X(id, name, meaning) id,
    ACTIVITY_KIND_TABLE(X)
#undef X
        ACTIVITY_KIND_COUNT
};

const char *activity_kind_name(enum activity_kind kind);

/* From start_ns until end_ns (CLOCK_MONOTONIC) something of the kind ran, on any stream, but for
 * pauses shorter than 5 us; for busy_ns of it (exact) without those. */
struct activity_interval {
    enum activity_kind kind;
    int64_t start_ns, end_ns, busy_ns;
};

/* Notes from now on when the device is busy; call it once, before the first proof. It fails only
 * for lack of memory. */
MUST_USE enum err device_activity_start(struct device *device, struct error *error);

/* Where the intervals come from, one line for people; lives as long as the device. */
const char *device_activity_source(const struct device *device);

/* Takes out what is known of the time up to *until_ns, which lies some seconds back unless is_last
 * is set (no proof is under way, none will be started). The caller frees the *n intervals, ordered
 * by kind and start; each kind's do not overlap, but for records that came too late. Nothing is
 * taken out when it fails (ERR_HOST_MEMORY). */
MUST_USE enum err device_activity_drain(struct device *device, bool is_last,
                                        struct activity_interval **out, size_t *n,
                                        int64_t *until_ns, struct error *error);

/* Records that were lost since the last call because nobody drained. */
size_t device_activity_dropped(struct device *device);

#endif
