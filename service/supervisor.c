#include "service/supervisor.h"

#include "gpu/prover.h"
#include "service/budget.h"
#include "service/db.h"
#include "service/log.h"
#include "service/migrate.h"
#include "service/uuid.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct db_statement rescue_prover = {"rescue_prover", "u", "i"};

enum {
    DEVICES_MAX = OPTION_LIST_MAX,
    CHILDREN_MAX = DEVICES_MAX + 1,
    RESTART_MIN_MS = 1000,
    RESTART_MAX_MS = 5 * 60 * 1000,
    SETTLED_MS = 60 * 1000, /* a child that lived so long had started well: the wait begins anew */
    FAILURES_SHOWN = 5,     /* so many quick ends in a row are a fault that wants a person */
    PROBE_MS = 120 * 1000,  /* a driver may take a minute for its first answer */
    RESCUE_RETRY_MS = 2000,
    RESCUES_MAX = 64,
};

struct child {
    const char *role, *device; /* "prover" and its device, or "finalizer" and "" */
    struct uuid instance;
    pid_t pid; /* 0: not running */
    int report_fd;
    int64_t started_ms, restart_ms;
    unsigned failures; /* quick ends in a row */
};

/* Gives back the leases of dead provers in a thread of its own, so that a database that is away does
 * not hold up restarts and signals. */
struct rescuer {
    const struct options *options;
    pthread_t thread;
    bool is_started;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct uuid waiting[RESCUES_MAX]; /* beyond that many, leases expire by themselves */
    size_t n_waiting;
    bool is_ending;
};

struct supervisor {
    const struct options *options;
    struct child children[CHILDREN_MAX];
    size_t n_children;
    char threads[16];       /* of each prover */
    char host_memory[24];   /* of each prover, bytes */
    char program[PATH_MAX]; /* this one, as ps shows it for the children too */
    int signal_fd;
    unsigned stops; /* signals to stop that came */
    struct rescuer rescuer;
};

static int64_t now_ms(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- devices --- */

/* Opens a device in a child process, so that no driver state stays in this one, which forks. */
static _Noreturn void probe_child(const char *spec, int fd) {
    struct device *device = NULL;
    struct error error = {.code = ERR_NONE};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    enum err rc = device_open(spec, 1, &device, &error);
    if (rc == ERR_NONE) {
        (void)snprintf(error.text, sizeof error.text, "%s", device_description(device));
        error.code = ERR_NONE;
    }
    ssize_t n = write(fd, &error, sizeof error);
    _exit(n == (ssize_t)sizeof error ? 0 : 1);
}

static bool read_whole(int fd, void *bytes, size_t size, int timeout_ms) {
    int64_t end = now_ms() + timeout_ms;
    for (size_t done = 0; done < size;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left = end - now_ms();
        int ready = left > 0 ? poll(&p, 1, (int)left) : 0;
        ssize_t n = ready > 0 ? read(fd, (char *)bytes + done, size - done) : -1;
        if ((ready < 0 || n < 0) && errno == EINTR && left > 0) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

/* Whether the device `spec` works: ERR_NONE and its description in error->text, or why not. */
static enum err probe(const char *spec, struct error *error) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return error_set(error, ERR_INTERNAL, "cannot make a pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) probe_child(spec, ends[1]);
    (void)close(ends[1]);
    int status = 0;
    bool answered = pid > 0 && read_whole(ends[0], error, sizeof *error, PROBE_MS);
    (void)close(ends[0]);
    if (pid < 0) return error_set(error, ERR_INTERNAL, "cannot fork: %s", strerror(errno));
    if (!answered) (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (answered) return error->code;
    return error_set(error, ERR_DEVICE_FAULT, "%s: the process that opened it %s", spec,
                     WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL
                         ? "crashed"
                         : "ended without an answer or hung");
}

static enum err add_device(struct supervisor *s, const char *device, struct error *error) {
    for (size_t i = 0; i < s->n_children; i++)
        if (strcmp(s->children[i].device, device) == 0)
            return error_set(error, ERR_USAGE, "--device: %s is given twice", device);
    if (s->n_children == DEVICES_MAX)
        return error_set(error, ERR_USAGE, "more than %d devices", DEVICES_MAX);
    s->children[s->n_children++] =
        (struct child){.role = "prover", .device = device, .report_fd = -1};
    return ERR_NONE;
}

/* Each CUDA device that works, else the CPU. Devices are numbered without gaps. */
static enum err add_auto(struct supervisor *s, struct error *error) {
    static const char *const cuda[] = {
        "cuda:0", "cuda:1", "cuda:2",  "cuda:3",  "cuda:4",  "cuda:5",  "cuda:6",  "cuda:7",
        "cuda:8", "cuda:9", "cuda:10", "cuda:11", "cuda:12", "cuda:13", "cuda:14", "cuda:15"};
    size_t before = s->n_children;
    for (size_t i = 0; i < sizeof cuda / sizeof *cuda; i++) {
        struct error found = {.code = ERR_NONE};
        enum err rc = probe(cuda[i], &found);
        if (rc == ERR_DEVICE_MISSING) {
            log_debug("no such device", log_text("device", cuda[i]), log_text("why", found.text));
            break;
        }
        if (rc) {
            log_warn("a device does not work and is left out", log_text("device", cuda[i]),
                     log_text("error", found.text));
            continue;
        }
        log_info("device chosen", log_text("device", cuda[i]), log_text("description", found.text));
        if ((rc = add_device(s, cuda[i], error))) return rc;
    }
    if (s->n_children > before) return ERR_NONE;
    log_info("device chosen", log_text("device", "cpu"),
             log_text("description", "there is no CUDA device that works"));
    return add_device(s, "cpu", error);
}

static enum err choose_devices(struct supervisor *s, struct error *error) {
    const struct option_list *list = &s->options->devices;
    enum err rc = ERR_NONE;
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->item[i], "auto") == 0) {
            TRY(add_auto(s, error));
            continue;
        }
        struct error found = {.code = ERR_NONE};
        if ((rc = probe(list->item[i], &found))) {
            *error = found;
            goto fail;
        }
        log_info("device chosen", log_text("device", list->item[i]),
                 log_text("description", found.text));
        TRY(add_device(s, list->item[i], error));
    }
fail:
    return rc;
}

/* Cores are shared out among the provers unless --threads says how many each gets. */
static void choose_threads(struct supervisor *s) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t threads = s->options->threads;
    if (threads == 0 && s->n_children > 1 && cores > 0)
        threads = (uint32_t)((size_t)cores > s->n_children ? (size_t)cores / s->n_children : 1);
    (void)snprintf(s->threads, sizeof s->threads, "%u", threads);
}

