#include "service/calculator/calculator.h"

#include "gpu/monotonic.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    WTNS_ROOM_BYTES = 4096,
    LOG_BYTES_MAX = 300,
    IDLE_MS = 30000,
    KEEPER_MS = 5000,
    START_MS = 60000, /* loading a large object from a cold disk */
    FDS_FREE_FROM = 20,
    THREADS_MAX = 64, /* of a program; circom's C++ makes at most 32 */
};

static const int64_t no_deadline = INT64_MAX;

struct process {
    struct process *next;
    int64_t id;
    pid_t pid;
    int socket, memory, log; /* log: what a program prints */
    uint8_t *shared;         /* mapped for a calculator in WebAssembly only */
    size_t shared_bytes;
    int64_t idle_ms; /* since when */
};

const char *calculator_machine(void) {
    static struct utsname name;
    return uname(&name) == 0 ? name.machine : "unknown";
}

void calculator_free(struct calculator *calculator) {
    if (!calculator) return;
    free(calculator->path);
    free(calculator->data);
    free(calculator);
}

/* --- starting a process --- */

/* The descriptors of the new process; those above 2 are moved out of the way of its own numbers. */
struct ends {
    int socket[2], memory, log, object;
};

static int out_of_the_way(int fd) {
    if (fd < 0) return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, FDS_FREE_FROM);
    (void)close(fd);
    return moved;
}

static void close_fd(int *fd) {
    if (*fd >= 0) (void)close(*fd);
    *fd = -1;
}

static enum err open_ends(const struct calculator *calculator, size_t shared_bytes,
                          struct ends *ends, struct error *error) {
    bool is_wasm = calculator->kind == CALCULATOR_WASM;
    *ends = (struct ends){{-1, -1}, -1, -1, -1};
    ends->object = out_of_the_way(open(calculator->path, O_RDONLY | O_CLOEXEC));
    if (ends->object < 0)
        return error_set(error, ERR_IO, "%s: %s", calculator->path, strerror(errno));
    ends->memory =
        out_of_the_way(memfd_create("witness", MFD_CLOEXEC | (is_wasm ? MFD_ALLOW_SEALING : 0u)));
    ends->log = out_of_the_way(memfd_create("log", MFD_CLOEXEC));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends->socket) == 0) {
        ends->socket[0] = out_of_the_way(ends->socket[0]);
        ends->socket[1] = out_of_the_way(ends->socket[1]);
    }
    if (ends->memory < 0 || ends->log < 0 || ends->socket[0] < 0 || ends->socket[1] < 0)
        return error_set(error, ERR_HOST_MEMORY, "no descriptors for a calculator: %s",
                         strerror(errno));
    if (is_wasm && (ftruncate(ends->memory, (off_t)shared_bytes) != 0 ||
                    fcntl(ends->memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)))
        return error_set(error, ERR_HOST_MEMORY, "no memory for a witness: %s", strerror(errno));
    return ERR_NONE;
}

static void close_ends(struct ends *ends) {
    close_fd(&ends->socket[0]);
    close_fd(&ends->socket[1]);
    close_fd(&ends->memory);
    close_fd(&ends->log);
    close_fd(&ends->object);
}

static int add_actions(posix_spawn_file_actions_t *actions, const struct ends *ends) {
    const int pairs[][2] = {{ends->log, 1},
                            {ends->log, 2},
                            {ends->socket[1], CALCULATOR_SOCKET_FD},
                            {ends->memory, CALCULATOR_WITNESS_FD},
                            {ends->object, CALCULATOR_OBJECT_FD}};
    int failed = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && !failed; i++)
        failed = posix_spawn_file_actions_adddup2(actions, pairs[i][0], pairs[i][1]);
    return failed;
}

