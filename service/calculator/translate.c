#include "service/calculator/translate.h"
#include "gpu/monotonic.h"
#include "service/calculator/tool_process.h"
#include "service/calculator/wasm_module.h"
#include "service/common/embedded.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COMPILER_WORDS = 16, SAID_BYTES = 320, TOOL_WORDS = 48, TOOL_SECONDS = 3600 };

static const char packages[] = "on Debian and Ubuntu: apt-get install wabt gcc libc6-dev";

/* --- running programs --- */

static const char *search_path(void) {
    const char *folders = getenv("PATH");
    return folders ? folders : "/usr/bin:/bin";
}

/* The path of the program that a shell would run. */
static bool find_program(const char *name, char path[PATH_MAX]) {
    (void)snprintf(path, PATH_MAX, "%s", name);
    if (strchr(name, '/')) return access(path, X_OK) == 0;
    for (const char *at = search_path(); at;) {
        const char *colon = strchr(at, ':');
        int n = colon ? (int)(colon - at) : (int)strlen(at);
        (void)snprintf(path, PATH_MAX, "%.*s/%s", n, at, name);
        if (access(path, X_OK) == 0) return true;
        at = colon ? colon + 1 : NULL;
    }
    return false;
}

static bool is_program(const char *name) {
    char path[PATH_MAX];
    return find_program(name, path);
}

/* The first line with "error" in it, else the first: what a person wants to see of a log. */
static void quote_log(const char *path, char *out, size_t size) {
    char line[512];
    FILE *file = fopen(path, "r");
    out[0] = '\0';
    while (file && fgets(line, sizeof line, file)) {
        bool is_error = strstr(line, "error") != NULL;
        line[strcspn(line, "\n")] = '\0';
        if (is_error || !*out) (void)snprintf(out, size, "%.300s", line);
        if (is_error) break;
    }
    if (file) (void)fclose(file);
}

static int add_actions(posix_spawn_file_actions_t *actions, const char *folder, const char *log) {
    int failed = posix_spawn_file_actions_addchdir_np(actions, folder);
    if (!failed) failed = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    if (!failed)
        failed =
            posix_spawn_file_actions_addopen(actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!failed) failed = posix_spawn_file_actions_adddup2(actions, 1, 2);
    return failed;
}

/* A process group of its own: what the tool leaves behind ends with it. */
static int spawn_self(char **arguments, char **environment, const char *folder, const char *log,
                      pid_t *pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) return failed;
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        failed = add_actions(&actions, folder, log);
        if (!failed) failed = posix_spawnattr_setpgroup(&attributes, 0);
        if (!failed) failed = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        if (!failed)
            failed =
                posix_spawn(pid, "/proc/self/exe", &actions, &attributes, arguments, environment);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/* Starts the tool in a process that shuts itself in (tool_process.h). */
static enum err spawn(const char *const *words, const char *folder, const char *log, pid_t *pid,
                      struct error *error) {
    char program[PATH_MAX], path[2 * PATH_MAX], scratch[PATH_MAX];
    const char *arguments[TOOL_WORDS] = {"proverq", TOOL_COMMAND, program};
    char language[] = "LANG=C", *const environment[] = {path, scratch, language, NULL};
    size_t n = 3;
    if (!find_program(words[0], program))
        return error_set(error, ERR_ABSENT, "%s cannot be run: %s", words[0], strerror(errno));
    for (size_t i = 0; words[i] && n + 1 < TOOL_WORDS; i++)
        arguments[n++] = words[i];
    arguments[n] = NULL;
    (void)snprintf(path, sizeof path, "PATH=%s", search_path());
    (void)snprintf(scratch, sizeof scratch, "TMPDIR=%s", folder);
    int failed = spawn_self((char **)(uintptr_t)arguments, (char **)(uintptr_t)environment, folder,
                            log, pid); /* they are only read */
    if (!failed) return ERR_NONE;
    return error_set(error, ERR_ABSENT, "%s cannot be run: %s", words[0], strerror(failed));
}

