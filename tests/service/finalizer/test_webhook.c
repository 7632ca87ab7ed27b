/* Webhook delivery against real HTTP receivers on the loopback interface: what is sent, which answers
 * count, and what is never done (redirects, private addresses, proxies, endless answers). */
#include "service/finalizer/webhook.h"
#include "tests/gpu/suite.h"
#include "tests/service/receiver.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <netdb.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char secret[] = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

enum { SIGNED_AT = 1600000000 }; /* September 2020: no clock here says so */
static const char other_secret[] = "whsec_ISEhISEhISEhISEhISEhISEhISEhISEhISEhISEhISE=";

static struct error error;
static uint32_t timeout_ms; /* of the clients that a test makes */

static int64_t now_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Long: most tests pass on a machine that is slow, and those of the time set their own. */
static void set_timeout(void) {
    timeout_ms = 20000;
}

static void setup(void) {
    set_timeout();
    receiver_start(NULL, NULL);
}

static void teardown(void) {
    receiver_stop();
}

/* --- names: this function stands before the C library's, for libcurl too --- */

/* Addresses of every name that ends in .test: of the first try and of the second. */
static const char *answers[2];
static unsigned lookup_us; /* how long a name server takes */

static void add_answer(struct addrinfo **list, const char *text, uint16_t port, int type) {
    struct {
        struct addrinfo info;
        struct sockaddr_storage address;
    } *one = calloc(1, sizeof *one);
    struct sockaddr_in *v4 = (void *)&one->address;
    struct sockaddr_in6 *v6 = (void *)&one->address;
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
    } else {
        ck_assert_int_eq(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
    }
    bool is_v4 = one->address.ss_family == AF_INET;
    one->info = (struct addrinfo){.ai_family = one->address.ss_family,
                                  .ai_socktype = type ? type : SOCK_STREAM,
                                  .ai_addrlen = is_v4 ? sizeof *v4 : sizeof *v6,
                                  .ai_addr = (void *)&one->address,
                                  .ai_next = *list};
    *list = &one->info;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **out) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    char addresses[256], *rest = addresses, *one;
    size_t length = name ? strlen(name) : 0;
    if (length < 5 || strcmp(name + length - 5, ".test") != 0) {
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
        return real(name, service, hints, out);
    }
    (void)usleep(lookup_us);
    (void)snprintf(addresses, sizeof addresses, "%s", answers[0]);
    *out = NULL;
    while ((one = strsep(&rest, " ")))
        add_answer(out, one, (uint16_t)(service ? strtoul(service, NULL, 10) : 0),
                   hints ? hints->ai_socktype : 0);
    if (answers[1]) answers[0] = answers[1];
    return 0;
}

void freeaddrinfo(struct addrinfo *list) {
    void (*real)(struct addrinfo *);
    if (list && list->ai_addr == (void *)(list + 1)) {
        while (list) {
            struct addrinfo *next = list->ai_next;
            free(list);
            list = next;
        }
        return;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "freeaddrinfo");
    real(list);
}

/* --- a server without manners, for one connection: what it says, and then says for ever --- */

static struct {
    int fd;
    uint16_t port;
    const char *first, *again;
    unsigned pause_us;
    pthread_t thread; /* ends when the client has closed the connection */
} rude;

static void *rude_server(void *unused) {
    char buffer[4096];
    int fd = accept(rude.fd, NULL, NULL);
    (void)unused;
    ssize_t sent = fd < 0 ? -1 : recv(fd, buffer, sizeof buffer, 0);
    if (sent > 0) sent = send(fd, rude.first, strlen(rude.first), MSG_NOSIGNAL);
    while (sent >= 0) {
        sent = send(fd, rude.again, strlen(rude.again), MSG_NOSIGNAL);
        if (rude.pause_us) (void)usleep(rude.pause_us);
    }
    (void)close(fd);
    return NULL;
}

static void rude_start(const char *first, const char *again, unsigned pause_us) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    rude.first = first, rude.again = again, rude.pause_us = pause_us;
    rude.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(rude.fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(rude.fd, 1), 0);
    ck_assert_int_eq(getsockname(rude.fd, (struct sockaddr *)&at, &size), 0);
    rude.port = ntohs(at.sin_port);
    ck_assert_int_eq(pthread_create(&rude.thread, NULL, rude_server, NULL), 0);
}