/* Signals as at a login, a process group of its own (a terminal's ^C is for us), no environment. */
static int set_attributes(posix_spawnattr_t *attributes) {
    sigset_t none, defaults;
    sigemptyset(&none);
    sigfillset(&defaults);
    int failed = posix_spawnattr_setsigmask(attributes, &none);
    if (!failed) failed = posix_spawnattr_setsigdefault(attributes, &defaults);
    if (!failed) failed = posix_spawnattr_setpgroup(attributes, 0);
    if (!failed)
        failed = posix_spawnattr_setflags(
            attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    return failed;
}

static enum err spawn(const struct ends *ends, pid_t *pid, struct error *error) {
    char program[] = "/proc/self/exe", name[] = "proverq", command[] = CALCULATOR_COMMAND;
    char *const arguments[] = {name, command, NULL}, *const environment[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        failed = add_actions(&actions, ends);
        if (!failed) failed = set_attributes(&attributes);
        if (!failed)
            failed = posix_spawn(pid, program, &actions, &attributes, arguments, environment);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    if (!failed) return ERR_NONE;
    return error_set(error, ERR_HOST_MEMORY, "a calculator cannot be started: %s",
                     strerror(failed));
}

static size_t shared_size(const struct calculator *calculator) {
    size_t bytes = (size_t)calculator->n_vars * SCALAR_BYTES + WTNS_ROOM_BYTES;
    size_t least = WASM_INPUTS_MAX * sizeof(struct wasm_input);
    return bytes < least ? least : bytes;
}

static bool say_start(int socket, const struct calculator *calculator, uint64_t memory_bytes,
                      size_t shared_bytes) {
    struct calculator_start start = {.kind = calculator->kind,
                                     .parent = getpid(),
                                     .memory_bytes = memory_bytes,
                                     .witness_bytes = shared_bytes};
    if (calculator->curve) memcpy(start.prime, calculator->curve->r, SCALAR_BYTES);
    if (calculator->data) (void)snprintf(start.data, sizeof start.data, "%s", calculator->data);
    return calculator_write(socket, &start, sizeof start);
}

static void process_end(struct process *process) {
    if (!process) return;
    close_fd(&process->socket);
    if (process->pid > 0) {
        (void)kill(process->pid, SIGKILL);
        while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (process->shared) (void)munmap(process->shared, process->shared_bytes);
    close_fd(&process->memory);
    close_fd(&process->log);
    free(process);
}

static enum err process_start(const struct calculator *calculator, uint64_t memory_bytes,
                              struct process **out, struct error *error) {
    struct process *process = calloc(1, sizeof *process);
    struct ends ends = {{-1, -1}, -1, -1, -1};
    enum err rc;
    if (!process) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    *process = (struct process){.id = calculator->id, .socket = -1, .memory = -1, .log = -1};
    process->shared_bytes = shared_size(calculator);
    TRY(open_ends(calculator, process->shared_bytes, &ends, error));
    if (calculator->kind == CALCULATOR_WASM) {
        void *shared =
            mmap(NULL, process->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ends.memory, 0);
        if (shared == MAP_FAILED) TRY(error_set(error, ERR_HOST_MEMORY, "out of memory"));
        process->shared = shared;
    }
    TRY(spawn(&ends, &process->pid, error));
    process->socket = ends.socket[0];
    process->memory = ends.memory;
    process->log = ends.log;
    ends.socket[0] = ends.memory = ends.log = -1;
    if (!say_start(process->socket, calculator, memory_bytes, process->shared_bytes))
        TRY(error_set(error, ERR_INTERNAL, "a calculator's process ended at its start"));
    *out = process;
    process = NULL;
fail:
    close_ends(&ends);
    process_end(process);
    return rc;
}

/* --- talking to it --- */

/* Reading and writing stop at the deadline, or when the calculator is not wanted any more. */
struct talk {
    struct process *process;
    const struct calculator_limits *limits;
    int64_t deadline_ms;
    int cancel_fd;
};

static enum err too_slow(const struct talk *talk, struct error *error) {
    return error_set(error, ERR_CALCULATOR,
                     "the witness calculator was ended: it took more than %u ms "
                     "(--synthesis-timeout)",
                     talk->limits->timeout_ms);
}

static enum err wait_for(const struct talk *talk, short events, struct error *error) {
    struct pollfd fds[2] = {{talk->process->socket, events, 0}, {talk->cancel_fd, POLLIN, 0}};
    for (;;) {
        int64_t now = monotonic_ms();
        if (now >= talk->deadline_ms) return too_slow(talk, error);
        int64_t left = talk->deadline_ms - now;
        int n = poll(fds, 2, left > INT32_MAX ? INT32_MAX : (int)left);
        if (n < 0 && errno != EINTR) return error_set(error, ERR_INTERNAL, "poll failed");
        if (n > 0 && fds[1].revents)
            return error_set(error, ERR_LOST_LEASE, "the witness is not wanted any more");
        if (n > 0) return ERR_NONE;
    }
}

/* What the process printed last. */
static void read_log(const struct process *process, char out[LOG_BYTES_MAX]) {
    off_t end = lseek(process->log, 0, SEEK_END);
    off_t start = end > LOG_BYTES_MAX - 1 ? end - (LOG_BYTES_MAX - 1) : 0;
    ssize_t n = end > 0 ? pread(process->log, out, LOG_BYTES_MAX - 1, start) : 0;
    size_t used = 0;
    for (ssize_t i = 0; i < n; i++)
        if (out[i] != '\0') out[used++] = out[i] >= ' ' && out[i] < 127 ? out[i] : ' ';
    while (used > 0 && out[used - 1] == ' ')
        used--;
    out[used] = '\0';
}

/* The process is gone: why? Reaps it. */
static enum err ended(struct process *process, struct error *error) {
    char log[LOG_BYTES_MAX];
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(process->pid, &status, 0)) < 0 && errno == EINTR)
        ;
    process->pid = 0;
    read_log(process, log);
    const char *colon = *log ? ": " : "";
    int number = pid > 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (number == SIGSYS)
        return error_set(error, ERR_CALCULATOR,
                         "the witness calculator was ended: it made a system call that "
                         "calculators may not make (files, network, processes)%s%s",
                         colon, log);
    if (number == SIGKILL)
        return error_set(error, ERR_CALCULATOR,
                         "the witness calculator was killed, perhaps because this host ran out "
                         "of memory");
    if (number)
        return error_set(error, ERR_CALCULATOR, "the witness calculator crashed (%s)%s%s",
                         strsignal(number), colon, log);
    if (pid > 0 && WEXITSTATUS(status) == CALCULATOR_NOT_STARTED)
        return error_set(error, ERR_UNSUPPORTED, "the witness calculator was not started%s%s",
                         colon, log);
    return error_set(error, ERR_CALCULATOR, "the witness calculator ended with status %d%s%s",
                     WEXITSTATUS(status), colon, log);
}

static enum err receive(const struct talk *talk, void *bytes, size_t size, struct error *error) {
    enum err rc;
    for (size_t done = 0; done < size;) {
        TRY(wait_for(talk, POLLIN, error));
        ssize_t n = recv(talk->process->socket, (uint8_t *)bytes + done, size - done, MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) return ended(talk->process, error);
        done += (size_t)n;
    }
    rc = ERR_NONE;
fail:
    return rc;
}

static enum err send_bytes(const struct talk *talk, const void *bytes, size_t size,
                           struct error *error) {
    enum err rc;
    for (size_t done = 0; done < size;) {
        TRY(wait_for(talk, POLLOUT, error));
        ssize_t n = send(talk->process->socket, (const uint8_t *)bytes + done, size - done,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n < 0) return ended(talk->process, error);
        done += (size_t)n;
    }
    rc = ERR_NONE;
fail:
    return rc;
}

static enum err ask(const struct talk *talk, enum calculator_what what, const char *bytes,
                    size_t size, struct error *error) {
    struct calculator_request request = {what, size};
    enum err rc;
    TRY(send_bytes(talk, &request, sizeof request, error));
    TRY(send_bytes(talk, bytes, size, error));
fail:
    return rc;
}

/* Nothing that the process says is trusted: it may be the calculator that speaks. */
static enum err receive_reply(const struct talk *talk, struct calculator_reply *reply,
                              struct error *error) {
    enum err rc;
    TRY(receive(talk, reply, sizeof *reply, error));
    reply->error.text[sizeof reply->error.text - 1] = '\0';
    for (char *at = reply->error.text; *at; at++)
        if (*at < ' ' || *at > '~') *at = ' ';
    if (reply->bytes > talk->process->shared_bytes)
        TRY(error_set(error, ERR_CALCULATOR, "the witness calculator's answer is nonsense"));
    switch (reply->error.code) {
    case ERR_NONE:
        break;
    case ERR_INPUT:
    case ERR_FORMAT:
    case ERR_MISMATCH:
    case ERR_UNSUPPORTED:
    case ERR_HOST_MEMORY:
        TRY(error_set(error, reply->error.code, "%s", reply->error.text));
        break;
    default:
        TRY(error_set(error, ERR_CALCULATOR, "%s", reply->error.text));
    }
fail:
    return rc;
}

/* The first reply tells that it is loaded and shut in. */
static enum err greet(struct process *process, const struct calculator_limits *limits,
                      int cancel_fd, struct error *error) {
    struct calculator_limits patient = {START_MS, limits->memory_bytes};
    struct talk talk = {process, &patient, monotonic_ms() + START_MS, cancel_fd};
    struct calculator_reply reply;
    return receive_reply(&talk, &reply, error);
}

enum err calculator_examine(const char *path, const struct calculator_limits *limits,
                            struct calculator_facts *out, struct error *error) {
    struct calculator calculator = {.kind = CALCULATOR_WASM, .path = (char *)(uintptr_t)path};
    struct calculator_reply reply;
    struct process *process = NULL;
    enum err rc;
    TRY(process_start(&calculator, limits->memory_bytes, &process, error));
    TRY(greet(process, limits, -1, error));
    struct talk talk = {process, limits, monotonic_ms() + limits->timeout_ms, -1};
    TRY(ask(&talk, CALCULATOR_FACTS, "", 0, error));
    TRY(receive_reply(&talk, &reply, error));
    out->facts = reply.facts;
    out->n_inputs = reply.bytes / sizeof *out->inputs;
    if (out->n_inputs > WASM_INPUTS_MAX) out->n_inputs = 0;
    memcpy(out->inputs, process->shared, out->n_inputs * sizeof *out->inputs);
fail:
    process_end(process);
    return rc;
}

/* --- the prover's processes --- */

/* What is asked of the thread that starts processes: they end with the thread that started them. */
struct order {
    const struct calculator *calculator;
    struct process *process;
    struct error error;
    bool is_done;
    struct order *next;
};

struct calculators {
    struct calculator_limits limits;
    size_t most, n; /* n: busy and idle ones, and those that are being started */
    pthread_mutex_t mutex;
    pthread_cond_t ordered, done;
    pthread_t keeper;
    struct process *idle; /* the longest idle first */
    struct order *orders;
    bool is_closing;
};

/* With the mutex held. */
static struct process *take_idle(struct calculators *all, const int64_t *id, int64_t before_ms) {
    for (struct process **at = &all->idle; *at; at = &(*at)->next) {
        struct process *process = *at;
        if ((id && process->id != *id) || process->idle_ms > before_ms) continue;
        *at = process->next;
        process->next = NULL;
        return process;
    }
    return NULL;
}

static void fulfil(struct calculators *all, struct order *order) {
    pthread_mutex_unlock(&all->mutex);
    (void)process_start(order->calculator, all->limits.memory_bytes, &order->process,
                        &order->error);
    pthread_mutex_lock(&all->mutex);
    order->is_done = true;
    pthread_cond_broadcast(&all->done);
}

static void end_idle(struct calculators *all) {
    int64_t now = monotonic_ms();
    struct process *process;
    while (now > IDLE_MS && (process = take_idle(all, NULL, now - IDLE_MS)) != NULL) {
        all->n--;
        pthread_mutex_unlock(&all->mutex);
        process_end(process);
        pthread_mutex_lock(&all->mutex);
    }
}

static void *keeper_main(void *arg) {
    struct calculators *all = arg;
    pthread_mutex_lock(&all->mutex);
    while (!all->is_closing) {
        struct order *order = all->orders;
        if (order) {
            all->orders = order->next;
            fulfil(all, order);
            continue;
        }
        struct timespec until;
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += KEEPER_MS / 1000;
        (void)pthread_cond_timedwait(&all->ordered, &all->mutex, &until);
        end_idle(all);
    }
    pthread_mutex_unlock(&all->mutex);
    return NULL;
}

enum err calculators_open(const struct calculator_limits *limits, size_t most,
                          struct calculators **out, struct error *error) {
    struct calculators *all = calloc(1, sizeof *all);
    pthread_condattr_t attributes;
    if (!all) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    all->limits = *limits;
    all->most = most;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&all->mutex, NULL);
    pthread_cond_init(&all->ordered, &attributes);
    pthread_cond_init(&all->done, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&all->keeper, NULL, keeper_main, all) == 0) {
        *out = all;
        return ERR_NONE;
    }
    free(all);
    return error_set(error, ERR_INTERNAL, "a thread cannot be started");
}

