/* The command line: what is read, from where, what is refused and with which help; that every option
 * is documented. */
#include "service/common/options.h"
#include "tests/gpu/suite.h"

#include <stdlib.h>
#include <string.h>

static struct options options;
static struct error error;

static enum err parse(const char *const *argv) {
    int argc = 0;
    while (argv[argc])
        argc++;
    options_free(&options);
    memset(&error, 0, sizeof error);
    return options_parse(argc, argv, &options, &error);
}

#define PARSE(...) parse((const char *const[]){"proverq", __VA_ARGS__, NULL})

static void is_read(enum err rc) {
    ck_assert_msg(rc == ERR_NONE, "%s", error.text);
}

static void is_refused(enum err rc, const char *says) {
    ck_assert_int_eq(rc, ERR_USAGE);
    ck_assert_msg(strstr(error.text, says) != NULL, "\"%s\" does not say \"%s\"", error.text, says);
}

/* Nothing of the caller's environment, or of the test before, is seen. */
static void setup(void) {
    ck_assert_int_eq(clearenv(), 0);
}

static void teardown(void) {
    options_free(&options);
}

START_TEST(defaults_come_from_the_table) {
    is_read(PARSE("serve"));
    ck_assert_int_eq(options.command, COMMAND_SERVE);
    ck_assert_str_eq(options.database, "");
    ck_assert_uint_eq(options.lease_ms, 30000);
    ck_assert_uint_eq(options.poll_ms, 1000);
    ck_assert_uint_eq(options.webhook_parallel, 256);
    ck_assert_uint_eq(options.webhook_per_endpoint, 8);
    ck_assert_uint_eq(options.devices.n, 1);
    ck_assert_str_eq(options.devices.item[0], "auto");
    ck_assert_uint_eq(options.webhook_allow.n, 0);
    ck_assert(!options.webhook_http);
    ck_assert_str_eq(options.log_level, "info");
    is_read(PARSE("circuit", "add", "c", "k.zkey"));
    ck_assert_uint_eq(options.artefact_limit, UINT64_C(1) << 30);
}
END_TEST

START_TEST(the_command_line_wins_over_the_environment_over_the_default) {
    ck_assert_int_eq(setenv("PROVERQ_LEASE", "2m", 1), 0);
    ck_assert_int_eq(setenv("PROVERQ_DEVICE", "cuda:0,cpu", 1), 0);
    ck_assert_int_eq(setenv("PROVERQ_WEBHOOK_HTTP", "yes", 1), 0);
    is_read(PARSE("serve"));
    ck_assert_uint_eq(options.lease_ms, 120000);
    ck_assert_uint_eq(options.devices.n, 2);
    ck_assert_str_eq(options.devices.item[1], "cpu");
    ck_assert(options.webhook_http);
    is_read(PARSE("serve", "--lease", "500ms", "--device=cuda:3"));
    ck_assert_uint_eq(options.lease_ms, 500);
    ck_assert_uint_eq(options.devices.n, 1);
    ck_assert_str_eq(options.devices.item[0], "cuda:3");
}
END_TEST

START_TEST(an_empty_variable_is_no_value) {
    ck_assert_int_eq(setenv("PROVERQ_LEASE", "", 1), 0);
    is_read(PARSE("prover"));
    ck_assert_uint_eq(options.lease_ms, 30000);
}
END_TEST

START_TEST(a_variable_of_another_command_does_not_matter) {
    ck_assert_int_eq(setenv("PROVERQ_LEASE", "nonsense", 1), 0);
    is_read(PARSE("migrate", "status"));
    is_refused(PARSE("prover"), "PROVERQ_LEASE: \"nonsense\" is not a time");
}
END_TEST

START_TEST(lists_take_an_option_several_times) {
    is_read(PARSE("serve", "--device", "cuda:0", "--device", "cuda:1,cpu"));
    ck_assert_uint_eq(options.devices.n, 3);
    ck_assert_str_eq(options.devices.item[0], "cuda:0");
    ck_assert_str_eq(options.devices.item[2], "cpu");
    is_refused(PARSE("prover", "--device", "cpu", "--device", "cuda:0"), "uses one --device");
}
END_TEST

START_TEST(a_list_has_an_end) {
    const char *argv[2 + 2 * (OPTION_LIST_MAX + 1) + 1] = {"proverq", "finalizer"};
    for (size_t i = 2; i < sizeof argv / sizeof *argv - 1; i += 2)
        argv[i] = "--webhook-allow", argv[i + 1] = "10.0.0.0/8";
    is_refused(parse(argv), "more than 32");
}
END_TEST

