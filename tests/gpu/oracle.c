#include "tests/gpu/oracle.h"

#include <stdlib.h>
#include <string.h>

/* Fq2 = Fq[u]/(u^2 + 1); coordinates of G1 are those with c[1] = 0. */
struct fp2 {
    mpz_t c[2];
};
struct point {
    struct fp2 x, y;
    bool is_infinity;
};
struct field {
    size_t n8q;
    mpz_t q, r, inverse_r; /* 1/R mod q, R the Montgomery factor of coordinates */
};

/* --- numbers --- */

static void load(mpz_t out, const uint8_t *le, size_t n) {
    mpz_import(out, n, -1, 1, 0, 0, le);
}

static void store(uint8_t *le, size_t n, const mpz_t value) {
    memset(le, 0, n);
    mpz_export(le, NULL, -1, 1, 0, 0, value);
}

static void field_init(struct field *f, enum curve_id curve) {
    const struct curve_info *info = curve_info(curve);
    f->n8q = info->n8q;
    mpz_inits(f->q, f->r, f->inverse_r, NULL);
    load(f->q, info->q, info->n8q);
    load(f->r, info->r, SCALAR_BYTES);
    mpz_ui_pow_ui(f->inverse_r, 2, 8 * info->n8q);
    mpz_invert(f->inverse_r, f->inverse_r, f->q);
}

static void field_clear(struct field *f) {
    mpz_clears(f->q, f->r, f->inverse_r, NULL);
}

static void fp2_init(struct fp2 *a) {
    mpz_inits(a->c[0], a->c[1], NULL);
}

static void fp2_clear(struct fp2 *a) {
    mpz_clears(a->c[0], a->c[1], NULL);
}

static void fp2_set(struct fp2 *out, const struct fp2 *a) {
    mpz_set(out->c[0], a->c[0]);
    mpz_set(out->c[1], a->c[1]);
}

static bool fp2_eq(const struct fp2 *a, const struct fp2 *b) {
    return mpz_cmp(a->c[0], b->c[0]) == 0 && mpz_cmp(a->c[1], b->c[1]) == 0;
}

static void fp2_sub(const struct field *f, struct fp2 *out, const struct fp2 *a,
                    const struct fp2 *b) {
    for (int i = 0; i < 2; i++) {
        mpz_sub(out->c[i], a->c[i], b->c[i]);
        mpz_mod(out->c[i], out->c[i], f->q);
    }
}

static void fp2_add(const struct field *f, struct fp2 *out, const struct fp2 *a,
                    const struct fp2 *b) {
    for (int i = 0; i < 2; i++) {
        mpz_add(out->c[i], a->c[i], b->c[i]);
        mpz_mod(out->c[i], out->c[i], f->q);
    }
}

static void fp2_mul(const struct field *f, struct fp2 *out, const struct fp2 *a,
                    const struct fp2 *b) {
    mpz_t real, imaginary;
    mpz_inits(real, imaginary, NULL);
    mpz_mul(real, a->c[0], b->c[0]);
    mpz_submul(real, a->c[1], b->c[1]);
    mpz_mul(imaginary, a->c[0], b->c[1]);
    mpz_addmul(imaginary, a->c[1], b->c[0]);
    mpz_mod(out->c[0], real, f->q);
    mpz_mod(out->c[1], imaginary, f->q);
    mpz_clears(real, imaginary, NULL);
}

static void fp2_inv(const struct field *f, struct fp2 *out, const struct fp2 *a) {
    mpz_t norm;
    mpz_init(norm);
    mpz_mul(norm, a->c[0], a->c[0]);
    mpz_addmul(norm, a->c[1], a->c[1]);
    mpz_invert(norm, norm, f->q);
    mpz_mul(out->c[0], a->c[0], norm);
    mpz_mod(out->c[0], out->c[0], f->q);
    mpz_mul(out->c[1], a->c[1], norm);
    mpz_neg(out->c[1], out->c[1]);
    mpz_mod(out->c[1], out->c[1], f->q);
    mpz_clear(norm);
}

/* --- points --- */

static void point_init(struct point *p) {
    fp2_init(&p->x);
    fp2_init(&p->y);
    p->is_infinity = true;
}

static void point_clear(struct point *p) {
    fp2_clear(&p->x);
    fp2_clear(&p->y);
}

static void point_set(struct point *out, const struct point *p) {
    fp2_set(&out->x, &p->x);
    fp2_set(&out->y, &p->y);
    out->is_infinity = p->is_infinity;
}

