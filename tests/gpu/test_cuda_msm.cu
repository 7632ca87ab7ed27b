/* The bodies of the MSM's kernels on the host: points against affine arithmetic by GMP, digits
 * against the scalars that they make up, whole sums against double-and-add. */
#include <check.h>
#include <gmp.h>
#include <stdlib.h>

#include <algorithm>
#include <vector>

#include "gpu/cuda/msm_sum.cuh"

static gmp_randstate_t rng;

/* --- the oracle: affine points over Fp2 (Fp when the second halves are zero), y^2 = x^3 + any b
 * --- */
struct number {
    mpz_t c[2];

    number() {
        mpz_inits(c[0], c[1], NULL);
    }
    number(const number &b) {
        mpz_init_set(c[0], b.c[0]);
        mpz_init_set(c[1], b.c[1]);
    }
    number &operator=(const number &b) {
        mpz_set(c[0], b.c[0]);
        mpz_set(c[1], b.c[1]);
        return *this;
    }
    ~number() {
        mpz_clears(c[0], c[1], NULL);
    }
    bool operator==(const number &b) const {
        return mpz_cmp(c[0], b.c[0]) == 0 && mpz_cmp(c[1], b.c[1]) == 0;
    }
};

struct arithmetic {
    mpz_t p;

    number reduced(number a) const {
        mpz_mod(a.c[0], a.c[0], p);
        mpz_mod(a.c[1], a.c[1], p);
        return a;
    }
    number sub(const number &a, const number &b) const {
        number r;
        mpz_sub(r.c[0], a.c[0], b.c[0]);
        mpz_sub(r.c[1], a.c[1], b.c[1]);
        return reduced(r);
    }
    number mul(const number &a, const number &b) const {
        number r;
        mpz_mul(r.c[0], a.c[0], b.c[0]);
        mpz_submul(r.c[0], a.c[1], b.c[1]);
        mpz_mul(r.c[1], a.c[0], b.c[1]);
        mpz_addmul(r.c[1], a.c[1], b.c[0]);
        return reduced(r);
    }
    number scaled(const number &a, long k) const {
        number r;
        mpz_mul_si(r.c[0], a.c[0], k);
        mpz_mul_si(r.c[1], a.c[1], k);
        return reduced(r);
    }
    number inverse(const number &a) const {
        number r, norm;
        mpz_mul(norm.c[0], a.c[0], a.c[0]);
        mpz_addmul(norm.c[0], a.c[1], a.c[1]);
        ck_assert(mpz_invert(norm.c[0], norm.c[0], p));
        mpz_set(r.c[0], a.c[0]);
        mpz_neg(r.c[1], a.c[1]);
        return mul(r, norm);
    }
};

struct point {
    bool infinite;
    number x, y;
};

static point oracle_add(const arithmetic &f, const point &a, const point &b) {
    if (a.infinite) return b;
    if (b.infinite) return a;
    number slope;
    if (a.x == b.x) {
        if (!(a.y == b.y)) return {true, number(), number()};
        slope = f.mul(f.scaled(f.mul(a.x, a.x), 3), f.inverse(f.scaled(a.y, 2)));
    } else {
        slope = f.mul(f.sub(b.y, a.y), f.inverse(f.sub(b.x, a.x)));
    }
    number x = f.sub(f.sub(f.mul(slope, slope), a.x), b.x);
    return {false, x, f.sub(f.mul(slope, f.sub(a.x, x)), a.y)};
}

static point oracle_neg(const arithmetic &f, const point &a) {
    return {a.infinite, a.x, f.scaled(a.y, -1)};
}

/* --- the oracle's values as field elements --- */
template <class P> static void set(field<P> &out, const mpz_t value) {
    plain<P> number = {};
    mpz_export(number.limb, NULL, -1, 4, 0, 0, value);
    out = field<P>::from_plain(number);
}
template <class P> static void set_number(field<P> &out, const number &value) {
    set(out, value.c[0]);
}
template <class P> static void set_number(fp2<P> &out, const number &value) {
    set(out.c0, value.c[0]);
    set(out.c1, value.c[1]);
}
template <class P> static bool is_extension(const field<P> *) {
    return false;
}
template <class P> static bool is_extension(const fp2<P> *) {
    return true;
}

