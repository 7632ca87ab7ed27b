/* The supervisor with real child processes, against a database.
 *
 * Children run /proc/self/exe, which is this program: called as `prover` or `finalizer` it plays that
 * child, in the way that TEST_PROVER says, and writes what happens to the file TEST_EVENTS.
 */
#include "service/common/report.h"
#include "service/supervisor/probe.h"
#include "service/supervisor/supervisor.h"
#include "tests/service/child_log.h"
#include "tests/service/database.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct error error;
static char folder[] = "/tmp/proverq-supervisor-XXXXXX", events[64];
static pid_t supervisor;

/* --- the children --- */

/* One line, in one write: "prover started 123 cpu UUID". */
static void event(const char *format, ...) PRINTF_LIKE(1, 2);
static void event(const char *format, ...) {
    char line[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    int fd = open(getenv("TEST_EVENTS"), O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (fd < 0 || write(fd, line, (size_t)n) != n || close(fd)) _exit(99);
}

/* A row for this prover, as a real one makes. */
static void register_prover(const char *instance) {
    struct db_settings settings = {.conninfo = getenv("PROVERQ_DATABASE"), .application = "test"};
    struct uuid uuid;
    if (uuid_parse(instance, &uuid, &error) || db_open(&settings, &db, &error) ||
        db_query(db,
                 "insert into proverq_private.prover (instance, host, pid, device) values ($1, '', "
                 "1, 'cpu')",
                 "u", "", DB_PARAMS(db_uuid(&uuid)), NULL, &error))
        event("prover cannot register: %s\n", error.text);
    close_db();
}

static int play(int argc, const char *const *argv) {
    struct options o;
    sigset_t term;
    int number;
    const char *role = argv[1], *mode = getenv("TEST_PROVER");
    if (options_parse(argc, argv, &o, &error)) {
        event("%s refused: %s\n", role, error.text);
        return 2;
    }
    bool is_prover = o.command == COMMAND_PROVER;
    event("%s started %d %s %s\n", role, getpid(), is_prover ? o.devices.item[0] : "-",
          is_prover ? o.instance : "-");
    size_t fails = is_prover && strcmp(mode, "fails") == 0          ? SIZE_MAX
                   : is_prover && strcmp(mode, "fails thrice") == 0 ? 3
                                                                    : 0;
    if (fails > 0 && words_count(getenv("TEST_EVENTS"), "prover started ") <= fails) {
        static const char text[] = "device_fault: it broke";
        return write((int)o.report_fd, text, sizeof text - 1) > 0;
    }
    if (is_prover && strcmp(mode, "crashes") == 0) abort();
    if (is_prover) register_prover(o.instance);
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &term, NULL);
    event("%s ready %d\n", role, getpid());
    if (!is_prover || strcmp(mode, "is silent") != 0) report_open(o.report_fd);
    report_ready();
    (void)sigwait(&term, &number);
    event("%s told %d\n", role, getpid());
    if (is_prover && strcmp(mode, "stubborn") == 0) (void)sigwait(&term, &number);
    if (is_prover) (void)usleep(200000); /* it finishes what it has */
    event("%s stopped %d\n", role, getpid());
    return 0;
}

/* --- the supervisor under test --- */

static void start_supervisor(const char *mode, const char *const *arguments) {
    const char *argv[16] = {"proverq", "serve"};
    for (size_t i = 0; arguments[i]; i++)
        argv[2 + i] = arguments[i];
    ck_assert_int_eq(setenv("TEST_PROVER", mode, 1), 0);
    ck_assert_int_eq(setenv("TEST_EVENTS", events, 1), 0);
    ck_assert_int_eq(setenv("PROVERQ_DATABASE", test_dsn(), 0), 0);
    supervisor = fork();
    ck_assert_int_ge(supervisor, 0);
    if (supervisor > 0) return;
    struct options o;
    int argc = 2;
    while (argv[argc])
        argc++;
    if (!child_log_take_stderr()) _exit(98);
    enum err rc = options_parse(argc, argv, &o, &error);
    if (!rc) rc = supervisor_run(&o, &error);
    if (rc) (void)fprintf(stderr, "ended with %s: %s\n", error_name(rc), error.text);
    options_free(&o);
    exit(rc ? 1 : 0);
}

#define START(mode, ...) start_supervisor(mode, (const char *const[]){__VA_ARGS__, NULL})

/* How the supervisor ended; -1 while it runs `seconds` long. */
static int end_of_supervisor(int seconds) {
    int status;
    for (int i = 0; i < seconds * 100; i++) {
        if (waitpid(supervisor, &status, WNOHANG) == supervisor) {
            supervisor = 0;
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        (void)usleep(10000);
    }
    return -1;
}

/* Process and instance of the nth `role` that was started. */
static pid_t started(const char *role, size_t nth, char instance[UUID_TEXT_BYTES]) {
    char what[32], device[16], *text = file_text(events), *at = text;
    int pid = 0;
    (void)snprintf(what, sizeof what, "%s started ", role);
    for (size_t i = 0; at && i <= nth; i++)
        at = strstr(i ? at + 1 : at, what);
    ck_assert_msg(at && sscanf(at + strlen(what), "%d %15s %36s", &pid, device, instance) == 3,
                  "%s", text);
    free(text);
    return pid;
}

static bool is_alive(pid_t pid) {
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    char *text = file_text(path), *end = strrchr(text, ')');
    bool alive = end && end[2] != 'Z';
    free(text);
    return alive;
}

static void setup(void) {
    open_db();
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(events, sizeof events, "%s/events", folder);
    child_log_open();
}

static void teardown(void) {
    if (supervisor > 0) {
        (void)kill(supervisor, SIGKILL);
        (void)waitpid(supervisor, NULL, 0);
    }
    (void)unlink(events);
    child_log_close();
    (void)rmdir(folder);
    close_db();
}

/* --- start --- */

START_TEST(a_prover_for_the_device_and_a_finalizer_are_started) {
    char instance[UUID_TEXT_BYTES];
    struct uuid uuid;
    START("runs", "--device", "cpu");
    wait_for_words(events, " ready ", 2);
    ck_assert_uint_eq(words_count(events, "prover started "), 1);
    ck_assert_uint_eq(words_count(events, " cpu "), 1);
    ck_assert_uint_eq(words_count(events, "finalizer started "), 1);
    (void)started("prover", 0, instance);
    ck_assert_int_eq(uuid_parse(instance, &uuid, &error), ERR_NONE);
    wait_for_log("msg=\"device chosen\" device=cpu");
}
END_TEST

START_TEST(auto_starts_a_prover_and_says_on_what) {
    START("runs", "--device", "auto");
    wait_for_words(events, "prover ready ", 1);
    wait_for_log("msg=\"device chosen\" device=c");
}
END_TEST

START_TEST(a_device_that_is_missing_is_an_error_and_starts_nothing) {
    START("runs", "--device", "cpu", "--device", "cuda:999");
    ck_assert_int_eq(end_of_supervisor(60), 1);
    wait_for_log("ended with device_missing");
    ck_assert_uint_eq(words_count(events, "started"), 0);
}
END_TEST

START_TEST(a_device_that_is_given_twice_is_refused) {
    START("runs", "--device", "cpu", "--device", "cpu");
    ck_assert_int_eq(end_of_supervisor(20), 1);
    wait_for_log("ended with usage: --device: cpu is given twice");
}
END_TEST

START_TEST(a_database_that_is_away_is_an_error_at_start) {
    ck_assert_int_eq(setenv("PROVERQ_DATABASE", "host=127.0.0.1 port=1 dbname=x", 1), 0);
    START("runs", "--device", "cpu");
    ck_assert_int_eq(end_of_supervisor(20), 1);
    wait_for_log("ended with connection");
    ck_assert_uint_eq(words_count(events, "started"), 0);
}
END_TEST

START_TEST(a_schema_that_is_missing_is_an_error_that_says_what_to_run) {
    script("drop schema proverq, proverq_private cascade");
    START("runs", "--device", "cpu");
    int status = end_of_supervisor(20);
    new_schema();
    ck_assert_int_eq(status, 1);
    wait_for_log("proverq migrate up");
    ck_assert_uint_eq(words_count(events, "started"), 0);
}
END_TEST

/* --- children that end --- */

START_TEST(a_killed_prover_is_started_again_as_another_instance) {
    char first[UUID_TEXT_BYTES], second[UUID_TEXT_BYTES];
    START("runs", "--device", "cpu");
    wait_for_words(events, " ready ", 2);
    ck_assert_int_eq(kill(started("prover", 0, first), SIGKILL), 0);
    wait_for_words(events, "prover ready ", 2);
    (void)started("prover", 1, second);
    ck_assert_str_ne(first, second);
    ck_assert_uint_eq(words_count(events, "finalizer started "), 1);
    wait_for_log("error=\"killed by signal 9 (Killed)\"");
}
END_TEST

/* What the database says of a prover: "running", "lost"; "" when it is not there. */
static void wait_for_state(const char *instance, const char *state) {
    char sql[160];
    (void)snprintf(
        sql, sizeof sql,
        "select coalesce(max(state), '') from proverq_private.prover where instance = '%s'",
        instance);
    wait_for(sql, state);
}

START_TEST(a_killed_prover_gives_up_its_leases_at_once_and_no_other_does) {
    char first[UUID_TEXT_BYTES], second[UUID_TEXT_BYTES];
    START("runs", "--device", "cpu");
    wait_for_words(events, "prover ready ", 1);
    ck_assert_int_eq(kill(started("prover", 0, first), SIGKILL), 0);
    wait_for_state(first, "lost"); /* rescue_prover does both in one transaction */
    wait_for_words(events, "prover ready ", 2);
    (void)started("prover", 1, second);
    wait_for_state(second, "running");
}
END_TEST

START_TEST(a_child_that_keeps_failing_is_reported_with_its_error_and_waited_for) {
    struct timespec start, end;
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    START("fails", "--device", "cpu");
    wait_for_log("error=\"device_fault: it broke\" failures=3 again_in_s=4");
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    ck_assert_int_ge(end.tv_sec - start.tv_sec, 2); /* after 1 and 2 seconds */
    ck_assert_uint_eq(words_count(child_log_path, "failures=1 again_in_s=1"), 1);
    ck_assert_uint_eq(words_count(child_log_path, "failures=2 again_in_s=2"), 1);
    ck_assert_uint_eq(words_count(events, "finalizer started "), 1);
}
END_TEST

START_TEST(a_child_that_crashes_is_reported_by_its_signal) {
    START("crashes", "--device", "cpu");
    wait_for_log("error=\"killed by signal 6 (Aborted)\"");
}
END_TEST

START_TEST(a_device_that_fails_three_times_is_in_quarantine_until_a_probe_succeeds) {
    START("fails thrice", "--device", "cpu");
    wait_for_words(events, "prover started ", 3);
    wait_for("select count(*) from proverq_private.device_quarantine where device = 'cpu' and "
             "faults = 3 and reason = 'device_fault: it broke'",
             "1");
    wait_for_log("msg=\"a device is in quarantine");
    wait_for_words(child_log_path, "msg=\"a device works again\"",
                   3); /* it was probed after each fault */
    wait_for_words(events, "prover ready ", 1);
    wait_for("select count(*) from proverq_private.device_quarantine", "0");
}
END_TEST

START_TEST(the_quarantine_of_another_life_is_over) {
    char host[256] = "";
    (void)gethostname(host, sizeof host - 1);
    script("insert into proverq_private.device_quarantine (host, device, faults, reason) "
           "values ('%s', 'cpu', 9, 'old'), ('another', 'cpu', 9, 'old')",
           host);
    START("runs", "--device", "cpu");
    wait_for("select count(*) from proverq_private.device_quarantine", "1");
    script("delete from proverq_private.device_quarantine");
}
END_TEST

/* --- systemd --- */

/* Plays systemd: a socket for the supervisor that is started next. */
static int notify_socket(const char *name, const char *watchdog_us) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    size_t n = strlen(name);
    memcpy(address.sun_path, name, n);
    if (*name == '@') address.sun_path[0] = '\0';
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)),
                     0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", name, 1), 0);
    ck_assert_int_eq(setenv("WATCHDOG_USEC", watchdog_us, 1), 0);
    return fd;
}