START_TEST(units_are_understood) {
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {{"0", 0}, {"17", 17}, {"3k", 3072}, {"2M", 2 << 20}, {"5G", UINT64_C(5) << 30}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        is_read(PARSE("circuit", "add", "c", "k", "--artefact-limit", sizes[i].text));
        ck_assert_uint_eq(options.artefact_limit, sizes[i].bytes);
    }
    static const struct {
        const char *text;
        uint32_t ms;
    } times[] = {{"1ms", 1}, {"20s", 20000}, {"3m", 180000}, {"168h", 604800000}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        is_read(PARSE("prover", "--lease", times[i].text));
        ck_assert_uint_eq(options.lease_ms, times[i].ms);
    }
}
END_TEST

START_TEST(values_of_the_wrong_form_are_refused) {
    static const char *const bad[][2] = {
        {"--lease", "30"},       {"--lease", "0s"},        {"--lease", "-1s"},
        {"--lease", " 1s"},      {"--lease", "169h"},      {"--lease", "99999999999999999999h"},
        {"--lease", ""},         {"--threads", "-1"},      {"--threads", "4x"},
        {"--threads", "0x10"},   {"--threads", "1000001"}, {"--webhook-parallel", "0"},
        {"--log-level", "loud"}, {"--log-level", ""},      {"--log-level", "error|warn"},
        {"--device", "gpu"},     {"--device", "cuda"},     {"--device", "cuda:"},
        {"--device", "cuda:-1"}, {"--device", "cuda:1x"},  {"--webhook-http=maybe", NULL},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *const argv[] = {"proverq", "serve", bad[i][0], bad[i][1], NULL};
        ck_assert_msg(parse(argv) == ERR_USAGE, "%s %s", bad[i][0], bad[i][1] ? bad[i][1] : "");
    }
    is_refused(PARSE("circuit", "add", "c", "k", "--artefact-limit", "9999999999G"), "a size");
}
END_TEST

START_TEST(an_unknown_option_names_the_nearest) {
    is_refused(PARSE("serve", "--devcie", "cpu"), "nearest is --device auto|cpu|cuda:N: ");
    is_refused(PARSE("prove", "a", "b", "c", "d", "--verbos"), "nearest is --verbose: ");
    is_refused(PARSE("vkey", "--lease", "1s", "k"), "takes none");
    is_refused(PARSE("prove", "--lease", "1s", "a", "b", "c", "d"), "no option --lease");
}
END_TEST

START_TEST(an_unknown_command_names_the_nearest) {
    is_refused(PARSE("verfy"), "nearest is `proverq verify`");
    is_refused(PARSE("finaliser"), "nearest is `proverq finalizer`");
    is_refused(PARSE("migrate"), "migrate up, migrate down, migrate plan, ");
    is_refused(PARSE("circuit", "delete"), "circuit add, circuit list, circuit show, circuit rm");
    is_refused(PARSE("--lease"), "the command comes first");
    is_refused(parse((const char *const[]){"proverq", NULL}), "no command");
}
END_TEST

START_TEST(arguments_are_counted) {
    is_read(PARSE("prove", "k", "--verbose", "w", "p", "--", "--odd"));
    ck_assert_uint_eq(options.n_arguments, 4);
    ck_assert_str_eq(options.arguments[3], "--odd");
    ck_assert(options.verbose);
    is_refused(PARSE("prove", "k", "w", "p"),
               "missing; usage: proverq prove KEY.zkey WITNESS.wtns");
    is_refused(PARSE("verify", "a", "b", "c", "d"), "too many");
    is_refused(PARSE("serve", "x"), "too many");
    is_refused(PARSE("serve", "--lease"), "needs a value");
    is_read(PARSE("migrate", "up"));
    is_refused(PARSE("migrate", "up", "3"), "too many");
}
END_TEST

START_TEST(help_is_given_whatever_else_is_wrong) {
    is_read(PARSE("--help"));
    ck_assert(options.help && options.command == COMMAND_COUNT);
    is_read(PARSE("prove", "k", "--help"));
    ck_assert(options.help && options.command == COMMAND_PROVE);
    is_read(PARSE("migrate", "--help"));
    ck_assert(options.help);
    is_read(PARSE("--version"));
    ck_assert(options.version);
}
END_TEST

START_TEST(the_cache_is_where_systemd_or_the_user_keeps_caches) {
    ck_assert_int_eq(setenv("CACHE_DIRECTORY", "/run/a", 1), 0);
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", "/run/b", 1), 0);
    ck_assert_int_eq(setenv("HOME", "/run/c", 1), 0);
    is_read(PARSE("prover"));
    ck_assert_str_eq(options.cache_dir, "/run/a");
    ck_assert_int_eq(unsetenv("CACHE_DIRECTORY"), 0);
    is_read(PARSE("prover"));
    ck_assert_str_eq(options.cache_dir, "/run/b/proverq");
    ck_assert_int_eq(unsetenv("XDG_CACHE_HOME"), 0);
    is_read(PARSE("prover"));
    ck_assert_str_eq(options.cache_dir, "/run/c/.cache/proverq");
    ck_assert_int_eq(unsetenv("HOME"), 0);
    is_read(PARSE("prover"));
    ck_assert_str_eq(options.cache_dir, "/var/cache/proverq");
    is_read(PARSE("prover", "--cache-dir", "/d"));
    ck_assert_str_eq(options.cache_dir, "/d");
}
END_TEST

