/* Signals to stop: the descriptor, the handler, and the mask that threads inherit. */
#include "service/common/stop.h"
#include "tests/gpu/suite.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static struct error error;
static atomic_int calls, repeats, last;

static void handler(void *context, int number, bool is_again) {
    ck_assert_ptr_eq(context, &error);
    atomic_store(&last, number);
    if (is_again) atomic_fetch_add(&repeats, 1);
    atomic_fetch_add(&calls, 1);
}

static void setup(void) {
    atomic_store(&calls, 0);
    atomic_store(&repeats, 0);
}

static void teardown(void) {
    stop_close();
}

static bool becomes_readable(int fd, int ms) {
    struct pollfd look = {fd, POLLIN, 0};
    return poll(&look, 1, ms) == 1;
}

static void wait_for_calls(int n) {
    for (int i = 0; i < 2000 && atomic_load(&calls) < n; i++)
        (void)usleep(10000);
    ck_assert_int_eq(atomic_load(&calls), n);
}

static void send(int number) {
    ck_assert_int_eq(kill(getpid(), number), 0);
}

static bool is_blocked(int number) {
    sigset_t now;
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
    return sigismember(&now, number) == 1;
}

static void *look_at_mask(void *blocked) {
    *(bool *)blocked = is_blocked(SIGTERM) && is_blocked(SIGINT);
    return NULL;
}

START_TEST(a_signal_makes_the_descriptor_readable_for_good) {
    CHECK_OK(stop_open(NULL, NULL, &error));
    ck_assert(!becomes_readable(stop_fd(), 0));
    ck_assert(!stop_is_requested());
    send(SIGINT);
    ck_assert(becomes_readable(stop_fd(), 20000));
    ck_assert(becomes_readable(stop_fd(), 0));
    ck_assert(stop_is_requested());
}
END_TEST

START_TEST(the_handler_learns_which_signal_and_whether_it_is_the_first) {
    CHECK_OK(stop_open(handler, &error, &error));
    send(SIGTERM);
    wait_for_calls(1);
    ck_assert(stop_is_requested());
    ck_assert_int_eq(atomic_load(&last), SIGTERM);
    ck_assert_int_eq(atomic_load(&repeats), 0);
    send(SIGINT);
    wait_for_calls(2);
    ck_assert_int_eq(atomic_load(&last), SIGINT);
    ck_assert_int_eq(atomic_load(&repeats), 1);
}
END_TEST

START_TEST(a_request_of_its_own_counts_and_calls_nobody) {
    CHECK_OK(stop_open(handler, &error, &error));
    stop_request();
    ck_assert(stop_is_requested());
    ck_assert_int_eq(atomic_load(&calls), 0);
    send(SIGTERM);
    wait_for_calls(1);
    ck_assert_int_eq(atomic_load(&repeats), 1);
}
END_TEST

START_TEST(threads_inherit_the_mask_and_closing_gives_it_back) {
    pthread_t thread;
    bool blocked = false;
    CHECK_OK(stop_open(NULL, NULL, &error));
    ck_assert_int_eq(pthread_create(&thread, NULL, look_at_mask, &blocked), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(blocked);
    stop_close();
    ck_assert(!is_blocked(SIGTERM) && !is_blocked(SIGINT));
    ck_assert_int_eq(stop_fd(), -1);
    ck_assert(!stop_is_requested());
}
END_TEST

START_TEST(it_can_be_opened_again) {
    CHECK_OK(stop_open(NULL, NULL, &error));
    stop_request();
    stop_close();
    CHECK_OK(stop_open(NULL, NULL, &error));
    ck_assert(!stop_is_requested());
}
END_TEST

START_TEST(an_event_is_set_for_good) {
    int fd;
    CHECK_OK(stop_event_open(&fd, &error));
    ck_assert(!stop_event_is_set(fd));
    stop_event_set(fd);
    stop_event_set(fd);
    ck_assert(stop_event_is_set(fd));
    ck_assert(stop_event_is_set(fd));
    ck_assert(!stop_event_is_set(-1));
    (void)close(fd);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &a_signal_makes_the_descriptor_readable_for_good,
        &the_handler_learns_which_signal_and_whether_it_is_the_first,
        &a_request_of_its_own_counts_and_calls_nobody,
        &threads_inherit_the_mask_and_closing_gives_it_back,
        &it_can_be_opened_again,
        &an_event_is_set_for_good};
    return run_tests("stop", setup, teardown, tests, sizeof tests / sizeof *tests);
}
