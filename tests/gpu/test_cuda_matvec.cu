/* The GPU's way from a witness to the quotient, run on the host: rows sorted for threads and warps,
 * transforms, quotient. The oracles are the sums written down plainly and the CPU backend.
 */
#include "gpu/cuda/matvec.cuh"
#include "gpu/cuda/ntt.cuh"

extern "C" {
#include "gpu/cpu/cpu_curve.h"
#include "gpu/cpu/matrix.h"
}

#include <check.h>
#include <stdlib.h>
#include <vector>

enum { LOG_TILE = 5, LOG_LANE = 2 };

/* A key with coefficients only. */
struct matrices {
    std::vector<uint8_t> bytes;
    struct zkey zkey = {};
    unsigned seed;

    matrices(enum curve_id curve, unsigned log_domain, uint32_t n_vars, unsigned s) : seed(s) {
        zkey.curve = curve_info(curve);
        zkey.log_domain = log_domain;
        zkey.domain_size = 1u << log_domain;
        zkey.n_vars = n_vars;
    }
    void add(uint32_t matrix, uint32_t row, uint32_t signal, const struct scalar &value) {
        uint32_t head[3] = {matrix, row, signal};
        const uint8_t *h = (const uint8_t *)head;
        bytes.insert(bytes.end(), h, h + sizeof head);
        bytes.insert(bytes.end(), value.le, value.le + sizeof value);
        zkey.coefficients = bytes.data();
        zkey.n_coefficients++;
    }
    struct scalar draw() {
        struct scalar a;
        for (auto &byte : a.le)
            byte = (uint8_t)rand_r(&seed);
        a.le[SCALAR_BYTES - 1] =
            (uint8_t)(a.le[SCALAR_BYTES - 1] % zkey.curve->r[SCALAR_BYTES - 1]);
        return a;
    }
    void add_random_row(uint32_t matrix, uint32_t row, uint32_t terms) {
        for (uint32_t i = 0; i < terms; i++)
            add(matrix, row, (uint32_t)rand_r(&seed) % zkey.n_vars, draw());
    }
    std::vector<struct scalar> witness() {
        std::vector<struct scalar> w(zkey.n_vars);
        for (auto &value : w)
            value = draw();
        w[0] = {};
        w[0].le[0] = 1;
        return w;
    }
};

template <class P> static field<P> as_field(const struct scalar &s) {
    field<P> a;
    memcpy(&a, s.le, sizeof a);
    return a;
}

struct vectors_of {
    template <class P> struct type {
        std::vector<field<P>> v[3]; /* a, b, c in bit-reversed order */
    };
};

