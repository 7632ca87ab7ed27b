/* proverq: reads the command line, sets up the process, and hands over to the command.
 *
 * The folders of service/, each of which includes only its own headers and those of the rows below
 * (tests/lint.sh checks it):
 *
 *     main.c
 *     commands/                               what people run once: circuit, migrate, prove, listen
 *     supervisor/    prover/    finalizer/    programs: `serve`, and the processes that it starts
 *     calculator/               schema/       witness calculators; migrations and what they made
 *     db/                                     PostgreSQL: connections, statements, artefacts
 *     common/                                 options, log, threads, signals to stop, memory budget
 *
 * Beside them is gpu/, the prover library, which knows nothing of service/.
 */
#include "service/calculator/calculator_process.h"
#include "service/calculator/tool_process.h"
#include "service/commands/circuit.h"
#include "service/commands/files.h"
#include "service/commands/migrate.h"
#include "service/commands/webhook_viewer.h"
#include "service/common/log.h"
#include "service/common/options.h"
#include "service/common/report.h"
#include "service/common/version.h"
#include "service/finalizer/finalizer.h"
#include "service/prover/prover.h"
#include "service/supervisor/probe.h"
#include "service/supervisor/supervisor.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_WRONG_USAGE = 2 };

static enum err verify_command(const struct options *options, struct error *error) {
    bool is_printed;
    enum err rc = files_verify(options, &is_printed, error);
    if (is_printed) error->text[0] = '\0';
    return rc;
}

static enum err run(const struct options *options, struct error *error) {
    switch (options->command) {
    case COMMAND_SERVE:
        return supervisor_run(options, error);
    case COMMAND_PROVER:
        return prover_run(options, error);
    case COMMAND_FINALIZER:
        return finalizer_run(options, error);
    case COMMAND_MIGRATE_UP:
        return migrate_up(options, error);
    case COMMAND_MIGRATE_DOWN:
        return migrate_down(options, error);
    case COMMAND_MIGRATE_PLAN:
        return migrate_plan(options, error);
    case COMMAND_MIGRATE_EXPORT:
        return migrate_export(options, error);
    case COMMAND_MIGRATE_STATUS:
        return migrate_status(options, error);
    case COMMAND_CIRCUIT_ADD:
        return circuit_add(options, error);
    case COMMAND_CIRCUIT_LIST:
        return circuit_list(options, error);
    case COMMAND_CIRCUIT_SHOW:
        return circuit_show(options, error);
    case COMMAND_CIRCUIT_RM:
        return circuit_rm(options, error);
    case COMMAND_LISTEN:
        return webhook_viewer_run(options, error);
    case COMMAND_PROVE:
        return files_prove(options, error);
    case COMMAND_VERIFY:
        return verify_command(options, error);
    case COMMAND_VKEY:
        return files_vkey(options, error);
    case COMMAND_SETUP:
        return files_setup(options, error);
    case COMMAND_COUNT:
        break;
    }
    return error_set(error, ERR_INTERNAL, "no such command");
}

static bool is_daemon(const struct options *options) {
    return options->command < COMMAND_COUNT && FOR(options->command) & FOR_DAEMONS;
}

static void set_up_daemon(const struct options *options) {
    enum log_level level;
    if (log_level_by_name(options->log_level, &level)) log_set_level(level);
    log_set_format(strcmp(options->log_format, "json") == 0 ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT);
    log_set_process(options_command_words(options->command));
    (void)prctl(PR_SET_NAME, "proverq"); /* else children are called "exe" in ps and top */
    report_open(options->report_fd);
}

static int failed(const struct options *options, const struct error *error) {
    if (is_daemon(options)) {
        log_error("ended", log_text("code", error_name(error->code)),
                  log_text("error", error->text));
        report_end(error);
    } else if (*error->text) {
        (void)fprintf(stderr, "proverq: %s\n", error->text);
    }
    return error->code == ERR_USAGE ? EXIT_WRONG_USAGE : EXIT_FAILED;
}

int main(int argc, char **argv) {
    struct options options;
    struct error error = {.code = ERR_NONE};
    int status = EXIT_OK;
    if (argc == 2 && strcmp(argv[1], CALCULATOR_COMMAND) == 0) return calculator_process_main();
    if (argc > 3 && strcmp(argv[1], TOOL_COMMAND) == 0) return tool_process_main(argv + 2);
    if (argc == 4 && strcmp(argv[1], PROBE_COMMAND) == 0)
        return probe_process_main(argv[2], argv[3]);
    (void)signal(SIGPIPE, SIG_IGN); /* a write that fails says so where it is made */
    if (options_parse(argc, (const char *const *)argv, &options, &error)) {
        (void)fprintf(stderr, "proverq: %s\n", error.text);
        status = EXIT_WRONG_USAGE;
    } else if (options.help) {
        options_help(stdout, options.command);
    } else if (options.version) {
        (void)printf("proverq %s\n", PROVERQ_VERSION);
    } else {
        if (is_daemon(&options)) set_up_daemon(&options);
        if (run(&options, &error)) status = failed(&options, &error);
    }
    options_free(&options);
    return status;
}