/* Host memory is shared out among the provers. */
static void choose_memory(struct supervisor *s) {
    uint64_t memory = s->options->host_memory ? s->options->host_memory : host_memory() / 2;
    (void)snprintf(s->host_memory, sizeof s->host_memory, "%" PRIu64,
                   s->n_children ? memory / s->n_children : memory);
}

/* --- children --- */

static void find_program(struct supervisor *s) {
    ssize_t n = readlink("/proc/self/exe", s->program, sizeof s->program - 1);
    if (n > 0)
        s->program[n] = '\0';
    else
        (void)snprintf(s->program, sizeof s->program, "proverq");
}

/* Between fork and exec: only what is safe there (signal-safety(7)). */
static _Noreturn void exec_child(const char *const *argv, int report_fd, pid_t parent) {
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0); /* a terminal's Ctrl-C is for the supervisor, which passes it on */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1); /* it died before the line above */
    (void)fcntl(report_fd, F_SETFD, 0);
    (void)execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(127);
}

static enum err start_child(struct supervisor *s, struct child *child, struct error *error) {
    int ends[2];
    char fd_text[16], instance[UUID_TEXT_BYTES];
    enum err rc = uuid_random(&child->instance, error);
    if (rc) return rc;
    if (pipe2(ends, O_CLOEXEC))
        return error_set(error, ERR_INTERNAL, "cannot make a pipe: %s", strerror(errno));
    uuid_format(&child->instance, instance);
    (void)snprintf(fd_text, sizeof fd_text, "%d", ends[1]);
    const char *const prover[] = {s->program,    "prover",   "--device",      child->device,
                                  "--threads",   s->threads, "--instance",    instance,
                                  "--report-fd", fd_text,    "--host-memory", s->host_memory,
                                  NULL};
    const char *const finalizer[] = {s->program, "finalizer", "--report-fd", fd_text, NULL};
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) exec_child(*child->device ? prover : finalizer, ends[1], parent);
    int cause = errno;
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return error_set(error, ERR_INTERNAL, "cannot fork: %s", strerror(cause));
    }
    child->pid = pid;
    child->report_fd = ends[0];
    child->started_ms = now_ms();
    log_info("child started", log_text("role", child->role), log_text("device", child->device),
             log_number("pid", pid));
    return ERR_NONE;
}

