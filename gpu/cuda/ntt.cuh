/* Number-theoretic transforms of 2^n scalars, in an order that never permutes anything.
 *
 * forward: coefficients in natural order -> values in bit-reversed order, at the powers of w (the
 *          root of order 2^n), or on the odd coset, at w_2N * w^i;
 * inverse: values in bit-reversed order at the powers of w -> 2^n times the coefficients, in
 *          natural order. (Whoever needs the factor 2^-n folds it into another product.)
 *
 * The forward transform is seen as dividing a polynomial with remainder along the tree
 *     x^2m - t^2  =  (x^m - t)(x^m + t),
 * so the twiddle of a butterfly depends only on its block j of the tree, not on the place in it:
 * T[j], where T[0] = 1, T[2^m] = w_{2^(m+2)}, T[2^m + x] = T[2^m] * T[x]. (D. J. Bernstein,
 * "Multidigit multiplication for mathematicians", 2001, section 3, "the FFT trick".) Three things
 * follow: T does not depend on the size of the transform; x^N + 1, the odd coset, is block 1 of the
 * tree of 2N, so evaluating there costs no product (stage s takes T[2^s + j]); and the inverse of
 * T[j] is minus the entry with the lower bits of j complemented, so one table serves both
 * directions. Peers use smaller tables and pay with a product for each twiddle; a table of N
 * entries costs 32 bytes a coefficient, and is read once in a transform.
 *
 * A pass does several stages on tiles of 2^LOG_TILE elements in shared memory; between two barriers
 * a thread does LOG_LANE stages on 2^LOG_LANE elements in registers. The last pass of the inverse
 * and the first of the forward transform work on the same tiles and are one pass (`NTT_TURN`).
 *
 * The steps of a pass are compiled for the host too: tests run them there, thread by thread.
 */
#ifndef PROVERQ_CUDA_NTT_CUH
#define PROVERQ_CUDA_NTT_CUH

#include "gpu/cuda/field.cuh"

#include <stddef.h>

/* Code that is device code under nvcc and host code in the tests. */
#ifdef __CUDACC__
#define DEVICE_BODY __device__ __forceinline__
#else
#define DEVICE_BODY inline
#endif

enum ntt_kind {
    NTT_FORWARD,
    NTT_COSET, /* forward, on the odd coset */
    NTT_INVERSE,
    NTT_TURN, /* inverse, then forward on the odd coset */
};

enum { NTT_MAX_LOG = 27 /* T fits the 2-adicity of both scalar fields */ };
enum { NTT_MAX_PASSES = 9 /* of a turn at that size in tiles of 2^8 */ };

/* --- roots and twiddles --- */

/* a^e, e as little-endian words. */
template <class P> field<P> field_power(const field<P> &a, const words<P::LIMBS> &e) {
    field<P> r = field<P>::one();
    for (int bit = 32 * P::LIMBS; bit-- > 0;) {
        r = field<P>::mul(r, r);
        if (e.limb[bit / 32] >> bit % 32 & 1) r = field<P>::mul(r, a);
    }
    return r;
}

/* (p - 1) / 2^shift */
template <class P> words<P::LIMBS> order_shifted(unsigned shift) {
    words<P::LIMBS> e = P::modulus(), r = {};
    e.limb[0] -= 1;
    for (unsigned i = 0; i < P::LIMBS; i++)
        for (unsigned bit = 0; bit < 32; bit++) {
            unsigned from = 32 * i + bit + shift;
            if (from < 32 * P::LIMBS) r.limb[i] |= (e.limb[from / 32] >> from % 32 & 1) << bit;
        }
    return r;
}

/* The root of order 2^log_n that snarkjs uses: a power of the smallest non-residue. */
template <class P> field<P> ntt_root(unsigned log_n) {
    typedef field<P> F;
    F minus_one = F::neg(F::one()), residue = F::one();
    do
        residue = F::add(residue, F::one());
    while (!(field_power(residue, order_shifted<P>(1)) == minus_one));
    return field_power(residue, order_shifted<P>(log_n));
}

/* T[2^m] for all m, m < 27: what ntt_twiddle makes the table from. */
template <class P> struct ntt_seeds { field<P> at[NTT_MAX_LOG]; };

