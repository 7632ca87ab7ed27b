#include "gpu/cuda/proving_key.cuh"

#include "gpu/cuda/ntt.cuh"

enum { BLOCK = 256, SPARSE_PART = 10 /* a tenth of infinities pays for a list without them */ };
static constexpr uint32_t H_CHUNK = 1 << 18; /* H bases on their way to their places */

static size_t g1_bytes(const struct proving_key *key) {
    return 2 * curve_info(key->h.curve)->n8q;
}

/* Reductions of one sum run beside the additions of another, so a proof's windows are best a bit
 * wider than those of a sum alone; measured at 2^13, 2^17 and 2^20 (tests/bench/RESULTS.md). */
static unsigned window_bits(const struct zkey *zkey, unsigned max_tables) {
    enum { FIRST_WIDER = 15, LAST_WIDER = 20 };
    struct msm_shape alone = msm_shape_choose(zkey->curve->id, zkey->domain_size, max_tables);
    bool wider = zkey->log_domain >= FIRST_WIDER && zkey->log_domain <= LAST_WIDER;
    return alone.window_bits + (wider ? 1 : 0);
}

/* The domain decides the window (the witness is about as long), the longer list how many tables an
 * entry's 31 bits can name. */
static void shapes(const struct zkey *zkey, unsigned max_tables, struct proving_key *out) {
    enum curve_id curve = zkey->curve->id;
    uint32_t longer = zkey->n_vars > zkey->domain_size ? zkey->n_vars : zkey->domain_size;
    unsigned bits = window_bits(zkey, max_tables);
    unsigned tables = msm_shape_with(curve, longer, bits, max_tables).tables;
    out->witness = msm_shape_with(curve, zkey->n_vars, bits, tables);
    out->h = msm_shape_with(curve, zkey->domain_size, bits, tables);
}

enum err proving_key_layout(struct arena *arena, const struct zkey *zkey, unsigned max_tables,
                            struct proving_key *out, struct error *error) {
    *out = {};
    if (!msm_supports(zkey->curve->id))
        return error_set(error, ERR_DEVICE_UNSUPPORTED,
                         "the CUDA prover has no %s; a prover with --device cpu takes it",
                         zkey->curve->name);
    shapes(zkey, max_tables, out);
    size_t g1 = msm_table_bytes(&out->witness, MSM_G1), g2 = msm_table_bytes(&out->witness, MSM_G2);
    out->a = arena_take_bytes(arena, g1, 1);
    out->b1 = arena_take_bytes(arena, g1, 1);
    out->b2 = arena_take_bytes(arena, g2, 1);
    out->c = arena_take_bytes(arena, g1, 1);
    out->h_table = arena_take_bytes(arena, msm_table_bytes(&out->h, MSM_G1), 1);
    out->b_mask = arena_take<uint32_t>(arena, zkey->n_vars / 32 + 1);
    out->b_counted = arena_take<uint32_t>(arena, 1);
    return quotient_key_layout(arena, zkey, &out->quotient, error);
}

size_t proving_key_work_bytes(const struct proving_key *key) {
    size_t h_chunk = key->h.n < H_CHUNK ? key->h.n : H_CHUNK;
    size_t sizes[] = {msm_table_work_bytes(&key->witness, MSM_G1),
                      msm_table_work_bytes(&key->witness, MSM_G2),
                      msm_table_work_bytes(&key->h, MSM_G1), h_chunk * g1_bytes(key)};
    size_t most = 0;
    for (size_t size : sizes)
        if (size > most) most = size;
    return most;
}

static enum err upload(void *to, const void *from, size_t bytes, cudaStream_t stream,
                       struct error *error) {
    return cuda_result(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream),
                       "copying the key to the device", error);
}

/* A word is 16 bytes; a point has `words` of them. */
static __global__ void place_reversed_kernel(const uint4 *from, uint32_t first, uint32_t n,
                                             unsigned words, unsigned bits, uint4 *to) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= (size_t)n * words) return;
    uint32_t point = first + (uint32_t)(i / words);
    to[(size_t)bit_reverse(point, bits) * words + i % words] = from[i];
}

