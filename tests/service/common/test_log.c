/* Log lines: whole, parseable, and not to be forged by what is logged. */
#include "service/common/log.h"
#include "tests/gpu/suite.h"

#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static char text[1 << 20];
static int saved, pipe_read;

/* What is logged from here on goes to `text`, see logged(). */
static void setup(void) {
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_ge(fcntl(fds[1], F_SETPIPE_SZ, sizeof text), 0);
    saved = dup(STDERR_FILENO);
    ck_assert_int_ge(dup2(fds[1], STDERR_FILENO), 0);
    close(fds[1]);
    pipe_read = fds[0];
    log_set_level(LOG_LEVEL_INFO);
    log_set_format(LOG_FORMAT_TEXT);
    log_set_process("test");
}

static const char *logged(void) {
    size_t n = 0;
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0); /* closes the pipe's writing end */
    for (ssize_t got; (got = read(pipe_read, text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = '\0';
    return text;
}

static int lines(const char *all) {
    int n = 0;
    for (; *all; all++)
        n += *all == '\n';
    return n;
}

START_TEST(a_line_has_its_fields_in_order) {
    log_info("partition proved", log_number("job", -7), log_text("device", "cpu"),
             log_text("none", NULL));
    ck_assert_ptr_nonnull(
        strstr(logged(), "Z level=info process=test msg=\"partition proved\" job=-7 device=cpu "
                         "none=null\n"));
    ck_assert_int_eq(strncmp(text, "time=2", 6), 0);
}
END_TEST

START_TEST(lines_below_the_level_are_dropped) {
    log_set_level(LOG_LEVEL_WARN);
    log_debug("a");
    log_info("b");
    log_warn("c");
    log_error("d");
    ck_assert_int_eq(lines(logged()), 2);
}
END_TEST

START_TEST(a_value_cannot_forge_a_line_or_a_field) {
    log_info("x", log_text("error", "a\nlevel=error \"b\" \\ \x1b[1m"));
    ck_assert_int_eq(lines(logged()), 1);
    ck_assert_ptr_nonnull(strstr(text, "error=\"a\\nlevel=error \\\"b\\\" \\\\ \\u001b[1m\"\n"));
}
END_TEST

START_TEST(json_lines_are_objects_whatever_is_in_them) {
    static char huge[20000];
    memset(huge, 1, sizeof huge - 1);
    log_set_format(LOG_FORMAT_JSON);
    log_info("x", log_text("a", "\"}\n{\""), log_number("n", INT64_MIN));
    log_info("y", log_text("a", huge), log_text("b", huge), log_number("z", 1));
    const char *all = logged();
    ck_assert_int_eq(lines(all), 2);
    for (const char *line = all; *line; line = strchr(line, '\n') + 1) {
        json_error_t problem;
        size_t n = (size_t)(strchr(line, '\n') - line);
        json_t *object = json_loadb(line, n, 0, &problem);
        ck_assert_msg(object != NULL, "%s", problem.text);
        ck_assert_str_eq(json_string_value(json_object_get(object, "process")), "test");
        ck_assert_str_eq(json_string_value(json_object_get(object, "level")), "info");
        if (line == all) {
            ck_assert_str_eq(json_string_value(json_object_get(object, "a")), "\"}\n{\"");
            ck_assert_int_eq(json_integer_value(json_object_get(object, "n")), INT64_MIN);
        } else {
            ck_assert_int_eq(json_integer_value(json_object_get(object, "z")), 1);
        }
        json_decref(object);
    }
}
END_TEST

static void *log_many(void *arg) {
    for (int i = 0; i < 200; i++)
        log_info("from a thread", log_text("who", arg));
    return NULL;
}

START_TEST(threads_do_not_mix_their_lines) {
    pthread_t threads[4];
    static char names[4][300];
    for (int i = 0; i < 4; i++) {
        memset(names[i], 'a' + i, sizeof names[i] - 1);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, log_many, names[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    int n = 0;
    for (const char *line = logged(); *line; line = strchr(line, '\n') + 1, n++) {
        const char *who = strstr(line, "who=");
        ck_assert_ptr_nonnull(who);
        ck_assert_uint_eq(strspn(who + 4, (char[]){who[4], 0}), 299);
        ck_assert_int_eq(who[4 + 299], '\n');
    }
    ck_assert_int_eq(n, 800);
}
END_TEST

START_TEST(levels_have_names) {
    enum log_level level;
    ck_assert(log_level_by_name("warn", &level));
    ck_assert_int_eq(level, LOG_LEVEL_WARN);
    ck_assert(!log_level_by_name("loud", &level));
    logged();
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &a_line_has_its_fields_in_order,         &lines_below_the_level_are_dropped,
        &a_value_cannot_forge_a_line_or_a_field, &json_lines_are_objects_whatever_is_in_them,
        &threads_do_not_mix_their_lines,         &levels_have_names};
    return run_tests("log", setup, NULL, tests, sizeof tests / sizeof *tests);
}