template <class F> struct fixture {
    arithmetic f;

    fixture() {
        auto modulus = F::params::modulus();
        mpz_init(f.p);
        mpz_import(f.p, F::params::LIMBS, -1, 4, 0, 0, modulus.limb);
    }
    ~fixture() {
        mpz_clear(f.p);
    }
    point random_point() {
        point r = {false, number(), number()};
        for (int i = 0; i <= (is_extension((F *)NULL) ? 1 : 0); i++) {
            mpz_urandomm(r.x.c[i], rng, f.p);
            mpz_urandomm(r.y.c[i], rng, f.p);
        }
        return r;
    }
    affine<F> device(const point &a) {
        affine<F> r = affine<F>::infinity();
        if (a.infinite) return r;
        set_number(r.x, a.x);
        set_number(r.y, a.y);
        return r;
    }
    void expect(const xyzz<F> &got, const point &want, const char *what) {
        affine<F> a = xyzz<F>::normalised(got), b = device(want);
        ck_assert_msg(got.is_infinity() == want.infinite && a.x == b.x && a.y == b.y, "%s", what);
        F zz3 = F::mul(F::sqr(got.zz), got.zz);
        ck_assert_msg(zz3 == F::sqr(got.zzz), "%s: ZZ^3 is not ZZZ^2", what);
    }
};

/* a and b in all ways: with a at a denominator of its own, b affine and not */
template <class F> static void check_pair(fixture<F> &t, const point &a, const point &b) {
    xyzz<F> p = xyzz<F>::from_affine(t.device(a)), q = xyzz<F>::from_affine(t.device(b));
    point sum = oracle_add(t.f, a, b), twice = oracle_add(t.f, sum, b);
    xyzz<F> r = p;
    r.add(t.device(b));
    t.expect(r, sum, "affine on affine");
    r.add(t.device(b));
    t.expect(r, twice, "affine on sum");
    r = p;
    r.add(q);
    t.expect(r, sum, "sum on affine");
    xyzz<F> q2 = q;
    q2.add(q);
    r.add(xyzz<F>::dbl(q));
    t.expect(r, oracle_add(t.f, twice, b), "double on sum");
    r = p;
    r.add(q2);
    t.expect(r, twice, "sum on sum");
    t.expect(xyzz<F>::dbl(r), oracle_add(t.f, twice, twice), "double of a sum");
}

template <class F> static void check_points(void) {
    fixture<F> t;
    point infinity = {true, number(), number()};
    for (int i = 0; i < 10; i++) {
        point a = t.random_point(), b = oracle_add(t.f, a, a);
        point cases[] = {a, oracle_neg(t.f, a), b, oracle_neg(t.f, b), infinity};
        for (const point &p : cases)
            for (const point &q : cases)
                check_pair<F>(t, p, q);
    }
}

START_TEST(points_agree_with_affine_arithmetic) {
    check_points<bn254::g1_field>();
    check_points<bn254::g2_field>();
    check_points<bls12_381::g1_field>();
    check_points<bls12_381::g2_field>();
}
END_TEST

/* --- digits --- */
static void random_scalar(uint32_t *limb, const struct curve_info *curve) {
    mpz_t r, s;
    mpz_inits(r, s, NULL);
    mpz_import(r, 32, -1, 1, 0, 0, curve->r);
    switch (gmp_urandomm_ui(rng, 5)) {
    case 0:
        mpz_sub_ui(s, r, 1 + gmp_urandomm_ui(rng, 2));
        break;
    case 1:
        mpz_set_ui(s, gmp_urandomm_ui(rng, 3));
        break;
    case 2:
        mpz_rrandomb(s, rng, 256);
        mpz_mod(s, s, r);
        break;
    default:
        mpz_urandomm(s, rng, r);
    }
    memset(limb, 0, 32);
    mpz_export(limb, NULL, -1, 4, 0, 0, s);
    mpz_clears(r, s, NULL);
}

static unsigned windows_of(enum curve_id curve, unsigned window_bits) {
    unsigned bits = curve == CURVE_BN254 ? 254 : 255;
    return bits / window_bits + 1; /* always enough */
}

/* The scalar that the entries make up. */
static void check_digits(const struct msm_shape &shape, const uint32_t *limb) {
    mpz_t sum, term, want;
    mpz_inits(sum, term, want, NULL);
    uint32_t carry = 0, i = 3, half = 1u << (shape.window_bits - 1);
    for (unsigned w = 0; w < shape.windows; w++) {
        uint64_t entry = msm_entry(shape, limb, i, w, &carry);
        if (entry_bucket(entry) == msm_bucket_count(shape)) continue;
        ck_assert_uint_lt(entry_bucket(entry), msm_bucket_count(shape));
        unsigned set = entry_bucket(entry) / half, table = entry_point(entry) / shape.n;
        ck_assert_uint_eq(entry_point(entry) % shape.n, i);
        mpz_set_ui(term, entry_bucket(entry) % half + 1);
        mpz_mul_2exp(term, term, shape.window_bits * (table * shape.sets + set));
        if (entry_negative(entry)) mpz_neg(term, term);
        mpz_add(sum, sum, term);
    }
    mpz_import(want, 8, -1, 4, 0, 0, limb);
    ck_assert_uint_eq(carry, 0);
    ck_assert_msg(mpz_cmp(sum, want) == 0, "window of %u bits", shape.window_bits);
    mpz_clears(sum, term, want, NULL);
}