template <class P> ntt_seeds<P> ntt_make_seeds() {
    ntt_seeds<P> seeds;
    seeds.at[NTT_MAX_LOG - 1] = ntt_root<P>(NTT_MAX_LOG + 1);
    for (int m = NTT_MAX_LOG - 1; m-- > 0;)
        seeds.at[m] = field<P>::mul(seeds.at[m + 1], seeds.at[m + 1]);
    return seeds;
}

HD unsigned log2_floor(uint32_t a) {
#ifdef __CUDA_ARCH__
    return 31 - __clz((int)a);
#else
    return 31 - (unsigned)__builtin_clz(a);
#endif
}

HD uint32_t bit_reverse(uint32_t i, unsigned bits) {
#ifdef __CUDA_ARCH__
    return bits == 0 ? 0 : __brev(i) >> (32 - bits);
#else
    uint32_t r = 0;
    for (unsigned b = 0; b < bits; b++)
        r |= (i >> b & 1) << (bits - 1 - b);
    return r;
#endif
}

/* T[j], by at most 26 products. */
template <class P> HD field<P> ntt_twiddle(const ntt_seeds<P> &seeds, uint32_t j) {
    field<P> r = field<P>::one();
    for (; j != 0; j &= j - 1)
        r = field<P>::mul(r, seeds.at[log2_floor(j & (0 - j))]);
    return r;
}

/* A table for transforms of up to 2^log_n elements: 2^log_n + 1 entries at `memory`, T[-1] = -1
 * (the mirror image of T[0]) before the others. */
template <class P> struct ntt_table {
    field<P> *memory;
    unsigned log_n;

    HD const field<P> *twiddles() const {
        return memory + 1;
    }
};
template <class P> constexpr size_t ntt_table_entries(unsigned log_n) {
    return ((size_t)1 << log_n) + 1;
}
template <class P> HD field<P> ntt_table_entry(const ntt_seeds<P> &seeds, uint32_t i) {
    return i == 0 ? field<P>::neg(field<P>::one()) : ntt_twiddle(seeds, i - 1);
}

/* Where minus the inverse of T[j] stands. */
HD int32_t ntt_mirror(uint32_t j) {
    return j == 0 ? -1 : (int32_t)(j ^ ((1u << log2_floor(j)) - 1));
}

/* --- what a pass does --- */

/* Stages first .. first + stages - 1 of a transform of 2^log_n. An index is, from the top, `first`
 * bits of block, `stages` bits of row, and the place in the row; a tile has all rows of
 * 2^block_bits neighbouring blocks at 2^place_bits neighbouring places. */
struct ntt_pass {
    enum ntt_kind kind;
    unsigned log_n, first, stages;
    unsigned block_bits, place_bits;
};

struct ntt_schedule {
    unsigned n;
    struct ntt_pass pass[NTT_MAX_PASSES];
};

/* Least places of a row that a tile takes, so that memory is read in pieces of 128 bytes. */
enum { NTT_LEAST_PLACE_BITS = 2 };

static inline struct ntt_pass ntt_pass_make(enum ntt_kind kind, unsigned log_n, unsigned first,
                                            unsigned stages, unsigned log_tile) {
    unsigned places = log_n - first - stages, room = log_tile - stages;
    unsigned place_bits = places < room ? places : room;
    return {kind, log_n, first, stages, room - place_bits, place_bits};
}

/* The passes of a transform: as few as tiles allow, of nearly equal length. NTT_TURN is the inverse
 * followed by the forward transform with the passes between joined. */