/* Waits for the end of the tool, and ends what is left of its process group. */
static enum err wait_for(pid_t pid, const char *name, int *status, struct error *error) {
    const struct timespec tick = {0, 10000000};
    int64_t deadline_ms = monotonic_ms() + INT64_C(1000) * TOOL_SECONDS;
    bool is_late = false;
    for (pid_t ended = 0; ended != pid;) {
        ended = waitpid(pid, status, is_late ? 0 : WNOHANG);
        if (ended < 0 && errno != EINTR)
            return error_set(error, ERR_INTERNAL, "waitpid failed: %s", strerror(errno));
        if (ended == pid) break;
        is_late = monotonic_ms() >= deadline_ms;
        if (is_late) (void)kill(-pid, SIGKILL);
        (void)nanosleep(&tick, NULL);
    }
    (void)kill(-pid, SIGKILL);
    if (is_late)
        return error_set(error, ERR_CALCULATOR, "%s was ended: it took more than %d s", name,
                         TOOL_SECONDS);
    return ERR_NONE;
}

static enum err join(char **out, const char *folder, const char *name, struct error *error) {
    if (asprintf(out, "%s/%s", folder, name) >= 0) return ERR_NONE;
    *out = NULL;
    return error_set(error, ERR_HOST_MEMORY, "out of memory");
}

/* Runs a program in the folder, where what it prints goes to `log`. *status: its exit status; said: the
 * line of the log to quote. ERR_UNSUPPORTED: this host cannot shut it in. */
static enum err run(const char *const *words, const char *folder, const char *log, int *status,
                    char said[SAID_BYTES], struct error *error) {
    char *path = NULL;
    pid_t pid = 0;
    enum err rc;
    TRY(join(&path, folder, log, error));
    TRY(spawn(words, folder, log, &pid, error));
    TRY(wait_for(pid, words[0], status, error));
    quote_log(path, said, SAID_BYTES);
    if (WIFSIGNALED(*status))
        TRY(error_set(error, ERR_CALCULATOR, "%s was ended (%s); it has 8 GiB and 30 minutes",
                      words[0], strsignal(WTERMSIG(*status))));
    if (WEXITSTATUS(*status) == TOOL_NOT_STARTED)
        TRY(error_set(error, ERR_UNSUPPORTED, "%s was not started: %s", words[0], said));
fail:
    free(path);
    return rc;
}

/* --- wasm2c --- */

struct version {
    unsigned long parts[3];
};

/* The glue is for these and for all between them. A newer one is tried: if its interface is another
 * one the compiler says so, and a witness is checked against the circuit whoever computed it. */
static const struct version oldest = {{1, 0, 32}}, newest = {{1, 0, 42}};
static const char known[] =
    "known are those of wabt 1.0.32 (Debian 12), 1.0.34 (Ubuntu 24.04), 1.0.36 (Debian 13) to "
    "1.0.42; add the circuit on a machine that has one, or with circom's C++ calculator "
    "(--calculator)";

static bool is_before(const struct version *a, const struct version *b) {
    for (size_t i = 0; i < 3; i++)
        if (a->parts[i] != b->parts[i]) return a->parts[i] < b->parts[i];
    return false;
}

/* "1.0.36", perhaps with more behind it. */
static bool parse_version(const char *text, struct version *out) {
    for (size_t i = 0; i < 3; i++) {
        char *end;
        if (*text < '0' || *text > '9') return false;
        out->parts[i] = strtoul(text, &end, 10);
        if (i < 2 && *end != '.') return false;
        text = end + 1;
    }
    return true;
}

static enum err read_version(const char *folder, struct version *out, struct error *error) {
    const char *const words[] = {"wasm2c", "--version", NULL};
    char said[SAID_BYTES];
    int status = 0;
    enum err rc;
    if (!is_program("wasm2c"))
        TRY(error_set(error, ERR_ABSENT, "wasm2c is not there, which makes C of a .wasm; %s",
                      packages));
    TRY(run(words, folder, "wasm2c.log", &status, said, error));
    if (!parse_version(said, out))
        TRY(error_set(error, ERR_UNSUPPORTED,
                      "wasm2c does not tell its version (wasm2c --version: %s); %s", said, known));
    if (is_before(out, &oldest))
        TRY(error_set(error, ERR_UNSUPPORTED, "wasm2c of wabt %lu.%lu.%lu is too old; %s",
                      out->parts[0], out->parts[1], out->parts[2], known));
fail:
    return rc;
}