/* --- the client under test --- */

static struct webhook_client *client_of(const char *allow, bool http, const char *ca_file) {
    struct webhook_settings settings = {.http = http, .timeout_ms = timeout_ms, .ca_file = ca_file};
    struct webhook_client *client = NULL;
    if (*allow) ck_assert_int_eq(address_filter_allow(&settings.filter, allow, &error), ERR_NONE);
    ck_assert_msg(webhook_client_open(&settings, &client, &error) == ERR_NONE, "%s", error.text);
    return client;
}

static void start(struct webhook_client *client, const char *url, const char *key,
                  const char *body) {
    struct webhook_message message = {
        .delivery = {{0xab, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff}},
        .token = {{1}},
        .url = url,
        .secrets = key,
        .body = body,
        .signed_at = SIGNED_AT};
    ck_assert_msg(webhook_start(client, &message, &error) == ERR_NONE, "%s", error.text);
}

static struct webhook_result wait_for_result(struct webhook_client *client) {
    struct webhook_result result;
    int64_t end = now_ms() + 30000;
    while (!webhook_take(client, &result)) {
        ck_assert_msg(now_ms() < end, "no result");
        ck_assert_msg(webhook_wait(client, 1000, &error) == ERR_NONE, "%s", error.text);
    }
    return result;
}

static struct webhook_result deliver_to(struct webhook_client *client, const char *url) {
    start(client, url, secret, "{}");
    struct webhook_result result = wait_for_result(client);
    ck_assert_uint_eq(webhook_under_way(client), 0);
    webhook_client_close(client);
    return result;
}

/* To a path of the receiver, allowed. */
static struct webhook_result deliver(const char *path) {
    char url[128];
    (void)snprintf(url, sizeof url, "%s%s", receiver_url(), path);
    return deliver_to(client_of("127.0.0.0/8", true, ""), url);
}

static void says(const struct webhook_result *result, const char *text) {
    ck_assert_msg(strstr(result->error, text) != NULL, "\"%s\" does not say \"%s\"", result->error,
                  text);
}

/* --- signatures --- */

