#include "tests/gpu-card/card.h"

#include "gpu/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- circuits --- */
static void zkey_of(const struct setup_key *s, const struct curve_info *curve, struct zkey *out) {
    *out = (struct zkey){.curve = curve,
                         .n_vars = s->n_vars,
                         .n_public = s->n_public,
                         .domain_size = s->domain_size,
                         .alpha1 = s->alpha1,
                         .beta1 = s->beta1,
                         .delta1 = s->delta1,
                         .beta2 = s->beta2,
                         .gamma2 = s->gamma2,
                         .delta2 = s->delta2,
                         .ic = s->ic,
                         .coefficients = s->coefficients,
                         .n_coefficients = s->n_coefficients,
                         .a = s->a,
                         .b1 = s->b1,
                         .b2 = s->b2,
                         .c = s->c,
                         .h = s->h,
                         .insecure = true};
    while (s->domain_size >> out->log_domain > 1)
        out->log_domain++;
}

static void vkey_of(const struct zkey *zkey, struct vkey *out) {
    const struct cpu_curve *curve = cpu_curve(zkey->curve->id);
    *out = (struct vkey){.curve = zkey->curve, .n_public = zkey->n_public};
    curve->g1_from_zkey(zkey->alpha1, &out->alpha1);
    curve->g2_from_zkey(zkey->beta2, &out->beta2);
    curve->g2_from_zkey(zkey->gamma2, &out->gamma2);
    curve->g2_from_zkey(zkey->delta2, &out->delta2);
    out->ic = calloc(zkey->n_public + 1, sizeof *out->ic);
    CHECK(out->ic != NULL, "no memory");
    for (uint32_t i = 0; i <= zkey->n_public; i++)
        curve->g1_from_zkey(zkey->ic + i * zkey_g1_bytes(zkey), &out->ic[i]);
}

void card_circuit_make(const struct circuit_spec *spec, struct card_circuit *out) {
    char folder[] = "/tmp/proverq-card-XXXXXX", r1cs_path[64], wtns_path[64];
    struct error error;
    struct r1cs *r1cs;
    struct wtns *wtns;
    CHECK(mkdtemp(folder) != NULL, "cannot make a folder in /tmp");
    (void)snprintf(r1cs_path, sizeof r1cs_path, "%s/c.r1cs", folder);
    (void)snprintf(wtns_path, sizeof wtns_path, "%s/c.wtns", folder);
    MUST(circuit_write(spec, r1cs_path, wtns_path, &error), &error);
    MUST(r1cs_open(r1cs_path, &r1cs, &error), &error);
    MUST(wtns_open(wtns_path, &wtns, &error), &error);
    MUST(cpu_curve(spec->curve)->setup(pool_shared(), r1cs, &out->setup, &error), &error);
    zkey_of(&out->setup, r1cs->curve, &out->zkey);
    vkey_of(&out->zkey, &out->vkey);
    out->witness = calloc(wtns->n_vars, sizeof *out->witness);
    CHECK(out->witness != NULL, "no memory");
    memcpy(out->witness, wtns->values, wtns->n_vars * sizeof *out->witness);
    wtns_close(wtns);
    r1cs_close(r1cs);
    (void)unlink(r1cs_path);
    (void)unlink(wtns_path);
    (void)rmdir(folder);
}

void card_circuit_free(struct card_circuit *circuit) {
    setup_key_free(&circuit->setup);
    free(circuit->vkey.ic);
    free(circuit->witness);
    *circuit = (struct card_circuit){0};
}

/* --- proofs --- */
bool card_verifies(const struct card_circuit *circuit, const struct scalar *witness,
                   const struct proof *proof) {
    struct error error;
    return verify(&circuit->vkey, witness + 1, circuit->zkey.n_public, proof, &error) == ERR_NONE;
}

void card_prove(struct key *key, const struct scalar *witness, unsigned seed, struct proof *out) {
    struct error error;
    struct pending *pending;
    struct blinding blinding;
    card_random(key->zkey->curve, seed, &blinding.r, 1);
    card_random(key->zkey->curve, seed + 1, &blinding.s, 1);
    MUST(prove_start_blinded(key, &witness, 1, &blinding, &pending, &error), &error);
    MUST(prove_finish(pending, out, NULL, NULL, &error), &error);
}

bool card_same(const struct proof *a, const struct proof *b) {
    return a->curve == b->curve && memcmp(&a->a, &b->a, sizeof a->a) == 0 &&
           memcmp(&a->b, &b->b, sizeof a->b) == 0 && memcmp(&a->c, &b->c, sizeof a->c) == 0;
}
