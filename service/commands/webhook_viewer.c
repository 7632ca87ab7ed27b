#include "service/commands/webhook_viewer.h"

#include "service/common/stop.h"
#include "service/db/db.h"
#include "service/db/recover.h"
#include "service/finalizer/webhook.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <microhttpd.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct db_statement listen_start = {"listen_start", "tt", "t"};
static const struct db_statement listen_ping = {"listen_ping", "t", "t"};
#define STATE_COLUMNS(X)                                                                           \
    X(STATE_DELIVERED, "delivered", "b")                                                           \
    X(STATE_ATTEMPTS, "attempts", "i") X(STATE_LAST_ERROR, "last_error", "t")
enum { STATE_COLUMNS(DB_COLUMN) };
static const struct db_statement listen_state = {"listen_state", "t",
                                                 STATE_COLUMNS(DB_COLUMN_TYPE)};
static const struct db_statement listen_stop = {"listen_stop", "t", "v"};

enum {
    TOLERANCE_S = 300, /* older or newer requests may be replays */
    BODY_BYTES_MAX = 1 << 20,
    ID_BYTES = 64,
    SEEN_MAX = 1024,
    LOOK_MS = 1000, /* between two looks at a ping that has not come */
    PATIENCE_MS = 3000,
};

struct listener {
    const struct options *options;
    struct db *db;
    struct MHD_Daemon *server;
    char secret[128], ping[ID_BYTES];
    bool is_told; /* why the ping does not come */
    /* Of the server's thread: */
    char seen[SEEN_MAX][ID_BYTES]; /* the latest webhook-ids, in a ring */
    size_t n_seen;
};

/* A request whose body is coming. */
struct request {
    char *body;
    size_t bytes;
};

/* A line for the person at the terminal, at once, also where it goes through a pipe. */
static void say(const char *format, ...) PRINTF_LIKE(1, 2);
static void say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)fflush(stdout);
}

/* --- what is received --- */

bool webhook_viewer_verify(const char *secret, const char *id, const char *timestamp,
                           const char *signatures, const char *body, size_t body_bytes,
                           int64_t now) {
    char right[WEBHOOK_SIGNATURE_BYTES], *end;
    struct error ignored;
    int64_t at = strtoll(timestamp, &end, 10);
    bool found = false;
    if (!*id || end == timestamp || *end || at < now - TOLERANCE_S || at > now + TOLERANCE_S)
        return false;
    if (webhook_sign(secret, id, at, body, body_bytes, right, &ignored)) return false;
    while (*signatures) {
        size_t n = strcspn(signatures, " ");
        if (n == strlen(right) && CRYPTO_memcmp(signatures, right, n) == 0) found = true;
        signatures += n + (signatures[n] == ' ');
    }
    return found;
}

static bool was_seen(struct listener *l, const char *id) {
    size_t n = l->n_seen < SEEN_MAX ? l->n_seen : SEEN_MAX;
    for (size_t i = 0; i < n; i++)
        if (strcmp(l->seen[i], id) == 0) return true;
    (void)snprintf(l->seen[l->n_seen++ % SEEN_MAX], ID_BYTES, "%s", id);
    return false;
}

/* The body is whatever was posted: as text only after jansson has read and escaped it. */
static void print_delivery(const char *id, bool is_again, json_t *body) {
    char at[32] = "";
    time_t now = time(NULL);
    struct tm local;
    const char *type = json_string_value(json_object_get(body, "type"));
    if (localtime_r(&now, &local)) (void)strftime(at, sizeof at, "%H:%M:%S", &local);
    char *text = json_dumps(body, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_ENSURE_ASCII);
    say("%s %s %s, signature right%s\n%s\n", at, type ? type : "?", id, is_again ? ", again" : "",
        text ? text : "");
    free(text);
}

static unsigned take_delivery(struct listener *l, struct MHD_Connection *connection,
                              const struct request *request) {
    static const char *const names[] = {"webhook-id", "webhook-timestamp", "webhook-signature"};
    const char *values[3];
    for (size_t i = 0; i < 3; i++) {
        values[i] = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, names[i]);
        if (!values[i]) values[i] = "";
    }
    const char *bytes = request->body ? request->body : "";
    json_t *body = NULL;
    if (webhook_viewer_verify(l->secret, values[0], values[1], values[2], bytes, request->bytes,
                              (int64_t)time(NULL)))
        body = json_loadb(bytes, request->bytes, 0, NULL);
    if (!body) {
        say("refused a request: its signature is not right\n");
        return MHD_HTTP_UNAUTHORIZED;
    }
    print_delivery(values[0], was_seen(l, values[0]), body);
    json_decref(body);
    return MHD_HTTP_NO_CONTENT;
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status) {
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    if (!response) return MHD_NO;
    enum MHD_Result queued = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result take_bytes(struct request *request, const char *bytes, size_t n) {
    char *longer =
        request->bytes + n <= BODY_BYTES_MAX ? realloc(request->body, request->bytes + n) : NULL;
    if (!longer) return MHD_NO;
    memcpy(longer + request->bytes, bytes, n);
    request->body = longer;
    request->bytes += n;
    return MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *bytes, size_t *n_bytes, void **state) {
    struct request *request = *state;
    (void)path;
    (void)version;
    if (!request) {
        *state = calloc(1, sizeof *request);
        return *state ? MHD_YES : MHD_NO;
    }
    if (*n_bytes > 0) {
        size_t n = *n_bytes;
        *n_bytes = 0;
        return take_bytes(request, bytes, n);
    }
    if (strcmp(method, "POST") != 0) return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED);
    return answer(connection, take_delivery(context, connection, request));
}

