#include "service/commands/circuit.h"
#include "gpu/keycheck.h"
#include "gpu/mapped_file.h"
#include "gpu/r1cs.h"
#include "gpu/vkey.h"
#include "service/calculator/calculator.h"
#include "service/calculator/sym.h"
#include "service/calculator/translate.h"
#include "service/db/artefact.h"
#include "service/db/circuit_row.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ADDED_COLUMNS(X)                                                                           \
    X(ADDED_ID, "circuit_id", "l") X(ADDED_VERSION, "version", "i") X(ADDED_IS_NEW, "added", "b")
#define LIST_COLUMNS(X)                                                                            \
    X(LIST_ID, "circuit_id", "l")                                                                  \
    X(LIST_NAME, "name", "t")                                                                      \
    X(LIST_VERSION, "version", "i")                                                                \
    X(LIST_CURVE, "curve", "t")                                                                    \
    X(LIST_N_VARS, "n_vars", "i")                                                                  \
    X(LIST_N_PUBLIC, "n_public", "i")                                                              \
    X(LIST_LOG_DOMAIN, "log_domain", "i")                                                          \
    X(LIST_INSECURE, "insecure", "b")                                                              \
    X(LIST_HAS_R1CS, "has_r1cs", "b")                                                              \
    X(LIST_CREATED_AT, "created_at", "z")
enum { ADDED_COLUMNS(DB_COLUMN) };
enum { LIST_COLUMNS(DB_COLUMN) };

static const struct db_statement add = {"circuit_add", "txtiiixxjbtxij",
                                        ADDED_COLUMNS(DB_COLUMN_TYPE)};
static const struct db_statement list = {"circuit_list", "", LIST_COLUMNS(DB_COLUMN_TYPE)};
static const struct db_statement find = {"circuit_find", "t", "l"};
static const struct db_statement calculator_put = {"calculator_put", "ltxx", ""};
static const struct db_statement remove_ = {"circuit_remove", "t", "i"};

static enum err connect_with(const struct options *options,
                             const struct db_statement *const *statements, size_t n,
                             struct db **out, struct error *error) {
    const struct db_settings settings =
        db_settings_for(options->database, "circuit", statements, n);
    return db_open(&settings, out, error);
}

/* --- add --- */

/* What is to be registered, checked. */
struct candidate {
    const char *name, *zkey_path, *r1cs_path; /* r1cs_path "": none */
    struct zkey *zkey;
    char *vkey; /* JSON */
    struct artefact zkey_file, r1cs_file;
    struct sha256 identity;

    /* The calculator, if there is one. */
    const char *kind; /* "wasm", "program"; NULL: none */
    char *folder;     /* of what is made on the way; removed in the end */
    char *compiled_path, *dat_path;
    struct artefact wasm_file, compiled_file, dat_file;
    int64_t n_inputs; /* -1: not known */
    char *signals;    /* JSON: names and sizes of the input signals; NULL: not known */
};

static enum err check_name(const char *name, struct error *error) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    size_t n = strlen(name);
    bool valid = n >= 1 && n <= 100 && strchr(letters, name[0]);
    for (size_t i = 0; i < n && valid; i++)
        valid = strchr(letters, name[i]) || strchr("._-", name[i]);
    if (valid) return ERR_NONE;
    return error_set(error, ERR_USAGE,
                     "'%.100s' is no circuit name: up to 100 letters, digits, '.', '_', '-', the "
                     "first one a letter or digit",
                     name);
}