/* The slope of the tangent at p, or of the line through p and q. */
static void slope(const struct field *f, struct fp2 *out, const struct point *p,
                  const struct point *q, bool is_tangent) {
    struct fp2 below;
    fp2_init(&below);
    if (is_tangent) {
        struct fp2 square;
        fp2_init(&square);
        fp2_mul(f, &square, &p->x, &p->x);
        fp2_add(f, out, &square, &square);
        fp2_add(f, out, out, &square);
        fp2_add(f, &below, &p->y, &p->y);
        fp2_clear(&square);
    } else {
        fp2_sub(f, out, &q->y, &p->y);
        fp2_sub(f, &below, &q->x, &p->x);
    }
    fp2_inv(f, &below, &below);
    fp2_mul(f, out, out, &below);
    fp2_clear(&below);
}

static void point_add(const struct field *f, struct point *out, const struct point *p,
                      const struct point *q) {
    if (p->is_infinity || q->is_infinity) {
        point_set(out, p->is_infinity ? q : p);
        return;
    }
    bool same_x = fp2_eq(&p->x, &q->x), same_y = fp2_eq(&p->y, &q->y);
    bool y_is_zero = mpz_sgn(p->y.c[0]) == 0 && mpz_sgn(p->y.c[1]) == 0;
    if (same_x && (!same_y || y_is_zero)) {
        out->is_infinity = true;
        return;
    }
    struct fp2 l, x, y;
    fp2_init(&l);
    fp2_init(&x);
    fp2_init(&y);
    slope(f, &l, p, q, same_x);
    fp2_mul(f, &x, &l, &l);
    fp2_sub(f, &x, &x, &p->x);
    fp2_sub(f, &x, &x, &q->x);
    fp2_sub(f, &y, &p->x, &x);
    fp2_mul(f, &y, &y, &l);
    fp2_sub(f, &y, &y, &p->y);
    fp2_set(&out->x, &x);
    fp2_set(&out->y, &y);
    out->is_infinity = false;
    fp2_clear(&l);
    fp2_clear(&x);
    fp2_clear(&y);
}

static void point_mul(const struct field *f, struct point *out, const struct point *p,
                      const mpz_t k) {
    struct point acc;
    point_init(&acc);
    for (size_t bit = mpz_sizeinbase(k, 2); bit-- > 0;) {
        point_add(f, &acc, &acc, &acc);
        if (mpz_tstbit(k, bit)) point_add(f, &acc, &acc, p);
    }
    point_set(out, &acc);
    point_clear(&acc);
}

/* out += k * p */
static void point_addmul(const struct field *f, struct point *out, const struct point *p,
                         const mpz_t k) {
    struct point product;
    point_init(&product);
    point_mul(f, &product, p, k);
    point_add(f, out, out, &product);
    point_clear(&product);
}

/* `coordinates` numbers of the file, 2 for G1 and 4 for G2, out of Montgomery form. */
static void point_load_zkey(const struct field *f, struct point *out, const uint8_t *bytes,
                            int coordinates) {
    mpz_t *numbers[4] = {&out->x.c[0], &out->x.c[1], &out->y.c[0], &out->y.c[1]};
    int step = 4 / coordinates;
    for (int i = 0; i < 4; i++)
        mpz_set_ui(*numbers[i], 0);
    for (int i = 0; i < coordinates; i++) {
        mpz_t *number = numbers[i * step];
        load(*number, bytes + (size_t)i * f->n8q, f->n8q);
        mpz_mul(*number, *number, f->inverse_r);
        mpz_mod(*number, *number, f->q);
    }
    out->is_infinity = le_is_zero(bytes, (size_t)coordinates * f->n8q);
}

static void point_load_g1(struct point *out, const struct g1_point *p) {
    load(out->x.c[0], p->x, COORD_BYTES);
    load(out->y.c[0], p->y, COORD_BYTES);
    mpz_set_ui(out->x.c[1], 0);
    mpz_set_ui(out->y.c[1], 0);
    out->is_infinity = le_is_zero((const uint8_t *)p, sizeof *p);
}

static void point_load_g2(struct point *out, const struct g2_point *p) {
    for (int i = 0; i < 2; i++) {
        load(out->x.c[i], p->x[i], COORD_BYTES);
        load(out->y.c[i], p->y[i], COORD_BYTES);
    }
    out->is_infinity = le_is_zero((const uint8_t *)p, sizeof *p);
}

static void point_store_g1(struct g1_point *out, const struct point *p) {
    memset(out, 0, sizeof *out);
    if (p->is_infinity) return;
    store(out->x, COORD_BYTES, p->x.c[0]);
    store(out->y, COORD_BYTES, p->y.c[0]);
}

