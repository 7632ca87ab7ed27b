#include "gpu/monotonic.h"
#include "service/common/embedded.h"
#include "service/common/log.h"
#include "service/db/db_private.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    ANSWER_GRACE_MS = 10000, /* beyond the statement timeout, for the network */
    BACKOFF_FIRST_MS = 100,
    BACKOFF_MOST_MS = 10000,
    SETTLED_MS = 2000, /* a connection that ends before was no success */
    CHANNELS_MAX = 4,
    SETTINGS_BYTES = 300,
};

struct db {
    struct db_settings settings;
    struct db_target *target;
    size_t host;          /* of the target's, the one that was connected last */
    PGconn *connection;   /* NULL when lost */
    int64_t connected_ms; /* when; 0: the last attempt failed */
    uint32_t wait_ms;     /* the last wait for another attempt */
    bool is_pooled;       /* it leads to a pooler, which lends us a session for a transaction */
    int version;
    char sqlstate[6];
    const char *channels[CHANNELS_MAX];
    size_t n_channels;
    const char *script; /* what db_script runs now */
};

/* --- errors --- */

static void one_line(char *text) {
    size_t n = strlen(text);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        text[--n] = '\0';
    for (; *text; text++)
        if (*text == '\n' || *text == '\t') *text = ' ';
}

static void drop(struct db *db) {
    if (db->connection) PQfinish(db->connection);
    db->connection = NULL;
}

/* The connection is of no more use. */
static enum err lost(struct db *db, const char *what, const char *reason, struct error *error) {
    error_set(error, ERR_CONNECTION, "%s: the database cannot be reached: %s", what, reason);
    one_line(error->text);
    drop(db);
    return ERR_CONNECTION;
}

static enum err not_connected(const char *what, struct error *error) {
    return error_set(error, ERR_CONNECTION, "%s: not connected to the database", what);
}

static enum err code_of(const char *sqlstate) {
    static const char *const schema[] = {"3F000", "42P01", "42703", "42704", "42883", "42804"};
    /* Shutdown, crash, start, timeouts of an idle session, and: a server that takes no writes. */
    static const char *const connection[] = {"57P01", "57P02", "57P03", "57P04",
                                             "57P05", "25P03", "25006"};
    for (size_t i = 0; i < sizeof schema / sizeof *schema; i++)
        if (strcmp(sqlstate, schema[i]) == 0) return ERR_SCHEMA;
    for (size_t i = 0; i < sizeof connection / sizeof *connection; i++)
        if (strcmp(sqlstate, connection[i]) == 0) return ERR_CONNECTION;
    return strncmp(sqlstate, "08", 2) == 0 ? ERR_CONNECTION : ERR_DATABASE;
}

/* " at line N" of the script that runs, for errors. */
static void put_line(const struct db *db, const PGresult *answer, char *out, size_t size) {
    const char *position = PQresultErrorField(answer, PG_DIAG_STATEMENT_POSITION);
    long at = position ? strtol(position, NULL, 10) : 0, line = 1;
    out[0] = '\0';
    if (!db->script || at <= 0) return;
    for (const char *c = db->script; *c && at > 1; c++) {
        if (*c == '\n') line++;
        if (((unsigned char)*c & 0xc0) != 0x80) at--; /* it counts characters of UTF-8 */
    }
    snprintf(out, size, " at line %ld", line);
}