static enum err check_constraints(const struct candidate *c, struct error *error) {
    struct r1cs *r1cs = NULL;
    enum err rc;
    TRY(r1cs_open(c->r1cs_path, &r1cs, error));
    const struct zkey *zkey = c->zkey;
    uint64_t rows = (uint64_t)r1cs->n_constraints + r1cs->n_public + 1; /* of the key's matrices */
    if (r1cs->curve != zkey->curve || r1cs->n_vars != zkey->n_vars ||
        r1cs->n_public != zkey->n_public || rows > zkey->domain_size)
        TRY(error_set(
            error, ERR_MISMATCH,
            "%s (%s, %u signals, %u public, %u constraints) does not belong to %s (%s, %u "
            "signals, %u public, 2^%u)",
            c->r1cs_path, r1cs->curve->name, r1cs->n_vars, r1cs->n_public, r1cs->n_constraints,
            c->zkey_path, zkey->curve->name, zkey->n_vars, zkey->n_public, zkey->log_domain));
fail:
    r1cs_close(r1cs);
    return rc;
}

static enum err check_key(struct candidate *c, struct error *error) {
    struct vkey *vkey = NULL;
    bool forgeable = false;
    enum err rc;
    TRY(zkey_open(c->zkey_path, &c->zkey, error));
    if ((rc = keycheck(c->zkey, &forgeable, error))) {
        error_prefix(error, "%s", c->zkey_path);
        goto fail;
    }
    if (forgeable)
        TRY(error_set(
            error, ERR_KEY,
            "%s: gamma equals delta, so anybody can forge proofs with this key; contribute "
            "to its phase 2 first (snarkjs zkey contribute)",
            c->zkey_path));
    TRY(vkey_from_zkey(c->zkey, &vkey, error));
    c->vkey = vkey_to_json(vkey);
    if (!c->vkey) TRY(error_set(error, ERR_HOST_MEMORY, "out of memory"));
fail:
    vkey_free(vkey);
    return rc;
}

/* The key's own verification key must be the one that came with it. */
static enum err check_vkey(const struct candidate *c, const char *path, struct error *error) {
    struct vkey *ours = NULL, *theirs = NULL;
    struct mapped_file *file = NULL;
    enum err rc;
    TRY(mapped_file_read(path, &file, error));
    TRY(vkey_from_json((const char *)mapped_file_bytes(file), mapped_file_size(file), &theirs,
                       error));
    TRY(vkey_from_zkey(c->zkey, &ours, error));
    TRY(vkey_equal(ours, theirs, error));
fail:
    if (rc != ERR_NONE) error_prefix(error, "%s does not belong to %s", path, c->zkey_path);
    mapped_file_close(file);
    vkey_free(ours);
    vkey_free(theirs);
    return rc;
}

/* --- the calculator --- */

static enum err make_folder(struct candidate *c, struct error *error) {
    const char *base = getenv("TMPDIR");
    if (asprintf(&c->folder, "%s/proverq-XXXXXX", base && *base ? base : "/tmp") < 0) {
        c->folder = NULL;
        return error_set(error, ERR_HOST_MEMORY, "out of memory");
    }
    if (mkdtemp(c->folder)) return ERR_NONE;
    enum err rc = error_set(error, ERR_IO, "%s: %s", c->folder, strerror(errno));
    free(c->folder);
    c->folder = NULL;
    return rc;
}