void calculators_close(struct calculators *all) {
    if (!all) return;
    pthread_mutex_lock(&all->mutex);
    all->is_closing = true;
    pthread_cond_broadcast(&all->ordered);
    pthread_mutex_unlock(&all->mutex);
    pthread_join(all->keeper, NULL);
    for (struct process *process; (process = take_idle(all, NULL, no_deadline)) != NULL;)
        process_end(process);
    pthread_cond_destroy(&all->ordered);
    pthread_cond_destroy(&all->done);
    pthread_mutex_destroy(&all->mutex);
    free(all);
}

size_t calculators_count(struct calculators *all) {
    pthread_mutex_lock(&all->mutex);
    size_t n = all->n;
    pthread_mutex_unlock(&all->mutex);
    return n;
}

/* Orders a new process and waits for it; with the mutex held. */
static enum err order_process(struct calculators *all, const struct calculator *calculator,
                              struct process **out, struct error *error) {
    struct order order = {.calculator = calculator};
    struct order **last = &all->orders;
    while (*last)
        last = &(*last)->next;
    *last = &order;
    pthread_cond_broadcast(&all->ordered);
    while (!order.is_done)
        pthread_cond_wait(&all->done, &all->mutex);
    *out = order.process;
    if (order.process) return ERR_NONE;
    *error = order.error;
    return error->code;
}

