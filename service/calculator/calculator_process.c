#include "service/calculator/calculator_process.h"
#include "gpu/decimal.h"
#include "service/calculator/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    INPUTS_MOST = 1 << 30,
    PROGRAM_INPUT_FD = 6,
    PROGRAM_OUTPUT_FD = 7,
    LOG_BYTES_MOST = 1 << 20, /* of what a calculator in WebAssembly prints */
};

bool calculator_read(int fd, void *bytes, size_t n) {
    for (size_t done = 0; done < n;) {
        ssize_t got = read(fd, (uint8_t *)bytes + done, n - done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

bool calculator_write(int fd, const void *bytes, size_t n) {
    for (size_t done = 0; done < n;) {
        ssize_t put = write(fd, (const uint8_t *)bytes + done, n - done);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        done += (size_t)put;
    }
    return true;
}

/* --- requests --- */

/* The bytes that follow a request; the caller frees them. */
static char *read_bytes(const struct calculator_request *request) {
    char *bytes = request->bytes <= INPUTS_MOST ? malloc(request->bytes + 1) : NULL;
    if (bytes && calculator_read(CALCULATOR_SOCKET_FD, bytes, request->bytes)) return bytes;
    free(bytes);
    return NULL;
}

static enum err answer_facts(uint8_t *shared, size_t shared_bytes, struct calculator_reply *reply) {
    const struct wasm_input *list;
    enum err rc = wasm_facts(&reply->facts, &reply->error);
    if (rc != ERR_NONE) return rc;
    reply->bytes = wasm_inputs(&list) * sizeof *list;
    if (reply->bytes > shared_bytes) reply->bytes = 0;
    memcpy(shared, list, reply->bytes);
    return ERR_NONE;
}

static enum err answer_witness(const char *text, size_t size, uint8_t *shared, size_t shared_bytes,
                               struct calculator_reply *reply) {
    static struct wasm_facts facts; /* learned once */
    struct inputs inputs = {.n = 0};
    size_t used = 0;
    enum err rc = ERR_NONE;
    if (facts.n_vars == 0) TRY(wasm_facts(&facts, &reply->error));
    TRY(inputs_parse(text, size, facts.prime, &inputs, &reply->error));
    TRY(wasm_compute(&inputs, shared, shared_bytes, &used, &reply->error));
    reply->bytes = used;
fail:
    inputs_free(&inputs);
    return rc;
}

/* A calculator that trapped is not used again: the process ends after its reply. */
static int serve(uint8_t *shared, size_t shared_bytes) {
    struct calculator_request request;
    enum err rc = ERR_NONE;
    while (rc != ERR_CALCULATOR &&
           calculator_read(CALCULATOR_SOCKET_FD, &request, sizeof request)) {
        struct calculator_reply reply = {.bytes = 0};
        char *bytes = read_bytes(&request);
        if (!bytes) return EXIT_FAILURE;
        if (request.what == CALCULATOR_FACTS)
            rc = answer_facts(shared, shared_bytes, &reply);
        else
            rc = answer_witness(bytes, request.bytes, shared, shared_bytes, &reply);
        explicit_bzero(bytes, request.bytes);
        free(bytes);
        if (!calculator_write(CALCULATOR_SOCKET_FD, &reply, sizeof reply)) break;
    }
    return EXIT_SUCCESS;
}

/* --- a calculator in WebAssembly --- */

/* Shut in before it is loaded: a constructor of the object, which may have been made by anybody, has
 * the run of the process from then on. What it says afterwards, it says for itself. */
static enum err load(struct error *error) {
    char object[32];
    enum err rc;
    (void)snprintf(object, sizeof object, "/proc/self/fd/%d", CALCULATOR_OBJECT_FD);
    (void)close(CALCULATOR_WITNESS_FD);
    TRY(sandbox_enter_loader(object, LOG_BYTES_MOST, error));
    TRY(wasm_load(object, error));
    (void)close(CALCULATOR_OBJECT_FD);
    TRY(sandbox_enter(error));
fail:
    return rc;
}

static int run_wasm(const struct calculator_start *start) {
    struct calculator_reply reply = {.bytes = 0};
    uint8_t *shared = mmap(NULL, start->witness_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                           CALCULATOR_WITNESS_FD, 0);
    enum err rc = shared == MAP_FAILED ? error_set(&reply.error, ERR_HOST_MEMORY, "out of memory")
                                       : load(&reply.error);
    if (!calculator_write(CALCULATOR_SOCKET_FD, &reply, sizeof reply) || rc != ERR_NONE)
        return EXIT_FAILURE;
    return serve(shared, start->witness_bytes);
}

/* --- a calculator that is a program --- */

/* JSON as circom's C++ calculators read it: decimal strings. */
static bool print_signal(FILE *out, const struct input *signal, bool is_first) {
    char digits[DECIMAL_MAX + 1];
    bool good = fprintf(out, "%s\"%s\":%s", is_first ? "{" : ",", signal->name,
                        signal->n == 1 ? "" : "[") > 0;
    for (size_t i = 0; i < signal->n && good; i++)
        good = decimal_from_le(signal->values[i].le, SCALAR_BYTES, digits) &&
               fprintf(out, "%s\"%s\"", i ? "," : "", digits) > 0;
    return good && fprintf(out, "%s", signal->n == 1 ? "" : "]") >= 0;
}

static enum err write_json(int fd, const struct inputs *inputs, struct error *error) {
    int copy = dup(fd);
    FILE *out = copy >= 0 ? fdopen(copy, "w") : NULL;
    bool good = out != NULL;
    for (size_t i = 0; i < inputs->n && good; i++)
        good = print_signal(out, &inputs->signals[i], i == 0);
    if (good) good = fputs(inputs->n ? "}\n" : "{}\n", out) >= 0;
    if (out && fclose(out) != 0) good = false;
    if (!out && copy >= 0) (void)close(copy);
    return good ? ERR_NONE
                : error_set(error, ERR_INTERNAL, "the inputs cannot be written for the calculator");
}

static enum err make_input(const struct calculator_start *start, struct error *error) {
    struct calculator_request request;
    struct inputs inputs = {.n = 0};
    char *bytes = NULL;
    int fd = -1;
    enum err rc;
    if (!calculator_read(CALCULATOR_SOCKET_FD, &request, sizeof request) ||
        !(bytes = read_bytes(&request)))
        TRY(error_set(error, ERR_INTERNAL, "the inputs did not come"));
    TRY(inputs_parse(bytes, request.bytes, start->prime, &inputs, error));
    fd = memfd_create("input", 0);
    if (fd < 0) TRY(error_set(error, ERR_HOST_MEMORY, "out of memory for the inputs"));
    TRY(write_json(fd, &inputs, error));
    if (dup2(fd, PROGRAM_INPUT_FD) < 0) TRY(error_set(error, ERR_INTERNAL, "dup2 failed"));
fail:
    if (fd >= 0 && fd != PROGRAM_INPUT_FD) (void)close(fd);
    inputs_free(&inputs);
    free(bytes);
    return rc;
}

/* A copy of the program in memory: the cache's file need not be executable, nor its file system. */
static enum err copy_program(int *out, struct error *error) {
    struct stat status;
    int fd = memfd_create("calculator", MFD_CLOEXEC);
    *out = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, PROGRAM_OUTPUT_FD + 1);
    if (fd >= 0) (void)close(fd);
    if (*out < 0 || fstat(CALCULATOR_OBJECT_FD, &status) != 0)
        return error_set(error, ERR_INTERNAL, "the program cannot be read: %s", strerror(errno));
    for (off_t left = status.st_size; left > 0;) {
        ssize_t n = sendfile(*out, CALCULATOR_OBJECT_FD, NULL, (size_t)left);
        if (n <= 0)
            return error_set(error, ERR_INTERNAL, "the program cannot be copied: %s",
                             strerror(errno));
        left -= n;
    }
    return ERR_NONE;
}

/* The program finds its .dat file by its own name. */
static void program_name(const char *data, char out[CALCULATOR_PATH_BYTES]) {
    size_t n = strlen(data);
    (void)snprintf(out, CALCULATOR_PATH_BYTES, "%.*s", n > 4 ? (int)(n - 4) : 10,
                   n > 4 ? data : "calculator");
}

static enum err become(const struct calculator_start *start, struct error *error) {
    char name[CALCULATOR_PATH_BYTES], input[32], output[32];
    char *const arguments[] = {name, input, output, NULL}, *const environment[] = {NULL};
    int program = -1;
    enum err rc;
    TRY(make_input(start, error));
    TRY(copy_program(&program, error));
    program_name(start->data, name);
    (void)snprintf(input, sizeof input, "/proc/self/fd/%d", PROGRAM_INPUT_FD);
    (void)snprintf(output, sizeof output, "/proc/self/fd/%d", PROGRAM_OUTPUT_FD);
    if (dup2(CALCULATOR_WITNESS_FD, PROGRAM_OUTPUT_FD) < 0)
        TRY(error_set(error, ERR_INTERNAL, "dup2 failed"));
    (void)close(CALCULATOR_SOCKET_FD);
    (void)close(CALCULATOR_WITNESS_FD);
    (void)close(CALCULATOR_OBJECT_FD);
    TRY(sandbox_enter_program(program, start->data, start->memory_bytes, start->witness_bytes,
                              error));
    (void)syscall(SYS_execveat, program, "", arguments, environment, AT_EMPTY_PATH);
    rc = error_set(error, ERR_CALCULATOR, "the program cannot be executed: %s", strerror(errno));
fail:
    return rc;
}

static int run_program(const struct calculator_start *start) {
    struct error error = {.code = ERR_NONE};
    (void)become(start, &error); /* it returns only when it fails */
    (void)fprintf(stderr, "%s\n", error.text);
    return CALCULATOR_NOT_STARTED;
}

/* --- the process --- */

int calculator_process_main(void) {
    struct calculator_start start;
    struct error error;
    (void)prctl(PR_SET_NAME, "calculator");
    (void)signal(SIGPIPE, SIG_IGN);
    (void)close_range(CALCULATOR_OBJECT_FD + 1, ~0u, 0);
    if (!calculator_read(CALCULATOR_SOCKET_FD, &start, sizeof start)) return EXIT_FAILURE;
    if (sandbox_limit(start.memory_bytes, &error) != ERR_NONE) return EXIT_FAILURE;
    if (getppid() != start.parent) return EXIT_FAILURE; /* it ended before we asked to hear of it */
    return start.kind == CALCULATOR_WASM ? run_wasm(&start) : run_program(&start);
}