static void remove_folder(const char *folder) {
    DIR *dir = folder ? opendir(folder) : NULL;
    int fd = dir ? dirfd(dir) : -1;
    for (struct dirent *entry; fd >= 0 && (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.') (void)unlinkat(fd, entry->d_name, 0);
    if (dir) (void)closedir(dir);
    if (folder) (void)rmdir(folder);
}

static enum err check_facts(const struct candidate *c, const char *wasm,
                            const struct wasm_facts *facts, struct error *error) {
    const struct curve_info *curve = curve_by_scalar_modulus(facts->prime, SCALAR_BYTES);
    if (curve == c->zkey->curve && facts->n_vars == c->zkey->n_vars) return ERR_NONE;
    return error_set(error, ERR_MISMATCH,
                     "%s (%s, %u signals) does not belong to %s (%s, %u signals)", wasm,
                     curve ? curve->name : "another field", facts->n_vars, c->zkey_path,
                     c->zkey->curve->name, c->zkey->n_vars);
}

static enum err take_wasm(const struct options *options, const struct artefact_places *places,
                          struct candidate *c, struct error *error) {
    const struct calculator_limits limits = {options->synthesis_timeout_ms,
                                             options->synthesis_memory};
    struct calculator_facts *facts = calloc(1, sizeof *facts);
    enum err rc;
    if (!facts) TRY(error_set(error, ERR_HOST_MEMORY, "out of memory"));
    TRY(make_folder(c, error));
    TRY(translate_wasm(options->wasm, c->folder, &c->compiled_path, error));
    TRY(calculator_examine(c->compiled_path, &limits, facts, error));
    TRY(check_facts(c, options->wasm, &facts->facts, error));
    bool is_known = facts->facts.n_inputs != WASM_INPUTS_UNKNOWN;
    c->n_inputs = is_known ? (int64_t)facts->facts.n_inputs : -1;
    if (*options->sym) TRY(sym_name_inputs(options->sym, facts, &c->signals, error));
    TRY(artefact_describe(places, ARTEFACT_WASM, options->wasm, options->artefact_limit,
                          &c->wasm_file, error));
    TRY(artefact_describe(places, ARTEFACT_CALCULATOR, c->compiled_path, options->artefact_limit,
                          &c->compiled_file, error));
    c->kind = "wasm";
fail:
    free(facts);
    return rc;
}

static enum err take_program(const struct options *options, const struct artefact_places *places,
                             struct candidate *c, struct error *error) {
    enum err rc;
    c->n_inputs = -1;
    c->compiled_path = strdup(options->calculator);
    if (!c->compiled_path || asprintf(&c->dat_path, "%s.dat", options->calculator) < 0) {
        c->dat_path = NULL;
        TRY(error_set(error, ERR_HOST_MEMORY, "out of memory"));
    }
    TRY(artefact_describe(places, ARTEFACT_CALCULATOR, c->compiled_path, options->artefact_limit,
                          &c->compiled_file, error));
    rc = artefact_describe(places, ARTEFACT_DAT, c->dat_path, options->artefact_limit, &c->dat_file,
                           error);
    if (rc == ERR_ABSENT)
        TRY(error_set(error, ERR_ABSENT, "%s is not there; circom makes it beside the program",
                      c->dat_path));
    TRY(rc);
    c->kind = "program";
fail:
    return rc;
}

static enum err take_calculator(const struct options *options, const struct artefact_places *places,
                                struct candidate *c, struct error *error) {
    if (*options->wasm && *options->calculator)
        return error_set(error, ERR_USAGE, "give --wasm or --calculator, not both");
    if (*options->sym && !*options->wasm)
        return error_set(error, ERR_USAGE, "--sym is of use with --wasm only");
    if (*options->wasm) return take_wasm(options, places, c, error);
    if (*options->calculator) return take_program(options, places, c, error);
    return ERR_NONE;
}

/* SHA-256 over the hashes of the artefacts that do not depend on the machine, in the order zkey,
 * r1cs, wasm, dat, and of the input signals. */
static void identify(struct candidate *c) {
    uint8_t hashes[5 * SHA256_BYTES];
    size_t n = 0;
    bool is_wasm = c->kind && strcmp(c->kind, "wasm") == 0;
    const struct sha256 *parts[] = {
        &c->zkey_file.sha256, *c->r1cs_path ? &c->r1cs_file.sha256 : NULL,
        is_wasm ? &c->wasm_file.sha256 : NULL, c->kind && !is_wasm ? &c->dat_file.sha256 : NULL};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!parts[i]) continue;
        memcpy(hashes + n, parts[i]->bytes, SHA256_BYTES);
        n += SHA256_BYTES;
    }
    if (c->signals) {
        SHA256((const uint8_t *)c->signals, strlen(c->signals), hashes + n);
        n += SHA256_BYTES;
    }
    SHA256(hashes, n, c->identity.bytes);
}