/* A process of this calculator for the caller alone: an idle one, or a new one, in the place of one
 * that has been idle if there are enough. */
static enum err acquire(struct calculators *all, const struct calculator *calculator, int cancel_fd,
                        struct process **out, struct error *error) {
    struct process *old = NULL;
    bool is_new = false;
    enum err rc = ERR_NONE;
    pthread_mutex_lock(&all->mutex);
    *out = take_idle(all, &calculator->id, no_deadline);
    if (!*out) {
        if (all->n >= all->most) old = take_idle(all, NULL, no_deadline);
        all->n += !old;
        rc = order_process(all, calculator, out, error);
        if (rc != ERR_NONE) all->n--;
        is_new = rc == ERR_NONE;
    }
    pthread_mutex_unlock(&all->mutex);
    process_end(old);
    if (is_new && calculator->kind == CALCULATOR_WASM)
        rc = greet(*out, &all->limits, cancel_fd, error);
    return rc;
}

static void put_back(struct calculators *all, struct process *process) {
    struct process **last = &all->idle;
    process->idle_ms = monotonic_ms();
    pthread_mutex_lock(&all->mutex);
    while (*last)
        last = &(*last)->next;
    *last = process;
    pthread_mutex_unlock(&all->mutex);
}

static void dismiss(struct calculators *all, struct process *process) {
    process_end(process);
    pthread_mutex_lock(&all->mutex);
    all->n--;
    pthread_mutex_unlock(&all->mutex);
}