/* The error that the child wrote before it ended, or how it ended. */
static void last_words(struct child *child, int status, char *text, size_t size) {
    ssize_t n = read(child->report_fd, text, size - 1); /* whole: shorter than PIPE_BUF */
    (void)close(child->report_fd);
    child->report_fd = -1;
    if (n > 0)
        text[n] = '\0';
    else if (WIFSIGNALED(status))
        (void)snprintf(text, size, "killed by signal %d (%s)", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    else
        (void)snprintf(text, size, "exit status %d", WEXITSTATUS(status));
}

static int64_t restart_wait_ms(const struct child *child) {
    int64_t wait = RESTART_MIN_MS;
    for (unsigned i = 1; i < child->failures && wait < RESTART_MAX_MS; i++)
        wait *= 2;
    return wait < RESTART_MAX_MS ? wait : RESTART_MAX_MS;
}

static void rescue(struct rescuer *r, const struct uuid *instance);

static void child_ended(struct supervisor *s, struct child *child, int status) {
    char why[sizeof((struct error *)0)->text];
    last_words(child, status, why, sizeof why);
    bool in_order = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (*child->device && !in_order) rescue(&s->rescuer, &child->instance);
    pid_t pid = child->pid;
    child->pid = 0;
    if (s->stops > 0 && in_order) {
        log_info("child stopped", log_text("role", child->role), log_text("device", child->device),
                 log_number("pid", pid));
        return;
    }
    child->failures = now_ms() - child->started_ms < SETTLED_MS ? child->failures + 1 : 1;
    int64_t wait = restart_wait_ms(child);
    child->restart_ms = now_ms() + wait;
    log_error(
        child->failures >= FAILURES_SHOWN ? "a child keeps failing at its start" : "a child ended",
        log_text("role", child->role), log_text("device", child->device), log_number("pid", pid),
        log_text("error", why), log_number("failures", child->failures),
        log_number("again_in_s", s->stops ? -1 : wait / 1000));
}

static void reap(struct supervisor *s) {
    for (size_t i = 0; i < s->n_children; i++) {
        int status;
        struct child *child = &s->children[i];
        if (child->pid > 0 && waitpid(child->pid, &status, WNOHANG) == child->pid)
            child_ended(s, child, status);
    }
}

static void start_due(struct supervisor *s) {
    for (size_t i = 0; i < s->n_children; i++) {
        struct error error;
        struct child *child = &s->children[i];
        if (child->pid > 0 || now_ms() < child->restart_ms || s->stops > 0) continue;
        if (start_child(s, child, &error) == ERR_NONE) continue;
        child->failures++;
        child->restart_ms = now_ms() + restart_wait_ms(child);
        log_error("a child cannot be started", log_text("role", child->role),
                  log_text("error", error.text));
    }
}

/* --- giving back leases --- */

/* Gives back what `instance` held; without one, only sees that the database can be used. */
static enum err rescue_one(const struct options *options, const struct uuid *instance,
                           struct error *error) {
    static const struct db_statement *const statements[] = {&rescue_prover};
    const struct db_settings settings = {.conninfo = options->database,
                                         .application = "proverq supervisor",
                                         .statement_timeout_ms = DB_STATEMENT_TIMEOUT_MS,
                                         .lock_timeout_ms = DB_LOCK_TIMEOUT_MS,
                                         .statements = statements,
                                         .n_statements = instance ? 1 : 0};
    struct db *db = NULL;
    struct db_result *rows = NULL;
    enum err rc;
    TRY(db_open(&settings, &db, error));
    if (!instance) {
        rc = migrate_check(db, error);
        goto fail;
    }
    TRY(db_run(db, &rescue_prover, DB_PARAMS(db_uuid(instance)), &rows, error));
    if (db_rows(rows) > 0)
        log_info("leases of a dead prover were given back",
                 log_number("count", db_get_int(rows, 0, 0)));
fail:
    db_free(rows);
    db_close(db);
    return rc;
}

/* Waits for the next instance to rescue; false when there will be none. */
static bool next_rescue(struct rescuer *r, struct uuid *instance) {
    (void)pthread_mutex_lock(&r->lock);
    while (r->n_waiting == 0 && !r->is_ending)
        (void)pthread_cond_wait(&r->changed, &r->lock);
    bool any = r->n_waiting > 0;
    if (any) *instance = r->waiting[--r->n_waiting];
    (void)pthread_mutex_unlock(&r->lock);
    return any;
}

/* Waits a moment; false when the supervisor ends: no more than one attempt then. */
static bool rescue_pause(struct rescuer *r) {
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += RESCUE_RETRY_MS / 1000;
    (void)pthread_mutex_lock(&r->lock);
    if (!r->is_ending) (void)pthread_cond_timedwait(&r->changed, &r->lock, &until);
    bool go_on = !r->is_ending;
    (void)pthread_mutex_unlock(&r->lock);
    return go_on;
}

static void *rescuer_thread(void *argument) {
    struct rescuer *r = argument;
    struct uuid instance;
    while (next_rescue(r, &instance)) {
        struct error error;
        while (rescue_one(r->options, &instance, &error) != ERR_NONE) {
            log_warn("the leases of a dead prover cannot be given back yet",
                     log_text("error", error.text));
            if (!rescue_pause(r)) break;
        }
    }
    return NULL;
}

static void rescue(struct rescuer *r, const struct uuid *instance) {
    (void)pthread_mutex_lock(&r->lock);
    if (r->n_waiting < RESCUES_MAX) r->waiting[r->n_waiting++] = *instance;
    (void)pthread_cond_signal(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
}

static enum err rescuer_start(struct rescuer *r, struct error *error) {
    int failed = pthread_create(&r->thread, NULL, rescuer_thread, r); /* signals are blocked */
    if (failed)
        return error_set(error, ERR_INTERNAL, "cannot start a thread: %s", strerror(failed));
    r->is_started = true;
    return ERR_NONE;
}

static void rescuer_end(struct rescuer *r) {
    if (!r->is_started) return;
    (void)pthread_mutex_lock(&r->lock);
    r->is_ending = true;
    (void)pthread_cond_signal(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    (void)pthread_join(r->thread, NULL);
}

/* --- signals and the loop --- */

static enum err take_signals(struct supervisor *s, struct error *error) {
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL) == 0)
        s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signal_fd >= 0) return ERR_NONE;
    return error_set(error, ERR_INTERNAL, "cannot set up signals: %s", strerror(errno));
}