static enum err examine(const struct options *options, const struct artefact_places *places,
                        struct candidate *c, struct error *error) {
    enum err rc;
    TRY(check_name(c->name, error));
    TRY(check_key(c, error));
    if (*options->vkey) TRY(check_vkey(c, options->vkey, error));
    TRY(artefact_describe(places, ARTEFACT_ZKEY, c->zkey_path, options->artefact_limit,
                          &c->zkey_file, error));
    if (*c->r1cs_path) {
        TRY(check_constraints(c, error));
        TRY(artefact_describe(places, ARTEFACT_R1CS, c->r1cs_path, options->artefact_limit,
                              &c->r1cs_file, error));
    }
    TRY(take_calculator(options, places, c, error));
    identify(c);
fail:
    return rc;
}

static enum err insert(struct db *db, const struct candidate *c, struct db_result **rows,
                       struct error *error) {
    const struct zkey *zkey = c->zkey;
    const void *r1cs = *c->r1cs_path ? c->r1cs_file.sha256.bytes : NULL;
    const void *wasm = c->kind && strcmp(c->kind, "wasm") == 0 ? c->wasm_file.sha256.bytes : NULL;
    struct db_param n_inputs = c->kind && c->n_inputs >= 0 ? db_int(c->n_inputs) : db_null();
    return db_run(
        db, &add,
        DB_PARAMS(db_text(c->name), db_bytes(c->identity.bytes, SHA256_BYTES),
                  db_text(zkey->curve->name), db_int(zkey->n_vars), db_int(zkey->n_public),
                  db_int(zkey->log_domain), db_bytes(c->zkey_file.sha256.bytes, SHA256_BYTES),
                  db_bytes(r1cs, SHA256_BYTES), db_text(c->vkey), db_int(zkey->insecure),
                  db_text(c->kind), db_bytes(wasm, SHA256_BYTES), n_inputs, db_text(c->signals)),
        rows, error);
}

static enum err store_calculator(struct db *db, const struct artefact_places *places,
                                 const struct options *options, const struct candidate *c,
                                 struct error *error) {
    enum err rc = ERR_NONE;
    if (!c->kind) return ERR_NONE;
    if (!c->dat_path) TRY(artefact_store(places, db, options->wasm, &c->wasm_file, error));
    TRY(artefact_store(places, db, c->compiled_path, &c->compiled_file, error));
    if (c->dat_path) TRY(artefact_store(places, db, c->dat_path, &c->dat_file, error));
fail:
    return rc;
}

static enum err insert_calculator(struct db *db, const struct candidate *c, int64_t circuit,
                                  struct error *error) {
    const void *dat = c->dat_path ? c->dat_file.sha256.bytes : NULL;
    if (!c->kind) return ERR_NONE;
    return db_run(db, &calculator_put,
                  DB_PARAMS(db_int(circuit), db_text(calculator_machine()),
                            db_bytes(c->compiled_file.sha256.bytes, SHA256_BYTES),
                            db_bytes(dat, SHA256_BYTES)),
                  NULL, error);
}

static void report_added(const struct candidate *c, int64_t version, bool is_new) {
    printf("circuit %s version %" PRId64 " %s: %s, %u signals, %u public, 2^%u%s%s\n", c->name,
           version, is_new ? "added" : "is there already", c->zkey->curve->name, c->zkey->n_vars,
           c->zkey->n_public, c->zkey->log_domain, c->kind ? "; takes inputs" : "",
           c->zkey->insecure ? "; INSECURE development key: whoever made it can forge proofs" : "");
}

static enum err store(struct db *db, const struct artefact_places *places,
                      const struct options *options, const struct candidate *c,
                      struct error *error) {
    struct db_result *rows = NULL;
    enum err rc;
    TRY(db_begin(db, error));
    TRY(artefact_store(places, db, c->zkey_path, &c->zkey_file, error));
    if (*c->r1cs_path) TRY(artefact_store(places, db, c->r1cs_path, &c->r1cs_file, error));
    TRY(store_calculator(db, places, options, c, error));
    TRY(insert(db, c, &rows, error));
    TRY(insert_calculator(db, c, db_get_int(rows, 0, ADDED_ID), error));
    TRY(db_commit(db, error));
    report_added(c, db_get_int(rows, 0, ADDED_VERSION), db_get_bool(rows, 0, ADDED_IS_NEW));
fail:
    if (rc != ERR_NONE) db_rollback(db);
    db_free(rows);
    return rc;
}