/* Made with npm standardwebhooks 1.0.0: new Webhook(secret).sign(id, new Date(t * 1000), body). */
START_TEST(signatures_are_those_of_the_reference_implementation) {
    static const struct {
        const char *secret, *id;
        int64_t timestamp;
        const char *body, *signature;
    } vectors[] = {
        {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
         "{\"test\": 2432232314}", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
        {"whsec_"
         "paWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpQ"
         "==",
         "msg_0123456789abcdef0123456789abcdef", 1796000000, "",
         "v1,hUWZ2/QeIGmkEAsqjQEBzxgELEgGsL7mqjM/RJnMpH4="},
        {"whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
         "msg_00000000000000000000000000000001", 2000000000, "{\"text\":\"čžš \\u0000 end\"}\n",
         "v1,0FqCl6DSXBEGGKK+gA79unMRYzsG7L0Pv7aPIp+JEvA="},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        char signature[WEBHOOK_SIGNATURE_BYTES];
        ck_assert_int_eq(webhook_sign(vectors[i].secret, vectors[i].id, vectors[i].timestamp,
                                      vectors[i].body, strlen(vectors[i].body), signature, &error),
                         ERR_NONE);
        ck_assert_str_eq(signature, vectors[i].signature);
    }
}
END_TEST

START_TEST(malformed_secrets_are_refused) {
    static const char *const bad[] = {
        "",
        "whsec_",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRY=",  /* 23 bytes */
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa",    /* no multiple of 4 */
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa!w!", /* no base64 */
        "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        "AA=",
        "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        "AAAAAAAA",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char signature[WEBHOOK_SIGNATURE_BYTES];
        ck_assert_msg(webhook_sign(bad[i], "msg_1", 1, "", 0, signature, &error) == ERR_INPUT, "%s",
                      bad[i]);
    }
    struct webhook_client *client = client_of("127.0.0.0/8", true, "");
    start(client, receiver_url(), "whsec_short", "{}");
    struct webhook_result result = wait_for_result(client);
    says(&result, "secret");
    ck_assert_ptr_null(strstr(result.error, "whsec_short"));
    ck_assert_int_eq(result.status, 0);
    ck_assert_int_eq(receiver_requests(), 0);
    webhook_client_close(client);
}
END_TEST

/* --- requests and answers --- */

START_TEST(the_receiver_gets_the_stored_bytes_and_can_verify_them) {
    static const char body[] = "{\"type\":\"proverq.job.finished\",\"data\":{\"circuit\":\"č\"}}";
    char url[128], expected[WEBHOOK_SIGNATURE_BYTES];
    (void)snprintf(url, sizeof url, "%s/200?key=a%%20b", receiver_url());
    struct webhook_client *client = client_of("127.0.0.0/8", true, "");
    start(client, url, secret, body);
    struct webhook_result result = wait_for_result(client);
    ck_assert_msg(result.status == 200, "%s", result.error);
    ck_assert_str_eq(result.error, "");
    struct receiver_request last = receiver_last();
    ck_assert_int_eq(result.token.bytes[0], 1);
    ck_assert_int_eq(result.delivery.bytes[15], 0xff);
    ck_assert_uint_eq(last.body_bytes, strlen(body));
    ck_assert_mem_eq(last.body, body, strlen(body));
    ck_assert_str_eq(last.id, "msg_ab0102030405060708090a0b0c0d0eff");
    ck_assert_str_eq(last.content_type, "application/json");
    ck_assert_int_eq(strncmp(last.agent, "proverq/", 8), 0);
    ck_assert_str_eq(last.expect, "(none)");
    int64_t timestamp = strtoll(last.timestamp, NULL, 10);
    ck_assert_int_eq(timestamp, SIGNED_AT); /* whatever this host's clock says */
    ck_assert_int_eq(
        webhook_sign(secret, last.id, timestamp, last.body, last.body_bytes, expected, &error),
        ERR_NONE);
    ck_assert_str_eq(last.signature, expected);
    webhook_client_close(client);
}
END_TEST

START_TEST(while_a_secret_is_replaced_both_sign) {
    char secrets[160], expected[2 * WEBHOOK_SIGNATURE_BYTES], url[128];
    (void)snprintf(secrets, sizeof secrets, "%s %s", secret, other_secret);
    (void)snprintf(url, sizeof url, "%s/200", receiver_url());
    struct webhook_client *client = client_of("127.0.0.0/8", true, "");
    start(client, url, secrets, "{}");
    ck_assert_int_eq(wait_for_result(client).status, 200);
    struct receiver_request last = receiver_last();
    int64_t timestamp = strtoll(last.timestamp, NULL, 10);
    ck_assert_int_eq(webhook_sign(secret, last.id, timestamp, "{}", 2, expected, &error), ERR_NONE);
    size_t n = strlen(expected);
    expected[n++] = ' ';
    ck_assert_int_eq(webhook_sign(other_secret, last.id, timestamp, "{}", 2, expected + n, &error),
                     ERR_NONE);
    ck_assert_str_eq(last.signature, expected);
    webhook_client_close(client);
}
END_TEST

START_TEST(a_result_tells_the_peer_the_times_and_the_answer) {
    struct webhook_result result = deliver("/500");
    ck_assert_str_eq(result.peer, "127.0.0.1");
    ck_assert_str_eq(result.answer, "first line.second .[31m line");
    ck_assert_int_eq(result.curl_code, 0);
    ck_assert_int_gt(result.connect_us, 0);
    ck_assert_int_ge(result.first_byte_us, result.connect_us);
    ck_assert_int_ge(result.total_us, result.first_byte_us);
    ck_assert_int_eq(result.tls_us, 0);
}
END_TEST

START_TEST(connections_are_used_again) {
    char url[128];
    (void)snprintf(url, sizeof url, "%s/200", receiver_url());
    struct webhook_client *client = client_of("127.0.0.0/8", true, "");
    for (int i = 0; i < 5; i++) {
        start(client, url, secret, "{}");
        ck_assert_int_eq(wait_for_result(client).status, 200);
    }
    ck_assert_int_eq(receiver_requests(), 5);
    ck_assert_int_eq(receiver_connections(), 1);
    webhook_client_close(client);
}
END_TEST

START_TEST(only_2xx_is_success) {
    static const int statuses[] = {200, 201, 202, 204, 299, 301, 302, 307, 308, 400, 404, 500, 503};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        char path[16];
        (void)snprintf(path, sizeof path, "/%d", statuses[i]);
        struct webhook_result result = deliver(path);
        ck_assert_int_eq(result.status, statuses[i]);
        ck_assert_msg((*result.error == '\0') == (statuses[i] < 300), "%d", statuses[i]);
    }
}
END_TEST