START_TEST(digits_make_up_the_scalar) {
    for (int id = 0; id < CURVE_COUNT; id++)
        for (unsigned c = 2; c <= 24; c++)
            for (unsigned sets = 1; sets <= 3; sets++) {
                enum curve_id curve = (enum curve_id)id;
                unsigned windows = windows_of(curve, c);
                struct msm_shape shape = {curve, 1000, c, windows, (windows + sets - 1) / sets,
                                          sets};
                for (int i = 0; i < 40; i++) {
                    uint32_t limb[8];
                    random_scalar(limb, curve_info(curve));
                    check_digits(shape, limb);
                }
            }
}
END_TEST

START_TEST(shares_cover_a_list_once) {
    uint32_t counts[] = {0, 1, 7, 8, 9, 63, 64, 65, 1000, 0x7fffffff};
    for (uint32_t count : counts)
        for (uint32_t threads = 1; threads < 200; threads += 33) {
            uint32_t at = 0;
            for (uint32_t t = 0; t < threads; t++) {
                struct msm_share share = share_of(count, t, threads);
                ck_assert_uint_eq(share.begin, at);
                ck_assert_uint_ge(share.end, share.begin);
                at = share.end;
            }
            ck_assert_uint_eq(at, count);
        }
}
END_TEST

/* --- whole sums --- */
struct instance {
    struct msm_shape shape;
    std::vector<uint64_t> entries;
    std::vector<uint32_t> limbs;

    const uint32_t *scalar(uint32_t i) const {
        return limbs.data() + 8 * i;
    }
    /* What msm_sort does, by the library's sort. */
    void sort() {
        entries.clear();
        for (uint32_t i = 0; i < shape.n; i++) {
            uint32_t carry = 0;
            for (unsigned w = 0; w < shape.windows; w++) {
                uint64_t entry = msm_entry(shape, scalar(i), i, w, &carry);
                if (entry_bucket(entry) < msm_bucket_count(shape)) entries.push_back(entry);
            }
        }
        std::stable_sort(entries.begin(), entries.end(),
                         [](uint64_t a, uint64_t b) { return entry_bucket(a) < entry_bucket(b); });
    }
};

template <class F>
static std::vector<affine<F>> tables_of(const struct msm_shape &shape,
                                        const std::vector<affine<F>> &bases) {
    std::vector<affine<F>> table(bases);
    std::vector<xyzz<F>> work(shape.n);
    table.resize((size_t)shape.n * shape.tables);
    for (unsigned j = 1; j < shape.tables; j++)
        for (uint32_t first = 0; first < 3; first++)
            msm_double_run(table.data() + (j - 1) * shape.n, table.data() + j * shape.n,
                           work.data(), first, 3u, shape.n, shape.window_bits * shape.sets);
    return table;
}

/* The steps of msm_sum_*, with `threads` threads. */
template <class F>
static xyzz<F> sum_by_buckets(const instance &in, const std::vector<affine<F>> &table,
                              uint32_t threads) {
    std::vector<xyzz<F>> buckets(msm_bucket_count(in.shape), xyzz<F>::infinity());
    for (uint32_t t = 0; t < threads; t++) {
        xyzz<F> head;
        uint32_t key;
        msm_add_share(in.entries.data(), (uint32_t)in.entries.size(), t, threads, table.data(),
                      buckets.data(), &head, &key);
        if (key != NO_BUCKET) buckets[key].add(head);
    }
    struct msm_matrix m = matrix_of(in.shape);
    uint32_t lines = msm_line_count(in.shape);
    std::vector<xyzz<F>> bits;
    for (unsigned set = 0; set < in.shape.sets; set++) {
        std::vector<xyzz<F>> sums(lines, xyzz<F>::infinity());
        for (uint32_t line = 0; line < lines; line++)
            for (uint32_t k = 0; k < msm_line_length(m, line); k++)
                sums[line].add(
                    buckets[(set << (in.shape.window_bits - 1)) + msm_line_bucket(m, line, k)]);
        for (unsigned bit = 0; bit < in.shape.window_bits; bit++) {
            xyzz<F> sum = xyzz<F>::infinity();
            for (uint32_t k = 0; k < msm_bit_length(m, bit); k++)
                sum.add(sums[msm_bit_line(m, bit, k)]);
            bits.push_back(sum);
        }
    }
    return msm_horner(in.shape, bits.data());
}

