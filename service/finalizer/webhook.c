#include "service/finalizer/webhook.h"

#include "gpu/monotonic.h"
#include "service/common/version.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    ANSWER_BYTES_MAX = 1 << 16, /* of headers, and of the body, before the exchange is cut */
    SECRET_BYTES_MIN = 24,
    SECRET_BYTES_MAX = 64,
    ID_BYTES = sizeof "msg_" + 32,
    SIGNATURES_MAX = 4,
    CONNECTIONS_KEPT = 512,
    CONNECTION_IDLE_S = 60, /* then it is not used again: the peer may be about to close it */
};

struct transfer {
    struct transfer *next;
    struct webhook_client *client;
    CURL *easy;
    struct curl_slist *headers;
    char *body;
    struct webhook_result result;
    size_t header_bytes, answer_bytes;
    char refused[INET6_ADDRSTRLEN]; /* the address that the filter refused, or empty */
    bool is_tried;                  /* another address was not refused */
    char curl_text[CURL_ERROR_SIZE];
};

struct webhook_client {
    struct address_filter filter;
    bool http;
    long timeout_ms;
    char *ca_file;
    CURLM *multi;
    struct transfer *running, *ended;
    size_t under_way;
    atomic_bool is_woken;
};

/* --- signature --- */

/* The bytes of "whsec_<base64>"; 0 when malformed. */
static size_t secret_bytes(const char *secret, uint8_t bytes[SECRET_BYTES_MAX + 2]) {
    static const char prefix[] = "whsec_";
    if (strncmp(secret, prefix, sizeof prefix - 1) != 0) return 0;
    const char *base64 = secret + sizeof prefix - 1;
    size_t length = strlen(base64), padding = 0;
    if (length == 0 || length > (SECRET_BYTES_MAX + 2) / 3 * 4 || length % 4 != 0) return 0;
    while (padding < 2 && base64[length - 1 - padding] == '=')
        padding++;
    int n = EVP_DecodeBlock(bytes, (const uint8_t *)base64, (int)length);
    if (n < 0 || (size_t)n - padding < SECRET_BYTES_MIN || (size_t)n - padding > SECRET_BYTES_MAX)
        return 0;
    return (size_t)n - padding;
}

enum err webhook_sign(const char *secret, const char *id, int64_t timestamp, const char *body,
                      size_t body_bytes, char out[WEBHOOK_SIGNATURE_BYTES], struct error *error) {
    uint8_t key[SECRET_BYTES_MAX + 2], mac[EVP_MAX_MD_SIZE];
    unsigned mac_bytes = 0;
    enum err rc = ERR_NONE;
    char *content = NULL;
    size_t key_bytes = secret_bytes(secret, key);
    if (key_bytes == 0) {
        rc = error_set(error, ERR_INPUT,
                       "the endpoint's secret is not whsec_ and the base64 of %d to %d bytes",
                       SECRET_BYTES_MIN, SECRET_BYTES_MAX);
        goto fail;
    }
    int prefix = asprintf(&content, "%s.%" PRId64 ".", id, timestamp);
    char *bigger = prefix < 0 ? NULL : realloc(content, (size_t)prefix + body_bytes);
    if (!bigger) {
        if (prefix < 0) content = NULL;
        rc = error_set(error, ERR_HOST_MEMORY, "out of memory while signing a webhook");
        goto fail;
    }
    content = bigger;
    memcpy(content + prefix, body, body_bytes);
    if (!HMAC(EVP_sha256(), key, (int)key_bytes, (const uint8_t *)content,
              (size_t)prefix + body_bytes, mac, &mac_bytes)) {
        rc = error_set(error, ERR_INTERNAL, "HMAC-SHA256 failed");
        goto fail;
    }
    memcpy(out, "v1,", 3);
    (void)EVP_EncodeBlock((uint8_t *)out + 3, mac, (int)mac_bytes);
fail:
    OPENSSL_cleanse(key, sizeof key);
    free(content);
    return rc;
}

/* --- what libcurl calls --- */

/* Sees each address that is connected to, after the name was resolved: no name, notation or second
 * answer of a name server gets around it. */