static inline struct ntt_schedule ntt_plan(enum ntt_kind kind, unsigned log_n, unsigned log_tile) {
    unsigned most = log_tile - NTT_LEAST_PLACE_BITS, n = 1;
    while ((n - 1) * most + log_tile < log_n)
        n++;
    struct ntt_schedule one = {}, all = {};
    for (unsigned first = 0; one.n < n; one.n++) {
        unsigned left = log_n - first, passes = n - one.n;
        unsigned even = left / passes, stages = passes > 1 && even > most ? most : even;
        one.pass[one.n] = ntt_pass_make(kind, log_n, first, stages, log_tile);
        first += stages;
    }
    if (kind == NTT_FORWARD || kind == NTT_COSET) return one;
    for (unsigned i = n; i-- > 0;) {
        all.pass[all.n] = one.pass[i];
        all.pass[all.n++].kind = i == 0 ? kind : NTT_INVERSE;
    }
    for (unsigned i = 1; kind == NTT_TURN && i < n; i++) {
        all.pass[all.n] = one.pass[i];
        all.pass[all.n++].kind = NTT_COSET;
    }
    return all;
}

static inline uint32_t ntt_tiles(unsigned log_n, unsigned log_tile) {
    return log_n > log_tile ? 1u << (log_n - log_tile) : 1;
}

/* --- a tile --- */

struct alignas(16) ntt_half {
    uint32_t word[4];
};

/* Stages of a window: butterflies over bits low .. high of the tile's index, in registers that hold
 * bits base .. base + LOG_LANE - 1. */
struct ntt_window {
    unsigned base, low, high;
};

