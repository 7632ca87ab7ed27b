#include "gpu/cuda/quotient.cuh"

#include "gpu/cuda/matvec.cuh"
#include "gpu/cuda/ntt.cuh"

static_assert((unsigned)QUOTIENT_MAX_LOG_DOMAIN == (unsigned)NTT_MAX_LOG, "one limit");

enum err quotient_key_layout(struct arena *arena, const struct zkey *zkey, struct quotient_key *out,
                             struct error *error) {
    if (zkey->log_domain > QUOTIENT_MAX_LOG_DOMAIN)
        return error_set(error, ERR_DEVICE_UNSUPPORTED,
                         "a domain of 2^%u is more than the CUDA prover's 2^%d; a prover with "
                         "--device cpu takes it",
                         zkey->log_domain, QUOTIENT_MAX_LOG_DOMAIN);
    *out = {};
    out->curve = zkey->curve->id;
    out->log_domain = zkey->log_domain;
    out->n_terms = zkey->n_coefficients;
    for (int m = 0; m < 2; m++) {
        out->part[m].rows = arena_take<struct matvec_row>(arena, zkey->domain_size);
        out->part[m].long_rows =
            arena_take<struct matvec_long_row>(arena, matvec_most_long_rows(out->n_terms));
    }
    out->segments = arena_take<struct matvec_segment>(arena, matvec_most_segments(out->n_terms));
    out->signals = arena_take<uint32_t>(arena, out->n_terms);
    out->values = arena_take<struct scalar>(arena, out->n_terms);
    out->twiddles = arena_take<struct scalar>(arena, ntt_table_entries<bn254_fr>(out->log_domain));
    return ERR_NONE;
}

void quotient_scratch_layout(struct arena *arena, const struct zkey *zkey,
                             struct quotient_scratch *out) {
    out->sums = arena_take<struct scalar>(arena, matvec_most_segments(zkey->n_coefficients));
    out->a = arena_take<struct scalar>(arena, zkey->domain_size);
    out->b = arena_take<struct scalar>(arena, zkey->domain_size);
    out->c = arena_take<struct scalar>(arena, zkey->domain_size);
}

template <class P> static struct ntt_table<P> table_of(const struct quotient_key *key) {
    return {reinterpret_cast<field<P> *>(key->twiddles), key->log_domain};
}

template <typename T>
static enum err upload(T *to, const T *from, size_t n, cudaStream_t stream, struct error *error) {
    return cuda_result(cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyHostToDevice, stream),
                       "copying the key's matrices to the device", error);
}

static enum err upload_plan(struct quotient_key *key, const struct matvec_plan *plan,
                            cudaStream_t stream, struct error *error) {
    enum err rc;
    for (int m = 0; m < 2; m++) {
        const struct matvec_part *from = &plan->part[m];
        struct matvec_part *to = &key->part[m];
        to->n_rows = from->n_rows;
        to->n_long_rows = from->n_long_rows;
        TRY(upload(to->rows, from->rows, from->n_rows, stream, error));
        TRY(upload(to->long_rows, from->long_rows, from->n_long_rows, stream, error));
    }
    key->n_segments = plan->n_segments;
    TRY(upload(key->segments, plan->segments, plan->n_segments, stream, error));
    TRY(upload(key->signals, plan->signals, plan->n_terms, stream, error));
    TRY(upload(key->values, plan->values, plan->n_terms, stream, error));
fail:
    return rc;
}

enum err quotient_key_fill(struct quotient_key *key, const struct zkey *zkey, cudaStream_t stream,
                           struct error *error) {
    enum err rc;
    struct matvec_plan plan = {};
    if (key->curve == CURVE_BN254)
        TRY(ntt_table_fill(stream, table_of<bn254_fr>(key), error));
    else
        TRY(ntt_table_fill(stream, table_of<bls12_381_fr>(key), error));
    TRY(matvec_plan_make(zkey, pool_shared(), &plan, error));
    TRY(upload_plan(key, &plan, stream, error));
    TRY(cuda_result(cudaStreamSynchronize(stream), "loading the key's matrices", error));
fail:
    matvec_plan_free(&plan);
    return rc;
}

template <class P> static field<P> *elements(struct scalar *memory) {
    return reinterpret_cast<field<P> *>(memory);
}

template <class P>
static enum err matvec_of(const struct quotient_key *key, const struct quotient_scratch *s,
                          const struct scalar *witness, cudaStream_t stream, struct error *error) {
    struct matvec<P> m = {
        {key->part[0], key->part[1]}, key->segments, key->n_segments, key->signals,
            elements<P>(key->values)
    };
    return matvec_run<P>(stream, m, reinterpret_cast<const plain<P> *>(witness),
                         elements<P>(s->sums), elements<P>(s->a), elements<P>(s->b),
                         elements<P>(s->c), error);
}

template <class P>
static enum err transform_of(const struct quotient_key *key, const struct quotient_scratch *s,
                             cudaStream_t stream, struct error *error) {
    enum err rc;
    field<P> *all[] = {elements<P>(s->a), elements<P>(s->b), elements<P>(s->c)};
    TRY(ntt_run<P>(stream, NTT_TURN, key->log_domain, all, 3, table_of<P>(key), error));
    TRY(quotient_run<P>(stream, all[0], all[1], all[2], reinterpret_cast<plain<P> *>(s->a),
                        key->log_domain, quotient_factors_make<P>(key->log_domain), error));
fail:
    return rc;
}

enum err quotient_matvec(const struct quotient_key *key, const struct quotient_scratch *scratch,
                         const struct scalar *witness, cudaStream_t stream, struct error *error) {
    if (key->curve == CURVE_BN254) return matvec_of<bn254_fr>(key, scratch, witness, stream, error);
    return matvec_of<bls12_381_fr>(key, scratch, witness, stream, error);
}

enum err quotient_transform(const struct quotient_key *key, const struct quotient_scratch *scratch,
                            cudaStream_t stream, struct error *error) {
    if (key->curve == CURVE_BN254) return transform_of<bn254_fr>(key, scratch, stream, error);
    return transform_of<bls12_381_fr>(key, scratch, stream, error);
}