/* What came next within the time; "" for nothing. */
static const char *heard(int fd, int ms) {
    static char text[1000];
    struct pollfd p = {fd, POLLIN, 0};
    ssize_t n = poll(&p, 1, ms) > 0 ? recv(fd, text, sizeof text - 1, 0) : 0;
    ck_assert_int_ge(n, 0);
    text[n] = '\0';
    return text;
}

static void wait_to_hear(int fd, const char *what) {
    char all[8000] = "";
    for (int i = 0; i < 200; i++) {
        const char *text = heard(fd, 100);
        if (strstr(text, what)) return;
        if (*text && strlen(all) + strlen(text) + 2 < sizeof all)
            (void)snprintf(all + strlen(all), sizeof all - strlen(all), "%s\n", text);
    }
    ck_abort_msg("\"%s\" was not heard, but:\n%s", what, all);
}

/* How often it was heard in that time. */
static int times_heard(int fd, const char *what, int ms) {
    int n = 0;
    for (struct timespec now, start = {0}; clock_gettime(CLOCK_MONOTONIC, &now) == 0;) {
        if (!start.tv_sec) start = now;
        int64_t gone = (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000;
        if (gone >= ms) break;
        n += strstr(heard(fd, (int)(ms - gone)), what) != NULL;
    }
    return n;
}

START_TEST(systemd_is_told_of_the_start_the_life_and_the_end) {
    char path[80];
    (void)snprintf(path, sizeof path, "%s/notify", folder);
    int fd = notify_socket(path, "4000000");
    START("runs", "--device", "cpu");
    wait_to_hear(fd, "STATUS=cpu starting, finalizer starting");
    wait_to_hear(fd, "STATUS=cpu at work, finalizer at work");
    wait_to_hear(fd, "READY=1");
    ck_assert_uint_eq(words_count(events, " ready "), 2);
    ck_assert_int_ge(times_heard(fd, "WATCHDOG=1", 4000), 2);
    ck_assert_int_eq(kill(supervisor, SIGTERM), 0);
    wait_to_hear(fd, "STOPPING=1");
    ck_assert_int_eq(end_of_supervisor(20), 0);
    (void)close(fd);
    (void)unlink(path);
}
END_TEST

START_TEST(a_supervisor_that_hangs_does_not_feed_the_watchdog) {
    char name[80];
    (void)snprintf(name, sizeof name, "@%s", folder); /* in the abstract namespace */
    int fd = notify_socket(name, "2000000");
    START("runs", "--device", "cpu");
    wait_to_hear(fd, "READY=1");
    ck_assert_int_ge(times_heard(fd, "WATCHDOG=1", 2000), 2);
    ck_assert_int_eq(kill(supervisor, SIGSTOP), 0);
    (void)times_heard(fd, "WATCHDOG=1", 200);
    ck_assert_int_eq(times_heard(fd, "WATCHDOG=1", 2000), 0);
    ck_assert_int_eq(kill(supervisor, SIGCONT), 0);
    wait_to_hear(fd, "WATCHDOG=1");
    (void)close(fd);
}
END_TEST

START_TEST(a_child_that_hangs_starves_the_watchdog_and_is_replaced) {
    char path[80], instance[UUID_TEXT_BYTES];
    (void)snprintf(path, sizeof path, "%s/notify", folder);
    int fd = notify_socket(path, "12000000");
    START("runs", "--device", "cpu");
    wait_to_hear(fd, "READY=1");
    ck_assert_int_eq(kill(started("prover", 0, instance), SIGSTOP), 0);
    ck_assert_int_ge(times_heard(fd, "WATCHDOG=1", 5500), 1);        /* it may only be slow */
    ck_assert_int_le(times_heard(fd, "WATCHDOG=1", 1800), 1);        /* after 6 s */
    wait_for_log("msg=\"a child hangs and is killed\" role=prover"); /* after 8 s */
    wait_for_log("it was silent and was killed");
    wait_for_words(events, "prover ready ", 2);
    wait_to_hear(fd, "WATCHDOG=1");
    (void)close(fd);
    (void)unlink(path);
}
END_TEST

START_TEST(children_and_provers_hear_nothing_of_systemd) {
    char path[80], instance[UUID_TEXT_BYTES], file[64];
    (void)snprintf(path, sizeof path, "%s/notify", folder);
    int fd = notify_socket(path, "4000000");
    START("runs", "--device", "cpu");
    wait_for_words(events, " ready ", 2);
    (void)snprintf(file, sizeof file, "/proc/%d/environ", started("prover", 0, instance));
    FILE *environment = fopen(file, "r");
    ck_assert_ptr_nonnull(environment);
    char *entry = NULL;
    size_t room = 0, n = 0;
    while (getdelim(&entry, &room, '\0', environment) > 0) {
        ck_assert_msg(strncmp(entry, "NOTIFY_", 7) != 0 && strncmp(entry, "WATCHDOG_", 9) != 0,
                      "%s", entry);
        n++;
    }
    ck_assert_uint_gt(n, 3);
    free(entry);
    (void)fclose(environment);
    (void)close(fd);
    (void)unlink(path);
}
END_TEST

/* --- the end --- */

START_TEST(the_first_signal_lets_the_provers_then_the_finalizer_finish) {
    START("runs", "--device", "cpu");
    wait_for_words(events, " ready ", 2);
    ck_assert_int_eq(kill(supervisor, SIGTERM), 0);
    ck_assert_int_eq(end_of_supervisor(20), 0);
    char *text = file_text(events), *prover = strstr(text, "prover stopped "),
         *finalizer = strstr(text, "finalizer told ");
    ck_assert_msg(prover && finalizer && prover < finalizer, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "finalizer stopped "));
    ck_assert_uint_eq(words_count(events, "started"), 2);
    free(text);
}
END_TEST

