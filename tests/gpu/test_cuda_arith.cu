/* Device arithmetic compiled for the host, against GMP. */
#include <check.h>
#include <gmp.h>
#include <stdlib.h>

#include "gpu/cuda/field.cuh"

enum { ROUNDS = 300 };

static gmp_randstate_t rng;

template <class P> struct oracle {
    typedef field<P> F;
    mpz_t p, r;

    oracle() {
        words<P::LIMBS> modulus = P::modulus();
        mpz_init(p);
        mpz_import(p, P::LIMBS, -1, 4, 0, 0, modulus.limb);
        mpz_init_set_ui(r, 1);
        mpz_mul_2exp(r, r, 32 * P::LIMBS);
    }
    ~oracle() {
        mpz_clears(p, r, NULL);
    }
    /* Uniform, with the borders 0, 1, p-1 and sparse words often among them. */
    void draw(mpz_t out) {
        switch (gmp_urandomm_ui(rng, 6)) {
        case 0:
            mpz_set_ui(out, gmp_urandomm_ui(rng, 3));
            break;
        case 1:
            mpz_sub_ui(out, p, 1 + gmp_urandomm_ui(rng, 3));
            break;
        case 2:
            mpz_rrandomb(out, rng, P::BITS);
            mpz_mod(out, out, p);
            break;
        default:
            mpz_urandomm(out, rng, p);
        }
    }
    /* The limbs of `value` as they are: it is the Montgomery form of value / R. */
    static F raw(const mpz_t value) {
        F f = F::zero();
        mpz_export(f.limb, NULL, -1, 4, 0, 0, value);
        return f;
    }
    void expect(const F &got, mpz_t want, const char *what) {
        mpz_t g;
        mpz_init(g);
        mpz_import(g, P::LIMBS, -1, 4, 0, 0, got.limb);
        mpz_mod(want, want, p);
        ck_assert_msg(mpz_cmp(g, want) == 0, "%s: wrong value", what);
        mpz_clear(g);
    }
    /* want / R */
    void expect_product(const F &got, mpz_t want, const char *what) {
        mpz_t inverse;
        mpz_init(inverse);
        mpz_invert(inverse, r, p);
        mpz_mul(want, want, inverse);
        expect(got, want, what);
        mpz_clear(inverse);
    }
};

template <class P> static void check_linear(oracle<P> &o, const mpz_t a, const mpz_t b) {
    typedef field<P> F;
    F x = o.raw(a), y = o.raw(b);
    mpz_t want;
    mpz_init(want);
    mpz_add(want, a, b);
    o.expect(F::add(x, y), want, "add");
    mpz_sub(want, a, b);
    o.expect(F::sub(x, y), want, "sub");
    mpz_mul_2exp(want, a, 1);
    o.expect(F::dbl(x), want, "dbl");
    mpz_neg(want, a);
    o.expect(F::neg(x), want, "neg");
    mpz_set(want, a);
    o.expect(F::neg_if(x, false), want, "neg_if(false)");
    mpz_neg(want, a);
    o.expect(F::neg_if(x, true), want, "neg_if(true)");
    ck_assert_int_eq(x == y, mpz_cmp(a, b) == 0);
    ck_assert_int_eq(x.is_zero(), mpz_sgn(a) == 0);
    mpz_clear(want);
}

template <class P> static void check_products(oracle<P> &o, const mpz_t a, const mpz_t b) {
    typedef field<P> F;
    F x = o.raw(a), y = o.raw(b);
    mpz_t want;
    mpz_init(want);
    mpz_mul(want, a, b);
    o.expect_product(F::mul(x, y), want, "mul");
    mpz_mul(want, a, b);
    o.expect_product(F::mul_chain(x, y), want, "mul_chain");
    mpz_mul(want, a, b);
    o.expect_product(F::wide::product(x, y).reduced(), want, "wide product");
    mpz_mul(want, a, a);
    o.expect_product(F::wide::square(x).reduced(), want, "wide square");
    mpz_mul(want, a, a);
    o.expect_product(F::sqr(x), want, "sqr");
    mpz_mul(want, a, o.r);
    plain<P> number;
    memcpy(number.limb, x.limb, sizeof number.limb);
    o.expect(F::from_plain(number), want, "from_plain");
    plain<P> back = F::to_plain(F::from_plain(number));
    ck_assert_mem_eq(back.limb, number.limb, sizeof number.limb);
    mpz_clear(want);
}