START_TEST(a_redirect_is_not_followed) {
    struct webhook_result result = deliver("/302");
    says(&result, "redirects are not followed");
    ck_assert_int_eq(receiver_requests(), 1);
}
END_TEST

START_TEST(a_refusal_shows_peer_and_answer_on_one_printable_line) {
    struct webhook_result result = deliver("/500");
    ck_assert_str_eq(result.error, "HTTP 500 from 127.0.0.1: first line.second .[31m line");
}
END_TEST

START_TEST(gone_is_told) {
    ck_assert_int_eq(deliver("/410").status, 410);
}
END_TEST

START_TEST(retry_after_is_told) {
    struct webhook_result result = deliver("/429");
    ck_assert_int_eq(result.status, 429);
    ck_assert_int_eq(result.retry_after_s, 7);
    ck_assert_int_eq(deliver("/503").retry_after_s, 0);
}
END_TEST

START_TEST(a_receiver_that_does_not_answer_times_out) {
    timeout_ms = 900;
    int64_t start_ms = now_ms();
    struct webhook_result result = deliver("/slow");
    ck_assert_int_eq(result.status, 0);
    says(&result, "timed out");
    ck_assert_int_lt(now_ms() - start_ms, 3900);
    ck_assert_int_ge(result.total_us, 850000);
}
END_TEST

START_TEST(an_endless_answer_is_cut_and_counts_by_its_status) {
    int64_t start_ms = now_ms();
    ck_assert_int_eq(deliver("/endless200").status, 200);
    struct webhook_result result = deliver("/endless500");
    ck_assert_int_eq(result.status, 500);
    says(&result, "HTTP 500 from 127.0.0.1: xxxx");
    ck_assert_int_lt(now_ms() - start_ms, 10000); /* cut by size, before the time is up */
}
END_TEST

START_TEST(a_dripping_answer_is_cut_by_time) {
    timeout_ms = 900;
    struct webhook_result result = deliver("/drip500");
    ck_assert_int_eq(result.status, 500);
    ck_assert_int_lt(result.total_us, 5000000);
}
END_TEST

START_TEST(endless_headers_are_cut) {
    struct webhook_result result = deliver("/headers");
    ck_assert_int_eq(result.status, 200);
}
END_TEST

/* What came of a delivery to the server without manners, and in which time. */
static struct webhook_result deliver_rudely(int64_t *ms) {
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/", rude.port);
    int64_t start_ms = now_ms();
    struct webhook_result result = deliver_to(client_of("127.0.0.0/8", true, ""), url);
    *ms = now_ms() - start_ms;
    ck_assert_int_eq(pthread_join(rude.thread, NULL), 0);
    ck_assert_int_eq(close(rude.fd), 0);
    return result;
}

START_TEST(headers_without_end_are_cut_by_size) {
    int64_t ms;
    rude_start("HTTP/1.1 200 OK\r\n", "X-Header: and one more\r\n", 0);
    (void)deliver_rudely(&ms);
    ck_assert_int_lt(ms, 10000);
    rude_start("", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 0);
    ck_assert_int_ne(deliver_rudely(&ms).status / 100, 2);
    ck_assert_int_lt(ms, 10000);
}
END_TEST

START_TEST(a_header_without_end_is_cut) {
    int64_t ms;
    rude_start("HTTP/1.1 200 OK\r\nX-Header: ", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
               0);
    (void)deliver_rudely(&ms);
    ck_assert_int_lt(ms, 10000);
}
END_TEST