/* The server's answer is an error. DETAIL is left out: it may quote a row. */
static enum err refused(struct db *db, const char *what, const PGresult *answer,
                        struct error *error) {
    const char *state = PQresultErrorField(answer, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(answer, PG_DIAG_MESSAGE_PRIMARY);
    const char *hint = PQresultErrorField(answer, PG_DIAG_MESSAGE_HINT);
    char line[40];
    if (!state || !message) return lost(db, what, PQresultErrorMessage(answer), error);
    enum err rc = code_of(state);
    if (rc == ERR_CONNECTION) return lost(db, what, message, error);
    snprintf(db->sqlstate, sizeof db->sqlstate, "%s", state);
    if (rc == ERR_SCHEMA && !db->script) hint = "run: proverq migrate up";
    put_line(db, answer, line, sizeof line);
    error_set(error, rc, "%s%s: %s (SQLSTATE %s)%s%s", what, line, message, state, hint ? "; " : "",
              hint ? hint : "");
    one_line(error->text);
    return rc;
}

static void on_notice(void *arg, const PGresult *notice) {
    const char *message = PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
    (void)arg;
    if (message) log_debug("notice from the database", log_text("notice", message));
}

/* --- asking and waiting, never longer than the deadline --- */

/* Waits for the socket; ERR_CONNECTION after `deadline` (ms, -1: none). */
static enum err wait_socket(struct db *db, const char *what, short events, int wake_fd,
                            int64_t deadline, struct error *error) {
    struct pollfd fds[2] = {{PQsocket(db->connection), events, 0}, {wake_fd, POLLIN, 0}};
    int64_t left = deadline < 0 ? -1 : deadline - monotonic_ms();
    if (deadline >= 0 && left < 0) return lost(db, what, "no answer in time", error);
    int n = poll(fds, wake_fd < 0 ? 1 : 2, (int)left);
    if (n < 0 && errno != EINTR) return lost(db, what, strerror(errno), error);
    if (n > 0 && wake_fd >= 0 && fds[1].revents) return lost(db, what, "told to stop", error);
    return ERR_NONE;
}

static int64_t answer_deadline(const struct db *db) {
    uint32_t timeout = db->settings.statement_timeout_ms;
    return timeout ? monotonic_ms() + timeout + ANSWER_GRACE_MS : -1;
}

/* Takes one result, NULL at the end of a command's. */
static enum err next_result(struct db *db, const char *what, int64_t deadline, PGresult **out,
                            struct error *error) {
    enum err rc;
    for (;;) {
        int unsent = PQflush(db->connection);
        if (unsent < 0) return lost(db, what, PQerrorMessage(db->connection), error);
        if (!unsent && !PQisBusy(db->connection)) break;
        short events = (short)(unsent ? POLLIN | POLLOUT : POLLIN);
        TRY(wait_socket(db, what, events, -1, deadline, error));
        if (!PQconsumeInput(db->connection))
            return lost(db, what, PQerrorMessage(db->connection), error);
    }
    *out = PQgetResult(db->connection);
    return ERR_NONE;
fail:
    return rc;
}

/* Takes all results of what was sent: the last one in *out, or the first error. */
static enum err collect(struct db *db, const char *what, PGresult **out, struct error *error) {
    int64_t deadline = answer_deadline(db);
    PGresult *kept = NULL, *next = NULL;
    enum err rc = ERR_NONE, answer = ERR_NONE;
    for (;;) {
        TRY(next_result(db, what, deadline, &next, error));
        if (!next) break;
        ExecStatusType status = PQresultStatus(next);
        if (answer == ERR_NONE && status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK &&
            status != PGRES_EMPTY_QUERY)
            answer = refused(db, what, next, error);
        PQclear(kept);
        kept = next;
        if (!db->connection) break;
    }
    rc = answer;
fail:
    if (rc == ERR_NONE) {
        *out = kept;
    } else {
        PQclear(kept);
    }
    return rc;
}

static enum err sent(struct db *db, const char *what, int ok, struct error *error) {
    return ok ? ERR_NONE : lost(db, what, PQerrorMessage(db->connection), error);
}

/* Runs SQL text without parameters; the caller clears *answer, its last statement's. */
static enum err ask(struct db *db, const char *what, const char *sql, PGresult **answer,
                    struct error *error) {
    enum err rc;
    if (!db->connection) return not_connected(what, error);
    TRY(sent(db, what, PQsendQuery(db->connection, sql), error));
    TRY(collect(db, what, answer, error));
fail:
    return rc;
}

static enum err command(struct db *db, const char *what, const char *sql, struct error *error) {
    PGresult *answer = NULL;
    enum err rc = ask(db, what, sql, &answer, error);
    PQclear(answer);
    return rc;
}

/* --- preparing --- */

static enum err check_params(const char *what, const char *params, const PGresult *described,
                             struct error *error) {
    int n = PQnparams(described);
    if ((size_t)n != strlen(params))
        return error_set(error, ERR_SCHEMA, "%s: %d parameters, expected %zu", what, n,
                         strlen(params));
    for (int i = 0; i < n; i++) {
        const struct db_type *type = db_type(params[i]);
        if (!type || !db_type_matches(type, PQparamtype(described, i)))
            return error_set(error, ERR_SCHEMA, "%s: parameter %d has type %u, expected '%c'", what,
                             i + 1, PQparamtype(described, i), params[i]);
    }
    return ERR_NONE;
}

static enum err prepare(struct db *db, const char *what, const char *name, const char *sql,
                        const char *params, const char *columns, struct error *error) {
    PGresult *answer = NULL;
    enum err rc = ERR_NONE;
    TRY(sent(db, what, PQsendPrepare(db->connection, name, sql, 0, NULL), error));
    TRY(collect(db, what, &answer, error));
    PQclear(answer);
    answer = NULL;
    TRY(sent(db, what, PQsendDescribePrepared(db->connection, name), error));
    TRY(collect(db, what, &answer, error));
    TRY(check_params(what, params, answer, error));
    TRY(db_columns_check(what, columns, answer, error));
fail:
    PQclear(answer);
    return rc;
}

/* Behind a pooler they are only checked: in a transaction, which stays in one session. */
static enum err prepare_all(struct db *db, struct error *error) {
    enum err rc = ERR_NONE;
    if (db->is_pooled) TRY(command(db, "BEGIN", "BEGIN", error));
    for (size_t i = 0; i < db->settings.n_statements; i++) {
        const struct db_statement *s = db->settings.statements[i];
        const struct embedded_file *file = embedded_find(embedded_statements, s->name);
        const char *name = db->is_pooled ? "" : s->name;
        if (!file)
            return error_set(error, ERR_INTERNAL, "no statement '%s' is compiled in", s->name);
        TRY(prepare(db, s->name, name, file->text, s->params, s->columns, error));
    }
    if (db->is_pooled) TRY(command(db, "COMMIT", "COMMIT", error));
fail:
    return rc;
}

/* --- connecting --- */

static enum err finish_connecting(struct db *db, int wake_fd, struct error *error) {
    int64_t deadline = monotonic_ms() + db_target_timeout_ms(db->target);
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    enum err rc = ERR_NONE;
    while (state != PGRES_POLLING_OK) {
        if (state == PGRES_POLLING_FAILED || PQstatus(db->connection) == CONNECTION_BAD)
            return lost(db, "connecting", PQerrorMessage(db->connection), error);
        short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        TRY(wait_socket(db, "connecting", events, wake_fd, deadline, error));
        state = PQconnectPoll(db->connection);
    }
fail:
    return rc;
}

/* Our statements touch a few rows each: compiling one, which the planner may choose when it is told
 * to avoid a scan, takes half a second and more. */
static void put_settings(const struct db *db, char *out, size_t size) {
    snprintf(out, size,
             "select set_config('statement_timeout', '%u', %s), set_config('lock_timeout', '%u', "
             "%s), set_config('idle_in_transaction_session_timeout', '60000', %s), "
             "set_config('jit', 'off', %s)",
             db->settings.statement_timeout_ms, db->is_pooled ? "true" : "false",
             db->settings.lock_timeout_ms, db->is_pooled ? "true" : "false",
             db->is_pooled ? "true" : "false", db->is_pooled ? "true" : "false");
}

/* What is set for a session behind a pooler is set for whoever gets it next: there each transaction
 * sets its own. */
static enum err set_session(struct db *db, struct error *error) {
    char sql[SETTINGS_BYTES];
    put_settings(db, sql, sizeof sql);
    return db->is_pooled ? ERR_NONE : command(db, "setting up the session", sql, error);
}

/* A pooler gives its clients process numbers of its own. A server that takes no writes is of no use
 * to a process that waits for its database; others may want to read from it. */
static enum err meet(struct db *db, bool is_writer, struct error *error) {
    PGresult *answer = NULL;
    enum err rc;
    TRY(ask(db, "connecting", "select pg_backend_pid(), pg_is_in_recovery()", &answer, error));
    if (PQntuples(answer) != 1 || PQnfields(answer) != 2)
        TRY(lost(db, "connecting", "the server's answer makes no sense", error));
    db->is_pooled = strtol(PQgetvalue(answer, 0, 0), NULL, 10) != PQbackendPID(db->connection);
    if (is_writer && PQgetvalue(answer, 0, 1)[0] == 't')
        TRY(lost(db, "connecting", "the server is a standby, which takes no writes", error));
fail:
    PQclear(answer);
    return rc;
}

static enum err listen_to(struct db *db, const char *channel, struct error *error) {
    char sql[100];
    snprintf(sql, sizeof sql, "LISTEN %s", channel);
    return command(db, "LISTEN", sql, error);
}

static enum err connect_host(struct db *db, int wake_fd, bool is_writer, struct error *error) {
    enum err rc = ERR_NONE;
    drop(db);
    db->connection = db_target_start(db->target, db->host);
    if (!db->connection) return error_set(error, ERR_HOST_MEMORY, "connecting: out of memory");
    TRY(finish_connecting(db, wake_fd, error));
    PQsetNoticeReceiver(db->connection, on_notice, NULL);
    if (PQsetnonblocking(db->connection, 1) != 0)
        return lost(db, "connecting", PQerrorMessage(db->connection), error);
    db->version = PQserverVersion(db->connection);
    TRY(meet(db, is_writer, error));
    TRY(set_session(db, error));
    for (size_t i = 0; i < db->n_channels; i++)
        TRY(listen_to(db, db->channels[i], error));
    TRY(prepare_all(db, error));
fail:
    if (rc != ERR_NONE) drop(db);
    return rc;
}

/* Each host once, the one that was connected last first. */
static enum err connect_once(struct db *db, int wake_fd, bool is_writer, struct error *error) {
    size_t n = db_target_hosts(db->target);
    for (size_t i = 0;; i++) {
        enum err rc = connect_host(db, wake_fd, is_writer, error);
        if (rc != ERR_CONNECTION || i + 1 >= n) return rc;
        log_debug("a host of the database does not serve", log_text("error", error->text));
        db->host = (db->host + 1) % n;
    }
}

void db_close(struct db *db) {
    if (!db) return;
    drop(db);
    db_target_close(db->target);
    free(db);
}

bool db_is_connected(const struct db *db) {
    return db->connection != NULL;
}

static uint32_t jitter(uint32_t ms) {
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) random = 0;
    return ms / 2 + random % (ms / 2 + 1);
}

