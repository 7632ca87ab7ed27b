#include "gpu/keycheck.h"
#include "gpu/monotonic.h"
#include "service/common/log.h"
#include "service/db/circuit_row.h"
#include "service/prover/stages.h"
#include "service/prover/synthesis.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KNOWN_MAX = 4096 };

/* A circuit that this prover cannot have now is tried again after this. */
#define REFUSED_RETRY_NS INT64_C(60000000000)

static const struct db_statement wanted_circuits = {"wanted_circuits", "L", "l"};
static const struct db_statement circuit_refused = {"circuit_refused", "iltt", "v"};
static const struct db_statement *const statements[] = {&wanted_circuits, &circuit_get,
                                                        &artefact_chunk_get, &circuit_refused};
const struct stage_statements loader_statements = {statements,
                                                   sizeof statements / sizeof *statements};

/* What the database says of a circuit. */
struct description {
    struct db_result *rows;
    const struct curve_info *curve;
    int64_t n_vars, n_public, log_domain;
    struct artefact zkey;
    const char *vkey;
    enum calculator_kind calculator_kind;
    bool has_calculator, has_dat; /* for this machine */
    struct artefact calculator, dat;
};

static enum err read_artefact(const struct db_result *rows, struct circuit_artefact columns,
                              enum artefact_kind kind, struct artefact *out, struct error *error) {
    size_t n;
    const uint8_t *hash = db_get_bytes(rows, 0, columns.sha256, &n);
    const char *path = db_get_text(rows, 0, columns.path);
    if (n != SHA256_BYTES || strlen(path) >= sizeof out->path)
        return error_set(error, ERR_MISMATCH, "the database's artefact row is corrupt");
    out->kind = kind;
    memcpy(out->sha256.bytes, hash, n);
    out->bytes = (uint64_t)db_get_int(rows, 0, columns.bytes);
    snprintf(out->path, sizeof out->path, "%s", path);
    return ERR_NONE;
}

static enum err describe_calculator(struct description *out, struct error *error) {
    enum err rc = ERR_NONE;
    bool is_program = strcmp(db_get_text(out->rows, 0, CIRCUIT_CALCULATOR), "program") == 0;
    out->has_calculator = !db_is_null(out->rows, 0, CIRCUIT_COMPILED);
    out->has_dat = !db_is_null(out->rows, 0, CIRCUIT_DAT);
    out->calculator_kind = is_program ? CALCULATOR_PROGRAM : CALCULATOR_WASM;
    if (out->has_calculator)
        TRY(read_artefact(out->rows, CIRCUIT_ARTEFACT(COMPILED), ARTEFACT_CALCULATOR,
                          &out->calculator, error));
    if (out->has_dat)
        TRY(read_artefact(out->rows, CIRCUIT_ARTEFACT(DAT), ARTEFACT_DAT, &out->dat, error));
fail:
    return rc;
}

static enum err describe(struct db *db, struct loaded_circuit *circuit, struct description *out,
                         struct error *error) {
    enum err rc;
    TRY(db_run(db, &circuit_get,
               DB_PARAMS(db_int(circuit->circuit_id), db_text(calculator_machine())), &out->rows,
               error));
    if (db_rows(out->rows) != 1)
        TRY(error_set(error, ERR_MISMATCH, "circuit %lld is not in the database",
                      (long long)circuit->circuit_id));
    snprintf(circuit->name, sizeof circuit->name, "%s", db_get_text(out->rows, 0, CIRCUIT_NAME));
    circuit->version = (int32_t)db_get_int(out->rows, 0, CIRCUIT_VERSION);
    const char *curve = db_get_text(out->rows, 0, CIRCUIT_CURVE);
    out->curve = curve_by_name(curve);
    if (!out->curve) TRY(error_set(error, ERR_UNSUPPORTED, "curve %s", curve));
    out->n_vars = db_get_int(out->rows, 0, CIRCUIT_N_VARS);
    out->n_public = db_get_int(out->rows, 0, CIRCUIT_N_PUBLIC);
    out->log_domain = db_get_int(out->rows, 0, CIRCUIT_LOG_DOMAIN);
    TRY(read_artefact(out->rows, CIRCUIT_ARTEFACT(ZKEY), ARTEFACT_ZKEY, &out->zkey, error));
    circuit->has_r1cs = !db_is_null(out->rows, 0, CIRCUIT_R1CS);
    if (circuit->has_r1cs)
        TRY(read_artefact(out->rows, CIRCUIT_ARTEFACT(R1CS), ARTEFACT_R1CS, &circuit->r1cs, error));
    out->vkey = db_get_text(out->rows, 0, CIRCUIT_VKEY);
    TRY(describe_calculator(out, error));
fail:
    return rc;
}