START_TEST(dripping_headers_are_cut_by_time) {
    int64_t ms;
    timeout_ms = 900;
    rude_start("HTTP/1.1 200 OK\r\n", "X: y\r\n", 20000);
    (void)deliver_rudely(&ms);
    ck_assert_int_lt(ms, 5000);
}
END_TEST

START_TEST(what_is_no_http_is_no_success) {
    int64_t ms;
    rude_start("220 smtp.example.org ESMTP\r\n", "250 yes\r\n", 0);
    struct webhook_result result = deliver_rudely(&ms);
    ck_assert_int_eq(result.status, 0);
    ck_assert_str_ne(result.error, "");
}
END_TEST

START_TEST(a_closed_port_is_an_error) {
    receiver_stop();
    struct webhook_result result = deliver("/200");
    receiver_start(NULL, NULL);
    ck_assert_int_eq(result.status, 0);
    says(&result, "connect");
}
END_TEST

/* --- what is refused --- */

START_TEST(private_addresses_are_refused_in_every_notation) {
    static const char *const hosts[] = {"127.0.0.1",
                                        "localhost",
                                        "0x7f.1",
                                        "2130706433",
                                        "127.1",
                                        "0177.0.0.1",
                                        "[::ffff:127.0.0.1]",
                                        "0.0.0.0",
                                        "[::]",
                                        "017700000001",
                                        "0x7f000001",
                                        "[::1]",
                                        "[::ffff:7f00:1]",
                                        "[64:ff9b::7f00:1]",
                                        "[2002:7f00:1::]"};
    const char *port = strrchr(receiver_url(), ':');
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        char url[128];
        (void)snprintf(url, sizeof url, "http://%s%s/200", hosts[i], port);
        struct webhook_result result = deliver_to(client_of("", true, ""), url);
        ck_assert_msg(result.status == 0, "%s", url);
        says(&result, "--webhook-allow");
    }
    ck_assert_int_eq(receiver_requests(), 0);
}
END_TEST

static struct webhook_result deliver_to_name(const char *allow) {
    char url[64];
    (void)snprintf(url, sizeof url, "http://hook.test%s/200", strrchr(receiver_url(), ':'));
    return deliver_to(client_of(allow, true, ""), url);
}

START_TEST(names_that_lead_to_private_addresses_are_refused) {
    static const char *const private[] = {
        "127.0.0.1", "10.0.0.1",         "169.254.169.254", "::1",           "fd00::1",
        "fe80::1",   "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1"};
    for (size_t i = 0; i < sizeof private / sizeof *private; i++) {
        answers[0] = private[i];
        struct webhook_result result = deliver_to_name("");
        ck_assert_msg(result.status == 0, "%s", private[i]);
        says(&result, "is not a public address");
    }
    answers[0] = "127.0.0.1";
    ck_assert_int_eq(deliver_to_name("127.0.0.0/8").status, 200); /* the name itself works */
    ck_assert_int_eq(receiver_requests(), 1);
}
END_TEST

START_TEST(a_private_address_among_others_is_not_tried) {
    answers[0] = "127.0.0.1 127.0.0.2"; /* nothing listens on the allowed one */
    struct webhook_result result = deliver_to_name("127.0.0.2/32");
    ck_assert_int_eq(result.status, 0);
    ck_assert_int_eq(receiver_requests(), 0);
    ck_assert_ptr_null(strstr(result.error, "public")); /* what failed is the allowed one */
    answers[0] = "127.0.0.2 127.0.0.1";
    result = deliver_to_name("127.0.0.2/32");
    ck_assert_int_eq(result.status, 0);
    ck_assert_int_eq(receiver_requests(), 0);
    ck_assert_ptr_null(strstr(result.error, "public"));
}
END_TEST

START_TEST(a_name_that_changes_its_address_is_judged_anew) {
    answers[0] = "127.0.0.2", answers[1] = "127.0.0.1";
    struct webhook_result first = deliver_to_name("127.0.0.2/32");
    struct webhook_result second = deliver_to_name("127.0.0.2/32");
    ck_assert_str_eq(first.peer, "");
    says(&second, "127.0.0.1 is not a public address");
    ck_assert_int_eq(receiver_requests(), 0);
}
END_TEST

