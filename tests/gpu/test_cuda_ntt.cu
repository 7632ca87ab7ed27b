/* The passes of the CUDA transforms, run on the host thread by thread: same tiles, same windows,
 * same twiddles. The oracle is the definition: the polynomial's value at each point, by Horner's
 * rule.
 */
#include "gpu/cuda/ntt.cuh"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

template <class P> static field<P> random_element(unsigned *seed) {
    field<P> a = {};
    for (int i = 0; i < P::LIMBS; i++)
        a.limb[i] = (uint32_t)rand_r(seed) ^ (uint32_t)rand_r(seed) << 16;
    a.limb[P::LIMBS - 1] %= P::modulus().limb[P::LIMBS - 1];
    return a;
}

template <class P> static std::vector<field<P>> random_elements(size_t n, unsigned seed) {
    std::vector<field<P>> all(n);
    for (auto &a : all)
        a = random_element<P>(&seed);
    return all;
}

template <class P> static std::vector<field<P>> table(unsigned log_n) {
    ntt_seeds<P> seeds = ntt_make_seeds<P>();
    std::vector<field<P>> t(ntt_table_entries<P>(log_n));
    for (size_t i = 0; i < t.size(); i++)
        t[i] = ntt_table_entry(seeds, (uint32_t)i);
    return t;
}

template <class Tile> struct each_in_turn {
    template <class Step> void operator()(const Step &step) const {
        for (uint32_t thread = 0; thread < Tile::THREADS; thread++)
            step(thread);
    }
};

template <class P, int LOG_TILE, int LOG_LANE>
static void transform(enum ntt_kind kind, unsigned log_n, field<P> *data, const field<P> *table) {
    typedef ntt_tile<P, LOG_TILE, LOG_LANE> Tile;
    std::vector<ntt_half> shared(2 * Tile::SIZE);
    struct ntt_schedule schedule = ntt_plan(kind, log_n, LOG_TILE);
    for (unsigned i = 0; i < schedule.n; i++)
        for (uint32_t tile = 0; tile < ntt_tiles(log_n, LOG_TILE); tile++)
            ntt_tile_run(Tile(schedule.pass[i], table + 1, shared.data(), tile), data,
                         each_in_turn<Tile>());
}

template <class P> static field<P> power(field<P> a, uint64_t e) {
    field<P> r = field<P>::one();
    for (; e != 0; e >>= 1, a = field<P>::mul(a, a))
        if (e & 1) r = field<P>::mul(r, a);
    return r;
}

template <class P> static field<P> horner(const std::vector<field<P>> &c, const field<P> &x) {
    field<P> y = field<P>::zero();
    for (size_t i = c.size(); i-- > 0;)
        y = field<P>::add(field<P>::mul(y, x), c[i]);
    return y;
}

/* All values of small transforms, 40 of large ones. */
template <class P, int LOG_TILE, int LOG_LANE> static void check_size(unsigned log_n) {
    typedef field<P> F;
    size_t n = (size_t)1 << log_n, step = n <= 256 ? 1 : n / 40;
    auto c = random_elements<P>(n, log_n + 1), t = table<P>(log_n);
    F w = ntt_root<P>(log_n), shift = ntt_root<P>(log_n + 1),
      size = power(F::add(F::one(), F::one()), log_n);

    auto values = c, coset = c;
    transform<P, LOG_TILE, LOG_LANE>(NTT_FORWARD, log_n, values.data(), t.data());
    transform<P, LOG_TILE, LOG_LANE>(NTT_COSET, log_n, coset.data(), t.data());
    for (size_t i = 0; i < n; i += step) {
        F x = power(w, bit_reverse((uint32_t)i, log_n));
        ck_assert_msg(values[i] == horner(c, x), "value %zu of 2^%u", i, log_n);
        ck_assert_msg(coset[i] == horner(c, F::mul(x, shift)), "odd value %zu of 2^%u", i, log_n);
    }

    auto turned = values;
    transform<P, LOG_TILE, LOG_LANE>(NTT_INVERSE, log_n, values.data(), t.data());
    transform<P, LOG_TILE, LOG_LANE>(NTT_TURN, log_n, turned.data(), t.data());
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(values[i] == F::mul(c[i], size), "coefficient %zu of 2^%u", i, log_n);
        ck_assert_msg(turned[i] == F::mul(coset[i], size), "turned value %zu of 2^%u", i, log_n);
    }
}

