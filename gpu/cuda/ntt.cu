#include "gpu/cuda/ntt.cuh"

template <class P>
static __global__ void table_kernel(struct ntt_seeds<P> seeds, field<P> *memory, size_t entries) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < entries) memory[i] = ntt_table_entry(seeds, (uint32_t)i);
}

template <class P>
enum err ntt_table_fill(cudaStream_t stream, const struct ntt_table<P> &table,
                        struct error *error) {
    size_t entries = ntt_table_entries<P>(table.log_n);
    table_kernel<<<(unsigned)((entries + 255) / 256), 256, 0, stream>>>(ntt_make_seeds<P>(),
                                                                        table.memory, entries);
    return cuda_launched("making the table of twiddles", error);
}

/* What measured best on an H200 by the number of elements (tests/bench/RESULTS.md): few elements
 * are spread over many threads, two each. */
template <class P>
enum err ntt_run(cudaStream_t stream, enum ntt_kind kind, unsigned log_n, field<P> *const *arrays,
                 unsigned count, const struct ntt_table<P> &table, struct error *error) {
    size_t elements = (size_t)count << log_n;
    if (elements < 1 << 17)
        ntt_launch<P, 9, 1, 5>(stream, kind, log_n, arrays, count, table);
    else if (elements < 1 << 19)
        ntt_launch<P, 10, 2, 3>(stream, kind, log_n, arrays, count, table);
    else
        ntt_launch<P, 9, 2, 6>(stream, kind, log_n, arrays, count, table);
    return cuda_launched("launching a transform", error);
}

#define INSTANCES(P)                                                                               \
    template enum err ntt_table_fill(cudaStream_t, const struct ntt_table<P> &, struct error *);   \
    template enum err ntt_run(cudaStream_t, enum ntt_kind, unsigned, field<P> *const *, unsigned,  \
                              const struct ntt_table<P> &, struct error *);
INSTANCES(bn254_fr)
INSTANCES(bls12_381_fr)
