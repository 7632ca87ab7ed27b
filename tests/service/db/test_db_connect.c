/* Where the database module connects to: defaults, several hosts. Against the PostgreSQL of
 * the tests, a postgresql:// URI of one host, and sockets that are none. */
#include "service/db/db_private.h"
#include "tests/service/database.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct error error;

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The test's server under another list of hosts, which begins with 127.0.0.1:`port`. */
static const char *behind(int port, const char *more) {
    static char dsn[500];
    char copy[400], *at, *slash;
    snprintf(copy, sizeof copy, "%s", test_dsn());
    at = strchr(copy, '@');
    ck_assert_ptr_nonnull(at);
    slash = strchr(at, '/');
    ck_assert_ptr_nonnull(slash);
    *at = *slash = '\0';
    snprintf(dsn, sizeof dsn, "%s@127.0.0.1:%d,%s/%s%s", copy, port, at + 1, slash + 1, more);
    return dsn;
}

static enum err try_to(const char *conninfo) {
    struct db_settings settings = {.conninfo = conninfo, .application = "test"};
    return db_open(&settings, &db, &error);
}

/* A socket that takes connections and says nothing, as a host that hangs. */
static int silent(int *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

START_TEST(a_host_that_refuses_is_passed_over) {
    CHECK_OK(try_to(behind(1, "")));
    ck_assert(!db_is_pooled(db));
    close_db();
}
END_TEST

START_TEST(a_host_that_is_silent_is_passed_over_in_time) {
    int port, fd = silent(&port);
    double start = now_s();
    CHECK_OK(try_to(behind(port, "?connect_timeout=2")));
    ck_assert(now_s() - start > 1.9 && now_s() - start < 8);
    start = now_s();
    ck_assert_int_eq(db_reconnect(db, -1, &error), ERR_NONE); /* the one that served comes first */
    ck_assert(now_s() - start < 1.5);
    close_db();
    close(fd);
}
END_TEST

START_TEST(of_several_hosts_one_that_takes_no_writes_does_not_serve) {
    setenv("PGOPTIONS", "-c default_transaction_read_only=on", 1);
    ck_assert_int_eq(try_to(behind(1, "")), ERR_CONNECTION);
    ck_assert_ptr_nonnull(strstr(error.text, "read-only"));
    CHECK_OK(try_to(behind(1, "?target_session_attrs=any")));
    close_db();
    CHECK_OK(try_to(test_dsn()));
    /* A statement that the server refuses because it takes no writes: another may by then. */
    ck_assert_int_eq(
        db_query(db, "create table proverq_none ()", "", "", DB_NO_PARAMS, NULL, &error),
        ERR_CONNECTION);
    ck_assert(!db_is_connected(db));
    close_db();
    unsetenv("PGOPTIONS");
}
END_TEST

static const char *option(PGconn *connection, const char *keyword) {
    static char value[100];
    PQconninfoOption *options = PQconninfo(connection);
    snprintf(value, sizeof value, "none");
    for (PQconninfoOption *o = options; o && o->keyword; o++)
        if (strcmp(o->keyword, keyword) == 0 && o->val) snprintf(value, sizeof value, "%s", o->val);
    PQconninfoFree(options);
    return value;
}

static PGconn *started(const char *conninfo, size_t host, size_t n_hosts, uint32_t timeout_ms) {
    struct db_target *target;
    ck_assert_int_eq(db_target_open(conninfo, "the application", &target, &error), ERR_NONE);
    ck_assert_uint_eq(db_target_hosts(target), n_hosts);
    ck_assert_uint_eq(db_target_timeout_ms(target), timeout_ms);
    PGconn *connection = db_target_start(target, host);
    ck_assert_ptr_nonnull(connection);
    db_target_close(target);
    return connection;
}

START_TEST(defaults_give_way_to_the_users_values) {
    PGconn *plain = started("host=127.0.0.1 port=1", 0, 1, 10000);
    ck_assert_str_eq(option(plain, "keepalives_idle"), "30");
    ck_assert_str_eq(option(plain, "keepalives_interval"), "5");
    ck_assert_str_eq(option(plain, "keepalives_count"), "3");
    ck_assert_str_eq(option(plain, "tcp_user_timeout"), "20000");
    ck_assert_str_eq(option(plain, "fallback_application_name"), "the application");
    ck_assert_str_eq(option(plain, "target_session_attrs"), "any");
    PQfinish(plain);
    setenv("PGCONNECT_TIMEOUT", "7", 1);
    PGconn *own = started("host=127.0.0.1 port=1 keepalives_idle=9 tcp_user_timeout=0 "
                          "application_name=mine",
                          0, 1, 7000);
    unsetenv("PGCONNECT_TIMEOUT");
    ck_assert_str_eq(option(own, "keepalives_idle"), "9");
    ck_assert_str_eq(option(own, "keepalives_count"), "3");
    ck_assert_str_eq(option(own, "tcp_user_timeout"), "0");
    ck_assert_str_eq(option(own, "application_name"), "mine");
    PQfinish(own);
}
END_TEST

START_TEST(a_service_file_counts_as_the_users_word) {
    char path[] = "/tmp/proverq-service-XXXXXX";
    int fd = mkstemp(path);
    static const char text[] = "[here]\nhost=127.0.0.1,127.0.0.2\nport=1\nkeepalives_idle=8\n";
    ck_assert(fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    close(fd);
    setenv("PGSERVICEFILE", path, 1);
    PGconn *second = started("service=here", 1, 2, 5000);
    ck_assert_str_eq(option(second, "host"), "127.0.0.2");
    ck_assert_str_eq(option(second, "port"), "1");
    ck_assert_str_eq(option(second, "keepalives_idle"), "8");
    ck_assert_str_eq(option(second, "target_session_attrs"), "read-write");
    PQfinish(second);
    unsetenv("PGSERVICEFILE");
    unlink(path);
}
END_TEST

START_TEST(each_host_has_its_port_and_address) {
    static const char conninfo[] = "host=a,b,c hostaddr=127.0.0.1,127.0.0.2,127.0.0.3 port=1,2,3";
    PGconn *last = started(conninfo, 2, 3, 5000);
    ck_assert_str_eq(option(last, "host"), "c");
    ck_assert_str_eq(option(last, "hostaddr"), "127.0.0.3");
    ck_assert_str_eq(option(last, "port"), "3");
    PQfinish(last);
}
END_TEST

START_TEST(lists_that_do_not_fit_are_an_error_of_libpq) {
    ck_assert_int_eq(try_to("host=127.0.0.1,127.0.0.2 port=1,2,3"), ERR_CONNECTION);
    ck_assert_ptr_nonnull(strstr(error.text, "match 3 port numbers to 2 hosts"));
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {&a_host_that_refuses_is_passed_over,
                                         &a_host_that_is_silent_is_passed_over_in_time,
                                         &of_several_hosts_one_that_takes_no_writes_does_not_serve,
                                         &defaults_give_way_to_the_users_values,
                                         &a_service_file_counts_as_the_users_word,
                                         &each_host_has_its_port_and_address,
                                         &lists_that_do_not_fit_are_an_error_of_libpq};
    return run_tests("db_connect", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
