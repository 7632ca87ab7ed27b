#include "gpu/cuda/slot.cuh"

#include <string.h>

/* A slot's memory as one key's proof uses it. */
struct work {
    struct scalar *witness;
    struct quotient_scratch quotient;
    struct msm_sort_work witness_sort, h_sort;
    uint32_t *b_count;
    struct msm_sum a, b1, b2, c; /* b1 has a's memory but for the result */
    uint8_t *results;
};

/* Where each result stands. */
struct results {
    size_t a, b1, b2, c, bytes;
};

static struct results results_of(const struct proving_key *key) {
    size_t g1 = msm_result_bytes(&key->witness, MSM_G1),
           g2 = msm_result_bytes(&key->witness, MSM_G2);
    return {0, g1, 2 * g1, 2 * g1 + g2, 3 * g1 + g2};
}

static enum err layout(struct arena *arena, const struct proving_key *key, const struct zkey *zkey,
                       struct work *out, struct error *error) {
    enum err rc;
    *out = {};
    struct results r = results_of(key);
    out->witness = arena_take<struct scalar>(arena, zkey->n_vars);
    quotient_scratch_layout(arena, zkey, &out->quotient);
    TRY(msm_sort_layout(arena, &key->witness, zkey->n_vars, &out->witness_sort, error));
    TRY(msm_sort_layout(arena, &key->h, zkey->domain_size, &out->h_sort, error));
    out->b_count = arena_take<uint32_t>(arena, 1);
    TRY(msm_sum_layout(arena, &key->witness, MSM_G1, &out->a, error));
    TRY(msm_sum_layout(arena, &key->witness, MSM_G2, &out->b2, error));
    TRY(msm_sum_layout(arena, &key->h, MSM_G1, &out->c, error));
    out->results = arena_take<uint8_t>(arena, r.bytes);
    out->b1 = out->a;
    if (arena->base != NULL) {
        out->a.result = out->results + r.a;
        out->b1.result = out->results + r.b1;
        out->b2.result = out->results + r.b2;
        out->c.result = out->results + r.c;
    }
fail:
    return rc;
}

enum err slot_need(const struct proving_key *key, const struct zkey *zkey, struct slot_need *out,
                   struct error *error) {
    struct arena plan = {};
    struct work work;
    enum err rc = layout(&plan, key, zkey, &work, error);
    *out = {plan.used, results_of(key).bytes};
    return rc;
}

/* --- streams, events, memory --- */
static enum err open_event(cudaEvent_t *event, unsigned flags, struct error *error) {
    enum err rc;
    TRY(allocation_point("an event", error));
    TRY(cuda_result(cudaEventCreateWithFlags(event, flags), "making an event", error));
fail:
    return rc;
}

static enum err open_stream(cudaStream_t *stream, struct error *error) {
    enum err rc;
    TRY(allocation_point("a stream", error));
    TRY(cuda_result(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), "making a stream",
                    error));
fail:
    return rc;
}

enum err slot_open(struct slot *slot, struct error *error) {
    enum err rc;
    const unsigned waited = cudaEventDisableTiming | cudaEventBlockingSync;
    TRY(open_stream(&slot->g2, error));
    TRY(open_stream(&slot->main, error));
    TRY(open_stream(&slot->witness, error));
    TRY(open_event(&slot->inputs_copied, waited, error));
    TRY(open_event(&slot->done, waited, error));
    TRY(open_event(&slot->sorted, cudaEventDisableTiming, error));
    TRY(open_event(&slot->witness_done, cudaEventDisableTiming, error));
    TRY(open_event(&slot->g2_done, cudaEventDisableTiming, error));
    for (int step = 0; step < PROVE_STEP_FINISH; step++) {
        TRY(open_event(&slot->begin[step], cudaEventDefault, error));
        TRY(open_event(&slot->end[step], cudaEventDefault, error));
    }
fail:
    return rc;
}

static void close_event(cudaEvent_t event) {
    if (event != NULL) (void)cudaEventDestroy(event);
}

void slot_close(struct slot *slot) {
    for (cudaStream_t stream : {slot->main, slot->witness, slot->g2})
        if (stream != NULL) (void)cudaStreamDestroy(stream);
    for (cudaEvent_t event :
         {slot->inputs_copied, slot->done, slot->sorted, slot->witness_done, slot->g2_done})
        close_event(event);
    for (int step = 0; step < PROVE_STEP_FINISH; step++) {
        close_event(slot->begin[step]);
        close_event(slot->end[step]);
    }
    device_memory_free(slot->memory);
    pinned_memory_free(slot->results);
    *slot = {};
}