template <class F>
static xyzz<F> sum_by_doubling(const instance &in, const std::vector<affine<F>> &bases) {
    xyzz<F> total = xyzz<F>::infinity();
    for (int bit = 255; bit >= 0; bit--) {
        total = xyzz<F>::dbl(total);
        for (uint32_t i = 0; i < in.shape.n; i++)
            if (in.scalar(i)[bit / 32] >> bit % 32 & 1) total.add(bases[i]);
    }
    return total;
}

template <class F> static void check_sum(const instance &in, const std::vector<affine<F>> &bases) {
    xyzz<F> want = sum_by_doubling(in, bases);
    std::vector<affine<F>> table = tables_of(in.shape, bases);
    for (uint32_t threads : {1u, 3u, 50u}) {
        xyzz<F> got = sum_by_buckets(in, table, threads);
        affine<F> a = xyzz<F>::normalised(got), b = xyzz<F>::normalised(want);
        ck_assert_msg(a.x == b.x && a.y == b.y, "n %u, window %u, sets %u, threads %u", in.shape.n,
                      in.shape.window_bits, in.shape.sets, threads);
    }
}

/* Bases of every kind that can meet in a bucket: equal, opposite, infinite and distinct ones. */
template <class F> static std::vector<affine<F>> some_bases(uint32_t n, int kind) {
    fixture<F> t;
    std::vector<affine<F>> bases;
    xyzz<F> p = xyzz<F>::from_affine(t.device(t.random_point())), q = p;
    affine<F> step = xyzz<F>::normalised(xyzz<F>::dbl(p));
    for (uint32_t i = 0; i < n; i++) {
        affine<F> a = xyzz<F>::normalised(q);
        if (kind == 1 && i % 3 == 1) a.y = F::neg(a.y);
        if (kind == 2 && i % 4 == 0) a = affine<F>::infinity();
        if (kind == 0 || (kind == 2 && i % 2 == 0)) q.add(step);
        bases.push_back(a);
    }
    return bases;
}

template <class F> static void check_sums(enum curve_id curve) {
    for (uint32_t n : {0u, 1u, 7u, 40u})
        for (unsigned c : {2u, 5u, 8u})
            for (unsigned sets : {1u, 4u})
                for (int kind = 0; kind < 3; kind++) {
                    unsigned windows = windows_of(curve, c);
                    instance in = {
                        {curve, n, c, windows, (windows + sets - 1) / sets, sets}, {}, {}};
                    in.limbs.resize(8 * n);
                    for (uint32_t i = 0; i < n; i++)
                        random_scalar(&in.limbs[8 * i], curve_info(curve));
                    for (uint32_t i = 0; kind == 1 && i < n; i++)
                        memcpy(&in.limbs[8 * i], in.limbs.data(), 32); /* all equal: long buckets */
                    in.sort();
                    check_sum<F>(in, some_bases<F>(n, kind));
                }
}

START_TEST(sums_by_buckets_agree_with_double_and_add) {
    check_sums<bn254::g1_field>(CURVE_BN254);
    check_sums<bn254::g2_field>(CURVE_BN254);
    check_sums<bls12_381::g1_field>(CURVE_BLS12_381);
}
END_TEST

/* --- what a mask keeps --- */
START_TEST(a_mask_keeps_its_bases_and_drops_zero_digits) {
    struct msm_shape shape = {CURVE_BN254, 70, 8, 32, 32, 1};
    uint32_t mask[3] = {0xfffffffe, 0, 0x20};
    uint64_t zero = (uint64_t)msm_bucket_count(shape) << 32;
    for (uint32_t table = 0; table < 32; table += 31) {
        uint64_t at = (uint64_t)table * shape.n << 1;
        ck_assert(!entry_kept(shape, 5ull << 32 | at, mask));
        ck_assert(entry_kept(shape, 5ull << 32 | (at + 2), mask));
        ck_assert(!entry_kept(shape, 5ull << 32 | (at + 2 * 40), mask));
        ck_assert(entry_kept(shape, 5ull << 32 | (at + 2 * 69 + 1), mask));
        ck_assert(!entry_kept(shape, zero | (at + 2), mask));
    }
}
END_TEST

int main(void) {
    gmp_randinit_default(rng);
    Suite *suite = suite_create("cuda_msm");
    TCase *bodies = tcase_create("bodies");
    tcase_add_test(bodies, points_agree_with_affine_arithmetic);
    tcase_add_test(bodies, digits_make_up_the_scalar);
    tcase_add_test(bodies, shares_cover_a_list_once);
    tcase_add_test(bodies, sums_by_buckets_agree_with_double_and_add);
    tcase_add_test(bodies, a_mask_keeps_its_bases_and_drops_zero_digits);
    tcase_set_timeout(bodies, 120);
    suite_add_tcase(suite, bodies);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    gmp_randclear(rng);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