static curl_socket_t open_socket(void *data, curlsocktype purpose, struct curl_sockaddr *address) {
    struct transfer *t = data;
    if (purpose != CURLSOCKTYPE_IPCXN || !address_allowed(&t->client->filter, &address->addr)) {
        address_text(&address->addr, t->refused);
        return CURL_SOCKET_BAD;
    }
    t->is_tried = true;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t take_header(const char *bytes, size_t size, size_t n, void *data) {
    struct transfer *t = data;
    (void)bytes;
    t->header_bytes += size * n;
    return t->header_bytes > ANSWER_BYTES_MAX ? 0 : size * n;
}

static size_t take_answer(char *bytes, size_t size, size_t n, void *data) {
    struct transfer *t = data;
    size_t length = size * n;
    if (t->answer_bytes < (WEBHOOK_ANSWER_BYTES - 1)) {
        size_t room = (WEBHOOK_ANSWER_BYTES - 1) - t->answer_bytes;
        memcpy(t->result.answer + t->answer_bytes, bytes, length < room ? length : room);
    }
    t->answer_bytes += length;
    return t->answer_bytes > ANSWER_BYTES_MAX ? 0 : length;
}

/* --- making a request --- */

static bool add_header(struct transfer *t, const char *name, const char *value) {
    char line[SIGNATURES_MAX * (WEBHOOK_SIGNATURE_BYTES + 1) + 64];
    (void)snprintf(line, sizeof line, *value ? "%s: %s" : "%s:", name, value);
    struct curl_slist *longer = curl_slist_append(t->headers, line);
    if (longer) t->headers = longer;
    return longer != NULL;
}

/* A signature by each of the secrets, blanks between them. */
static enum err sign_all(const char *secrets, const char *id, int64_t timestamp, const char *body,
                         char out[SIGNATURES_MAX * (WEBHOOK_SIGNATURE_BYTES + 1)],
                         struct error *error) {
    size_t used = 0;
    enum err rc = ERR_NONE;
    char secret[128];
    for (int i = 0; i < SIGNATURES_MAX && (i == 0 || *secrets); i++) {
        size_t n = strcspn(secrets, " ");
        (void)snprintf(secret, sizeof secret, "%.*s", n < sizeof secret ? (int)n : 0, secrets);
        if (used > 0) out[used++] = ' ';
        TRY(webhook_sign(secret, id, timestamp, body, strlen(body), out + used, error));
        used += strlen(out + used);
        secrets += n + (secrets[n] == ' ');
    }
fail:
    OPENSSL_cleanse(secret, sizeof secret);
    return rc;
}

static enum err sign_request(struct transfer *t, const struct webhook_message *message,
                             struct error *error) {
    char id[ID_BYTES] = "msg_", timestamp[24];
    char signatures[SIGNATURES_MAX * (WEBHOOK_SIGNATURE_BYTES + 1)];
    for (size_t i = 0; i < sizeof message->delivery.bytes; i++)
        (void)snprintf(id + 4 + 2 * i, 3, "%02x", message->delivery.bytes[i]);
    (void)snprintf(timestamp, sizeof timestamp, "%" PRId64, message->signed_at);
    enum err rc = sign_all(message->secrets, id, message->signed_at, t->body, signatures, error);
    if (rc) return rc;
    if (add_header(t, "webhook-id", id) && add_header(t, "webhook-timestamp", timestamp) &&
        add_header(t, "webhook-signature", signatures) &&
        add_header(t, "Content-Type", "application/json") &&
        add_header(t, "Expect", "")) /* no round trip before a small body */
        return ERR_NONE;
    return error_set(error, ERR_HOST_MEMORY, "out of memory while starting a webhook");
}

#define SET(option, value)                                                                         \
    if ((code = curl_easy_setopt(t->easy, option, value)) != CURLE_OK) return code

static CURLcode set_protocols(struct transfer *t) {
    CURLcode code;
#if LIBCURL_VERSION_NUM >= 0x075500
    SET(CURLOPT_PROTOCOLS_STR, t->client->http ? "https,http" : "https");
#else
    SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTPS | (t->client->http ? CURLPROTO_HTTP : 0)));
#endif
    return CURLE_OK;
}

static CURLcode set_request(struct transfer *t, const char *url) {
    CURLcode code;
    SET(CURLOPT_PRIVATE, t);
    SET(CURLOPT_ERRORBUFFER, t->curl_text);
    SET(CURLOPT_URL, url);
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_POSTFIELDS, t->body);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(t->body));
    SET(CURLOPT_HTTPHEADER, t->headers);
    SET(CURLOPT_USERAGENT, "proverq/" PROVERQ_VERSION);
    return CURLE_OK;
}