enum err slot_resize(struct slot *slot, const struct slot_need *need, struct error *error) {
    enum err rc = ERR_NONE;
    void *results;
    if (slot->bytes == need->bytes && slot->results_bytes == need->results_bytes) return ERR_NONE;
    device_memory_free(slot->memory);
    pinned_memory_free(slot->results);
    slot->memory = NULL;
    slot->results = NULL;
    slot->bytes = slot->results_bytes = 0;
    if (need->bytes == 0) return ERR_NONE;
    TRY(device_memory(need->bytes, &slot->memory, error));
    TRY(pinned_memory(need->results_bytes, &results, error));
    slot->results = (uint8_t *)results;
    slot->bytes = need->bytes;
    slot->results_bytes = need->results_bytes;
    return ERR_NONE;
fail:
    device_memory_free(slot->memory);
    slot->memory = NULL;
    return rc;
}

/* --- a proof --- */
static enum err record(cudaEvent_t event, cudaStream_t stream, struct error *error) {
    return cuda_result(cudaEventRecord(event, stream), "recording an event", error);
}

static enum err await(cudaStream_t stream, cudaEvent_t event, struct error *error) {
    return cuda_result(cudaStreamWaitEvent(stream, event, 0), "ordering two streams", error);
}

static enum err whole_sum(const struct msm_shape *shape, const struct msm_sum *sum,
                          const void *table, const struct msm_list *list, cudaStream_t stream,
                          struct error *error) {
    enum err rc;
    TRY(msm_sum_begin(shape, sum, stream, error));
    TRY(msm_sum_add(shape, sum, table, list, stream, error));
    TRY(msm_sum_end(shape, sum, stream, error));
fail:
    return rc;
}

static enum err copy_in(struct slot *slot, const struct work *work, const struct zkey *zkey,
                        const struct scalar *witness, struct error *error) {
    enum err rc;
    size_t bytes = zkey->n_vars * sizeof *witness;
    TRY(record(slot->begin[PROVE_STEP_COPY_IN], slot->main, error));
    TRY(cuda_result(
        cudaMemcpyAsync(work->witness, witness, bytes, cudaMemcpyHostToDevice, slot->main),
        "copying the witness", error));
    TRY(record(slot->end[PROVE_STEP_COPY_IN], slot->main, error));
    TRY(record(slot->inputs_copied, slot->main, error));
    TRY(await(slot->witness, slot->inputs_copied, error));
fail:
    return rc;
}

/* The digits of the witness (their time is A's): *list is every digit's, *b_list for B. */
static enum err witness_lists(struct slot *slot, const struct proving_key *key, struct work *work,
                              const struct zkey *zkey, struct msm_list *list,
                              struct msm_list *b_list, struct error *error) {
    enum err rc;
    const struct msm_shape *shape = &key->witness;
    struct msm_list spare;
    TRY(record(slot->begin[PROVE_STEP_MSM_A], slot->witness, error));
    TRY(msm_sort(shape, work->witness, 0, zkey->n_vars, &work->witness_sort, list, &spare,
                 slot->witness, error));
    *b_list = *list;
    if (key->b_sparse) {
        spare.count = work->b_count;
        TRY(msm_select(shape, list, key->b_mask, &work->witness_sort, &spare, slot->witness,
                       error));
        *b_list = spare;
    }
    TRY(record(slot->sorted, slot->witness, error));
fail:
    return rc;
}

static enum err b2_sum(struct slot *slot, const struct proving_key *key, const struct work *work,
                       const struct msm_list *b_list, struct error *error) {
    enum err rc;
    TRY(await(slot->g2, slot->sorted, error));
    TRY(record(slot->begin[PROVE_STEP_MSM_B2], slot->g2, error));
    TRY(whole_sum(&key->witness, &work->b2, key->b2, b_list, slot->g2, error));
    TRY(record(slot->end[PROVE_STEP_MSM_B2], slot->g2, error));
    TRY(record(slot->g2_done, slot->g2, error));
fail:
    return rc;
}

static enum err a_and_b1_sums(struct slot *slot, const struct proving_key *key,
                              const struct work *work, const struct msm_list *list,
                              const struct msm_list *b_list, struct error *error) {
    enum err rc;
    TRY(whole_sum(&key->witness, &work->a, key->a, list, slot->witness, error));
    TRY(record(slot->end[PROVE_STEP_MSM_A], slot->witness, error));
    TRY(record(slot->begin[PROVE_STEP_MSM_B1], slot->witness, error));
    TRY(whole_sum(&key->witness, &work->b1, key->b1, b_list, slot->witness, error));
    TRY(record(slot->end[PROVE_STEP_MSM_B1], slot->witness, error));
    TRY(record(slot->witness_done, slot->witness, error));
fail:
    return rc;
}