/* Whether `wake_fd` became readable within the time. */
static bool sleep_awake(int wake_fd, uint32_t ms) {
    struct pollfd fd = {wake_fd, POLLIN, 0}; /* a negative descriptor is ignored */
    return poll(&fd, 1, (int)ms) > 0;
}

/* Longer and longer, until a connection has lasted. Whether it ended because `wake_fd` became
 * readable or it is `until`. */
static bool back_off(struct db *db, int wake_fd, int64_t until, const struct error *error) {
    db->wait_ms = db->wait_ms * 2 < BACKOFF_MOST_MS ? db->wait_ms * 2 : BACKOFF_MOST_MS;
    if (db->wait_ms < BACKOFF_FIRST_MS) db->wait_ms = BACKOFF_FIRST_MS;
    uint32_t ms = jitter(db->wait_ms);
    int64_t left = until - monotonic_ms();
    log_warn("no connection to the database; it will be tried again",
             log_text("error", error->text), log_number("wait_ms", ms));
    if (left >= ms) return sleep_awake(wake_fd, ms);
    (void)sleep_awake(wake_fd, left > 0 ? (uint32_t)left : 0);
    return true;
}

static enum err reconnect(struct db *db, int wake_fd, int64_t until, struct error *error) {
    bool was_short = db->connected_ms && monotonic_ms() - db->connected_ms < SETTLED_MS;
    if (!was_short && db->connected_ms) db->wait_ms = 0;
    error_set(error, ERR_CONNECTION, "the connection was lost as soon as it was made");
    if (was_short && back_off(db, wake_fd, until, error)) return ERR_CONNECTION;
    for (bool has_failed = was_short;; has_failed = true) {
        enum err rc = connect_once(db, wake_fd, true, error);
        if (rc == ERR_NONE && has_failed) log_info("connected to the database");
        if (rc == ERR_NONE) db->connected_ms = monotonic_ms();
        if (rc != ERR_CONNECTION && rc != ERR_DATABASE) return rc;
        db->connected_ms = 0;
        if (back_off(db, wake_fd, until, error)) return rc;
    }
}

