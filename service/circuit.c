#include "service/circuit.h"
#include "gpu/keycheck.h"
#include "gpu/r1cs.h"
#include "gpu/vkey.h"
#include "service/artefact.h"

#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct db_statement add = {"circuit_add", "txtiiixxjb", "lib"};
static const struct db_statement list = {"circuit_list", "", "ltitiiibbz"};
static const struct db_statement find = {"circuit_find", "t", "l"};
static const struct db_statement get = {"circuit_get", "l", "titiiixltxlttb"};
static const struct db_statement remove_ = {"circuit_remove", "t", "i"};

static enum err connect_with(const struct options *options,
                             const struct db_statement *const *statements, size_t n,
                             struct db **out, struct error *error) {
    struct db_settings settings = {.conninfo = options->database,
                                   .application = "proverq circuit",
                                   .statement_timeout_ms = DB_STATEMENT_TIMEOUT_MS,
                                   .lock_timeout_ms = DB_LOCK_TIMEOUT_MS,
                                   .statements = statements,
                                   .n_statements = n};
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
    TRY(keycheck(c->zkey, &forgeable, error));
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

/* SHA-256 over the hashes of the artefacts, in the order zkey, r1cs. */
static void identify(struct candidate *c) {
    uint8_t hashes[2 * SHA256_BYTES];
    size_t n = SHA256_BYTES;
    memcpy(hashes, c->zkey_file.sha256.bytes, SHA256_BYTES);
    if (*c->r1cs_path) {
        memcpy(hashes + n, c->r1cs_file.sha256.bytes, SHA256_BYTES);
        n += SHA256_BYTES;
    }
    SHA256(hashes, n, c->identity.bytes);
}

static enum err examine(const struct options *options, const struct artefact_places *places,
                        struct candidate *c, struct error *error) {
    enum err rc;
    TRY(check_name(c->name, error));
    TRY(check_key(c, error));
    TRY(artefact_describe(places, ARTEFACT_ZKEY, c->zkey_path, options->artefact_limit,
                          &c->zkey_file, error));
    if (*c->r1cs_path) {
        TRY(check_constraints(c, error));
        TRY(artefact_describe(places, ARTEFACT_R1CS, c->r1cs_path, options->artefact_limit,
                              &c->r1cs_file, error));
    }
    identify(c);
fail:
    return rc;
}

static enum err insert(struct db *db, const struct candidate *c, struct db_result **rows,
                       struct error *error) {
    const struct zkey *zkey = c->zkey;
    const void *r1cs = *c->r1cs_path ? c->r1cs_file.sha256.bytes : NULL;
    return db_run(db, &add,
                  DB_PARAMS(db_text(c->name), db_bytes(c->identity.bytes, SHA256_BYTES),
                            db_text(zkey->curve->name), db_int(zkey->n_vars),
                            db_int(zkey->n_public), db_int(zkey->log_domain),
                            db_bytes(c->zkey_file.sha256.bytes, SHA256_BYTES),
                            db_bytes(r1cs, SHA256_BYTES), db_text(c->vkey), db_int(zkey->insecure)),
                  rows, error);
}

static void report_added(const struct candidate *c, int64_t version, bool is_new) {
    printf("circuit %s version %" PRId64 " %s: %s, %u signals, %u public, 2^%u%s\n", c->name,
           version, is_new ? "added" : "is there already", c->zkey->curve->name, c->zkey->n_vars,
           c->zkey->n_public, c->zkey->log_domain,
           c->zkey->insecure ? "; INSECURE development key: whoever made it can forge proofs" : "");
}

static enum err store(struct db *db, const struct artefact_places *places,
                      const struct candidate *c, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc;
    TRY(db_begin(db, error));
    TRY(artefact_store(places, db, c->zkey_path, &c->zkey_file, error));
    if (*c->r1cs_path) TRY(artefact_store(places, db, c->r1cs_path, &c->r1cs_file, error));
    TRY(insert(db, c, &rows, error));
    TRY(db_commit(db, error));
    report_added(c, db_get_int(rows, 0, 1), db_get_bool(rows, 0, 2));
fail:
    if (rc != ERR_NONE) db_rollback(db);
    db_free(rows);
    return rc;
}

enum err circuit_add(const struct options *options, struct error *error) {
    static const struct db_statement *const statements[] = {&artefact_put, &artefact_chunk_put,
                                                            &add};
    struct artefact_places places = {.cache = "", .root = options->artefact_root};
    struct candidate c = {.name = options->arguments[0],
                          .zkey_path = options->arguments[1],
                          .r1cs_path = options->r1cs};
    struct db *db = NULL;
    enum err rc;
    TRY(examine(options, &places, &c, error));
    TRY(connect_with(options, statements, 3, &db, error));
    TRY(store(db, &places, &c, error));
fail:
    db_close(db);
    free(c.vkey);
    zkey_close(c.zkey);
    return rc;
}

/* --- list, show, rm --- */

static void print_row(const struct db_result *rows, int row) {
    char when[32] = "";
    time_t created = (time_t)(db_get_int(rows, row, 9) / 1000000);
    struct tm utc;
    if (gmtime_r(&created, &utc)) strftime(when, sizeof when, "%Y-%m-%d %H:%M", &utc);
    printf("%-30s %7" PRId64 "  %-8s  %10" PRId64 "  %6" PRId64 "  %4s%-2" PRId64 "  %-4s  %s%s\n",
           db_get_text(rows, row, 1), db_get_int(rows, row, 2), db_get_text(rows, row, 3),
           db_get_int(rows, row, 4), db_get_int(rows, row, 5), "2^", db_get_int(rows, row, 6),
           db_get_bool(rows, row, 8) ? "yes" : "no", when,
           db_get_bool(rows, row, 7) ? "  INSECURE" : "");
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

static void print_artefact(const char *kind, const struct db_result *rows, int column) {
    char hex[SHA256_HEX_BYTES];
    struct sha256 hash = {{0}};
    size_t n;
    const uint8_t *bytes = db_get_bytes(rows, 0, column, &n);
    if (n != SHA256_BYTES) {
        printf("%-10s none\n", kind);
        return;
    }
    memcpy(hash.bytes, bytes, n);
    sha256_format(&hash, hex);
    bool in_database = db_is_null(rows, 0, column + 2);
    printf("%-10s %s, %" PRId64 " bytes, %s%s\n", kind, hex, db_get_int(rows, 0, column + 1),
           in_database ? "in the database" : "artefact folder: ", db_get_text(rows, 0, column + 2));
}

static void print_circuit(const struct db_result *rows) {
    printf("circuit    %s\n", db_get_text(rows, 0, 0));
    printf("version    %" PRId64 "\n", db_get_int(rows, 0, 1));
    printf("curve      %s\n", db_get_text(rows, 0, 2));
    printf("signals    %" PRId64 ", of which %" PRId64 " public\n", db_get_int(rows, 0, 3),
           db_get_int(rows, 0, 4));
    printf("domain     2^%" PRId64 "\n", db_get_int(rows, 0, 5));
    print_artefact("zkey", rows, 6);
    print_artefact("r1cs", rows, 9);
    printf("key        %s\n", db_get_bool(rows, 0, 13)
                                  ? "INSECURE: a development key, whoever made it can forge proofs"
                                  : "from a ceremony");
    printf("vkey       %s\n", db_get_text(rows, 0, 12));
}

enum err circuit_show(const struct options *options, struct error *error) {
    static const struct db_statement *const statements[] = {&find, &get};
    const char *name = options->arguments[0];
    struct db_result *rows = NULL, *circuit = NULL;
    struct db *db = NULL;
    enum err rc;
    TRY(connect_with(options, statements, 2, &db, error));
    TRY(db_run(db, &find, DB_PARAMS(db_text(name)), &rows, error));
    if (db_rows(rows) == 0) TRY(unknown(name, error));
    TRY(db_run(db, &get, DB_PARAMS(db_int(db_get_int(rows, 0, 0))), &circuit, error));
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