/* What matvec_run does on the device. */
template <class P>
static typename vectors_of::type<P> multiply(const struct matvec_plan &plan,
                                             const std::vector<struct scalar> &w, uint32_t n) {
    struct matvec<P> m = {
        {plan.part[0], plan.part[1]}, plan.segments, plan.n_segments, plan.signals,
            (const field<P> *)plan.values
    };
    const plain<P> *witness = (const plain<P> *)w.data();
    std::vector<field<P>> sums(plan.n_segments, field<P>::zero());
    for (uint32_t i = 0; i < plan.n_segments; i++)
        for (uint32_t lane = 0; lane < 32; lane++)
            sums[i] = field<P>::add(sums[i], matvec_segment_lane(m, m.segments[i], lane, witness));
    typename vectors_of::type<P> out;
    for (int part = 0; part < 2; part++) {
        out.v[part].assign(n, field<P>::one());
        for (uint32_t i = 0; i < m.part[part].n_rows; i++)
            out.v[part][m.part[part].rows[i].out] =
                matvec_row_sum(m, m.part[part].rows[i], witness);
        for (uint32_t i = 0; i < m.part[part].n_long_rows; i++) {
            field<P> sum = field<P>::zero();
            for (uint32_t lane = 0; lane < 32; lane++)
                sum = field<P>::add(
                    sum, matvec_long_row_lane(m.part[part].long_rows[i], lane, sums.data()));
            out.v[part][m.part[part].long_rows[i].out] = sum;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        out.v[2].push_back(field<P>::mul(out.v[0][i], out.v[1][i]));
    return out;
}

template <class P>
static std::vector<field<P>> plain_sums(const matrices &m, const std::vector<struct scalar> &w,
                                        uint32_t matrix) {
    std::vector<field<P>> sums(m.zkey.domain_size, field<P>::zero());
    for (uint32_t i = 0; i < m.zkey.n_coefficients; i++) {
        const uint8_t *term = m.zkey.coefficients + (size_t)i * ZKEY_COEFFICIENT_BYTES;
        uint32_t head[3];
        struct scalar value;
        memcpy(head, term, sizeof head);
        memcpy(&value, term + sizeof head, sizeof value);
        if (head[0] == matrix)
            sums[head[1]] = field<P>::add(
                sums[head[1]], field<P>::mul(as_field<P>(w[head[2]]), as_field<P>(value)));
    }
    return sums;
}

static struct matvec_plan plan_of(const matrices &m) {
    struct matvec_plan plan;
    struct error error = {};
    ck_assert_int_eq(matvec_plan_make(&m.zkey, pool_shared(), &plan, &error), ERR_NONE);
    ck_assert_uint_le(plan.n_segments, matvec_most_segments(plan.n_terms));
    for (int part = 0; part < 2; part++) {
        ck_assert_uint_eq(plan.part[part].n_rows + plan.part[part].n_long_rows, m.zkey.domain_size);
        for (uint32_t i = 1; i < plan.part[part].n_rows; i++)
            ck_assert_uint_ge(plan.part[part].rows[i - 1].terms, plan.part[part].rows[i].terms);
    }
    return plan;
}

template <class P> static void check_products(matrices &m) {
    struct matvec_plan plan = plan_of(m);
    auto w = m.witness();
    auto out = multiply<P>(plan, w, m.zkey.domain_size);
    for (uint32_t part = 0; part < 2; part++) {
        auto expected = plain_sums<P>(m, w, part);
        for (uint32_t row = 0; row < m.zkey.domain_size; row++)
            ck_assert_msg(out.v[part][bit_reverse(row, m.zkey.log_domain)] == expected[row],
                          "matrix %u row %u", part, row);
    }
    matvec_plan_free(&plan);
}

START_TEST(rows_of_every_length_are_summed) {
    matrices m(CURVE_BN254, 6, 50, 1);
    const uint32_t lengths[] = {0, 1, 31, 32, 33, 1023, 1024, 1025, 2048, 5000, 2, 3};
    for (uint32_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        m.add_random_row(0, i, lengths[i]);
        m.add_random_row(1, 63 - i, lengths[i]);
    }
    check_products<bn254_fr>(m);
}
END_TEST

START_TEST(terms_may_come_in_any_order) {
    matrices m(CURVE_BLS12_381, 4, 9, 2);
    for (int i = 0; i < 600; i++)
        m.add((uint32_t)rand_r(&m.seed) % 2, (uint32_t)rand_r(&m.seed) % 16,
              (uint32_t)rand_r(&m.seed) % 9, m.draw());
    check_products<bls12_381_fr>(m);
}
END_TEST

START_TEST(a_key_without_terms_gives_zeros) {
    matrices m(CURVE_BN254, 1, 1, 3);
    check_products<bn254_fr>(m);
}
END_TEST

struct in_turn {
    template <class Step> void operator()(const Step &step) const {
        for (uint32_t thread = 0; thread < 1u << (LOG_TILE - LOG_LANE); thread++)
            step(thread);
    }
};

template <class P> static void turn(unsigned log_n, std::vector<field<P>> &data) {
    ntt_seeds<P> seeds = ntt_make_seeds<P>();
    std::vector<field<P>> table(ntt_table_entries<P>(log_n));
    for (size_t i = 0; i < table.size(); i++)
        table[i] = ntt_table_entry(seeds, (uint32_t)i);
    std::vector<ntt_half> shared(2u << LOG_TILE);
    struct ntt_schedule schedule = ntt_plan(NTT_TURN, log_n, LOG_TILE);
    for (unsigned i = 0; i < schedule.n; i++)
        for (uint32_t tile = 0; tile < ntt_tiles(log_n, LOG_TILE); tile++)
            ntt_tile_run(ntt_tile<P, LOG_TILE, LOG_LANE>(schedule.pass[i], table.data() + 1,
                                                         shared.data(), tile),
                         data.data(), in_turn());
}

template <class P> static void check_quotient(enum curve_id curve, unsigned log_n) {
    matrices m(curve, log_n, 40, log_n);
    for (uint32_t row = 0; row < m.zkey.domain_size; row++)
        for (uint32_t matrix = 0; matrix < 2; matrix++)
            m.add_random_row(matrix, row, (uint32_t)rand_r(&m.seed) % 6);
    struct matvec_plan plan = plan_of(m);
    auto w = m.witness();
    auto out = multiply<P>(plan, w, m.zkey.domain_size);
    matvec_plan_free(&plan);
    for (auto &vector : out.v)
        turn<P>(log_n, vector);

    std::vector<struct scalar> expected(m.zkey.domain_size);
    int64_t matvec_ns, ntt_ns;
    struct error error = {};
    struct matrix *matrix;
    ck_assert_int_eq(matrix_index(&m.zkey, &matrix, &error), ERR_NONE);
    ck_assert_int_eq(cpu_curve(curve)->quotient(pool_shared(), matrix, w.data(), expected.data(),
                                                &matvec_ns, &ntt_ns, &error),
                     ERR_NONE);
    matrix_free(matrix);
    struct quotient_factors<P> factors = quotient_factors_make<P>(log_n);
    for (uint32_t i = 0; i < m.zkey.domain_size; i++) {
        uint32_t at = bit_reverse(i, log_n);
        field<P> h = quotient_element(out.v[0][at], out.v[1][at], out.v[2][at], factors);
        ck_assert_msg(memcmp(&h, expected[i].le, sizeof h) == 0, "h %u of 2^%u", i, log_n);
    }
}

START_TEST(the_quotient_is_the_cpu_backends) {
    for (unsigned log_n = 1; log_n <= 11; log_n++) {
        check_quotient<bn254_fr>(CURVE_BN254, log_n);
        check_quotient<bls12_381_fr>(CURVE_BLS12_381, log_n);
    }
}
END_TEST

int main(void) {
    Suite *s = suite_create("cuda_matvec");
    TCase *t = tcase_create("matvec");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, rows_of_every_length_are_summed);
    tcase_add_test(t, terms_may_come_in_any_order);
    tcase_add_test(t, a_key_without_terms_gives_zeros);
    tcase_add_test(t, the_quotient_is_the_cpu_backends);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