static enum err make(const struct db_settings *settings, struct db **out, struct error *error) {
    struct db *db = calloc(1, sizeof *db);
    *out = db;
    if (!db) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    db->settings = *settings;
    return db_target_open(settings->conninfo, settings->application, &db->target, error);
}

enum err db_open(const struct db_settings *settings, struct db **out, struct error *error) {
    struct db *db;
    enum err rc;
    TRY(make(settings, &db, error));
    TRY(connect_once(db, -1, false, error));
    *out = db;
    return ERR_NONE;
fail:
    db_close(db);
    return rc;
}

enum err db_open_patiently(const struct db_settings *settings, int wake_fd, struct db **out,
                           struct error *error) {
    struct db *db;
    enum err rc;
    TRY(make(settings, &db, error));
    TRY(reconnect(db, wake_fd, INT64_MAX, error));
    *out = db;
    return ERR_NONE;
fail:
    db_close(db);
    return rc;
}

enum err db_reconnect(struct db *db, int wake_fd, struct error *error) {
    return reconnect(db, wake_fd, INT64_MAX, error);
}

enum err db_reconnect_within(struct db *db, int wake_fd, uint32_t limit_ms, struct error *error) {
    return reconnect(db, wake_fd, monotonic_ms() + limit_ms, error);
}