/* --- one witness --- */

static enum err take_witness(const struct process *process, uint64_t bytes,
                             struct witness_memory *memory, struct error *error) {
    if (bytes > memory->capacity)
        return error_set(error, ERR_MISMATCH,
                         "the calculator's witness has %llu bytes, one of this circuit has at "
                         "most %zu",
                         (unsigned long long)bytes, memory->capacity);
    memory->used = bytes;
    memcpy(memory->bytes, process->shared, bytes);
    explicit_bzero(process->shared, bytes);
    return ERR_NONE;
}

static enum err compute_wasm(const struct talk *talk, const char *inputs, size_t size,
                             struct witness_memory *memory, struct error *error) {
    struct calculator_reply reply;
    enum err rc;
    TRY(ask(talk, CALCULATOR_WITNESS, inputs, size, error));
    TRY(receive_reply(talk, &reply, error));
    TRY(take_witness(talk->process, reply.bytes, memory, error));
fail:
    return rc;
}

/* The threads of a program: its task folder has a link for each, and two. */
static unsigned count_threads(pid_t pid) {
    char path[64];
    struct stat status;
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    return stat(path, &status) == 0 && status.st_nlink > 2 ? (unsigned)status.st_nlink - 2 : 0;
}

/* Whether a program that is still at work may go on. */
static enum err check_program(const struct talk *talk, struct error *error) {
    struct pollfd cancel = {talk->cancel_fd, POLLIN, 0};
    if (monotonic_ms() >= talk->deadline_ms) return too_slow(talk, error);
    if (poll(&cancel, 1, 0) > 0)
        return error_set(error, ERR_LOST_LEASE, "the witness is not wanted any more");
    if (count_threads(talk->process->pid) > THREADS_MAX)
        return error_set(error, ERR_CALCULATOR,
                         "the witness calculator was ended: it made more than %d threads",
                         THREADS_MAX);
    return ERR_NONE;
}