START_TEST(a_name_server_that_hangs_holds_up_nobody) {
    char url[128];
    timeout_ms = 900;
    answers[0] = "127.0.0.1";
    lookup_us = 4000000;
    struct webhook_client *client = client_of("127.0.0.0/8", true, "");
    int64_t start_ms = now_ms();
    start(client, "http://hook.test/", secret, "{}");
    (void)snprintf(url, sizeof url, "%s/200", receiver_url());
    start(client, url, secret, "{}");
    ck_assert_int_eq(wait_for_result(client).status, 200);
    struct webhook_result result = wait_for_result(client);
    ck_assert_int_eq(result.status, 0);
    webhook_client_close(client);
    ck_assert_int_lt(now_ms() - start_ms, LIBCURL_VERSION_NUM >= 0x075700 ? 3000 : 9000);
    (void)sleep(4); /* the lookup's thread ends */
}
END_TEST

START_TEST(a_network_that_is_allowed_allows_no_other) {
    char url[128];
    (void)snprintf(url, sizeof url, "%s/200", receiver_url());
    struct webhook_result result = deliver_to(client_of("127.0.0.2/32", true, ""), url);
    says(&result, "127.0.0.1 is not a public address");
    ck_assert_int_eq(receiver_requests(), 0);
}
END_TEST

START_TEST(a_proxy_of_the_environment_is_not_used) {
    ck_assert_int_eq(setenv("http_proxy", receiver_url(), 1), 0);
    ck_assert_int_eq(setenv("all_proxy", receiver_url(), 1), 0);
    struct webhook_result result =
        deliver_to(client_of("127.0.0.0/8", true, ""), "http://127.0.0.1:1/200"); /* closed */
    ck_assert_int_eq(result.status, 0);
    ck_assert_int_eq(setenv("https_proxy", receiver_url(), 1), 0);
    ck_assert_int_eq(setenv("HTTPS_PROXY", receiver_url(), 1), 0);
    result = deliver_to(client_of("127.0.0.0/8", true, ""), "https://127.0.0.1:1/200");
    ck_assert_int_eq(result.status, 0);
    ck_assert_int_eq(receiver_requests(), 0);
}
END_TEST

START_TEST(http_must_be_allowed) {
    char url[128];
    (void)snprintf(url, sizeof url, "%s/200", receiver_url());
    struct webhook_result result = deliver_to(client_of("127.0.0.0/8", false, ""), url);
    says(&result, "--webhook-http");
    ck_assert_int_eq(receiver_requests(), 0);
}
END_TEST

START_TEST(other_schemes_and_passwords_in_urls_are_refused) {
    static const char *const urls[] = {"ftp://example.org/",
                                       "file:///etc/passwd",
                                       "gopher://127.0.0.1/",
                                       "dict://127.0.0.1/",
                                       "http://127.0.0.1@127.0.0.1/200",
                                       "http://\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1/200",
                                       "no url",
                                       ""};
    char url[128];
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct webhook_result result = deliver_to(client_of("127.0.0.0/8", true, ""), urls[i]);
        ck_assert_int_eq(result.status, 0);
        ck_assert_msg(*result.error, "%s", urls[i]);
    }
    (void)snprintf(url, sizeof url, "http://user:pw@127.0.0.1%s/200", strrchr(receiver_url(), ':'));
    ck_assert_int_eq(deliver_to(client_of("127.0.0.0/8", true, ""), url).status, 0);
    ck_assert_int_eq(receiver_requests(), 0);
}
END_TEST

START_TEST(a_line_break_in_a_url_becomes_no_header) {
    static const char *const ends[] = {"/200\r\nX-Evil: 1", "/200\nX-Evil: 1",
                                       "/200 HTTP/1.1\r\nX: 1", "/200?\r\n\r\nPOST /200 HTTP/1.1"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char url[160];
        (void)snprintf(url, sizeof url, "%s%s", receiver_url(), ends[i]);
        struct webhook_result result = deliver_to(client_of("127.0.0.0/8", true, ""), url);
        ck_assert_msg(result.status == 0, "%zu", i);
    }
    ck_assert_int_eq(receiver_requests(), 0);
}
END_TEST