static enum err check_sizes(const struct zkey *zkey, const struct description *description,
                            struct error *error) {
    if (zkey->curve == description->curve && zkey->n_vars == description->n_vars &&
        zkey->n_public == description->n_public && zkey->log_domain == description->log_domain)
        return ERR_NONE;
    return error_set(error, ERR_MISMATCH,
                     "the proving key (%s, %u signals, %u public, 2^%u) is not the circuit's (%s, "
                     "%lld, %lld, 2^%lld)",
                     zkey->curve->name, zkey->n_vars, zkey->n_public, zkey->log_domain,
                     description->curve->name, (long long)description->n_vars,
                     (long long)description->n_public, (long long)description->log_domain);
}

/* Once per hash and host: the mark stays beside the cache's file. */
static enum err check_key(const struct artefact_places *places, const struct artefact *artefact,
                          const struct zkey *zkey, struct error *error) {
    struct error remark;
    bool forgeable = false;
    enum err rc;
    if (artefact_is_checked(places, &artefact->sha256)) return ERR_NONE;
    TRY(keycheck(zkey, &forgeable, error));
    if (forgeable)
        TRY(error_set(error, ERR_KEY,
                      "gamma equals delta, so anybody can forge proofs: the key had no phase 2 "
                      "contribution"));
    if (artefact_mark_checked(places, &artefact->sha256, &remark) != ERR_NONE)
        log_warn("the key will be checked again at the next start", log_text("error", remark.text));
fail:
    return rc;
}

static enum err check_vkey(const struct loaded_circuit *circuit, const char *json,
                           struct error *error) {
    struct vkey *registered = NULL;
    enum err rc;
    TRY(vkey_from_json(json, strlen(json), &registered, error));
    TRY(vkey_equal(circuit->vkey, registered, error));
fail:
    if (rc != ERR_NONE) error_prefix(error, "the registered verification key is not the key's");
    vkey_free(registered);
    return rc;
}

/* Puts the calculator's files on this host. Without one for this machine there is none: partitions
 * with inputs are given back, those with witnesses can be proved. */
static enum err fetch_calculator(struct pipeline *pipeline, struct loaded_circuit *circuit,
                                 const struct description *description, struct error *error) {
    struct calculator *calculator = NULL;
    bool fetched = false;
    enum err rc = ERR_NONE;
    if (!description->has_calculator) return ERR_NONE;
    calculator = calloc(1, sizeof *calculator);
    if (!calculator) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    *calculator = (struct calculator){.id = circuit->circuit_id,
                                      .kind = description->calculator_kind,
                                      .curve = circuit->zkey->curve,
                                      .n_vars = circuit->zkey->n_vars};
    TRY(artefact_fetch(&pipeline->places, pipeline->loader_db, &description->calculator,
                       &calculator->path, &fetched, error));
    if (description->has_dat)
        TRY(artefact_fetch(&pipeline->places, pipeline->loader_db, &description->dat,
                           &calculator->data, &fetched, error));
    circuit->calculator = calculator;
    return ERR_NONE;
fail:
    calculator_free(calculator);
    return rc;
}

static enum err load(struct pipeline *pipeline, struct loaded_circuit *circuit,
                     struct description *description, struct error *error) {
    char *path = NULL;
    bool fetched = false;
    int64_t at = monotonic_ns();
    enum err rc;
    TRY(describe(pipeline->loader_db, circuit, description, error));
    TRY(artefact_fetch(&pipeline->places, pipeline->loader_db, &description->zkey, &path, &fetched,
                       error));
    at = timing_end(&circuit->loading, STEP_FETCH_KEY, WORKER_LOADER, at);
    TRY(zkey_open(path, &circuit->zkey, error));
    TRY(check_sizes(circuit->zkey, description, error));
    TRY(check_key(&pipeline->places, &description->zkey, circuit->zkey, error));
    TRY(vkey_from_zkey(circuit->zkey, &circuit->vkey, error));
    TRY(check_vkey(circuit, description->vkey, error));
    at = timing_end(&circuit->loading, STEP_CHECK_KEY, WORKER_LOADER, at);
    TRY(fetch_calculator(pipeline, circuit, description, error));
    if (circuit->calculator)
        timing_end(&circuit->loading, STEP_FETCH_CALCULATOR, WORKER_LOADER, at);
fail:
    free(path);
    return rc;
}

/* Whose fault it is that a circuit cannot be loaded: the artefacts' (true) or this host's. */
static bool is_artefacts_fault(enum err code) {
    return code == ERR_KEY || code == ERR_FORMAT || code == ERR_MISMATCH || code == ERR_UNSUPPORTED;
}

static void log_loaded(const struct loaded_circuit *circuit, int64_t start_ns) {
    int64_t ms = (monotonic_ns() - start_ns) / 1000000;
    if (circuit->state == CIRCUIT_READY)
        log_info("circuit loaded", log_text("circuit", circuit->name),
                 log_number("version", circuit->version), log_number("ms", ms));
    else
        log_error(circuit->state == CIRCUIT_BAD
                      ? "a circuit's artefacts are wrong; its partitions fail"
                      : "this prover cannot have a circuit; others may",
                  log_text("circuit", circuit->name), log_number("circuit_id", circuit->circuit_id),
                  log_number("version", circuit->version),
                  log_text("code", error_name(circuit->error.code)),
                  log_text("error", circuit->error.text));
}