static void on_request_end(void *context, struct MHD_Connection *connection, void **state,
                           enum MHD_RequestTerminationCode code) {
    struct request *request = *state;
    (void)context;
    (void)connection;
    (void)code;
    if (request) free(request->body);
    free(request);
}

static enum err start_server(struct listener *l, char url[64], struct error *error) {
    uint32_t port = l->options->port;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (port > UINT16_MAX)
        return error_set(error, ERR_USAGE, "--port %" PRIu32 ": ports end at 65535", port);
    l->server = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, on_request, l,
                                 MHD_OPTION_SOCK_ADDR, &at, MHD_OPTION_NOTIFY_COMPLETED,
                                 on_request_end, NULL, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        l->server ? MHD_get_daemon_info(l->server, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    if (!info)
        return error_set(error, ERR_USAGE, "cannot listen on 127.0.0.1, port %" PRIu32 ": %s", port,
                         strerror(errno));
    (void)snprintf(url, 64, "http://127.0.0.1:%u/", info->port);
    return ERR_NONE;
}

/* --- the endpoint --- */

static enum err text_of(struct listener *l, const struct db_statement *statement,
                        const struct db_param *params, char *out, size_t size,
                        struct error *error) {
    struct db_result *rows = NULL;
    enum err rc = db_run(l->db, statement, params, &rows, error);
    if (!rc) (void)snprintf(out, size, "%s", db_rows(rows) > 0 ? db_get_text(rows, 0, 0) : "");
    db_free(rows);
    return rc;
}

static enum err make_endpoint(struct listener *l, const char *url, struct error *error) {
    const char *name = l->options->endpoint;
    enum err rc;
    TRY(text_of(l, &listen_start, DB_PARAMS(db_text(name), db_text(url)), l->secret,
                sizeof l->secret, error));
    say("listening on %s as webhook endpoint '%s': name it in jobs, webhook => '%s'\n", url, name,
        name);
    rc = text_of(l, &listen_ping, DB_PARAMS(db_text(name)), l->ping, sizeof l->ping, error);
fail:
    return rc;
}

/* Says once why the ping does not come; nothing is to be said of one that came, or is gone. */
static enum err look_for_ping(struct listener *l, struct error *error) {
    struct db_result *rows = NULL;
    enum err rc = db_run(l->db, &listen_state, DB_PARAMS(db_text(l->ping)), &rows, error);
    if (rc) return rc;
    l->is_told = true;
    if (db_rows(rows) > 0 && !db_get_bool(rows, 0, STATE_DELIVERED)) {
        if (db_get_int(rows, 0, STATE_ATTEMPTS) == 0)
            say("no finalizer has sent the ping yet: is `proverq serve` running?\n");
        else if (*db_get_text(rows, 0, STATE_LAST_ERROR))
            say("the ping does not arrive: %s\n", db_get_text(rows, 0, STATE_LAST_ERROR));
        else
            l->is_told = false; /* an attempt is under way */
    }
    db_free(rows);
    return ERR_NONE;
}

static enum err wait_for_signal(struct listener *l, struct error *error) {
    enum err rc = ERR_NONE;
    for (int waited = 0; !stop_is_requested(); waited += LOOK_MS) {
        enum db_wake wake;
        TRY(recover(l->db, db_wait(l->db, stop_fd(), LOOK_MS, &wake, error), stop_fd(), error));
        if (waited >= PATIENCE_MS && !l->is_told)
            TRY(recover(l->db, look_for_ping(l, error), stop_fd(), error));
    }
fail:
    return rc;
}

/* --- start and end --- */

static enum err connect_database(struct listener *l, struct error *error) {
    static const struct db_statement *const statements[] = {&listen_start, &listen_ping,
                                                            &listen_state, &listen_stop};
    const struct db_settings settings = db_settings_for(l->options->database, "listen", statements,
                                                        sizeof statements / sizeof *statements);
    return db_open(&settings, &l->db, error);
}

enum err webhook_viewer_run(const struct options *options, struct error *error) {
    enum err rc;
    char url[64];
    struct error ignored = {.code = ERR_NONE};
    struct listener *l = calloc(1, sizeof *l);
    if (!l) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    l->options = options;
    TRY(stop_open(NULL, NULL, error));
    TRY(connect_database(l, error));
    TRY(start_server(l, url, error));
    TRY(make_endpoint(l, url, error));
    TRY(wait_for_signal(l, error));
    rc = db_run(l->db, &listen_stop, DB_PARAMS(db_text(options->endpoint)), NULL, error);
fail:
    if (l->server) MHD_stop_daemon(l->server);
    if (rc && l->db && *l->secret && db_is_connected(l->db))
        (void)!db_run(l->db, &listen_stop, DB_PARAMS(db_text(options->endpoint)), NULL, &ignored);
    db_close(l->db);
    stop_close();
    OPENSSL_cleanse(l->secret, sizeof l->secret);
    free(l);
    return rc;
}