static void point_store_g2(struct g2_point *out, const struct point *p) {
    memset(out, 0, sizeof *out);
    for (int i = 0; i < 2 && !p->is_infinity; i++) {
        store(out->x[i], COORD_BYTES, p->x.c[i]);
        store(out->y[i], COORD_BYTES, p->y.c[i]);
    }
}

void oracle_g1_mul(enum curve_id curve, const struct g1_point *p, const mpz_t k,
                   struct g1_point *out) {
    struct field f;
    struct point a;
    field_init(&f, curve);
    point_init(&a);
    point_load_g1(&a, p);
    point_mul(&f, &a, &a, k);
    point_store_g1(out, &a);
    point_clear(&a);
    field_clear(&f);
}

void oracle_g2_mul(enum curve_id curve, const struct g2_point *p, const mpz_t k,
                   struct g2_point *out) {
    struct field f;
    struct point a;
    field_init(&f, curve);
    point_init(&a);
    point_load_g2(&a, p);
    point_mul(&f, &a, &a, k);
    point_store_g2(out, &a);
    point_clear(&a);
    field_clear(&f);
}

/* --- random points --- */

/* A square root of a, q = 3 mod 4; false when there is none. */
static bool fp_sqrt(const struct field *f, mpz_t out, const mpz_t a) {
    mpz_t e, check;
    mpz_inits(e, check, NULL);
    mpz_add_ui(e, f->q, 1);
    mpz_fdiv_q_2exp(e, e, 2);
    mpz_powm(e, a, e, f->q);
    mpz_mul(check, e, e);
    mpz_sub(check, check, a);
    bool found = mpz_divisible_p(check, f->q) != 0;
    mpz_set(out, e);
    mpz_clears(e, check, NULL);
    return found;
}

/* By the complex method: with n^2 the norm of a, the real part is sqrt((a0 +- n) / 2). */
static bool fp2_sqrt(const struct field *f, struct fp2 *out, const struct fp2 *a) {
    struct fp2 root, square;
    mpz_t n, half;
    bool found = false;
    fp2_init(&root);
    fp2_init(&square);
    mpz_inits(n, half, NULL);
    mpz_set_ui(half, 2);
    mpz_invert(half, half, f->q);
    mpz_mul(n, a->c[0], a->c[0]);
    mpz_addmul(n, a->c[1], a->c[1]);
    mpz_mod(n, n, f->q);
    if (fp_sqrt(f, n, n))
        for (int sign = 0; sign < 2 && !found; sign++) {
            mpz_add(root.c[0], a->c[0], n);
            mpz_mul(root.c[0], root.c[0], half);
            mpz_mod(root.c[0], root.c[0], f->q);
            mpz_neg(n, n);
            if (!fp_sqrt(f, root.c[0], root.c[0]) || mpz_sgn(root.c[0]) == 0) continue;
            mpz_invert(root.c[1], root.c[0], f->q);
            mpz_mul(root.c[1], root.c[1], half);
            mpz_mul(root.c[1], root.c[1], a->c[1]);
            mpz_mod(root.c[1], root.c[1], f->q);
            fp2_mul(f, &square, &root, &root);
            found = fp2_eq(&square, a);
        }
    fp2_set(out, &root);
    mpz_clears(n, half, NULL);
    fp2_clear(&root);
    fp2_clear(&square);
    return found;
}

/* b of the curve, or of its twist: 3, 3/(9 + u), 4, 4(1 + u). */
static void curve_b(const struct field *f, enum curve_id curve, bool is_twist, struct fp2 *out) {
    struct fp2 xi;
    fp2_init(&xi);
    mpz_set_ui(xi.c[0], curve == CURVE_BN254 ? 9 : 1);
    mpz_set_ui(xi.c[1], 1);
    mpz_set_ui(out->c[0], curve == CURVE_BN254 ? 3 : 4);
    mpz_set_ui(out->c[1], 0);
    if (is_twist) {
        if (curve == CURVE_BN254) fp2_inv(f, &xi, &xi);
        fp2_mul(f, out, out, &xi);
    }
    fp2_clear(&xi);
}

static void random_point(const struct field *f, enum curve_id curve, bool is_twist,
                         gmp_randstate_t random, struct point *out) {
    struct fp2 b, right;
    fp2_init(&b);
    fp2_init(&right);
    curve_b(f, curve, is_twist, &b);
    do {
        mpz_urandomm(out->x.c[0], random, f->q);
        mpz_urandomm(out->x.c[1], random, f->q);
        if (!is_twist) mpz_set_ui(out->x.c[1], 0);
        fp2_mul(f, &right, &out->x, &out->x);
        fp2_mul(f, &right, &right, &out->x);
        fp2_add(f, &right, &right, &b);
    } while (is_twist ? !fp2_sqrt(f, &out->y, &right) : !fp_sqrt(f, out->y.c[0], right.c[0]));
    out->is_infinity = false;
    fp2_clear(&b);
    fp2_clear(&right);
}

