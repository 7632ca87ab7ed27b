#include "service/commands/files.h"

#include "gpu/keycheck.h"
#include "gpu/mapped_file.h"
#include "gpu/monotonic.h"
#include "gpu/prover.h"
#include "gpu/setup.h"
#include "gpu/verify.h"
#include "gpu/wtns.h"
#include "service/commands/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum err print_text(const char *text, struct error *error) {
    if (fputs(text, stdout) != EOF && fflush(stdout) == 0) return ERR_NONE;
    return error_set(error, ERR_IO, "standard output: cannot write: %s", strerror(errno));
}

/* --- keys --- */

static bool is_forgeable(const struct zkey *zkey) {
    return memcmp(zkey->gamma2, zkey->delta2, zkey_g2_bytes(zkey)) == 0;
}

static void warn_of_key(const char *path, const struct zkey *zkey) {
    if (zkey->insecure)
        (void)fprintf(stderr,
                      "proverq: warning: %s is an INSECURE development key: whoever made it can "
                      "forge proofs\n",
                      path);
    if (is_forgeable(zkey))
        (void)fprintf(stderr,
                      "proverq: warning: %s had no second phase of its setup (gamma = delta): "
                      "anybody can forge proofs; contribute to it with snarkjs first\n",
                      path);
}

/* --- prove --- */

struct proving {
    const struct zkey *zkey;
    const struct wtns *wtns;
    struct vkey *vkey;
    struct proof proof;
    struct prove_span spans[PROVE_STEP_COUNT];
    size_t n_spans;
    int64_t load_ns, prove_ns;
    char device[200];         /* name and description */
    struct error passed_over; /* why it is not the first choice of "auto"; or without a text */
};

static enum err prove_on(const char *spec, unsigned threads, struct proving *p,
                         struct error *error) {
    struct device *device = NULL;
    struct key *key = NULL;
    struct pending *pending = NULL;
    const struct scalar *values = p->wtns->values;
    int64_t start = monotonic_ns();
    enum err rc;
    TRY(device_open_for(spec, threads, p->zkey, &device, &key, &p->passed_over, error));
    (void)snprintf(p->device, sizeof p->device, "%s (%s)", device_name(device),
                   device_description(device));
    p->load_ns = monotonic_ns() - start;
    start = monotonic_ns();
    TRY(prove_start(key, &values, 1, &pending, error));
    TRY(prove_finish(pending, &p->proof, p->spans, &p->n_spans, error));
    p->prove_ns = monotonic_ns() - start;
fail:
    key_free(key);
    if (device) device_close(device);
    return rc;
}

static enum err check(const struct proving *p, struct error *error) {
    return verify_own(p->vkey, p->wtns->values + 1, p->zkey->n_public, &p->proof, error);
}

/* Why a proof that was just made does not verify: the key, the device, or the witness. */
static enum err blame(const struct options *options, struct proving *p, struct error *error) {
    bool forgeable;
    enum err rc = keycheck(p->zkey, &forgeable, error);
    if (rc) return rc;
    char device[sizeof p->device];
    memcpy(device, p->device, sizeof device);
    if (strncmp(device, "cpu", 3) != 0) {
        if ((rc = prove_on("cpu", options->threads, p, error))) return rc;
        if (check(p, error) == ERR_NONE)
            return error_set(
                error, ERR_DEVICE_FAULT,
                "%s made an invalid proof where the CPU makes a valid one; nothing was "
                "written: use --device cpu and have the device looked at",
                device);
    }
    return error_set(error, ERR_WITNESS,
                     "%s: the witness does not satisfy the circuit of %s; nothing was written",
                     options->arguments[1], options->arguments[0]);
}