START_TEST(the_second_signal_kills) {
    char instance[UUID_TEXT_BYTES];
    START("stubborn", "--device", "cpu");
    wait_for_words(events, " ready ", 2);
    ck_assert_int_eq(kill(supervisor, SIGINT), 0);
    wait_for_words(events, "prover told ", 1);
    ck_assert_int_eq(end_of_supervisor(1), -1);
    ck_assert_int_eq(kill(supervisor, SIGINT), 0);
    ck_assert_int_eq(end_of_supervisor(20), 0);
    ck_assert_uint_eq(words_count(events, "prover stopped "), 0);
    ck_assert(!is_alive(started("prover", 0, instance)));
    ck_assert(!is_alive(started("finalizer", 0, instance)));
}
END_TEST

START_TEST(children_do_not_outlive_a_supervisor_that_is_killed) {
    char instance[UUID_TEXT_BYTES];
    START("stubborn", "--device", "cpu");
    wait_for_words(events, " ready ", 2);
    ck_assert_int_eq(kill(supervisor, SIGKILL), 0);
    ck_assert_int_eq(end_of_supervisor(20), 128 + SIGKILL);
    pid_t prover = started("prover", 0, instance), finalizer = started("finalizer", 0, instance);
    for (int i = 0; i < 500 && (is_alive(prover) || is_alive(finalizer)); i++)
        (void)usleep(10000);
    ck_assert(!is_alive(prover) && !is_alive(finalizer));
}
END_TEST

