/* Which deliveries `proverq listen` believes. The rest of it, with a finalizer: tests/e2e/webhooks.sh. */
#include "service/commands/webhook_viewer.h"
#include "service/finalizer/webhook.h"
#include "tests/gpu/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char secret[] = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
static const char other[] = "whsec_ISEhISEhISEhISEhISEhISEhISEhISEhISEhISEhISE=";
static const char body[] = "{\"type\":\"proverq.ping\"}";
static const int64_t now = 1790000000;

static char right[WEBHOOK_SIGNATURE_BYTES], wrong[WEBHOOK_SIGNATURE_BYTES];

static void sign(const char *key, int64_t at, char out[WEBHOOK_SIGNATURE_BYTES]) {
    struct error error;
    ck_assert_int_eq(webhook_sign(key, "msg_1", at, body, strlen(body), out, &error), ERR_NONE);
}

static bool verified(int64_t at, const char *signatures) {
    char timestamp[24];
    (void)snprintf(timestamp, sizeof timestamp, "%" PRId64, at);
    return webhook_viewer_verify(secret, "msg_1", timestamp, signatures, body, strlen(body), now);
}

static void setup(void) {
    sign(secret, now, right);
    sign(other, now, wrong);
}

START_TEST(one_right_signature_is_enough) {
    char both[2 * WEBHOOK_SIGNATURE_BYTES + 8];
    ck_assert(verified(now, right));
    ck_assert(!verified(now, wrong));
    (void)snprintf(both, sizeof both, "v1a,x %s %s", wrong, right);
    ck_assert(verified(now, both));
    ck_assert(!verified(now, ""));
    ck_assert(!verified(now, " "));
    (void)snprintf(both, sizeof both, "%sx", right);
    ck_assert(!verified(now, both));
}
END_TEST

START_TEST(everything_is_signed) {
    char timestamp[24], changed[sizeof body];
    (void)snprintf(timestamp, sizeof timestamp, "%" PRId64, now);
    memcpy(changed, body, sizeof body);
    changed[3] ^= 1;
    ck_assert(!webhook_viewer_verify(secret, "msg_2", timestamp, right, body, strlen(body), now));
    ck_assert(!webhook_viewer_verify(secret, "", timestamp, right, body, strlen(body), now));
    ck_assert(
        !webhook_viewer_verify(secret, "msg_1", timestamp, right, changed, strlen(body), now));
    ck_assert(
        !webhook_viewer_verify(secret, "msg_1", timestamp, right, body, strlen(body) - 1, now));
    ck_assert(!verified(now + 1, right));
}
END_TEST

START_TEST(replays_and_nonsense_are_refused) {
    static const char *const nonsense[] = {"", "x", "1790000000x", "99999999999999999999"};
    static const int64_t offsets[] = {-301, -299, 299, 301};
    for (size_t i = 0; i < 4; i++) {
        sign(secret, now + offsets[i], right);
        ck_assert_int_eq(verified(now + offsets[i], right), llabs(offsets[i]) < 300);
        ck_assert(
            !webhook_viewer_verify(secret, "msg_1", nonsense[i], right, body, strlen(body), now));
    }
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&one_right_signature_is_enough, &everything_is_signed,
                                         &replays_and_nonsense_are_refused};
    return run_tests("listen", setup, NULL, tests, sizeof tests / sizeof *tests);
}