static void read_signals(struct supervisor *s) {
    struct signalfd_siginfo info;
    while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD) continue;
        s->stops++;
        log_info(s->stops == 1 ? "stopping: provers finish what they have"
                               : "stopping at once: children are killed");
        for (size_t i = 0; i < s->n_children; i++) {
            const struct child *child = &s->children[i];
            if (child->pid > 0 && (s->stops > 1 || *child->device))
                (void)kill(child->pid, s->stops > 1 ? SIGKILL : SIGTERM);
        }
    }
}

static size_t running(const struct supervisor *s, bool provers_only) {
    size_t n = 0;
    for (size_t i = 0; i < s->n_children; i++)
        n += s->children[i].pid > 0 && (!provers_only || *s->children[i].device);
    return n;
}

/* The finalizer is stopped after the provers, so that what they proved last is finalized. */
static void stop_finalizer(struct supervisor *s, bool *is_told) {
    if (s->stops == 0 || *is_told || running(s, true) > 0) return;
    for (size_t i = 0; i < s->n_children; i++)
        if (s->children[i].pid > 0) (void)kill(s->children[i].pid, SIGTERM);
    *is_told = true;
}

static int poll_timeout(const struct supervisor *s) {
    int64_t next = INT32_MAX, now = now_ms();
    for (size_t i = 0; i < s->n_children; i++)
        if (s->children[i].pid == 0 && s->stops == 0 && s->children[i].restart_ms - now < next)
            next = s->children[i].restart_ms - now;
    return next == INT32_MAX ? -1 : next > 0 ? (int)next : 0;
}

static void supervise(struct supervisor *s) {
    bool finalizer_told = false;
    for (;;) {
        read_signals(s);
        reap(s);
        stop_finalizer(s, &finalizer_told);
        start_due(s);
        if (s->stops > 0 && running(s, false) == 0) return;
        struct pollfd p = {.fd = s->signal_fd, .events = POLLIN};
        (void)poll(&p, 1, poll_timeout(s));
    }
}

enum err supervisor_run(const struct options *options, struct error *error) {
    struct supervisor s = {.options = options,
                           .signal_fd = -1,
                           .rescuer = {.options = options,
                                       .lock = PTHREAD_MUTEX_INITIALIZER,
                                       .changed = PTHREAD_COND_INITIALIZER}};
    enum err rc;
    TRY(options_export(options, error)); /* before there are threads: setenv is not safe then */
    TRY(choose_devices(&s, error));
    choose_threads(&s);
    choose_memory(&s);
    find_program(&s);
    s.children[s.n_children++] = (struct child){.role = "finalizer", .device = "", .report_fd = -1};
    TRY(rescue_one(options, NULL, error));
    TRY(take_signals(&s, error)); /* until here they end it, which is right */
    TRY(rescuer_start(&s.rescuer, error));
    supervise(&s);
    log_info("stopped");
fail:
    rescuer_end(&s.rescuer);
    if (s.signal_fd >= 0) (void)close(s.signal_fd);
    return rc;
}