template <class P, int LOG_TILE, int LOG_LANE> struct ntt_tile {
    typedef field<P> F;
    static_assert(P::LIMBS == 8, "a tile stores elements as two halves of 16 bytes");
    static constexpr uint32_t SIZE = 1u << LOG_TILE;
    static constexpr uint32_t LANE = 1u << LOG_LANE;
    static constexpr uint32_t THREADS = SIZE / LANE;
    static constexpr size_t BYTES = SIZE * sizeof(F);

    const struct ntt_pass &pass;
    const F *twiddles;
    ntt_half *shared;      /* first all lower halves, then all upper ones */
    uint32_t block, place; /* of the tile: the bits of an index above and below those in the tile */

    HD ntt_tile(const struct ntt_pass &p, const F *t, ntt_half *s, uint32_t tile)
        : pass(p), twiddles(t), shared(s) {
        unsigned place_bits = p.log_n - p.first - p.stages - p.place_bits;
        block = tile >> place_bits;
        place = tile & ((1u << place_bits) - 1);
    }

    /* Index in the array of element e of the tile; 2^log_n or more when the tile is longer. */
    HD uint32_t index(uint32_t e) const {
        unsigned places = pass.log_n - pass.first - pass.stages;
        uint32_t low = e & ((1u << pass.place_bits) - 1);
        uint32_t rest = e >> pass.place_bits;
        uint32_t row = rest & ((1u << pass.stages) - 1);
        uint32_t blocks = block << pass.block_bits | rest >> pass.stages;
        return blocks << (pass.log_n - pass.first) | row << places | place << pass.place_bits | low;
    }

    /* Where half h of element e stands: no two of the eight halves that a quarter of a warp reads
     * at once share banks, for every window base and for the linear order of load and store. */
    HD static uint32_t slot(uint32_t e, uint32_t h) {
        return h << LOG_TILE | (e ^ (e >> 3 & 7) ^ h << 2);
    }

    HD void load(const F *from, uint32_t thread) const {
        const ntt_half *halves = reinterpret_cast<const ntt_half *>(from);
        UNROLL for (uint32_t k = 0; k < 2 * LANE; k++) {
            uint32_t at = k * THREADS + thread, i = index(at >> 1);
            ntt_half zero = {};
            shared[slot(at >> 1, at & 1)] = i >> pass.log_n ? zero : halves[2 * i + (at & 1)];
        }
    }
    HD void store(F *to, uint32_t thread) const {
        ntt_half *halves = reinterpret_cast<ntt_half *>(to);
        UNROLL for (uint32_t k = 0; k < 2 * LANE; k++) {
            uint32_t at = k * THREADS + thread, i = index(at >> 1);
            if (i >> pass.log_n == 0) halves[2 * i + (at & 1)] = shared[slot(at >> 1, at & 1)];
        }
    }

    HD F get(uint32_t e) const {
        F x;
        ntt_half low = shared[slot(e, 0)], high = shared[slot(e, 1)];
        UNROLL for (int i = 0; i < 4; i++) x.limb[i] = low.word[i], x.limb[4 + i] = high.word[i];
        return x;
    }
    HD void put(uint32_t e, const F &x) const {
        ntt_half low, high;
        UNROLL for (int i = 0; i < 4; i++) low.word[i] = x.limb[i], high.word[i] = x.limb[4 + i];
        shared[slot(e, 0)] = low;
        shared[slot(e, 1)] = high;
    }

    /* The next window of the forward transform, whose next stage is on bit `next` of the tile's
     * index, and of the inverse one. */
    HD struct ntt_window down(int next) const {
        int base = next - LOG_LANE + 1;
        if (base < 0) base = 0;
        unsigned low = (unsigned)base < pass.place_bits ? pass.place_bits : (unsigned)base;
        return {(unsigned)base, low, (unsigned)next};
    }
    HD struct ntt_window up(unsigned next) const {
        unsigned base = next < LOG_TILE - LOG_LANE ? next : LOG_TILE - LOG_LANE;
        unsigned top = pass.place_bits + pass.stages - 1, high = base + LOG_LANE - 1;
        return {base, next, high < top ? high : top};
    }
    HD int top() const {
        return (int)(pass.place_bits + pass.stages) - 1;
    }

    /* One window by one thread: reads its elements, does the stages, writes them back. */
    HD void window(const struct ntt_window &w, bool inverse, bool coset, uint32_t thread) const {
        uint32_t above = thread >> w.base;
        uint32_t first = above << (w.base + LOG_LANE) | (thread & ((1u << w.base) - 1));
        F x[LANE];
        UNROLL for (uint32_t c = 0; c < LANE; c++) x[c] = get(first | c << w.base);
        if (inverse) {
            UNROLL for (int v = 0; v < LOG_LANE;
                        v++) if (w.base + v >= w.low && w.base + v <= w.high)
                stage_inverse(x, v, w.base + (unsigned)v, above);
        } else {
            UNROLL for (int v = LOG_LANE - 1; v >= 0;
                        v--) if (w.base + v >= w.low && w.base + v <= w.high)
                stage_forward(x, v, w.base + (unsigned)v, above, coset);
        }
        UNROLL for (uint32_t c = 0; c < LANE; c++) put(first | c << w.base, x[c]);
    }

    /* Block in the tree of the butterflies on bit `bit` of the tile's index, group g of a thread.
     */
    HD uint32_t tree_block(unsigned bit, uint32_t above, int v, uint32_t g) const {
        uint32_t j = block << (LOG_TILE - 1 - bit) | above << (LOG_LANE - 1 - v) | g;
        return j & ((1u << tree_stage(bit)) - 1); /* a tile longer than the array has no other */
    }
    HD unsigned tree_stage(unsigned bit) const {
        return pass.first + pass.stages + pass.place_bits - 1 - bit;
    }

    HD void stage_forward(F (&x)[LANE], int v, unsigned bit, uint32_t above, bool coset) const {
        uint32_t at = coset ? 1u << tree_stage(bit) : 0;
        UNROLL for (uint32_t g = 0; g < LANE >> (v + 1); g++) {
            uint32_t j = at + tree_block(bit, above, v, g);
            /* The first stages of all: T[0] for every thread. */
            bool trivial = g == 0 && !coset && pass.first == 0 && tree_stage(bit) < LOG_LANE;
            F t = twiddles[j];
            UNROLL for (uint32_t c = 0; c < 1u << v; c++) {
                F &a = x[g << (v + 1) | c], &b = x[g << (v + 1) | 1u << v | c];
                F product = trivial ? b : F::mul(b, t);
                b = F::sub(a, product);
                a = F::add(a, product);
            }
        }
    }
    HD void stage_inverse(F (&x)[LANE], int v, unsigned bit, uint32_t above) const {
        UNROLL for (uint32_t g = 0; g < LANE >> (v + 1); g++) {
            F t = twiddles[ntt_mirror(tree_block(bit, above, v, g))];
            UNROLL for (uint32_t c = 0; c < 1u << v; c++) {
                F &a = x[g << (v + 1) | c], &b = x[g << (v + 1) | 1u << v | c];
                F difference = F::sub(b, a);
                a = F::add(a, b);
                b = F::mul(difference, t);
            }
        }
    }
};

