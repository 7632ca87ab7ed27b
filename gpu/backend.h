/* What a proving backend implements, and what its host tail shares. Private to gpu/ and its tests.
 *
 * prover.c dispatches on the device's backend; contracts are those of prover.h.
 */
#ifndef PROVERQ_BACKEND_H
#define PROVERQ_BACKEND_H

#include "gpu/activity.h"

enum { ACTIVITY_SOURCE_BYTES = 200 };

/* The blinding factors of a proof, plain, below r. Secret: wipe after use. */
struct blinding {
    struct scalar r, s;
};

/* What a backend computes: the five multi-scalar multiplications of a proof, without the key's
 * constant points. */
struct proof_sums {
    struct g1_point a, b1, c, h; /* sum w_i A_i; w_i B_i; w_i C_i; h_i H_i */
    struct g2_point b2;
};

struct backend {
    const char *name;
    /* Number of devices; 0 when there is none (the driver is missing, say, and *error says why). */
    int (*count)(struct error *error);
    enum err (*open)(int index, unsigned threads, struct device **out, struct error *error);
    void (*close)(struct device *device);
    enum err (*key_memory)(struct device *device, const struct zkey *zkey, size_t *key_bytes,
                           size_t *scratch_bytes, struct error *error);
    enum err (*key_load)(struct device *device, const struct zkey *zkey, struct key **out,
                         struct error *error);
    void (*key_free)(struct key *key);
    enum err (*host_alloc)(struct device *device, size_t bytes, void **out, struct error *error);
    void (*host_free)(struct device *device, void *memory);
    enum err (*start)(struct key *key, const struct scalar *const *witnesses, size_t k,
                      const struct blinding *blinding, struct pending **out, struct error *error);
    enum err (*wait_inputs)(struct pending *pending, struct error *error);
    enum err (*wait_device)(struct pending *pending, struct error *error);
    enum err (*finish)(struct pending *pending, struct proof *proofs, struct prove_span *spans,
                       size_t *n_spans, struct error *error);
    /* Records of the device itself; NULL when there never are any. activity_start says false when
     * there are none now, and in `source` why, or what gives them. They are added to `activity`
     * until activity_stop; activity_flush brings those that are complete. */
    enum activity_kind span_kind; /* what steps are called where there are no records */
    bool (*activity_start)(struct activity *activity, char source[ACTIVITY_SOURCE_BYTES]);
    void (*activity_flush)(void);
    void (*activity_stop)(void);
};

/* Each backend's device, key and pending begin with these, so that prover.c can dispatch. */
struct device {
    const struct backend *backend;
    char name[16];
    char description[160];
    struct activity *activity; /* NULL until it is started */
    bool has_records;          /* activity gets the device's own records, not spans */
    char activity_source[ACTIVITY_SOURCE_BYTES];
};
struct key {
    struct device *device;
    const struct zkey *zkey;
};
struct pending {
    struct key *key;
    int64_t slot_ns; /* when it got its slot */
};

extern const struct backend cpu_backend;
extern const struct backend cuda_backend; /* only in builds with CUDA (PROVERQ_CUDA) */

/* prove_start with the caller's r and s (k of them): for tests only. */
MUST_USE enum err prove_start_blinded(struct key *key, const struct scalar *const *witnesses,
                                      size_t k, const struct blinding *blinding,
                                      struct pending **out, struct error *error);

/* Fills b with r and s below the curve's r: 32 bytes of getrandom, top bits masked, drawn again
 * while not below r. */
MUST_USE enum err blinding_draw(const struct curve_info *curve, struct blinding *b,
                                struct error *error);

/* The proof from its sums (host tail, both backends):
 *     A = alpha + sum_a + r*delta
 *     B = beta + sum_b + s*delta
 *     C = sum_c + sum_h + s*A + r*B1 - r*s*delta
 */
void proof_assemble(const struct zkey *zkey, const struct proof_sums *sums,
                    const struct blinding *blinding, struct proof *out);

/* proof_assemble in two steps, of which the first needs no sums and can be done while a device
 * makes them. Secret as the blinding is: wipe after use. */
struct blinded {
    struct g1_point a, b1, minus_rs_delta; /* alpha + r*delta, beta + s*delta */
    struct g2_point b;                     /* beta + s*delta */
};
void proof_blind(const struct zkey *zkey, const struct blinding *blinding, struct blinded *out);
void proof_complete(const struct zkey *zkey, const struct proof_sums *sums,
                    const struct blinding *blinding, const struct blinded *blinded,
                    struct proof *out);

#endif