/* What an endpoint, or whoever chose its URL, must not bring about. */
static CURLcode set_limits(struct transfer *t) {
    CURLcode code;
    SET(CURLOPT_PROXY, ""); /* a proxy would connect where open_socket cannot see */
    SET(CURLOPT_OPENSOCKETFUNCTION, open_socket); /* sees every address, however it was written */
    SET(CURLOPT_OPENSOCKETDATA, t);
    SET(CURLOPT_FOLLOWLOCATION, 0L);              /* the signature is for this endpoint only */
    SET(CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);    /* a password would stand in every log */
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED); /* no password of this host goes anywhere */
    SET(CURLOPT_COOKIEFILE, NULL);                /* no cookie engine: endpoints share nothing */
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1); /* a connection holds one up at most */
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2); /* older ones are broken */
    SET(CURLOPT_SSL_VERIFYPEER, 1L); /* the default, but what all rests on is said */
    SET(CURLOPT_SSL_VERIFYHOST, 2L); /* 2: the certificate is for this host */
    if (*t->client->ca_file) SET(CURLOPT_CAINFO, t->client->ca_file);
    SET(CURLOPT_NOSIGNAL, 1L);                      /* several threads: no SIGALRM */
    SET(CURLOPT_TIMEOUT_MS, t->client->timeout_ms); /* of all: an answer in drips has no more */
    SET(CURLOPT_CONNECTTIMEOUT_MS, t->client->timeout_ms / 3 + 1); /* 0 would be curl's 300 s */
#if LIBCURL_VERSION_NUM >= 0x075700
    SET(CURLOPT_QUICK_EXIT, 1L); /* else a name server that hangs would hold up everybody */
#endif
    SET(CURLOPT_MAXAGE_CONN, (long)CONNECTION_IDLE_S);
    SET(CURLOPT_WRITEFUNCTION, take_answer); /* MAXFILESIZE misses answers of unknown length */
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_HEADERFUNCTION, take_header);
    SET(CURLOPT_HEADERDATA, t);
    return CURLE_OK;
}

#undef SET

static void free_transfer(struct transfer *t) {
    if (t->easy) curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    free(t->body);
    free(t);
}

/* --- results --- */

/* What is written to a database as text and to a terminal: one line of ASCII. */
static void make_printable(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e) *text = '.';
}

static void explain_answer(struct transfer *t) {
    (void)snprintf(t->result.error, sizeof t->result.error, "HTTP %d from %s%s%s%s",
                   t->result.status, *t->result.peer ? t->result.peer : "?",
                   t->result.status / 100 == 3 ? " (redirects are not followed)" : "",
                   *t->result.answer ? ": " : "", t->result.answer);
}

/* Of a name with several addresses, what happened to those that were tried, in whatever order. */
static void explain_failure(struct transfer *t, CURLcode code) {
    char *text = t->result.error;
    size_t size = sizeof t->result.error;
    if (*t->refused && !t->is_tried)
        (void)snprintf(text, size,
                       "%s is not a public address: the finalizer's operator can allow its network "
                       "with --webhook-allow",
                       t->refused);
    else if (code == CURLE_UNSUPPORTED_PROTOCOL && !t->client->http)
        (void)snprintf(text, size,
                       "only https:// endpoints are delivered to: the finalizer's operator can "
                       "allow http:// with --webhook-http");
    else
        (void)snprintf(text, size, "%s", *t->curl_text ? t->curl_text : curl_easy_strerror(code));
}

static void end_transfer(struct transfer *t) {
    make_printable(t->result.error);
    make_printable(t->result.answer);
    for (struct transfer **at = &t->client->running; *at; at = &(*at)->next)
        if (*at == t) {
            *at = t->next;
            break;
        }
    t->next = t->client->ended;
    t->client->ended = t;
}

static int64_t measured(struct transfer *t, CURLINFO what) {
    curl_off_t us = 0;
    return curl_easy_getinfo(t->easy, what, &us) == CURLE_OK && us > 0 ? us : 0;
}

static void take_facts(struct transfer *t) {
    struct webhook_result *r = &t->result;
    const char *peer = NULL;
    if (curl_easy_getinfo(t->easy, CURLINFO_PRIMARY_IP, &peer) == CURLE_OK && peer)
        (void)snprintf(r->peer, sizeof r->peer, "%s", peer);
    r->dns_us = measured(t, CURLINFO_NAMELOOKUP_TIME_T);
    r->connect_us = measured(t, CURLINFO_CONNECT_TIME_T);
    r->tls_us = measured(t, CURLINFO_APPCONNECT_TIME_T);
    r->first_byte_us = measured(t, CURLINFO_STARTTRANSFER_TIME_T);
    r->total_us = measured(t, CURLINFO_TOTAL_TIME_T);
}

/* An answer counts by its status even if its body was cut (code is then not CURLE_OK). */
static void conclude(struct transfer *t, CURLcode code) {
    long status = 0;
    curl_off_t retry_after = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &retry_after);
    t->result.status = status > 0 && status < 1000 ? (int)status : 0;
    t->result.curl_code = (int)code;
    take_facts(t);
    t->result.retry_after_s = retry_after > INT32_MAX ? INT32_MAX : (int)retry_after;
    if (t->result.status / 100 == 2)
        t->result.error[0] = '\0';
    else if (t->result.status)
        explain_answer(t);
    else
        explain_failure(t, code);
    end_transfer(t);
}

