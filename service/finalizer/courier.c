#include "service/finalizer/courier.h"

#include "service/common/log.h"
#include "service/common/stop.h"
#include "service/common/thread.h"
#include "service/db/db.h"
#include "service/db/recover.h"
#include "service/finalizer/webhook.h"

#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DELIVERY_COLUMNS(X)                                                                        \
    X(DELIVERY_ID, "delivery_id", "u")                                                             \
    X(DELIVERY_TOKEN, "token", "u")                                                                \
    X(DELIVERY_IS_FAILING, "is_failing", "b")                                                      \
    X(DELIVERY_URL, "url", "t")                                                                    \
    X(DELIVERY_SECRETS, "secrets", "t")                                                            \
    X(DELIVERY_BODY, "body", "t")                                                                  \
    X(DELIVERY_SIGNED_AT, "signed_at", "l")
#define OUTCOME_COLUMNS(X) X(OUTCOME_DELIVERY, "delivery_id", "u") X(OUTCOME_WORD, "outcome", "t")
enum { DELIVERY_COLUMNS(DB_COLUMN) };
enum { OUTCOME_COLUMNS(DB_COLUMN) };

static const struct db_statement claim_deliveries = {"claim_deliveries", "iiii",
                                                     DELIVERY_COLUMNS(DB_COLUMN_TYPE)};
static const struct db_statement record_deliveries = {"record_deliveries", "j",
                                                      OUTCOME_COLUMNS(DB_COLUMN_TYPE)};

enum {
    LEASE_EXTRA_MS = 15000, /* beyond the timeout: the time to record the outcome */
    RECORDED_AT_ONCE = 64,
};

struct courier {
    const struct options *options;
    void (*on_end)(void);
    int stop_fd; /* readable, for good, once it is to stop */
    struct webhook_client *client;
    size_t failing; /* deliveries under way whose endpoints keep failing */
    pthread_t thread;
    bool is_started;
    enum err rc; /* how the thread ended; valid once it was joined */
    struct error error;
};

/* --- claiming --- */

/* Endpoints that keep failing may take half of the slots, so that however many of them hang, the
 * others have the other half. */
static size_t failing_slots(const struct courier *c) {
    size_t most = (c->options->webhook_parallel + 1) / 2;
    return c->failing < most ? most - c->failing : 0;
}

static enum err start_all(struct courier *c, const struct db_result *rows, struct error *error) {
    for (int i = 0; i < db_rows(rows); i++) {
        struct webhook_message message = {.delivery = db_get_uuid(rows, i, DELIVERY_ID),
                                          .token = db_get_uuid(rows, i, DELIVERY_TOKEN),
                                          .is_failing = db_get_bool(rows, i, DELIVERY_IS_FAILING),
                                          .url = db_get_text(rows, i, DELIVERY_URL),
                                          .secrets = db_get_text(rows, i, DELIVERY_SECRETS),
                                          .body = db_get_text(rows, i, DELIVERY_BODY),
                                          .signed_at = db_get_int(rows, i, DELIVERY_SIGNED_AT)};
        enum err rc = webhook_start(c->client, &message, error);
        if (rc) return rc;
        c->failing += message.is_failing;
    }
    return ERR_NONE;
}

static enum err claim(struct courier *c, struct db *db, struct error *error) {
    struct db_result *rows = NULL;
    size_t most = c->options->webhook_parallel, under_way = webhook_under_way(c->client);
    if (under_way >= most || stop_event_is_set(c->stop_fd)) return ERR_NONE;
    enum err rc =
        db_run(db, &claim_deliveries,
               DB_PARAMS(db_int((int64_t)(most - under_way)), db_int((int64_t)failing_slots(c)),
                         db_int(c->options->webhook_per_endpoint),
                         db_int((int64_t)c->options->webhook_timeout_ms + LEASE_EXTRA_MS)),
               &rows, error);
    if (!rc) rc = start_all(c, rows, error);
    db_free(rows);
    return rc;
}

/* --- recording --- */

static json_t *text_or_null(const char *text) {
    return *text ? json_string(text) : json_null();
}

static json_t *number_or_null(int64_t number) {
    return number != 0 ? json_integer(number) : json_null();
}

/* NULL when out of memory, as all of jansson's. */
static json_t *outcome_json(const struct webhook_result *r) {
    char delivery[UUID_TEXT_BYTES], token[UUID_TEXT_BYTES];
    uuid_format(&r->delivery, delivery);
    uuid_format(&r->token, token);
    return json_pack("{s:s, s:s, s:o, s:i, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o}",
                     "delivery", delivery, "token", token, "status", number_or_null(r->status),
                     "curl_code", r->curl_code, "error", text_or_null(r->error), "retry_after_s",
                     number_or_null(r->retry_after_s), "peer", text_or_null(r->peer), "dns_us",
                     (json_int_t)r->dns_us, "connect_us", (json_int_t)r->connect_us, "tls_us",
                     (json_int_t)r->tls_us, "first_byte_us", (json_int_t)r->first_byte_us,
                     "total_us", (json_int_t)r->total_us, "answer", text_or_null(r->answer));
}

static void log_outcome(const struct webhook_result *result, const char *outcome) {
    char id[UUID_TEXT_BYTES];
    uuid_format(&result->delivery, id);
    if (*result->error)
        log_warn(strcmp(outcome, "disabled") == 0 ? "webhook endpoint disabled"
                                                  : "webhook not delivered",
                 log_text("delivery", id), log_text("outcome", outcome),
                 log_number("status", result->status), log_text("error", result->error),
                 log_number("ms", result->total_us / 1000));
    else
        log_info("webhook delivered", log_text("delivery", id),
                 log_number("status", result->status), log_number("ms", result->total_us / 1000));
}