void oracle_g1_random(enum curve_id curve, gmp_randstate_t random, struct g1_point *out) {
    struct field f;
    struct point p;
    field_init(&f, curve);
    point_init(&p);
    random_point(&f, curve, false, random, &p);
    point_store_g1(out, &p);
    point_clear(&p);
    field_clear(&f);
}

void oracle_g2_random(enum curve_id curve, gmp_randstate_t random, struct g2_point *out) {
    struct field f;
    struct point p;
    field_init(&f, curve);
    point_init(&p);
    random_point(&f, curve, true, random, &p);
    point_store_g2(out, &p);
    point_clear(&p);
    field_clear(&f);
}

/* --- polynomials --- */

static mpz_t *numbers_new(size_t n) {
    mpz_t *out = calloc(n, sizeof *out);
    for (size_t i = 0; i < n; i++)
        mpz_init(out[i]);
    return out;
}

static void numbers_free(mpz_t *numbers, size_t n) {
    for (size_t i = 0; i < n; i++)
        mpz_clear(numbers[i]);
    free(numbers);
}

/* 5^((r - 1) / n), a primitive n-th root of unity. */
static void root_of_unity(const struct field *f, mpz_t out, size_t n) {
    mpz_t e;
    mpz_init(e);
    mpz_sub_ui(e, f->r, 1);
    mpz_divexact_ui(e, e, n);
    mpz_set_ui(out, 5);
    mpz_powm(out, out, e, f->r);
    mpz_clear(e);
}

/* out = sum in[i] x^i */
static void evaluate(const struct field *f, mpz_t out, mpz_t *in, size_t n, const mpz_t x) {
    mpz_t acc;
    mpz_init(acc);
    for (size_t i = n; i-- > 0;) {
        mpz_mul(acc, acc, x);
        mpz_add(acc, acc, in[i]);
        mpz_mod(acc, acc, f->r);
    }
    mpz_set(out, acc);
    mpz_clear(acc);
}

/* From the values of a polynomial at w^i to those at v w^i, v^2 = w: coefficients by the inverse
 * transform, then Horner at every point. */
static void to_odd_points(const struct field *f, mpz_t *values, size_t n) {
    mpz_t w, x, scale;
    mpz_t *coefficients = numbers_new(n);
    mpz_inits(w, x, scale, NULL);
    root_of_unity(f, w, n);
    mpz_invert(w, w, f->r);
    mpz_set_ui(scale, n);
    mpz_invert(scale, scale, f->r);
    mpz_set_ui(x, 1);
    for (size_t i = 0; i < n; i++) {
        evaluate(f, coefficients[i], values, n, x);
        mpz_mul(coefficients[i], coefficients[i], scale);
        mpz_mod(coefficients[i], coefficients[i], f->r);
        mpz_mul(x, x, w);
        mpz_mod(x, x, f->r);
    }
    root_of_unity(f, x, 2 * n);
    mpz_invert(w, w, f->r);
    for (size_t i = 0; i < n; i++) {
        evaluate(f, values[i], coefficients, n, x);
        mpz_mul(x, x, w);
        mpz_mod(x, x, f->r);
    }
    numbers_free(coefficients, n);
    mpz_clears(w, x, scale, NULL);
}

static void row_value(const struct field *f, mpz_t out, const struct r1cs_row *row,
                      mpz_t *witness) {
    mpz_t coefficient;
    mpz_init(coefficient);
    mpz_set_ui(out, 0);
    for (uint32_t i = 0; i < row->n; i++) {
        load(coefficient, row->terms[i].coefficient.le, SCALAR_BYTES);
        mpz_addmul(out, coefficient, witness[r1cs_wire(&row->terms[i])]);
    }
    mpz_mod(out, out, f->r);
    mpz_clear(coefficient);
}

