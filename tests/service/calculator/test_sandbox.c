/* Foreign code that attacks: objects whose constructors run when they are loaded, modules whose names
 * are C, tools that have been taken over. Each finds nothing. Needs wasm2c, wat2wasm and gcc. */
#include "service/calculator/calculator.h"
#include "service/calculator/tool_process.h"
#include "service/calculator/translate.h"
#include "tests/gpu/suite.h"

#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static struct error error;
static char folder[64], secret[96];
static const struct calculator_limits limits = {.timeout_ms = 20000, .memory_bytes = 1 << 29};

static void set_up(void) {
    (void)snprintf(folder, sizeof folder, "/tmp/proverq-hostile-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(secret, sizeof secret, "%s.secret", folder);
    FILE *file = fopen(secret, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs("password\n", file);
    (void)fclose(file);
    ck_assert_int_eq(setenv("PROVERQ_DATABASE", "postgresql://u:password@localhost/x", 1), 0);
}

static void tear_down(void) {
    char command[400];
    (void)snprintf(command, sizeof command, "rm -rf '%s' '%s'", folder, secret);
    ck_assert_int_eq(system(command), 0);
}

static void shell(const char *command) {
    ck_assert_msg(system(command) == 0, "%s", command);
}

/* --- constructors --- */

static int listen_here(int *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, n), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &n), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void constructor(const char *what, const char *says) {
    char command[600], object[96];
    struct calculator_facts facts;
    int port, fd = listen_here(&port);
    (void)snprintf(object, sizeof object, "%s/%s.so", folder, what);
    (void)snprintf(command, sizeof command,
                   "gcc -w -shared -fPIC -DDO=%s -DPROVER=%d -DPORT=%d -DSECRET='\"%s\"' -o %s "
                   "tests/e2e/calculators/constructor.c",
                   what, (int)getpid(), port, secret, object);
    shell(command);
    enum err rc = calculator_examine(object, &limits, &facts, &error);
    ck_assert_msg(rc == ERR_CALCULATOR, "%s: %s: %s", what, error_name(rc), error.text);
    ck_assert_msg(strstr(error.text, says) != NULL, "%s: %s", what, error.text);
    ck_assert_msg(strstr(error.text, "reached") == NULL, "%s: %s", what, error.text);
    (void)close(fd);
}

START_TEST(a_constructor_finds_nothing) {
    constructor("FILES", "status 43");
    constructor("ENVIRONMENT", "status 43");
    constructor("DESCRIPTORS", "status 43");
    ck_assert_int_ne(access("/tmp/proverq-constructor", F_OK), 0);
}
END_TEST

START_TEST(a_constructor_s_system_calls_end_it) {
    static const char *const calls[] = {"CONNECT",     "EXEC",    "FORK",  "KILL",    "PTRACE",
                                        "READ_MEMORY", "PRLIMIT", "SHARE", "DUMPABLE"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        constructor(calls[i], "system call that calculators may not make");
}
END_TEST

START_TEST(a_constructor_that_speaks_for_proverq_is_not_trusted) {
    constructor("LIE", "nonsense");
}
END_TEST

/* --- tools that have been taken over --- */

/* A "wasm2c" that does what the words say instead, and shows what came of it in its version. */
static void tool(const char *does, const char *says) {
    char path[PATH_MAX], *object = NULL;
    (void)snprintf(path, sizeof path, "%s/bin", folder);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/bin/wasm2c", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fprintf(file, "#!/bin/sh\n{ %s; } 2>&1 | sed 's/^/error: /'\necho error: not done\n",
                  does);
    (void)fclose(file);
    ck_assert_int_eq(chmod(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/bin:/usr/bin:/bin", folder);
    ck_assert_int_eq(setenv("PATH", path, 1), 0);
    (void)snprintf(path, sizeof path, "%s/work", folder);
    (void)mkdir(path, 0700);
    CHECK_ERR(translate_wasm("tests/circuits/factor/factor.wasm", path, &object, &error),
              ERR_UNSUPPORTED, says);
}

START_TEST(a_tool_reads_its_own_files_only) {
    char command[400];
    tool("test -z \"$PROVERQ_DATABASE\" && env | wc -l | sed 's/^/error: /'",
         "error: 4)"); /* and PWD */
    tool("cat /etc/passwd", "Permission denied");
    (void)snprintf(command, sizeof command, "cat %s", secret);
    tool(command, "Permission denied");
    (void)snprintf(command, sizeof command, "cat /proc/%d/environ", (int)getpid());
    tool(command, "Permission denied");
    (void)snprintf(command, sizeof command, "cat /proc/%d/mem", (int)getpid());
    tool(command, "Permission denied");
    tool("cat /proc/self/fd/3", "No such file");
}
END_TEST

START_TEST(a_tool_writes_in_its_folder_only) {
    struct stat status;
    char command[400];
    tool("echo x >own && mv own other && rm other && echo error: it can", "error: it can");
    tool("echo x >/tmp/proverq-tool-wrote", "Permission denied");
    (void)snprintf(command, sizeof command, "ln -s %s calculator.so", secret);
    tool(command, "error: ln: ");
    (void)snprintf(command, sizeof command, "ln %s calculator.so", secret);
    tool(command, "error: ln: ");
    tool("mkfifo calculator.so", "error: mkfifo: ");
    (void)snprintf(command, sizeof command, "chmod 777 %s && touch -d 1999-01-01 %s", secret,
                   secret);
    tool(command, "error: not done");
    ck_assert_int_eq(stat(secret, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0644);
    ck_assert_int_gt(status.st_mtime, 1500000000);
    (void)snprintf(command, sizeof command, "%s/work/calculator.so", folder);
    ck_assert_int_ne(access(command, F_OK), 0);
    ck_assert_int_ne(access("/tmp/proverq-tool-wrote", F_OK), 0);
}
END_TEST

START_TEST(a_tool_reaches_no_process_and_no_network) {
    char command[400];
    int port, fd = listen_here(&port);
    (void)snprintf(command, sizeof command, "kill -TERM %d && echo error: killed", (int)getpid());
    tool(command, "kill: ");
    (void)snprintf(command, sizeof command,
                   "perl -e 'use Socket; socket(S, PF_INET, SOCK_STREAM, 0) or print \"error: "
                   "$!\"'");
    tool(command, "Function not implemented");
    tool("sleep 1000 >/dev/null 2>&1 & echo left", "error: left"); /* ends with the tool's group */
    (void)close(fd);
}
END_TEST

/* --- our own calls, with few and with many inputs --- */

/* circom 2's table of the input signals s0, s1 ... with a value each. */
static void print_table(FILE *out, size_t n) {
    uint64_t slots[WASM_INPUTS_MAX][2] = {{0}};
    char name[32];
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(name, sizeof name, "s%zu", i);
        uint64_t hash = inputs_hash(name);
        size_t slot = hash % WASM_INPUTS_MAX;
        while (slots[slot][0])
            slot = (slot + 1) % WASM_INPUTS_MAX;
        slots[slot][0] = hash;
        slots[slot][1] = UINT64_C(1) << 32 | (i + 1); /* size, position */
    }
    const uint8_t *bytes = (const uint8_t *)slots;
    (void)fprintf(out, "(data (i32.const 128) \"");
    for (size_t i = 0; i < sizeof slots; i++)
        (void)fprintf(out, "\\%02x", bytes[i]);
    (void)fprintf(out, "\")\n");
}

/* The calculator of hostile.wat, which does nothing, with `n` inputs. */
static void write_wat(const char *path, size_t n) {
    char line[512];
    FILE *in = fopen("tests/e2e/calculators/hostile.wat", "r"), *out = fopen(path, "w");
    ck_assert(in && out);
    while (fgets(line, sizeof line, in)) {
        char *body = strstr(line, "BODY");
        if (body)
            (void)fprintf(out, "%.*s(nop)%s", (int)(body - line), line, body + 4);
        else if (strstr(line, "\"getInputSize\""))
            (void)fprintf(out, "(func (export \"getInputSize\") (result i32) (i32.const %zu))\n",
                          n);
        else
            (void)fputs(line, out);
        if (strstr(line, "(memory ")) print_table(out, n);
    }
    (void)fclose(in);
    (void)fclose(out);
}

static void make_inputs(size_t n, char *text, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, size - used, "s%zu 7\n", i);
}

static void compute(char *object, const struct calculator_facts *facts, size_t n) {
    static char inputs[WASM_INPUTS_MAX * 16];
    static uint8_t witness[8192];
    struct witness_memory memory = {.bytes = witness, .capacity = sizeof witness};
    const struct calculator calculator = {
        .path = object, .curve = curve_info(CURVE_BN254), .n_vars = facts->facts.n_vars};
    struct calculators *all;
    CHECK_OK(calculators_open(&limits, 1, &all, &error));
    make_inputs(n, inputs, sizeof inputs);
    CHECK_OK(calculators_compute(all, &calculator, inputs, strlen(inputs), -1, &memory, &error));
    *inputs = '\0';
    make_inputs(n - 1, inputs, sizeof inputs);
    CHECK_ERR(calculators_compute(all, &calculator, inputs, strlen(inputs), -1, &memory, &error),
              ERR_INPUT, "missing");
    calculators_close(all);
}

START_TEST(few_and_many_inputs_are_sorted_in_the_sandbox) {
    static const size_t counts[] = {1, 63, 64, 65, 150, WASM_INPUTS_MAX};
    char wat[96], wasm[96], command[300], work[96], *object = NULL;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct calculator_facts facts;
        (void)snprintf(wat, sizeof wat, "%s/many.wat", folder);
        (void)snprintf(wasm, sizeof wasm, "%s/many.wasm", folder);
        (void)snprintf(work, sizeof work, "%s/%zu", folder, counts[i]);
        ck_assert_int_eq(mkdir(work, 0700), 0);
        write_wat(wat, counts[i]);
        (void)snprintf(command, sizeof command, "wat2wasm %s -o %s", wat, wasm);
        shell(command);
        CHECK_OK(translate_wasm(wasm, work, &object, &error));
        CHECK_OK(calculator_examine(object, &limits, &facts, &error));
        ck_assert_uint_eq(facts.n_inputs, counts[i]);
        for (size_t k = 0; k < counts[i]; k++)
            ck_assert_uint_eq(facts.inputs[k].position, k + 1);
        compute(object, &facts, counts[i]);
        free(object);
    }
}
END_TEST

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], CALCULATOR_COMMAND) == 0) return calculator_process_main();
    if (argc > 3 && strcmp(argv[1], TOOL_COMMAND) == 0) return tool_process_main(argv + 2);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    puts("left out: a sanitizer reserves more memory than a calculator process may have");
    return 0;
#endif
    const TTest *const *const tests[] = {&a_constructor_finds_nothing,
                                         &a_constructor_s_system_calls_end_it,
                                         &a_constructor_that_speaks_for_proverq_is_not_trusted,
                                         &a_tool_reads_its_own_files_only,
                                         &a_tool_writes_in_its_folder_only,
                                         &a_tool_reaches_no_process_and_no_network,
                                         &few_and_many_inputs_are_sorted_in_the_sandbox};
    return run_tests("sandbox", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