START_TEST(a_child_process_reads_what_was_exported) {
    is_read(PARSE("serve", "--database", "host=a password='x,y'", "--lease", "7s", "--webhook-http",
                  "--webhook-allow", "10.0.0.0/8", "--webhook-allow", "fd00::/8", "--log-format",
                  "json", "--cache-dir", "/c", "--threads", "3"));
    is_read(options_export(&options, &error));
    is_read(PARSE("finalizer"));
    ck_assert_str_eq(options.database, "host=a password='x,y'");
    ck_assert(options.webhook_http);
    ck_assert_uint_eq(options.webhook_allow.n, 2);
    ck_assert_str_eq(options.webhook_allow.item[1], "fd00::/8");
    ck_assert_str_eq(options.log_format, "json");
    is_read(PARSE("prover", "--device", "cpu"));
    ck_assert_uint_eq(options.lease_ms, 7000);
    ck_assert_str_eq(options.cache_dir, "/c");
    ck_assert_uint_eq(options.threads, 3);
}
END_TEST

/* --- documentation --- */

static char *help_of(enum command command) {
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(stream);
    options_help(stream, command);
    ck_assert_int_eq(fclose(stream), 0);
    return text;
}

static const struct {
    const char *name;
    unsigned commands;
} documented[] = {
#define X(field, kind, name, argument, fallback, commands, help) {name, commands},
    OPTION_TABLE(X)
#undef X
};

START_TEST(every_command_and_option_is_in_the_help) {
    char *program = help_of(COMMAND_COUNT);
    for (enum command c = 0; c < COMMAND_COUNT; c++) {
        char *text = help_of(c);
        ck_assert_msg(strstr(program, options_command_words(c)) != NULL, "%s",
                      options_command_words(c));
        ck_assert_ptr_nonnull(strstr(text, options_command_words(c)));
        for (size_t i = 0; i < sizeof documented / sizeof *documented; i++) {
            char line[64];
            (void)snprintf(line, sizeof line, "\n  --%s", documented[i].name);
            ck_assert_msg((strstr(text, line) != NULL) == ((documented[i].commands & FOR(c)) != 0),
                          "%s in %s", documented[i].name, options_command_words(c));
        }
        free(text);
    }
    free(program);
}
END_TEST

START_TEST(help_fits_a_terminal_of_100_columns) {
    for (enum command c = 0; c <= COMMAND_COUNT; c++) {
        char *text = help_of(c);
        for (char *line = text; line && *line; line = strchr(line, '\n') + 1)
            ck_assert_msg(strcspn(line, "\n") <= 100, "%.*s", (int)strcspn(line, "\n"), line);
        free(text);
    }
}
END_TEST

/* contrib/docs/options.md lists them all, and none that is not there. */
START_TEST(every_option_is_in_the_reference) {
    FILE *file = fopen("contrib/docs/options.md", "r");
    ck_assert_msg(file != NULL, "run the tests in the top folder: contrib/docs/options.md");
    char *text = NULL, *line = NULL;
    size_t size = 0, found = 0;
    ck_assert_int_gt(getdelim(&text, &size, '\0', file), 0);
    ck_assert_int_eq(fclose(file), 0);
    for (size_t i = 0; i < sizeof documented / sizeof *documented; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "\n| `--%s", documented[i].name);
        char *row = strstr(text, name);
        ck_assert_msg(row != NULL, "--%s is not in contrib/docs/options.md", documented[i].name);
        char after = row[strlen(name)];
        ck_assert_msg(after == '`' || after == ' ', "--%s", documented[i].name);
    }
    for (line = text; (line = strstr(line, "\n| `--")); line++)
        found++;
    ck_assert_uint_eq(found, sizeof documented / sizeof *documented);
    free(text);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &defaults_come_from_the_table,
        &the_command_line_wins_over_the_environment_over_the_default,
        &an_empty_variable_is_no_value,
        &a_variable_of_another_command_does_not_matter,
        &lists_take_an_option_several_times,
        &a_list_has_an_end,
        &units_are_understood,
        &values_of_the_wrong_form_are_refused,
        &an_unknown_option_names_the_nearest,
        &an_unknown_command_names_the_nearest,
        &arguments_are_counted,
        &help_is_given_whatever_else_is_wrong,
        &the_cache_is_where_systemd_or_the_user_keeps_caches,
        &a_child_process_reads_what_was_exported,
        &every_command_and_option_is_in_the_help,
        &help_fits_a_terminal_of_100_columns,
        &every_option_is_in_the_reference};
    return run_tests("options", setup, teardown, tests, sizeof tests / sizeof *tests);
}