static void collect(struct webhook_client *client) {
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(client->multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        CURLcode code = message->data.result; /* `message` dies with the handle's removal */
        CURL *easy = message->easy_handle;
        struct transfer *t = NULL;
        (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &t);
        (void)curl_multi_remove_handle(client->multi, easy);
        conclude(t, code);
    }
}

/* --- the client --- */

enum err webhook_client_open(const struct webhook_settings *settings, struct webhook_client **out,
                             struct error *error) {
    struct webhook_client *client = calloc(1, sizeof *client);
    if (!client) goto no_memory;
    client->filter = settings->filter;
    client->http = settings->http;
    client->timeout_ms = (long)settings->timeout_ms;
    client->ca_file = strdup(settings->ca_file);
    CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
    client->multi = code == CURLE_OK ? curl_multi_init() : NULL;
    if (!client->ca_file || !client->multi) goto no_memory;
    (void)curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT);
    *out = client;
    return ERR_NONE;
no_memory:
    webhook_client_close(client);
    return error_set(error, ERR_HOST_MEMORY, "out of memory while starting libcurl");
}

static void free_list(struct webhook_client *client, struct transfer *list) {
    while (list) {
        struct transfer *t = list;
        list = t->next;
        if (t->easy) (void)curl_multi_remove_handle(client->multi, t->easy);
        free_transfer(t);
    }
}

void webhook_client_close(struct webhook_client *client) {
    if (!client) return;
    free_list(client, client->running);
    free_list(client, client->ended);
    if (client->multi) (void)curl_multi_cleanup(client->multi);
    free(client->ca_file);
    free(client);
}

enum err webhook_start(struct webhook_client *client, const struct webhook_message *message,
                       struct error *error) {
    enum err rc;
    struct transfer *t = calloc(1, sizeof *t);
    if (!t || !(t->body = strdup(message->body)) || !(t->easy = curl_easy_init())) {
        rc = error_set(error, ERR_HOST_MEMORY, "out of memory while starting a webhook");
        goto fail;
    }
    t->client = client;
    t->result = (struct webhook_result){
        .delivery = message->delivery, .token = message->token, .is_failing = message->is_failing};
    rc = sign_request(t, message, error);
    if (rc == ERR_INPUT) {
        (void)snprintf(t->result.error, sizeof t->result.error, "%s", error->text);
        client->under_way++;
        end_transfer(t);
        return ERR_NONE;
    }
    if (rc) goto fail;
    CURLcode code = set_request(t, message->url);
    if (code == CURLE_OK) code = set_protocols(t);
    if (code == CURLE_OK) code = set_limits(t);
    CURLMcode added = code == CURLE_OK ? curl_multi_add_handle(client->multi, t->easy) : CURLM_OK;
    if (code != CURLE_OK || added != CURLM_OK) {
        rc = error_set(error, ERR_INTERNAL, "libcurl: %s",
                       code ? curl_easy_strerror(code) : curl_multi_strerror(added));
        goto fail;
    }
    t->next = client->running;
    client->running = t;
    client->under_way++;
    return ERR_NONE;
fail:
    if (t) free_transfer(t);
    return rc;
}

enum err webhook_wait(struct webhook_client *client, int timeout_ms, struct error *error) {
    int64_t end = monotonic_ms() + timeout_ms;
    for (;;) {
        int running;
        CURLMcode code = curl_multi_perform(client->multi, &running);
        collect(client);
        int64_t left = end - monotonic_ms();
        bool woken = atomic_exchange(&client->is_woken, false);
        if (code == CURLM_OK && (client->ended || woken || left <= 0)) return ERR_NONE;
        if (code == CURLM_OK) code = curl_multi_poll(client->multi, NULL, 0, (int)left, NULL);
        if (code != CURLM_OK)
            return error_set(error, ERR_INTERNAL, "libcurl: %s", curl_multi_strerror(code));
    }
}

void webhook_wake(struct webhook_client *client) {
    atomic_store(&client->is_woken, true);
    (void)curl_multi_wakeup(client->multi);
}

bool webhook_take(struct webhook_client *client, struct webhook_result *out) {
    struct transfer *t = client->ended;
    if (!t) return false;
    client->ended = t->next;
    client->under_way--;
    *out = t->result;
    free_transfer(t);
    return true;
}

size_t webhook_under_way(const struct webhook_client *client) {
    return client->under_way;
}