/* a b - c at the odd points of twice the domain. */
static mpz_t *quotient_values(const struct field *f, const struct r1cs *r1cs, size_t domain,
                              mpz_t *witness) {
    mpz_t *a = numbers_new(domain), *b = numbers_new(domain), *c = numbers_new(domain);
    for (uint32_t i = 0; i < r1cs->n_constraints; i++) {
        row_value(f, a[i], &r1cs->constraints[i].a, witness);
        row_value(f, b[i], &r1cs->constraints[i].b, witness);
        row_value(f, c[i], &r1cs->constraints[i].c, witness);
    }
    for (uint32_t i = 0; i <= r1cs->n_public; i++)
        mpz_set(a[r1cs->n_constraints + i], witness[i]);
    to_odd_points(f, a, domain);
    to_odd_points(f, b, domain);
    to_odd_points(f, c, domain);
    for (size_t i = 0; i < domain; i++) {
        mpz_mul(a[i], a[i], b[i]);
        mpz_sub(a[i], a[i], c[i]);
        mpz_mod(a[i], a[i], f->r);
    }
    numbers_free(b, domain);
    numbers_free(c, domain);
    return a;
}

/* --- the proof --- */

/* out += sum scalars[i] * points[i] */
static void add_sum(const struct field *f, struct point *out, const uint8_t *points,
                    int coordinates, mpz_t *scalars, size_t n) {
    struct point p;
    point_init(&p);
    for (size_t i = 0; i < n; i++) {
        point_load_zkey(f, &p, points + i * (size_t)coordinates * f->n8q, coordinates);
        point_addmul(f, out, &p, scalars[i]);
    }
    point_clear(&p);
}

/* out = start + sum witness[i] points[i] + k delta */
static void blinded_sum(const struct field *f, struct point *out, const uint8_t *start,
                        const uint8_t *points, const uint8_t *delta, int coordinates,
                        mpz_t *witness, size_t n, const mpz_t k) {
    struct point p;
    point_init(&p);
    point_load_zkey(f, out, start, coordinates);
    add_sum(f, out, points, coordinates, witness, n);
    point_load_zkey(f, &p, delta, coordinates);
    point_addmul(f, out, &p, k);
    point_clear(&p);
}

/* c = sum of the private signals + sum of h + s A + r B1 - r s delta */
static void sum_c(const struct field *f, const struct zkey *zkey, struct point *c, mpz_t *witness,
                  mpz_t *h, const struct point *a, const struct point *b1, const mpz_t r,
                  const mpz_t s) {
    struct point p;
    mpz_t minus_rs;
    point_init(&p);
    mpz_init(minus_rs);
    c->is_infinity = true;
    add_sum(f, c, zkey->c, 2, witness + zkey->n_public + 1, zkey->n_vars - zkey->n_public - 1);
    add_sum(f, c, zkey->h, 2, h, zkey->domain_size);
    point_addmul(f, c, a, s);
    point_addmul(f, c, b1, r);
    mpz_mul(minus_rs, r, s);
    mpz_neg(minus_rs, minus_rs);
    mpz_mod(minus_rs, minus_rs, f->r);
    point_load_zkey(f, &p, zkey->delta1, 2);
    point_addmul(f, c, &p, minus_rs);
    point_clear(&p);
    mpz_clear(minus_rs);
}

void oracle_prove(const struct zkey *zkey, const struct r1cs *r1cs, const struct scalar *witness,
                  const struct scalar *r, const struct scalar *s, struct proof *out) {
    struct field f;
    struct point a, b1, b2, c;
    mpz_t blind_r, blind_s, *w = numbers_new(zkey->n_vars);
    field_init(&f, zkey->curve->id);
    point_init(&a);
    point_init(&b1);
    point_init(&b2);
    point_init(&c);
    mpz_inits(blind_r, blind_s, NULL);
    load(blind_r, r->le, SCALAR_BYTES);
    load(blind_s, s->le, SCALAR_BYTES);
    for (size_t i = 0; i < zkey->n_vars; i++)
        load(w[i], witness[i].le, SCALAR_BYTES);
    mpz_t *h = quotient_values(&f, r1cs, zkey->domain_size, w);

    size_t n = zkey->n_vars;
    blinded_sum(&f, &a, zkey->alpha1, zkey->a, zkey->delta1, 2, w, n, blind_r);
    blinded_sum(&f, &b1, zkey->beta1, zkey->b1, zkey->delta1, 2, w, n, blind_s);
    blinded_sum(&f, &b2, zkey->beta2, zkey->b2, zkey->delta2, 4, w, n, blind_s);
    sum_c(&f, zkey, &c, w, h, &a, &b1, blind_r, blind_s);

    memset(out, 0, sizeof *out);
    out->curve = zkey->curve->id;
    point_store_g1(&out->a, &a);
    point_store_g2(&out->b, &b2);
    point_store_g1(&out->c, &c);

    numbers_free(h, zkey->domain_size);
    numbers_free(w, zkey->n_vars);
    mpz_clears(blind_r, blind_s, NULL);
    point_clear(&a);
    point_clear(&b1);
    point_clear(&b2);
    point_clear(&c);
    field_clear(&f);
}
