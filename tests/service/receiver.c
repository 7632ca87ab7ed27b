#include "tests/service/receiver.h"

#include <arpa/inet.h>
#include <check.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    struct MHD_Daemon *daemon;
    char url[64];
    atomic_int requests, connections;
    pthread_mutex_t lock; /* of what follows */
    struct receiver_request last;
} receiver = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep(char *to, size_t size, struct MHD_Connection *connection, const char *header) {
    const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, header);
    (void)snprintf(to, size, "%s", value ? value : "(none)");
}

static ssize_t endless(void *context, uint64_t at, char *bytes, size_t most) {
    (void)context;
    (void)at;
    memset(bytes, 'x', most);
    return (ssize_t)most;
}

static ssize_t drip(void *context, uint64_t at, char *bytes, size_t most) {
    (void)context;
    (void)at;
    (void)most;
    (void)usleep(50000);
    *bytes = '.';
    return 1;
}

static struct MHD_Response *response_of(const char *path) {
    static char text[] = "first line\nsecond \x1b[31m line";
    if (strncmp(path, "/endless", 8) == 0)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, endless, NULL, NULL);
    if (strncmp(path, "/drip", 5) == 0)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 1, drip, NULL, NULL);
    return MHD_create_response_from_buffer(sizeof text - 1, text, MHD_RESPMEM_PERSISTENT);
}

/* The request's header fields, and its body as it comes; a thread per connection does this. */
static void take_request(struct MHD_Connection *connection) {
    (void)pthread_mutex_lock(&receiver.lock);
    keep(receiver.last.id, sizeof receiver.last.id, connection, "webhook-id");
    keep(receiver.last.timestamp, sizeof receiver.last.timestamp, connection, "webhook-timestamp");
    keep(receiver.last.signature, sizeof receiver.last.signature, connection, "webhook-signature");
    keep(receiver.last.content_type, sizeof receiver.last.content_type, connection, "Content-Type");
    keep(receiver.last.agent, sizeof receiver.last.agent, connection, "User-Agent");
    keep(receiver.last.expect, sizeof receiver.last.expect, connection, "Expect");
    receiver.last.body_bytes = 0;
    (void)pthread_mutex_unlock(&receiver.lock);
}

static enum MHD_Result take_body(const char *bytes, size_t n) {
    (void)pthread_mutex_lock(&receiver.lock);
    bool fits = receiver.last.body_bytes + n <= sizeof receiver.last.body;
    if (fits) memcpy(receiver.last.body + receiver.last.body_bytes, bytes, n);
    if (fits) receiver.last.body_bytes += n;
    (void)pthread_mutex_unlock(&receiver.lock);
    return fits ? MHD_YES : MHD_NO;
}

static enum MHD_Result respond(struct MHD_Connection *connection, const char *path) {
    struct MHD_Response *response = response_of(path);
    const char *digits = path + strcspn(path, "0123456789");
    unsigned status = *digits ? (unsigned)strtoul(digits, NULL, 10) : 200;
    char value[4000] = "";
    if (status / 100 == 3) (void)MHD_add_response_header(response, "Location", "/200");
    if (status == 429) (void)MHD_add_response_header(response, "Retry-After", "7");
    memset(value, 'h', sizeof value - 1);
    for (int i = 0; i < 40 && strcmp(path, "/headers") == 0; i++)
        (void)MHD_add_response_header(response, "X-Long", value);
    enum MHD_Result queued = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *bytes,
                              size_t *n_bytes, void **state) {
    (void)context;
    (void)version;
    if (strcmp(method, "POST") != 0) return MHD_NO;
    if (!*state) {
        *state = &receiver;
        take_request(connection);
        return MHD_YES;
    }
    if (*n_bytes > 0) {
        size_t n = *n_bytes;
        *n_bytes = 0;
        return take_body(bytes, n);
    }
    atomic_fetch_add(&receiver.requests, 1);
    if (strcmp(path, "/slow") == 0) (void)sleep(4);
    if (strcmp(path, "/pause") == 0) (void)usleep(300000);
    return respond(connection, path);
}

static void count_connection(void *context, struct MHD_Connection *connection, void **state,
                             enum MHD_ConnectionNotificationCode what) {
    (void)context;
    (void)connection;
    (void)state;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) atomic_fetch_add(&receiver.connections, 1);
}

void receiver_start(const char *key, const char *certificate) {
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                     (key ? (unsigned)MHD_USE_TLS : 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)key},
                                   {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)certificate},
                                   {MHD_OPTION_END, 0, NULL}};
    receiver.daemon = MHD_start_daemon(flags, 0, NULL, NULL, answer, NULL, MHD_OPTION_SOCK_ADDR,
                                       &at, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)1 << 20,
                                       MHD_OPTION_NOTIFY_CONNECTION, count_connection, NULL,
                                       MHD_OPTION_ARRAY, key ? tls : tls + 2, MHD_OPTION_END);
    ck_assert_ptr_nonnull(receiver.daemon);
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(receiver.daemon, MHD_DAEMON_INFO_BIND_PORT);
    ck_assert_ptr_nonnull(info);
    (void)snprintf(receiver.url, sizeof receiver.url, "%s://%s:%u", key ? "https" : "http",
                   key ? "localhost" : "127.0.0.1", info->port);
}

void receiver_stop(void) {
    MHD_stop_daemon(receiver.daemon);
}

const char *receiver_url(void) {
    return receiver.url;
}

int receiver_requests(void) {
    return atomic_load(&receiver.requests);
}

int receiver_connections(void) {
    return atomic_load(&receiver.connections);
}

struct receiver_request receiver_last(void) {
    (void)pthread_mutex_lock(&receiver.lock);
    struct receiver_request last = receiver.last;
    (void)pthread_mutex_unlock(&receiver.lock);
    return last;
}