/* --- running --- */

static enum err take(const char *what, const char *columns, PGresult *rows, struct db_result **out,
                     struct error *error) {
    if (out) return db_result_make(what, columns, rows, out, error);
    PQclear(rows);
    return ERR_NONE;
}

static enum err execute(struct db *db, const char *what, const char *name, const char *params,
                        const char *columns, const struct db_param *values, struct db_result **out,
                        struct error *error) {
    struct db_encoded encoded;
    PGresult *rows = NULL;
    enum err rc;
    TRY(db_encode(what, params, values, &encoded, error));
    TRY(sent(db, what,
             PQsendQueryPrepared(db->connection, name, encoded.n, encoded.values, encoded.lengths,
                                 encoded.formats, 1),
             error));
    TRY(collect(db, what, &rows, error));
    TRY(take(what, columns, rows, out, error));
fail:
    db_encoded_free(&encoded);
    return rc;
}

/* The results of a pipeline up to its sync: the last one in *out, or the first error. */
static enum err collect_pipeline(struct db *db, const char *what, PGresult **out,
                                 struct error *error) {
    int64_t deadline = answer_deadline(db);
    PGresult *kept = NULL, *next = NULL;
    enum err rc = ERR_NONE, answer = ERR_NONE;
    for (bool is_over = false; !is_over;) {
        TRY(next_result(db, what, deadline, &next, error));
        ExecStatusType status = next ? PQresultStatus(next) : PGRES_PIPELINE_ABORTED;
        is_over = status == PGRES_PIPELINE_SYNC;
        if (!next && PQstatus(db->connection) != CONNECTION_OK)
            TRY(lost(db, what, PQerrorMessage(db->connection), error));
        if (status == PGRES_FATAL_ERROR && answer == ERR_NONE)
            answer = refused(db, what, next, error);
        if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
            PQclear(kept);
            kept = next;
        } else {
            PQclear(next);
        }
        if (!db->connection) break;
    }
    rc = answer;
fail:
    if (rc == ERR_NONE) {
        *out = kept;
    } else {
        PQclear(kept);
    }
    return rc;
}

static int send_text(struct db *db, const char *sql, const struct db_encoded *encoded) {
    return PQsendQueryParams(db->connection, sql, encoded->n, NULL, encoded->values,
                             encoded->lengths, encoded->formats, 1);
}

/* A pooler may lend us another session for each transaction, in which nothing is prepared or set.
 * So the statement goes there as text, behind its settings, in one transaction and round trip. */
static enum err execute_pooled(struct db *db, const struct db_statement *statement, const char *sql,
                               const struct db_param *values, struct db_result **out,
                               struct error *error) {
    struct db_encoded encoded;
    PGresult *rows = NULL;
    char settings[SETTINGS_BYTES];
    const char *what = statement->name;
    bool is_alone = PQtransactionStatus(db->connection) == PQTRANS_IDLE;
    enum err rc;
    put_settings(db, settings, sizeof settings);
    TRY(db_encode(what, statement->params, values, &encoded, error));
    if (is_alone) {
        TRY(sent(db, what,
                 PQenterPipelineMode(db->connection) &&
                     PQsendQueryParams(db->connection, settings, 0, NULL, NULL, NULL, NULL, 0) &&
                     send_text(db, sql, &encoded) && PQpipelineSync(db->connection),
                 error));
        rc = collect_pipeline(db, what, &rows, error);
        if (db->connection && !PQexitPipelineMode(db->connection))
            TRY(lost(db, what, PQerrorMessage(db->connection), error));
        if (rc != ERR_NONE) goto fail;
    } else {
        TRY(sent(db, what, send_text(db, sql, &encoded), error));
        TRY(collect(db, what, &rows, error));
    }
    TRY(take(what, statement->columns, rows, out, error));
fail:
    db_encoded_free(&encoded);
    return rc;
}