/* A program's end is the end of its stream; 0 is success. */
static enum err wait_for_program(const struct talk *talk, struct error *error) {
    const struct timespec tick = {0, 2000000};
    struct process *process = talk->process;
    siginfo_t info = {.si_pid = 0};
    char byte;
    enum err rc;
    TRY(wait_for(talk, POLLIN, error)); /* its end of the socket is closed when it is executed */
    if (recv(process->socket, &byte, 1, MSG_DONTWAIT) > 0)
        TRY(error_set(error, ERR_CALCULATOR, "the witness calculator's answer is nonsense"));
    for (;;) {
        if (waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
            TRY(error_set(error, ERR_INTERNAL, "waitid failed"));
        if (info.si_pid != 0) break;
        TRY(check_program(talk, error));
        (void)nanosleep(&tick, NULL);
    }
    if (info.si_code != CLD_EXITED || info.si_status != 0) rc = ended(process, error);
fail:
    return rc;
}

static enum err read_file(const struct process *process, struct witness_memory *memory,
                          struct error *error) {
    off_t size = lseek(process->memory, 0, SEEK_END);
    if (size <= 0)
        return error_set(error, ERR_CALCULATOR, "the witness calculator wrote no witness");
    if ((uint64_t)size > memory->capacity)
        return error_set(error, ERR_MISMATCH,
                         "the calculator's witness has %lld bytes, one of this circuit has at "
                         "most %zu",
                         (long long)size, memory->capacity);
    for (size_t done = 0; done < (size_t)size;) {
        ssize_t n = pread(process->memory, memory->bytes + done, (size_t)size - done, (off_t)done);
        if (n <= 0) return error_set(error, ERR_INTERNAL, "the witness cannot be read");
        done += (size_t)n;
        memory->used = done;
    }
    return ERR_NONE;
}

static enum err compute_program(const struct talk *talk, const char *inputs, size_t size,
                                struct witness_memory *memory, struct error *error) {
    enum err rc;
    TRY(ask(talk, CALCULATOR_WITNESS, inputs, size, error));
    TRY(wait_for_program(talk, error));
    TRY(read_file(talk->process, memory, error));
fail:
    return rc;
}

enum err calculators_compute(struct calculators *all, const struct calculator *calculator,
                             const char *inputs, size_t size, int cancel_fd,
                             struct witness_memory *memory, struct error *error) {
    bool is_wasm = calculator->kind == CALCULATOR_WASM;
    struct process *process = NULL;
    enum err rc = acquire(all, calculator, cancel_fd, &process, error);
    if (rc == ERR_NONE) {
        struct talk talk = {process, &all->limits, monotonic_ms() + all->limits.timeout_ms,
                            cancel_fd};
        rc = is_wasm ? compute_wasm(&talk, inputs, size, memory, error)
                     : compute_program(&talk, inputs, size, memory, error);
    }
    bool is_good = process && is_wasm && (rc == ERR_NONE || rc == ERR_INPUT);
    if (is_good)
        put_back(all, process);
    else if (process)
        dismiss(all, process);
    return rc;
}