static enum err quotient(struct slot *slot, const struct proving_key *key, const struct work *work,
                         struct error *error) {
    enum err rc;
    TRY(record(slot->begin[PROVE_STEP_MATVEC], slot->main, error));
    TRY(quotient_matvec(&key->quotient, &work->quotient, work->witness, slot->main, error));
    TRY(record(slot->end[PROVE_STEP_MATVEC], slot->main, error));
    TRY(record(slot->begin[PROVE_STEP_NTT], slot->main, error));
    TRY(quotient_transform(&key->quotient, &work->quotient, slot->main, error));
    TRY(record(slot->end[PROVE_STEP_NTT], slot->main, error));
fail:
    return rc;
}

static enum err c_and_h_sum(struct slot *slot, const struct proving_key *key, struct work *work,
                            const struct zkey *zkey, const struct msm_list *witness_list,
                            struct error *error) {
    enum err rc;
    struct msm_list h_list;
    TRY(await(slot->main, slot->sorted, error));
    TRY(record(slot->begin[PROVE_STEP_MSM_C], slot->main, error));
    TRY(msm_sum_begin(&key->witness, &work->c, slot->main, error));
    TRY(msm_sum_add(&key->witness, &work->c, key->c, witness_list, slot->main, error));
    TRY(record(slot->end[PROVE_STEP_MSM_C], slot->main, error));
    TRY(record(slot->begin[PROVE_STEP_MSM_H], slot->main, error));
    TRY(msm_sort(&key->h, work->quotient.a, 0, zkey->domain_size, &work->h_sort, &h_list, NULL,
                 slot->main, error));
    TRY(msm_sum_add(&key->h, &work->c, key->h_table, &h_list, slot->main, error));
    TRY(msm_sum_end(&key->h, &work->c, slot->main, error));
    TRY(record(slot->end[PROVE_STEP_MSM_H], slot->main, error));
fail:
    return rc;
}

static enum err copy_out(struct slot *slot, const struct proving_key *key, const struct work *work,
                         struct error *error) {
    enum err rc;
    TRY(await(slot->main, slot->witness_done, error));
    TRY(await(slot->main, slot->g2_done, error));
    TRY(record(slot->begin[PROVE_STEP_COPY_OUT], slot->main, error));
    TRY(cuda_result(cudaMemcpyAsync(slot->results, work->results, results_of(key).bytes,
                                    cudaMemcpyDeviceToHost, slot->main),
                    "copying the sums", error));
    TRY(record(slot->end[PROVE_STEP_COPY_OUT], slot->main, error));
    TRY(record(slot->done, slot->main, error));
fail:
    return rc;
}

enum err slot_enqueue(struct slot *slot, const struct proving_key *key, const struct zkey *zkey,
                      const struct scalar *witness, struct error *error) {
    enum err rc;
    struct work work;
    struct arena arena = {(uint8_t *)slot->memory, 0};
    struct msm_list list, b_list;
    TRY(layout(&arena, key, zkey, &work, error));
    TRY(copy_in(slot, &work, zkey, witness, error));
    TRY(witness_lists(slot, key, &work, zkey, &list, &b_list, error));
    TRY(quotient(slot, key, &work, error)); /* before a sum holds all multiprocessors */
    TRY(b2_sum(slot, key, &work, &b_list, error));
    TRY(c_and_h_sum(slot, key, &work, zkey, &list, error));
    TRY(a_and_b1_sums(slot, key, &work, &list, &b_list, error));
    TRY(copy_out(slot, key, &work, error));
    return ERR_NONE;
fail:
    for (cudaStream_t stream : {slot->main, slot->witness, slot->g2})
        (void)cudaStreamSynchronize(stream);
    return rc;
}

void slot_sums(const struct proving_key *key, const uint8_t *results, struct proof_sums *out) {
    struct results r = results_of(key);
    *out = {};
    msm_result_g1(&key->witness, results + r.a, &out->a);
    msm_result_g1(&key->witness, results + r.b1, &out->b1);
    msm_result_g2(&key->witness, results + r.b2, &out->b2);
    msm_result_g1(&key->h, results + r.c, &out->c);
}

enum err slot_spans(const struct slot *slot, cudaEvent_t anchor, int64_t anchor_ns,
                    struct prove_span *spans, struct error *error) {
    enum err rc = ERR_NONE;
    for (int step = 0; step < PROVE_STEP_FINISH; step++) {
        float before, length;
        TRY(cuda_result(cudaEventElapsedTime(&before, anchor, slot->begin[step]), "timing a step",
                        error));
        TRY(cuda_result(cudaEventElapsedTime(&length, slot->begin[step], slot->end[step]),
                        "timing a step", error));
        spans[step] = {(enum prove_step)step, anchor_ns + (int64_t)((double)before * 1e6),
                       (int64_t)((double)length * 1e6)};
    }
fail:
    return rc;
}