enum err db_run(struct db *db, const struct db_statement *statement, const struct db_param *values,
                struct db_result **out, struct error *error) {
    if (!db->connection) return not_connected(statement->name, error);
    if (db->is_pooled) {
        const struct embedded_file *file = embedded_find(embedded_statements, statement->name);
        return execute_pooled(db, statement, file->text, values, out, error);
    }
    return execute(db, statement->name, statement->name, statement->params, statement->columns,
                   values, out, error);
}

enum err db_query(struct db *db, const char *sql, const char *params, const char *columns,
                  const struct db_param *values, struct db_result **out, struct error *error) {
    enum err rc;
    if (!db->connection) return not_connected("query", error);
    bool is_alone = db->is_pooled && PQtransactionStatus(db->connection) == PQTRANS_IDLE;
    if (is_alone) TRY(db_begin(db, error));
    TRY(prepare(db, "query", "", sql, params, columns, error));
    TRY(execute(db, "query", "", params, columns, values, out, error));
    if (is_alone) rc = db_commit(db, error);
    return rc;
fail:
    if (is_alone) db_rollback(db);
    return rc;
}

enum err db_script(struct db *db, const char *label, const char *sql, struct error *error) {
    PGresult *answer = NULL;
    enum err rc = ERR_NONE;
    if (!db->connection) return not_connected(label, error);
    db->script = sql;
    TRY(sent(db, label, PQsendQuery(db->connection, sql), error));
    TRY(collect(db, label, &answer, error));
fail:
    db->script = NULL;
    PQclear(answer);
    return rc;
}

enum err db_begin(struct db *db, struct error *error) {
    char sql[SETTINGS_BYTES + 8];
    memcpy(sql, "BEGIN; ", 8);
    if (db->is_pooled) put_settings(db, sql + 7, sizeof sql - 7);
    return command(db, "BEGIN", sql, error);
}

enum err db_commit(struct db *db, struct error *error) {
    return command(db, "COMMIT", "COMMIT", error);
}

void db_rollback(struct db *db) {
    struct error error;
    if (!db->connection || PQtransactionStatus(db->connection) == PQTRANS_IDLE) return;
    if (command(db, "ROLLBACK", "ROLLBACK", &error) != ERR_NONE)
        log_warn("a transaction could not be rolled back", log_text("error", error.text));
}

const char *db_sqlstate(const struct db *db) {
    return db->sqlstate;
}

bool db_is_pooled(const struct db *db) {
    return db->is_pooled;
}

int db_server_version(const struct db *db) {
    return db->version;
}

/* --- notifications --- */

enum err db_listen(struct db *db, const char *channel, struct error *error) {
    if (db->n_channels == CHANNELS_MAX)
        return error_set(error, ERR_INTERNAL, "LISTEN %s: too many channels", channel);
    if (!db->connection) return not_connected("LISTEN", error);
    if (db->is_pooled && db->settings.n_statements > 0) {
        log_warn(
            "the database is behind a pooler, through which notifications do not come: work is "
            "found by polling; give a connection past it with --listen-database");
        return ERR_NONE;
    }
    db->channels[db->n_channels++] = channel;
    return listen_to(db, channel, error);
}

static bool take_notifications(PGconn *connection) {
    bool any = false;
    for (PGnotify *notify; (notify = PQnotifies(connection)) != NULL; any = true)
        PQfreemem(notify);
    return any;
}

enum err db_wait(struct db *db, int wake_fd, int timeout_ms, enum db_wake *out,
                 struct error *error) {
    int64_t deadline = timeout_ms < 0 ? -1 : monotonic_ms() + timeout_ms;
    if (!db->connection) return not_connected("waiting", error);
    for (;;) {
        struct pollfd fds[2] = {{PQsocket(db->connection), POLLIN, 0}, {wake_fd, POLLIN, 0}};
        *out = DB_WAKE_NOTIFIED;
        if (take_notifications(db->connection)) return ERR_NONE;
        int64_t left = deadline < 0 ? -1 : deadline - monotonic_ms();
        int n = poll(fds, 2, (int)(deadline >= 0 && left < 0 ? 0 : left));
        if (n < 0 && errno != EINTR) return lost(db, "waiting", strerror(errno), error);
        *out = DB_WAKE_FD;
        if (n > 0 && fds[1].revents) return ERR_NONE;
        *out = DB_WAKE_TIMEOUT;
        if (n == 0) return ERR_NONE;
        if (n > 0 && fds[0].revents && !PQconsumeInput(db->connection))
            return lost(db, "waiting", PQerrorMessage(db->connection), error);
    }
}