static void say_times(const struct options *options, const struct proving *p) {
    (void)fprintf(stderr, "proverq: proved on %s in %.1f ms\n", p->device,
                  (double)p->prove_ns / 1e6);
    if (!options->verbose) return;
    if (*p->passed_over.text)
        (void)fprintf(stderr, "  auto fell back to the CPU: %s\n", p->passed_over.text);
    (void)fprintf(stderr, "  %-10s %10.2f ms  the device is opened and gets the key\n", "load",
                  (double)p->load_ns / 1e6);
    for (size_t i = 0; i < p->n_spans; i++)
        (void)fprintf(stderr, "  %-10s %10.2f ms  %s\n", prove_step_name(p->spans[i].step),
                      (double)p->spans[i].duration_ns / 1e6, prove_step_meaning(p->spans[i].step));
}

static enum err write_proof(const struct options *options, const struct proving *p,
                            struct error *error) {
    enum err rc = ERR_NONE;
    const struct scalar *publics = p->wtns->values + 1;
    uint8_t compressed[PROOF_COMPRESSED_BYTES];
    char *texts[3] = {proof_to_json(&p->proof), publics_to_json(publics, p->zkey->n_public), NULL};
    struct output outputs[4] = {{.path = options->arguments[2], .bytes = texts[0]},
                                {.path = options->arguments[3], .bytes = texts[1]}};
    size_t n = 2;
    if (*options->calldata) {
        texts[2] = proof_to_calldata(&p->proof, publics, p->zkey->n_public);
        outputs[n++] = (struct output){.path = options->calldata, .bytes = texts[2]};
    }
    for (size_t i = 0; i < n; i++) {
        if (!outputs[i].bytes) {
            rc = error_set(error, ERR_HOST_MEMORY, "out of memory while writing the proof");
            goto fail;
        }
        outputs[i].size = strlen(outputs[i].bytes);
    }
    if (*options->compressed) {
        TRY(proof_compress(&p->proof, compressed, error));
        outputs[n++] = (struct output){
            .path = options->compressed, .bytes = compressed, .size = sizeof compressed};
    }
    rc = output_write(outputs, n, error);
fail:
    for (size_t i = 0; i < 3; i++)
        free(texts[i]);
    return rc;
}

/* What would make the output impossible is found before any time goes into the proof. */
static enum err check_request(const struct options *options, const struct zkey *zkey,
                              struct error *error) {
    enum curve_id curve = zkey->curve->id;
    if (*options->calldata && curve != CURVE_BN254)
        return error_set(error, ERR_USAGE,
                         "--calldata: the key is on %s; Solidity verifiers exist for bn128 only",
                         zkey->curve->name);
    if (*options->compressed && curve != CURVE_BLS12_381)
        return error_set(error, ERR_USAGE,
                         "--compressed: the key is on %s; the 192-byte form is bls12381's",
                         zkey->curve->name);
    return ERR_NONE;
}

enum err files_prove(const struct options *options, struct error *error) {
    struct zkey *zkey = NULL;
    struct wtns *wtns = NULL;
    struct proving p = {0};
    const char *const outputs[] = {options->arguments[2], options->arguments[3], options->calldata,
                                   options->compressed};
    enum err rc;
    TRY(output_check(options->arguments, 2, outputs, sizeof outputs / sizeof *outputs, error));
    TRY(zkey_open(options->arguments[0], &zkey, error));
    TRY(check_request(options, zkey, error));
    TRY(wtns_open(options->arguments[1], &wtns, error));
    if ((rc = wtns_matches(wtns, zkey, error))) {
        error_prefix(error, "%s and %s", options->arguments[1], options->arguments[0]);
        goto fail;
    }
    warn_of_key(options->arguments[0], zkey);
    p.zkey = zkey;
    p.wtns = wtns;
    TRY(vkey_from_zkey(zkey, &p.vkey, error));
    TRY(prove_on(options->devices.item[0], options->threads, &p, error));
    rc = check(&p, error);
    if (rc == ERR_INVALID_PROOF) rc = blame(options, &p, error);
    if (rc == ERR_KEY) error_prefix(error, "%s", options->arguments[0]);
    if (rc) goto fail;
    TRY(write_proof(options, &p, error));
    say_times(options, &p);
fail:
    vkey_free(p.vkey);
    wtns_close(wtns);
    zkey_close(zkey);
    return rc;
}