static void release_parts(struct loaded_circuit *circuit) {
    calculator_free(circuit->calculator);
    vkey_free(circuit->vkey);
    zkey_close(circuit->zkey);
    circuit->calculator = NULL;
    circuit->vkey = NULL;
    circuit->zkey = NULL;
}

/* Memory for the first partitions of the circuit, before they come: witness buffers, the key's place
 * on the device. What other circuits leave no room for now is had when it is its turn. */
static enum err make_place(struct pipeline *pipeline, struct loaded_circuit *circuit,
                           struct error *error) {
    enum err rc;
    size_t n = BUFFERS_FIRST + (circuit->calculator ? (size_t)pipeline->synthesis_threads : 0);
    TRY(buffers_prepare(pipeline->buffers, witness_buffer_bytes(circuit->zkey), n, error));
    TRY(keyring_preload(pipeline->keyring, circuit, WORKER_LOADER, error));
fail:
    return rc;
}

/* The database, where people look first, is told why a circuit is refused, or that it is no more. */
static void tell_refusal(struct pipeline *pipeline, const struct loaded_circuit *circuit) {
    bool is_ready = circuit->state == CIRCUIT_READY;
    struct error error;
    if (db_run(pipeline->loader_db, &circuit_refused,
               DB_PARAMS(db_int(pipeline->prover_id), db_int(circuit->circuit_id),
                         db_text(error_name(circuit->error.code)),
                         db_text(is_ready ? NULL : circuit->error.text)),
               NULL, &error) != ERR_NONE)
        log_warn("the database cannot be told now why a circuit is refused",
                 log_text("error", error.text));
}

/* Adds an entry for the circuit, whatever becomes of it, unless the database failed. */
static enum err load_circuit(struct pipeline *pipeline, int64_t id, struct error *error) {
    struct description description = {.rows = NULL};
    struct loaded_circuit *circuit = calloc(1, sizeof *circuit);
    int64_t start = monotonic_ns();
    if (!circuit) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    circuit->circuit_id = id;
    enum err rc = load(pipeline, circuit, &description, &circuit->error);
    db_free(description.rows);
    if (error_class(rc) == ERROR_CLASS_DATABASE) {
        *error = circuit->error;
        loaded_circuit_free(circuit);
        return rc;
    }
    circuit->state = CIRCUIT_LOADING;
    keyring_add(pipeline->keyring, circuit);
    if (rc == ERR_NONE) rc = make_place(pipeline, circuit, &circuit->error);
    if (rc == ERR_DEVICE_FAULT) pipeline_fault(pipeline, &circuit->error);
    if (rc != ERR_NONE) release_parts(circuit);
    circuit->retry_ns = monotonic_ns() + REFUSED_RETRY_NS;
    keyring_settle(pipeline->keyring, circuit,
                   rc == ERR_NONE           ? CIRCUIT_READY
                   : is_artefacts_fault(rc) ? CIRCUIT_BAD
                                            : CIRCUIT_REFUSED);
    log_loaded(circuit, start);
    tell_refusal(pipeline, circuit);
    wake_up(pipeline->dispatcher_wake);
    return ERR_NONE;
}

/* Loads the circuit that is wanted first. *found: whether there was one. */
static enum err load_next(struct pipeline *pipeline, bool *found, struct error *error) {
    int64_t known[KNOWN_MAX];
    size_t n = keyring_known(pipeline->keyring, monotonic_ns(), known, KNOWN_MAX);
    struct db_result *rows = NULL;
    enum err rc;
    *found = false;
    TRY(db_run(pipeline->loader_db, &wanted_circuits, DB_PARAMS(db_int8_array(known, n)), &rows,
               error));
    if (db_rows(rows) == 0) goto fail;
    *found = true;
    TRY(load_circuit(pipeline, db_get_int(rows, 0, 0), error));
fail:
    db_free(rows);
    return rc;
}

static void wait_for_wish(struct pipeline *pipeline, uint32_t ms) {
    struct pollfd fd = {pipeline->loader_wake, POLLIN, 0};
    (void)poll(&fd, 1, (int)ms);
    wake_clear(pipeline->loader_wake);
}

void *loader_main(void *arg) {
    struct pipeline *pipeline = ((struct stage_thread *)arg)->pipeline;
    struct error error;
    while (!atomic_load(&pipeline->stopping)) {
        bool found;
        enum err rc = load_next(pipeline, &found, &error);
        if (rc == ERR_NONE && found) continue;
        if (rc == ERR_NONE && !atomic_exchange(&pipeline->loaded, true))
            wake_up(pipeline->dispatcher_wake);
        if (rc != ERR_NONE)
            log_warn("circuits cannot be loaded now", log_text("error", error.text));
        if (rc == ERR_CONNECTION) rc = db_reconnect(pipeline->loader_db, pipeline->stop_fd, &error);
        if (rc == ERR_SCHEMA) pipeline_fault(pipeline, &error);
        wait_for_wish(pipeline, pipeline->options->poll_ms);
    }
    return NULL;
}