static void log_outcomes(const struct webhook_result *results, size_t n,
                         const struct db_result *rows) {
    for (int row = 0; row < db_rows(rows); row++) {
        struct uuid delivery = db_get_uuid(rows, row, OUTCOME_DELIVERY);
        for (size_t i = 0; i < n; i++)
            if (uuid_equal(&delivery, &results[i].delivery))
                log_outcome(&results[i], db_get_text(rows, row, OUTCOME_WORD));
    }
}

static char *outcomes_text(const struct webhook_result *results, size_t n) {
    json_t *array = json_array();
    bool is_whole = array != NULL;
    for (size_t i = 0; i < n && is_whole; i++)
        is_whole = json_array_append_new(array, outcome_json(&results[i])) == 0;
    char *text = is_whole ? json_dumps(array, JSON_COMPACT) : NULL;
    json_decref(array);
    return text;
}

/* A result that cannot be recorded for want of a connection is recorded after it is made again:
 * recording is bound to the token, so doing it twice does it once. */
static enum err record(struct courier *c, struct db *db, const struct webhook_result *results,
                       size_t n, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc, fatal = ERR_NONE;
    char *text = outcomes_text(results, n);
    if (!text) return error_set(error, ERR_HOST_MEMORY, "out of memory while recording webhooks");
    do {
        rc = db_run(db, &record_deliveries, DB_PARAMS(db_text(text)), &rows, error);
        if (!rc) log_outcomes(results, n, rows);
        fatal = recover(db, rc, c->stop_fd, error);
        db_free(rows);
        rows = NULL;
    } while (!fatal && rc == ERR_CONNECTION && !stop_event_is_set(c->stop_fd));
    free(text);
    return fatal;
}

static enum err record_all(struct courier *c, struct db *db, struct error *error) {
    struct webhook_result results[RECORDED_AT_ONCE];
    size_t n;
    do {
        for (n = 0; n < RECORDED_AT_ONCE && webhook_take(c->client, &results[n]); n++)
            c->failing -= results[n].is_failing;
        enum err rc = n > 0 ? record(c, db, results, n, error) : ERR_NONE;
        if (rc) return rc;
    } while (n == RECORDED_AT_ONCE);
    return ERR_NONE;
}

/* --- the thread --- */

static enum err deliver(struct courier *c, struct db *db, struct error *error) {
    enum err rc = ERR_NONE;
    while (!stop_event_is_set(c->stop_fd) || webhook_under_way(c->client) > 0) {
        TRY(recover(db, claim(c, db, error), c->stop_fd, error));
        TRY(webhook_wait(c->client, (int)c->options->poll_ms, error));
        TRY(record_all(c, db, error));
    }
fail:
    return rc;
}

static void *run(void *argument) {
    struct courier *c = argument;
    struct db *db = NULL;
    static const struct db_statement *const statements[] = {&claim_deliveries, &record_deliveries};
    const struct db_settings settings =
        db_settings_for_daemon(c->options->database, "finalizer", NULL, statements,
                               sizeof statements / sizeof *statements);
    enum err rc;
    TRY(db_open_patiently(&settings, c->stop_fd, &db, &c->error));
    TRY(deliver(c, db, &c->error));
fail:
    if (!db && stop_event_is_set(c->stop_fd)) rc = ERR_NONE; /* it was told to */
    db_close(db);
    c->rc = rc;
    if (rc) c->on_end();
    return NULL;
}

static enum err open_client(struct courier *c, struct error *error) {
    const struct options *o = c->options;
    struct webhook_settings settings = {
        .http = o->webhook_http, .timeout_ms = o->webhook_timeout_ms, .ca_file = o->webhook_ca};
    for (size_t i = 0; i < o->webhook_allow.n; i++)
        if (address_filter_allow(&settings.filter, o->webhook_allow.item[i], error))
            return error_prefix(error, "--webhook-allow");
    return webhook_client_open(&settings, &c->client, error);
}

enum err courier_start(const struct options *options, void (*on_end)(void), struct courier **out,
                       struct error *error) {
    enum err rc;
    struct courier *c = calloc(1, sizeof *c);
    if (!c) return error_set(error, ERR_HOST_MEMORY, "out of memory while starting the courier");
    *c = (struct courier){.options = options, .on_end = on_end, .stop_fd = -1};
    TRY(stop_event_open(&c->stop_fd, error));
    TRY(open_client(c, error));
    TRY(thread_start(&c->thread, run, c, error));
    c->is_started = true;
    *out = c;
    return ERR_NONE;
fail:
    if (courier_stop(c, &(struct error){.code = ERR_NONE})) return rc;
    return rc;
}

void courier_wake(struct courier *courier) {
    if (courier) webhook_wake(courier->client);
}

enum err courier_stop(struct courier *courier, struct error *error) {
    if (!courier) return ERR_NONE;
    if (courier->is_started) {
        stop_event_set(courier->stop_fd);
        webhook_wake(courier->client);
        (void)pthread_join(courier->thread, NULL);
    }
    enum err rc = courier->rc;
    if (rc) *error = courier->error;
    webhook_client_close(courier->client);
    if (courier->stop_fd >= 0) (void)close(courier->stop_fd);
    free(courier);
    return rc;
}