START_TEST(a_terminals_signal_reaches_the_supervisor_only) {
    char instance[UUID_TEXT_BYTES];
    START("runs", "--device", "cpu");
    wait_for_words(events, " ready ", 2);
    pid_t prover = started("prover", 0, instance), finalizer = started("finalizer", 0, instance);
    ck_assert_int_eq(getpgid(prover), prover);
    ck_assert_int_eq(getpgid(finalizer), finalizer);
}
END_TEST

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], PROBE_COMMAND) == 0)
        return probe_process_main(argv[2], argv[3]);
    if (argc > 1 && (strcmp(argv[1], "prover") == 0 || strcmp(argv[1], "finalizer") == 0))
        return play(argc, (const char *const *)argv);
    const TTest *const *const tests[] = {
        &a_prover_for_the_device_and_a_finalizer_are_started,
        &auto_starts_a_prover_and_says_on_what,
        &a_device_that_is_missing_is_an_error_and_starts_nothing,
        &a_device_that_is_given_twice_is_refused,
        &a_database_that_is_away_is_an_error_at_start,
        &a_schema_that_is_missing_is_an_error_that_says_what_to_run,
        &a_killed_prover_is_started_again_as_another_instance,
        &a_killed_prover_gives_up_its_leases_at_once_and_no_other_does,
        &a_child_that_keeps_failing_is_reported_with_its_error_and_waited_for,
        &a_child_that_crashes_is_reported_by_its_signal,
        &a_device_that_fails_three_times_is_in_quarantine_until_a_probe_succeeds,
        &the_quarantine_of_another_life_is_over,
        &systemd_is_told_of_the_start_the_life_and_the_end,
        &a_supervisor_that_hangs_does_not_feed_the_watchdog,
        &a_child_that_hangs_starves_the_watchdog_and_is_replaced,
        &children_and_provers_hear_nothing_of_systemd,
        &the_first_signal_lets_the_provers_then_the_finalizer_finish,
        &the_second_signal_kills,
        &children_do_not_outlive_a_supervisor_that_is_killed,
        &a_terminals_signal_reaches_the_supervisor_only};
    return run_database_tests("supervisor", setup, teardown, tests, sizeof tests / sizeof *tests);
}