/* --- verify --- */

/* The argument that an error of verify() is about: the key, the public values or the proof. */
static size_t blamed_argument(enum err code) {
    return code == ERR_KEY ? 0 : code == ERR_INPUT ? 1 : 2;
}

static enum err verify_files(const char *const *paths, struct mapped_file *const files[3],
                             struct error *error) {
    struct vkey *vkey = NULL;
    struct scalar *publics = NULL;
    struct proof proof;
    const char *path = paths[0];
    size_t n = 0;
    enum err rc;
    TRY(vkey_from_json((const char *)mapped_file_bytes(files[0]), mapped_file_size(files[0]), &vkey,
                       error));
    path = paths[1];
    TRY(publics_from_json((const char *)mapped_file_bytes(files[1]), mapped_file_size(files[1]),
                          vkey->curve, &publics, &n, error));
    path = paths[2];
    TRY(proof_from_json((const char *)mapped_file_bytes(files[2]), mapped_file_size(files[2]),
                        &proof, error));
    rc = verify(vkey, publics, n, &proof, error);
    path = paths[blamed_argument(rc)];
fail:
    if (rc != ERR_NONE) error_prefix(error, "%s", path);
    free(publics);
    vkey_free(vkey);
    return rc;
}

enum err files_verify(const struct options *options, bool *printed, struct error *error) {
    struct mapped_file *files[3] = {NULL};
    enum err rc;
    *printed = false;
    for (size_t i = 0; i < 3; i++)
        TRY(mapped_file_read(options->arguments[i], &files[i], error));
    rc = verify_files(options->arguments, files, error);
    struct error print_error;
    char line[sizeof error->text + 16];
    (void)snprintf(line, sizeof line, rc ? "invalid: %s\n" : "valid\n", error->text);
    *printed = print_text(line, &print_error) == ERR_NONE;
    if (!*printed) *error = print_error, rc = print_error.code;
fail:
    for (size_t i = 0; i < 3; i++)
        mapped_file_close(files[i]);
    return rc;
}

/* --- vkey, setup --- */

enum err files_vkey(const struct options *options, struct error *error) {
    struct zkey *zkey = NULL;
    struct vkey *vkey = NULL;
    char *json = NULL;
    const char *const output = "/dev/stdout";
    enum err rc;
    TRY(output_check(options->arguments, 1, &output, 1, error));
    TRY(zkey_open(options->arguments[0], &zkey, error));
    warn_of_key(options->arguments[0], zkey);
    TRY(vkey_from_zkey(zkey, &vkey, error));
    json = vkey_to_json(vkey);
    if (!json) {
        rc = error_set(error, ERR_HOST_MEMORY, "out of memory while printing the key");
        goto fail;
    }
    TRY(print_text(json, error));
    rc = print_text("\n", error);
fail:
    free(json);
    vkey_free(vkey);
    zkey_close(zkey);
    return rc;
}

enum err files_setup(const struct options *options, struct error *error) {
    const char *const *path = options->arguments;
    struct r1cs *r1cs = NULL;
    char *target = NULL;
    enum err rc;
    TRY(output_check(path, 1, path + 1, 1, error));
    TRY(output_target(path[1], &target, error));
    if (!target) TRY(error_set(error, ERR_IO, "%s: not a regular file", path[1]));
    TRY(r1cs_open(path[0], &r1cs, error));
    TRY(setup_write(r1cs, target, error));
    char line[sizeof error->text];
    (void)snprintf(line, sizeof line,
                   "%s: INSECURE development key for %u constraints on %s; never verify with it "
                   "what matters\n",
                   path[1], r1cs->n_constraints, r1cs->curve->name);
    rc = print_text(line, error);
fail:
    r1cs_close(r1cs);
    free(target);
    return rc;
}