enum err circuit_add(const struct options *options, struct error *error) {
    static const struct db_statement *const statements[] = {&artefact_put, &artefact_chunk_put,
                                                            &add, &calculator_put};
    struct artefact_places places = {.cache = "", .root = options->artefact_root};
    struct candidate c = {.name = options->arguments[0],
                          .zkey_path = options->arguments[1],
                          .r1cs_path = options->r1cs};
    struct db *db = NULL;
    enum err rc;
    TRY(examine(options, &places, &c, error));
    TRY(connect_with(options, statements, 4, &db, error));
    TRY(store(db, &places, options, &c, error));
fail:
    db_close(db);
    remove_folder(c.folder);
    free(c.folder);
    free(c.compiled_path);
    free(c.dat_path);
    free(c.signals);
    free(c.vkey);
    zkey_close(c.zkey);
    return rc;
}

/* --- list, show, rm --- */

static void print_row(const struct db_result *rows, int row) {
    char when[32] = "";
    time_t created = (time_t)(db_get_int(rows, row, LIST_CREATED_AT) / 1000000);
    struct tm utc;
    if (gmtime_r(&created, &utc)) strftime(when, sizeof when, "%Y-%m-%d %H:%M", &utc);
    printf("%-30s %7" PRId64 "  %-8s  %10" PRId64 "  %6" PRId64 "  %4s%-2" PRId64 "  %-4s  %s%s\n",
           db_get_text(rows, row, LIST_NAME), db_get_int(rows, row, LIST_VERSION),
           db_get_text(rows, row, LIST_CURVE), db_get_int(rows, row, LIST_N_VARS),
           db_get_int(rows, row, LIST_N_PUBLIC), "2^", db_get_int(rows, row, LIST_LOG_DOMAIN),
           db_get_bool(rows, row, LIST_HAS_R1CS) ? "yes" : "no", when,
           db_get_bool(rows, row, LIST_INSECURE) ? "  INSECURE" : "");
}

enum err circuit_list(const struct options *options, struct error *error) {
    static const struct db_statement *const statements[] = {&list};
    struct db_result *rows = NULL;
    struct db *db = NULL;
    enum err rc;
    TRY(connect_with(options, statements, 1, &db, error));
    TRY(db_run(db, &list, DB_NO_PARAMS, &rows, error));
    printf("%-30s %7s  %-8s  %10s  %6s  %6s  %-4s  %s\n", "name", "version", "curve", "signals",
           "public", "domain", "r1cs", "added (UTC)");
    for (int row = 0; row < db_rows(rows); row++)
        print_row(rows, row);
fail:
    db_free(rows);
    db_close(db);
    return rc;
}

static enum err unknown(const char *name, struct error *error) {
    return error_set(error, ERR_INPUT, "there is no circuit '%.100s'; see: proverq circuit list",
                     name);
}

static void print_artefact(const char *kind, const struct db_result *rows,
                           struct circuit_artefact columns) {
    char hex[SHA256_HEX_BYTES];
    struct sha256 hash = {{0}};
    size_t n;
    const uint8_t *bytes = db_get_bytes(rows, 0, columns.sha256, &n);
    if (n != SHA256_BYTES) {
        printf("%-10s none\n", kind);
        return;
    }
    memcpy(hash.bytes, bytes, n);
    sha256_format(&hash, hex);
    bool in_database = db_is_null(rows, 0, columns.path);
    printf(
        "%-10s %s, %" PRId64 " bytes, %s%s\n", kind, hex, db_get_int(rows, 0, columns.bytes),
        in_database ? "in the database" : "artefact folder: ", db_get_text(rows, 0, columns.path));
}

