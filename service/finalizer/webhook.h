/* Webhook delivery over HTTPS: many requests under way in one thread, signed as the Standard
 * Webhooks specification (2024) says.
 *
 * A message is one POST of the stored bytes to one endpoint. The headers are webhook-id (the same
 * in every attempt: the consumer's key for recognising repetitions), webhook-timestamp (of this
 * attempt) and webhook-signature: HMAC-SHA256 over "id.timestamp.body", by each secret that is valid
 * (two while one is replaced). Connections are kept and used again; what an address filter let
 * through when a connection was made holds for all that goes over it. Whether it succeeded, and
 * when the next attempt is due, the database decides from the result.
 *
 * The only module that knows libcurl.
 */
#ifndef PROVERQ_WEBHOOK_H
#define PROVERQ_WEBHOOK_H

#include "service/common/uuid.h"
#include "service/finalizer/address.h"

struct webhook_settings {
    struct address_filter filter;
    bool http;           /* http:// endpoints too */
    uint32_t timeout_ms; /* for the whole exchange; connecting may take a third of it */
    const char *ca_file; /* authorities that certify endpoints; "" for the system's */
};

struct webhook_message {
    struct uuid delivery; /* webhook-id is msg_ and its 32 hexadecimal digits */
    struct uuid token;    /* handed back with the result */
    bool is_failing;      /* handed back too */
    const char *url;
    const char *secrets; /* one or two, a blank between: whsec_<base64 of 24 to 64 bytes> */
    const char *body;
    int64_t signed_at; /* seconds since 1970, by the database's clock */
};

enum { WEBHOOK_ANSWER_BYTES = 160 };

struct webhook_result {
    struct uuid delivery, token;
    bool is_failing;
    int status;        /* of the answer; 0 when there was none */
    int curl_code;     /* libcurl's; an answer counts by its status even if this is not 0 */
    char error[512];   /* empty after a 2xx; else what happened, with peer and first bytes of the
                        * answer, printable */
    int retry_after_s; /* of the answer; 0 when it did not say */
    char peer[INET6_ADDRSTRLEN]; /* that was connected to; "" for none */
    /* From the start until the name was resolved, the connection made, TLS agreed on, the answer
     * begun, and all ended; 0: did not happen (a connection that was used again). */
    int64_t dns_us, connect_us, tls_us, first_byte_us, total_us;
    char answer[WEBHOOK_ANSWER_BYTES]; /* its first bytes, printable */
};

struct webhook_client; /* opaque; used by one thread, but for webhook_wake */

MUST_USE enum err webhook_client_open(const struct webhook_settings *settings,
                                      struct webhook_client **out, struct error *error);
/* Drops what is under way. NULL is allowed. */
void webhook_client_close(struct webhook_client *client);

/* Starts a delivery; copies the message. What is wrong with it (ERR_INPUT: URL, secret) becomes its
 * result like an answer would, so only ERR_HOST_MEMORY and ERR_INTERNAL are returned. */
MUST_USE enum err webhook_start(struct webhook_client *client,
                                const struct webhook_message *message, struct error *error);

/* Works on what is under way until something has ended, webhook_wake is called, or `timeout_ms`
 * have passed. */
MUST_USE enum err webhook_wait(struct webhook_client *client, int timeout_ms, struct error *error);
void webhook_wake(struct webhook_client *client); /* from any thread */

/* Takes the result of a delivery that has ended, if there is one. */
bool webhook_take(struct webhook_client *client, struct webhook_result *out);

/* Deliveries started whose result has not been taken. */
size_t webhook_under_way(const struct webhook_client *client);

enum { WEBHOOK_SIGNATURE_BYTES = 48 };

/* "v1,<base64>", one signature. ERR_INPUT for a malformed secret. */
MUST_USE enum err webhook_sign(const char *secret, const char *id, int64_t timestamp,
                               const char *body, size_t body_bytes,
                               char out[WEBHOOK_SIGNATURE_BYTES], struct error *error);

#endif