static enum err run_wasm2c(const char *wasm, const char *folder, struct error *error) {
    const char *const words[] = {"wasm2c", "-n",           "calculator", "module.wasm",
                                 "-o",     "calculator.c", NULL};
    char said[SAID_BYTES], *copy = NULL;
    int status = 0;
    enum err rc;
    TRY(join(&copy, folder, "module.wasm", error));
    TRY(wasm_module_copy(wasm, copy, error));
    TRY(run(words, folder, "wasm2c.log", &status, said, error));
    if (status != 0) TRY(error_set(error, ERR_FORMAT, "%s cannot be translated: %s", wasm, said));
fail:
    free(copy);
    return rc;
}

/* --- the compiler --- */

/* $CC may have arguments. */
static enum err find_compiler(char *room, size_t size, const char **words, size_t *n,
                              struct error *error) {
    static const char *const usual[] = {"cc", "gcc", "clang"};
    const char *chosen = getenv("CC");
    *n = 0;
    if (chosen && *chosen) {
        (void)snprintf(room, size, "%s", chosen);
        for (char *at = room; *at && *n + 1 < COMPILER_WORDS; at += strspn(at, " ")) {
            words[(*n)++] = at;
            at += strcspn(at, " ");
            if (*at) *at++ = '\0';
        }
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual && *n == 0; i++)
        if (is_program(usual[i])) words[(*n)++] = usual[i];
    if (*n > 0 && is_program(words[0])) return ERR_NONE;
    return error_set(error, ERR_ABSENT, "there is no C compiler (%s); %s",
                     *n ? words[0] : "cc, gcc, clang", packages);
}

static enum err write_glue(const char *folder, struct error *error) {
    char *path = NULL;
    FILE *file = NULL;
    enum err rc;
    TRY(join(&path, folder, "glue.c", error));
    file = fopen(path, "w");
    if (!file || fputs(embedded_calculator_glue, file) < 0)
        TRY(error_set(error, ERR_IO, "%s: %s", path, strerror(errno)));
fail:
    if (file && fclose(file) != 0 && rc == ERR_NONE)
        rc = error_set(error, ERR_IO, "%s: %s", path, strerror(errno));
    free(path);
    return rc;
}

static enum err explain_compiler(const char *said, const struct version *version,
                                 struct error *error) {
    if (is_before(&newest, version))
        return error_set(
            error, ERR_UNSUPPORTED,
            "wasm2c of wabt %lu.%lu.%lu may be too new: what it made cannot be compiled; %s: %s",
            version->parts[0], version->parts[1], version->parts[2], known, said);
    if (strstr(said, "wasm-rt.h") || strstr(said, "stdint.h") || strstr(said, "stdlib.h"))
        return error_set(error, ERR_ABSENT, "a header is missing; %s: %s", packages, said);
    return error_set(error, ERR_FORMAT,
                     "the calculator cannot be compiled; it imports what circom's do not, or "
                     "wasm-rt.h is of another version than wasm2c (%lu.%lu.%lu): %s",
                     version->parts[0], version->parts[1], version->parts[2], said);
}

/* The glue includes calculator.c. */
static enum err compile(const char *folder, const struct version *version, struct error *error) {
    const char *words[COMPILER_WORDS + 20];
    char room[512], said[SAID_BYTES];
    size_t n;
    int status = 0;
    enum err rc;
    TRY(find_compiler(room, sizeof room, words, &n, error));
    const char *const arguments[] = {"-std=gnu11",
                                     "-O1",
                                     "-w",
                                     "-fPIC",
                                     "-shared",
                                     "-DNDEBUG",
                                     "-fno-strict-aliasing",
                                     "-Wl,-z,defs",
                                     "-o",
                                     "calculator.so",
                                     "glue.c",
                                     "-lm",
                                     NULL};
    memcpy(words + n, arguments, sizeof arguments);
    TRY(write_glue(folder, error));
    TRY(run(words, folder, "compiler.log", &status, said, error));
    if (status != 0) TRY(explain_compiler(said, version, error));
fail:
    return rc;
}

enum err translate_wasm(const char *wasm, const char *folder, char **object, struct error *error) {
    struct version version;
    enum err rc;
    *object = NULL;
    TRY(read_version(folder, &version, error));
    TRY(run_wasm2c(wasm, folder, error));
    TRY(compile(folder, &version, error));
    TRY(join(object, folder, "calculator.so", error));
fail:
    return rc;
}