START_TEST(what_libcurl_says_is_printable) {
    struct webhook_result result =
        deliver_to(client_of("", true, ""), "http://\xc3\xa9\xff.invalid/");
    ck_assert_int_eq(result.status, 0);
    for (const char *at = result.error; *at; at++)
        ck_assert_msg(*at >= 0x20 && *at < 0x7f, "%s", result.error);
}
END_TEST

/* --- many at once --- */

START_TEST(deliveries_run_side_by_side) {
    enum { MANY = 16 };
    char url[128];
    (void)snprintf(url, sizeof url, "%s/pause", receiver_url());
    struct webhook_client *client = client_of("127.0.0.0/8", true, "");
    int64_t start_ms = now_ms();
    for (int i = 0; i < MANY; i++)
        start(client, url, secret, "{}");
    ck_assert_uint_eq(webhook_under_way(client), MANY);
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(wait_for_result(client).status, 200);
    ck_assert_uint_eq(webhook_under_way(client), 0);
    ck_assert_int_lt(now_ms() - start_ms, 300 * MANY / 2);
    webhook_client_close(client);
}
END_TEST

START_TEST(a_client_can_be_closed_with_deliveries_under_way) {
    char url[128];
    (void)snprintf(url, sizeof url, "%s/pause", receiver_url());
    struct webhook_client *client = client_of("127.0.0.0/8", true, "");
    start(client, url, secret, "{}");
    start(client, url, "bad", "{}");
    ck_assert_int_eq(webhook_wait(client, 10, &error), ERR_NONE);
    ck_assert_uint_eq(webhook_under_way(client), 2);
    webhook_client_close(client);
}
END_TEST

static void *wake_soon(void *client) {
    (void)usleep(50000);
    webhook_wake(client);
    return NULL;
}

START_TEST(a_wait_is_ended_by_time_and_by_a_call) {
    struct webhook_client *client = client_of("", false, "");
    pthread_t thread;
    int64_t start_ms = now_ms();
    ck_assert_int_eq(webhook_wait(client, 100, &error), ERR_NONE);
    ck_assert_int_ge(now_ms() - start_ms, 100);
    ck_assert_int_eq(pthread_create(&thread, NULL, wake_soon, client), 0);
    start_ms = now_ms();
    ck_assert_int_eq(webhook_wait(client, 9000, &error), ERR_NONE);
    ck_assert_int_lt(now_ms() - start_ms, 5000);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    webhook_wake(client); /* before the wait: not lost */
    start_ms = now_ms();
    ck_assert_int_eq(webhook_wait(client, 9000, &error), ERR_NONE);
    ck_assert_int_lt(now_ms() - start_ms, 5000);
    webhook_client_close(client);
}
END_TEST

/* --- TLS --- */

static char *pem_of(int (*write_pem)(BIO *bio, const void *object), const void *object) {
    BIO *bio = BIO_new(BIO_s_mem());
    char *bytes;
    ck_assert_int_eq(write_pem(bio, object), 1);
    long n = BIO_get_mem_data(bio, &bytes);
    char *text = strndup(bytes, (size_t)n);
    BIO_free(bio);
    return text;
}

static int write_key(BIO *bio, const void *key) {
    return PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
}

static int write_certificate(BIO *bio, const void *certificate) {
    return PEM_write_bio_X509(bio, certificate);
}