static void print_calculator(const struct db_result *rows) {
    printf("inputs     ");
    if (db_is_null(rows, 0, CIRCUIT_CALCULATOR))
        printf("none: it takes witnesses only\n");
    else if (!db_is_null(rows, 0, CIRCUIT_INPUT_SIGNALS))
        printf("%s\n", db_get_text(rows, 0, CIRCUIT_INPUT_SIGNALS));
    else if (!db_is_null(rows, 0, CIRCUIT_N_INPUTS))
        printf("%" PRId64 " values\n", db_get_int(rows, 0, CIRCUIT_N_INPUTS));
    else
        printf("it takes inputs\n");
    if (db_is_null(rows, 0, CIRCUIT_CALCULATOR)) return;
    print_artefact("calculator", rows, CIRCUIT_ARTEFACT(COMPILED));
    if (!db_is_null(rows, 0, CIRCUIT_DAT)) print_artefact("dat", rows, CIRCUIT_ARTEFACT(DAT));
}

static void print_circuit(const struct db_result *rows) {
    printf("circuit    %s\n", db_get_text(rows, 0, CIRCUIT_NAME));
    printf("version    %" PRId64 "\n", db_get_int(rows, 0, CIRCUIT_VERSION));
    printf("curve      %s\n", db_get_text(rows, 0, CIRCUIT_CURVE));
    printf("signals    %" PRId64 ", of which %" PRId64 " public\n",
           db_get_int(rows, 0, CIRCUIT_N_VARS), db_get_int(rows, 0, CIRCUIT_N_PUBLIC));
    printf("domain     2^%" PRId64 "\n", db_get_int(rows, 0, CIRCUIT_LOG_DOMAIN));
    print_artefact("zkey", rows, CIRCUIT_ARTEFACT(ZKEY));
    print_artefact("r1cs", rows, CIRCUIT_ARTEFACT(R1CS));
    print_calculator(rows);
    printf("key        %s\n", db_get_bool(rows, 0, CIRCUIT_INSECURE)
                                  ? "INSECURE: a development key, whoever made it can forge proofs"
                                  : "from a ceremony");
    printf("vkey       %s\n", db_get_text(rows, 0, CIRCUIT_VKEY));
}

enum err circuit_show(const struct options *options, struct error *error) {
    static const struct db_statement *const statements[] = {&find, &circuit_get};
    const char *name = options->arguments[0];
    struct db_result *rows = NULL, *circuit = NULL;
    struct db *db = NULL;
    enum err rc;
    TRY(connect_with(options, statements, 2, &db, error));
    TRY(db_run(db, &find, DB_PARAMS(db_text(name)), &rows, error));
    if (db_rows(rows) == 0) TRY(unknown(name, error));
    TRY(db_run(db, &circuit_get,
               DB_PARAMS(db_int(db_get_int(rows, 0, 0)), db_text(calculator_machine())), &circuit,
               error));
    if (db_rows(circuit) == 0) TRY(unknown(name, error));
    print_circuit(circuit);
fail:
    db_free(circuit);
    db_free(rows);
    db_close(db);
    return rc;
}

enum err circuit_rm(const struct options *options, struct error *error) {
    static const struct db_statement *const statements[] = {&remove_};
    const char *name = options->arguments[0];
    struct db_result *rows = NULL;
    struct db *db = NULL;
    enum err rc;
    TRY(connect_with(options, statements, 1, &db, error));
    TRY(db_run(db, &remove_, DB_PARAMS(db_text(name)), &rows, error));
    if (db_rows(rows) == 0) TRY(unknown(name, error));
    printf("circuit %s version %" PRId64 " removed; jobs that have it go on\n", name,
           db_get_int(rows, 0, 0));
fail:
    db_free(rows);
    db_close(db);
    return rc;
}