/* A root in plain form, most significant byte first. */
template <class P> static void ck_assert_root(unsigned log_n, const char *hex) {
    field<P> root = ntt_root<P>(log_n), unit = field<P>::zero();
    unit.limb[0] = 1;
    field<P> plain_form = field<P>::mul(root, unit);
    char text[2 * 32 + 1];
    for (int i = 0; i < 8; i++)
        (void)snprintf(text + 8 * i, 9, "%08x", plain_form.limb[7 - i]);
    ck_assert_str_eq(text, hex);
}

START_TEST(roots_are_snarkjs_roots) {
    /* 5^((r-1)/2^28) and 5^((r-1)/2^32), computed with Python's integers */
    ck_assert_root<bn254_fr>(28,
                             "2a3c09f0a58a7e8500e0a7eb8ef62abc402d111e41112ed49bd61b6e725b19f0");
    ck_assert_root<bls12_381_fr>(
        32, "0212d79e5b416b6f0fd56dc8d168d6c0c4024ff270b3e0941b788f500b912f1f");
}
END_TEST

START_TEST(twiddles_have_their_inverses_in_the_table) {
    typedef field<bn254_fr> F;
    auto t = table<bn254_fr>(10);
    for (uint32_t j = 0; j < 1u << 10; j++)
        ck_assert(F::mul(t[1 + j], t[(size_t)(1 + ntt_mirror(j))]) == F::neg(F::one()));
}
END_TEST

START_TEST(schedules_cover_every_stage_once) {
    for (unsigned log_tile = 8; log_tile <= 11; log_tile++)
        for (unsigned log_n = 1; log_n <= NTT_MAX_LOG; log_n++) {
            struct ntt_schedule s = ntt_plan(NTT_FORWARD, log_n, log_tile);
            unsigned next = 0;
            for (unsigned i = 0; i < s.n; next += s.pass[i++].stages) {
                ck_assert_uint_eq(s.pass[i].first, next);
                ck_assert_uint_eq(s.pass[i].stages + s.pass[i].block_bits + s.pass[i].place_bits,
                                  log_tile);
                if (i + 1 < s.n) ck_assert_uint_ge(s.pass[i].place_bits, NTT_LEAST_PLACE_BITS);
            }
            ck_assert_uint_eq(next, log_n);
            ck_assert_uint_eq(ntt_plan(NTT_TURN, log_n, log_tile).n, 2 * s.n - 1);
        }
}
END_TEST

START_TEST(one_pass_sizes_up_to_its_tile) {
    for (unsigned log_n = 1; log_n <= 5; log_n++) {
        check_size<bn254_fr, 5, 3>(log_n);
        check_size<bn254_fr, 5, 2>(log_n);
        check_size<bls12_381_fr, 5, 3>(log_n);
    }
    check_size<bn254_fr, 8, 2>(3);
    check_size<bn254_fr, 10, 3>(1);
    check_size<bn254_fr, 10, 3>(9);
}
END_TEST

START_TEST(many_passes_through_small_tiles) {
    for (unsigned log_n = 6; log_n <= 12; log_n++) {
        check_size<bn254_fr, 5, 3>(log_n);
        check_size<bn254_fr, 5, 2>(log_n);
        check_size<bls12_381_fr, 5, 2>(log_n);
    }
}
END_TEST

START_TEST(tiles_of_the_card) {
    check_size<bn254_fr, 8, 2>(13);
    check_size<bn254_fr, 10, 3>(14);
    check_size<bn254_fr, 11, 3>(13);
}
END_TEST

int main(void) {
    Suite *s = suite_create("cuda_ntt");
    TCase *t = tcase_create("ntt");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, roots_are_snarkjs_roots);
    tcase_add_test(t, twiddles_have_their_inverses_in_the_table);
    tcase_add_test(t, schedules_cover_every_stage_once);
    tcase_add_test(t, one_pass_sizes_up_to_its_tile);
    tcase_add_test(t, many_passes_through_small_tiles);
    tcase_add_test(t, tiles_of_the_card);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
