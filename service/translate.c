#include "service/translate.h"
#include "service/embedded.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { COMPILER_WORDS = 16 };

static const char packages[] = "on Debian and Ubuntu: apt-get install wabt gcc libc6-dev";

/* --- running programs --- */

static bool is_program(const char *name) {
    char path[PATH_MAX];
    const char *folders = getenv("PATH");
    if (strchr(name, '/')) return access(name, X_OK) == 0;
    for (const char *at = folders ? folders : "/usr/bin:/bin"; at;) {
        const char *colon = strchr(at, ':');
        int n = colon ? (int)(colon - at) : (int)strlen(at);
        (void)snprintf(path, sizeof path, "%.*s/%s", n, at, name);
        if (access(path, X_OK) == 0) return true;
        at = colon ? colon + 1 : NULL;
    }
    return false;
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

/* Runs a program in the folder; what it prints goes to `log` there. *status: its exit status. */
static enum err run(const char *const *words, const char *folder, const char *log, int *status,
                    struct error *error) {
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    failed = posix_spawn_file_actions_addchdir_np(&actions, folder);
    if (!failed) failed = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!failed)
        failed =
            posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!failed) failed = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    char **arguments = (char **)(uintptr_t)words; /* they are only read */
    if (!failed) failed = posix_spawnp(&pid, words[0], &actions, NULL, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return error_set(error, ERR_ABSENT, "%s cannot be run: %s", words[0], strerror(failed));
    while (waitpid(pid, status, 0) < 0)
        if (errno != EINTR) return error_set(error, ERR_INTERNAL, "waitpid failed");
    return ERR_NONE;
}

static enum err join(char **out, const char *folder, const char *name, struct error *error) {
    if (asprintf(out, "%s/%s", folder, name) >= 0) return ERR_NONE;
    *out = NULL;
    return error_set(error, ERR_HOST_MEMORY, "out of memory");
}

/* --- wasm2c --- */

static enum err run_wasm2c(const char *wasm, const char *folder, struct error *error) {
    const char *const words[] = {"wasm2c", "-n", "calculator", wasm, "-o", "calculator.c", NULL};
    char *log = NULL, said[320];
    int status = 0;
    enum err rc;
    if (!is_program("wasm2c"))
        TRY(error_set(error, ERR_ABSENT, "wasm2c is not there, which makes C of a .wasm; %s",
                      packages));
    TRY(join(&log, folder, "wasm2c.log", error));
    TRY(run(words, folder, "wasm2c.log", &status, error));
    quote_log(log, said, sizeof said);
    if (status != 0) TRY(error_set(error, ERR_FORMAT, "%s cannot be translated: %s", wasm, said));
fail:
    free(log);
    return rc;
}

/* What the header that wasm2c wrote says of the calculator. */
struct header {
    bool is_known; /* of the version of wasm2c that our glue is for */
    bool imports_memory;
};

static enum err read_header(const char *folder, struct header *out, struct error *error) {
    char line[512], *path = NULL;
    FILE *file = NULL;
    enum err rc;
    *out = (struct header){false, false};
    TRY(join(&path, folder, "calculator.h", error));
    file = fopen(path, "r");
    if (!file) TRY(error_set(error, ERR_IO, "%s: %s", path, strerror(errno)));
    while (fgets(line, sizeof line, file)) {
        if (strstr(line, "void Z_calculator_instantiate(Z_calculator_instance_t*"))
            out->is_known = true;
        if (strstr(line, "wasm_rt_memory_t* Z_envZ_memory(")) out->imports_memory = true;
    }
fail:
    if (file) (void)fclose(file);
    free(path);
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

static enum err explain_compiler(const char *folder, struct error *error) {
    char *log = NULL, said[320];
    enum err rc;
    TRY(join(&log, folder, "compiler.log", error));
    quote_log(log, said, sizeof said);
    if (strstr(said, "wasm-rt.h") || strstr(said, "stdint.h") || strstr(said, "stdlib.h"))
        rc = error_set(error, ERR_ABSENT, "a header is missing; %s: %s", packages, said);
    else
        rc = error_set(error, ERR_FORMAT,
                       "the calculator cannot be compiled; it may import what circom's do not: %s",
                       said);
fail:
    free(log);
    return rc;
}

static enum err compile(const char *folder, bool imports_memory, struct error *error) {
    const char *words[COMPILER_WORDS + 20];
    char room[512];
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
                                     imports_memory ? "-DPROVERQ_IMPORTS_MEMORY=1"
                                                    : "-DPROVERQ_IMPORTS_MEMORY=0",
                                     "-fno-strict-aliasing",
                                     "-Wl,-z,defs",
                                     "-o",
                                     "calculator.so",
                                     "calculator.c",
                                     "glue.c",
                                     "-lm",
                                     NULL};
    memcpy(words + n, arguments, sizeof arguments);
    TRY(write_glue(folder, error));
    TRY(run(words, folder, "compiler.log", &status, error));
    if (status != 0) TRY(explain_compiler(folder, error));
fail:
    return rc;
}

enum err translate_wasm(const char *wasm, const char *folder, char **object, struct error *error) {
    char *path = realpath(wasm, NULL);
    struct header header;
    enum err rc;
    *object = NULL;
    if (!path) TRY(error_set(error, ERR_IO, "%s: %s", wasm, strerror(errno)));
    TRY(run_wasm2c(path, folder, error));
    TRY(read_header(folder, &header, error));
    if (!header.is_known)
        TRY(error_set(error, ERR_UNSUPPORTED,
                      "this wasm2c is of a version that proverq does not know; it knows that of "
                      "wabt 1.0.32 (Debian 12)"));
    TRY(compile(folder, header.imports_memory, error));
    TRY(join(object, folder, "calculator.so", error));
fail:
    free(path);
    return rc;
}