template <class P> static void check_field(void) {
    oracle<P> o;
    mpz_t a, b;
    mpz_inits(a, b, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        o.draw(a);
        o.draw(b);
        check_linear<P>(o, a, b);
        check_products<P>(o, a, b);
    }
    mpz_clears(a, b, NULL);
}

template <class P> static void check_inverse(void) {
    typedef field<P> F;
    oracle<P> o;
    mpz_t a;
    mpz_init(a);
    for (int i = 0; i < 20; i++) {
        o.draw(a);
        F x = o.raw(a);
        bool good = F::mul(F::inverse(x), x) == (x.is_zero() ? F::zero() : F::one());
        ck_assert_msg(good, "inverse");
    }
    mpz_clear(a);
}

/* a*b - c*d, and products of fp2, by chains that reduce once for several products */
template <class P> static void check_joint_reductions(void) {
    typedef field<P> F;
    typedef fp2<P> F2;
    oracle<P> o;
    mpz_t v[4], want, t;
    mpz_inits(v[0], v[1], v[2], v[3], want, t, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        F f[4];
        for (int j = 0; j < 4; j++) {
            o.draw(v[j]);
            f[j] = o.raw(v[j]);
        }
        mpz_mul(want, v[0], v[1]);
        mpz_submul(want, v[2], v[3]);
        o.expect_product(F::mul_sub_chain(f[0], f[1], f[2], f[3]), want, "mul_sub_chain");
        F2 a = {f[0], f[1]}, b = {f[2], f[3]}, chain = F2::mul_chain(a, b);
        mpz_mul(want, v[0], v[2]);
        mpz_submul(want, v[1], v[3]);
        o.expect_product(chain.c0, want, "fp2 mul_chain, c0");
        mpz_mul(want, v[0], v[3]);
        mpz_addmul(want, v[1], v[2]);
        o.expect_product(chain.c1, want, "fp2 mul_chain, c1");
        ck_assert_msg(F2::mul(a, b) == chain, "fp2 mul");
        F2 c = {f[1], f[3]}, d = {f[2], f[0]};
        ck_assert_msg(F2::mul_sub_chain(a, b, c, d) == F2::sub(chain, F2::mul_chain(c, d)),
                      "fp2 mul_sub_chain");
        ck_assert_msg(F2::sqr(a) == F2::mul(a, a), "fp2 sqr");
        if (i < 10 && !a.is_zero())
            ck_assert_msg(F2::mul(F2::inverse(a), a) == F2::one(), "fp2 inverse");
    }
    mpz_clears(v[0], v[1], v[2], v[3], want, t, NULL);
}

START_TEST(fields_agree_with_gmp) {
    check_field<bn254_fr>();
    check_field<bn254_fq>();
    check_field<bls12_381_fr>();
    check_field<bls12_381_fq>();
}
END_TEST

START_TEST(inverses_multiply_to_one_and_zero_stays_zero) {
    check_inverse<bn254_fr>();
    check_inverse<bn254_fq>();
    check_inverse<bls12_381_fr>();
    check_inverse<bls12_381_fq>();
}
END_TEST

START_TEST(joint_reductions_agree_with_gmp) {
    check_joint_reductions<bn254_fq>();
    check_joint_reductions<bls12_381_fq>();
}
END_TEST

int main(void) {
    gmp_randinit_default(rng);
    Suite *suite = suite_create("cuda_arith");
    TCase *fields = tcase_create("fields");
    tcase_add_test(fields, fields_agree_with_gmp);
    tcase_add_test(fields, inverses_multiply_to_one_and_zero_stays_zero);
    tcase_add_test(fields, joint_reductions_agree_with_gmp);
    tcase_set_timeout(fields, 60);
    suite_add_tcase(suite, fields);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    gmp_randclear(rng);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