/* A key and a certificate that it signed itself for `host`. */
static void make_certificate(const char *host, char **key_pem, char **certificate_pem) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    char names[64];
    ck_assert(key && certificate);
    (void)snprintf(names, sizeof names, "DNS:%s", host);
    ck_assert_int_eq(X509_set_version(certificate, X509_VERSION_3), 1);
    ck_assert_int_eq(ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1), 1);
    ck_assert_ptr_nonnull(X509_gmtime_adj(X509_getm_notBefore(certificate), -60));
    ck_assert_ptr_nonnull(X509_gmtime_adj(X509_getm_notAfter(certificate), 3600));
    X509_NAME *name = X509_get_subject_name(certificate);
    ck_assert_int_eq(
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const uint8_t *)host, -1, -1, 0), 1);
    ck_assert_int_eq(X509_set_issuer_name(certificate, name), 1);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);
    ck_assert_int_eq(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
    ck_assert_int_eq(X509_set_pubkey(certificate, key), 1);
    ck_assert_int_gt(X509_sign(certificate, key, EVP_sha256()), 0);
    *key_pem = pem_of(write_key, key);
    *certificate_pem = pem_of(write_certificate, certificate);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static struct webhook_result deliver_by_tls(const char *certified_host, bool is_trusted) {
    char *key, *certificate, url[128], ca_file[] = "/tmp/proverq-test-ca-XXXXXX";
    make_certificate(certified_host, &key, &certificate);
    int fd = mkstemp(ca_file);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    write_file(ca_file, certificate);
    receiver_start(key, certificate);
    (void)snprintf(url, sizeof url, "%s/200", receiver_url());
    struct webhook_result result =
        deliver_to(client_of("127.0.0.0/8", false, is_trusted ? ca_file : ""), url);
    ck_assert_int_eq(unlink(ca_file), 0);
    free(key);
    free(certificate);
    return result;
}

START_TEST(https_reaches_a_certified_receiver) {
    struct webhook_result result = deliver_by_tls("localhost", true);
    ck_assert_msg(result.status == 200, "%s", result.error);
    ck_assert_int_eq(receiver_requests(), 1);
}
END_TEST

START_TEST(a_certificate_of_nobody_known_is_refused) {
    struct webhook_result result = deliver_by_tls("localhost", false);
    ck_assert_int_eq(result.status, 0);
    says(&result, "certificate");
    ck_assert_int_eq(receiver_requests(), 0);
}
END_TEST

START_TEST(a_certificate_of_another_host_is_refused) {
    struct webhook_result result = deliver_by_tls("example.org", true);
    ck_assert_int_eq(result.status, 0);
    says(&result, "localhost");
    ck_assert_int_eq(receiver_requests(), 0);
}
END_TEST

int main(void) {
    const TTest *const *const http[] = {&signatures_are_those_of_the_reference_implementation,
                                        &malformed_secrets_are_refused,
                                        &the_receiver_gets_the_stored_bytes_and_can_verify_them,
                                        &while_a_secret_is_replaced_both_sign,
                                        &a_result_tells_the_peer_the_times_and_the_answer,
                                        &connections_are_used_again,
                                        &only_2xx_is_success,
                                        &a_redirect_is_not_followed,
                                        &a_refusal_shows_peer_and_answer_on_one_printable_line,
                                        &gone_is_told,
                                        &retry_after_is_told,
                                        &a_receiver_that_does_not_answer_times_out,
                                        &an_endless_answer_is_cut_and_counts_by_its_status,
                                        &a_dripping_answer_is_cut_by_time,
                                        &endless_headers_are_cut,
                                        &headers_without_end_are_cut_by_size,
                                        &a_header_without_end_is_cut,
                                        &dripping_headers_are_cut_by_time,
                                        &what_is_no_http_is_no_success,
                                        &a_closed_port_is_an_error,
                                        &private_addresses_are_refused_in_every_notation,
                                        &names_that_lead_to_private_addresses_are_refused,
                                        &a_private_address_among_others_is_not_tried,
                                        &a_name_that_changes_its_address_is_judged_anew,
                                        &a_name_server_that_hangs_holds_up_nobody,
                                        &a_network_that_is_allowed_allows_no_other,
                                        &a_proxy_of_the_environment_is_not_used,
                                        &http_must_be_allowed,
                                        &other_schemes_and_passwords_in_urls_are_refused,
                                        &a_line_break_in_a_url_becomes_no_header,
                                        &what_libcurl_says_is_printable,
                                        &deliveries_run_side_by_side,
                                        &a_client_can_be_closed_with_deliveries_under_way,
                                        &a_wait_is_ended_by_time_and_by_a_call};
    const TTest *const *const https[] = {&https_reaches_a_certified_receiver,
                                         &a_certificate_of_nobody_known_is_refused,
                                         &a_certificate_of_another_host_is_refused};
    Suite *suite = suite_create("webhook");
    (void)add_tests(suite, "http", setup, teardown, http, sizeof http / sizeof *http);
    (void)add_tests(suite, "https", set_timeout, teardown, https, sizeof https / sizeof *https);
    return run_suite(suite);
}