/* A whole pass over one tile. `each` runs a step for every thread of the block and waits. */
template <class Tile, class Each>
DEVICE_BODY void ntt_tile_run(const Tile &tile, typename Tile::F *data, const Each &each) {
    const struct ntt_pass &pass = tile.pass;
    each([&](uint32_t thread) { tile.load(data, thread); });
    if (pass.kind == NTT_INVERSE || pass.kind == NTT_TURN)
        for (int next = (int)pass.place_bits; next <= tile.top();) {
            struct ntt_window w = tile.up((unsigned)next);
            each([&](uint32_t thread) { tile.window(w, true, false, thread); });
            next = (int)w.high + 1;
        }
    if (pass.kind != NTT_INVERSE)
        for (int next = tile.top(); next >= (int)pass.place_bits;) {
            struct ntt_window w = tile.down(next);
            each([&](uint32_t thread) { tile.window(w, false, pass.kind != NTT_FORWARD, thread); });
            next = (int)w.low - 1;
        }
    each([&](uint32_t thread) { tile.store(data, thread); });
}

#ifdef __CUDACC__

#include "gpu/cuda/arena.cuh"

struct ntt_each_thread {
    template <class Step> DEVICE_BODY void operator()(const Step &step) const {
        step(threadIdx.x);
        __syncthreads();
    }
};

enum { NTT_MAX_ARRAYS = 3 };

template <class P> struct ntt_arrays { field<P> *at[NTT_MAX_ARRAYS]; };

template <class P, int LOG_TILE, int LOG_LANE, int BLOCKS>
__global__ void __launch_bounds__(ntt_tile<P, LOG_TILE, LOG_LANE>::THREADS, BLOCKS)
    ntt_kernel(const __grid_constant__ struct ntt_arrays<P> arrays,
               const __grid_constant__ struct ntt_pass pass, const field<P> *twiddles) {
    extern __shared__ ntt_half shared[];
    ntt_tile<P, LOG_TILE, LOG_LANE> tile(pass, twiddles, shared, blockIdx.x);
    field<P> *data = arrays.at[blockIdx.y];
    ntt_tile_run(tile, data, ntt_each_thread());
}

/* Transforms `count` arrays of 2^log_n elements in place, 1 <= log_n <= table.log_n, on tiles of
 * the given size with BLOCKS of them on a multiprocessor. */
template <class P, int LOG_TILE, int LOG_LANE, int BLOCKS>
void ntt_launch(cudaStream_t stream, enum ntt_kind kind, unsigned log_n, field<P> *const *arrays,
                unsigned count, const struct ntt_table<P> &table) {
    typedef ntt_tile<P, LOG_TILE, LOG_LANE> tile;
    auto kernel = ntt_kernel<P, LOG_TILE, LOG_LANE, BLOCKS>;
    if (tile::BYTES > 48 << 10)
        (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   (int)tile::BYTES);
    struct ntt_arrays<P> all = {};
    for (unsigned i = 0; i < count; i++)
        all.at[i] = arrays[i];
    struct ntt_schedule schedule = ntt_plan(kind, log_n, LOG_TILE);
    for (unsigned i = 0; i < schedule.n; i++)
        kernel<<<dim3(ntt_tiles(log_n, LOG_TILE), count), tile::THREADS, tile::BYTES, stream>>>(
            all, schedule.pass[i], table.twiddles());
}

/* Fills the table (its memory and log_n are set); log_n <= NTT_MAX_LOG. */
template <class P>
MUST_USE enum err ntt_table_fill(cudaStream_t stream, const struct ntt_table<P> &table,
                                 struct error *error);

/* The same as ntt_launch with what measured best (tests/bench/RESULTS.md), errors of launching
 * reported; at most NTT_MAX_ARRAYS arrays. */
template <class P>
MUST_USE enum err ntt_run(cudaStream_t stream, enum ntt_kind kind, unsigned log_n,
                          field<P> *const *arrays, unsigned count, const struct ntt_table<P> &table,
                          struct error *error);

#endif
#endif