static enum err upload_h(struct proving_key *key, const struct zkey *zkey, void *work,
                         cudaStream_t stream, struct error *error) {
    enum err rc;
    size_t bytes = g1_bytes(key);
    unsigned words = (unsigned)(bytes / sizeof(uint4));
    for (uint32_t first = 0; first < key->h.n; first += H_CHUNK) {
        uint32_t n = key->h.n - first < H_CHUNK ? key->h.n - first : H_CHUNK;
        TRY(upload(work, zkey->h + first * bytes, n * bytes, stream, error));
        place_reversed_kernel<<<(n * words + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(
            (const uint4 *)work, first, n, words, zkey->log_domain, (uint4 *)key->h_table);
        TRY(cuda_launched("placing the H bases", error));
    }
    rc = ERR_NONE;
fail:
    return rc;
}

static enum err upload_points(struct proving_key *key, const struct zkey *zkey, void *work,
                              cudaStream_t stream, struct error *error) {
    enum err rc;
    size_t g1 = zkey_g1_bytes(zkey), g2 = zkey_g2_bytes(zkey), n = zkey->n_vars;
    size_t publics = (size_t)zkey->n_public + 1;
    TRY(upload(key->a, zkey->a, n * g1, stream, error));
    TRY(upload(key->b1, zkey->b1, n * g1, stream, error));
    TRY(upload(key->b2, zkey->b2, n * g2, stream, error));
    TRY(cuda_result(cudaMemsetAsync(key->c, 0, publics * g1, stream), "clearing a table", error));
    TRY(upload((uint8_t *)key->c + publics * g1, zkey->c, (n - publics) * g1, stream, error));
    TRY(upload_h(key, zkey, work, stream, error));
fail:
    return rc;
}

static enum err fill_tables(struct proving_key *key, void *work, cudaStream_t stream,
                            struct error *error) {
    enum err rc;
    TRY(msm_table_fill(&key->witness, MSM_G1, key->a, work, stream, error));
    TRY(msm_table_fill(&key->witness, MSM_G1, key->b1, work, stream, error));
    TRY(msm_table_fill(&key->witness, MSM_G2, key->b2, work, stream, error));
    TRY(msm_table_fill(&key->witness, MSM_G1, key->c, work, stream, error));
    TRY(msm_table_fill(&key->h, MSM_G1, key->h_table, work, stream, error));
fail:
    return rc;
}

static __device__ bool any_word(const uint4 *point, unsigned words) {
    uint32_t any = 0;
    for (unsigned i = 0; i < words; i++)
        any |= point[i].x | point[i].y | point[i].z | point[i].w;
    return any != 0;
}

static __global__ void mask_kernel(const uint4 *b1, unsigned words1, const uint4 *b2,
                                   unsigned words2, uint32_t n, uint32_t *mask, uint32_t *counted) {
    uint32_t i = blockIdx.x * BLOCK + threadIdx.x;
    bool present = i < n && (any_word(b1 + (size_t)i * words1, words1) ||
                             any_word(b2 + (size_t)i * words2, words2));
    uint32_t bits = __ballot_sync(~0u, present);
    if (threadIdx.x % 32 == 0 && i < n) {
        mask[i / 32] = bits;
        atomicAdd(counted, (uint32_t)__popc(bits));
    }
}

static enum err make_mask(struct proving_key *key, cudaStream_t stream, struct error *error) {
    enum err rc;
    uint32_t n = key->witness.n, counted = 0;
    size_t size1 = g1_bytes(key), size2 = 2 * size1;
    TRY(cuda_result(cudaMemsetAsync(key->b_counted, 0, sizeof counted, stream), "clearing a count",
                    error));
    mask_kernel<<<(n - 1) / BLOCK + 1, BLOCK, 0, stream>>>(
        (const uint4 *)key->b1, (unsigned)(size1 / sizeof(uint4)), (const uint4 *)key->b2,
        (unsigned)(size2 / sizeof(uint4)), n, key->b_mask, key->b_counted);
    TRY(cuda_launched("finding infinite bases", error));
    TRY(cuda_result(
        cudaMemcpyAsync(&counted, key->b_counted, sizeof counted, cudaMemcpyDeviceToHost, stream),
        "counting infinite bases", error));
    TRY(cuda_result(cudaStreamSynchronize(stream), "loading the key", error));
    key->b_sparse = n - counted >= n / SPARSE_PART + 1;
fail:
    return rc;
}

enum err proving_key_fill(struct proving_key *key, const struct zkey *zkey, void *work,
                          cudaStream_t stream, struct error *error) {
    enum err rc;
    TRY(upload_points(key, zkey, work, stream, error));
    TRY(fill_tables(key, work, stream, error));
    TRY(quotient_key_fill(&key->quotient, zkey, stream, error));
    TRY(make_mask(key, stream, error));
fail:
    return rc;
}
