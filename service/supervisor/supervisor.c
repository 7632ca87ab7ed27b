#include "service/supervisor/supervisor.h"

#include "gpu/monotonic.h"
#include "gpu/prover.h"
#include "service/common/budget.h"
#include "service/common/log.h"
#include "service/common/stop.h"
#include "service/supervisor/child.h"
#include "service/supervisor/probe.h"
#include "service/supervisor/supervisor_db.h"
#include "service/supervisor/systemd.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    DEVICES_MAX = OPTION_LIST_MAX,
    CHILDREN_MAX = DEVICES_MAX + 1,
    RESTART_MIN_MS = 1000,
    RESTART_MAX_MS = 5 * 60 * 1000,
    SETTLED_MS = 60 * 1000, /* a child that lived so long had started well: the wait begins anew */
    FAULTLESS_MS = 60 * 60 * 1000, /* a device that worked so long is forgiven its faults */
    FAILURES_SHOWN = 5,            /* so many quick ends in a row are a fault that wants a person */
    FAULTS_QUARANTINE = 3,
    WATCHDOG_MS = 180 * 1000, /* without systemd; with it, what the unit says */
    LOOP_MS = 1000,           /* longest time between two looks at everything */
    STATUS_BYTES = 400,
};

struct supervisor {
    const struct options *options;
    struct child children[CHILDREN_MAX];
    size_t n_children;
    char threads[16];       /* of each prover */
    char host_memory[24];   /* of each prover, bytes */
    char program[PATH_MAX]; /* this one, as ps shows it for the children too */
    int child_fd;           /* readable when a child has ended */
    int told_fd;            /* eventfd: signals to stop that are not handled yet */
    unsigned stops;         /* signals to stop that are handled */
    struct supervisor_db *db;
    struct systemd systemd;
    bool is_ready; /* systemd was told so */
    int64_t fed_ms;
    char status[STATUS_BYTES]; /* as it was told last */
};

/* --- devices --- */

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
        enum err rc = probe_device(cuda[i], &found);
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
        if ((rc = probe_device(list->item[i], &found))) {
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

static int64_t restart_wait_ms(const struct child *child) {
    unsigned failures = child->failures > child->faults ? child->failures : child->faults;
    int64_t wait = RESTART_MIN_MS;
    for (unsigned i = 1; i < failures && wait < RESTART_MAX_MS; i++)
        wait *= 2;
    return wait < RESTART_MAX_MS ? wait : RESTART_MAX_MS;
}

/* A device that fails is blamed, and not what it worked on; when it fails again and again everybody
 * can see it. */
static void blame_device(struct supervisor *s, struct child *child, bool was_long) {
    child->faults = was_long ? 1 : child->faults + 1;
    child->is_suspect = true;
    if (child->faults < FAULTS_QUARANTINE) return;
    if (!child->is_quarantined)
        log_error("a device is in quarantine: no prover is started on it before a test proof "
                  "succeeds; see the view proverq.provers",
                  log_text("device", child->device), log_number("faults", child->faults),
                  log_text("error", child->words));
    child->is_quarantined = true;
    supervisor_db_quarantine(s->db, child->device, child->faults, child->words);
}

static void probe_ended(struct supervisor *s, struct child *child, int status) {
    struct error error;
    child_end(child, status);
    if (probe_result(child->device, status, child->words, &error) != ERR_NONE) {
        (void)snprintf(child->words, sizeof child->words, "%s", error.text);
        blame_device(s, child, false);
        child->restart_ms = monotonic_ms() + restart_wait_ms(child);
        log_error("a device does not work", log_text("device", child->device),
                  log_text("error", error.text), log_number("faults", child->faults),
                  log_number("again_in_s", restart_wait_ms(child) / 1000));
        return;
    }
    log_info("a device works again", log_text("device", child->device),
             log_text("description", error.text));
    if (child->is_quarantined) supervisor_db_quarantine(s->db, child->device, 0, NULL);
    child->is_suspect = child->is_quarantined = false;
    child->restart_ms = 0;
}

static void child_ended(struct supervisor *s, struct child *child, int status) {
    bool in_order = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    int64_t lived = monotonic_ms() - child->started_ms;
    pid_t pid = child->pid;
    child_end(child, status);
    if (*child->device && !in_order) supervisor_db_rescue(s->db, &child->instance);
    if (s->stops > 0 && in_order) {
        log_info("child stopped", log_text("role", child->role), log_text("device", child->device),
                 log_number("pid", pid));
        return;
    }
    child->failures = lived < SETTLED_MS ? child->failures + 1 : 1;
    if (*child->device && child_blames_device(child, status))
        blame_device(s, child, lived > FAULTLESS_MS);
    int64_t wait = restart_wait_ms(child);
    child->restart_ms = monotonic_ms() + wait;
    log_error(
        child->failures >= FAILURES_SHOWN ? "a child keeps failing at its start" : "a child ended",
        log_text("role", child->role), log_text("device", child->device), log_number("pid", pid),
        log_text("error", child->words), log_number("failures", child->failures),
        log_number("again_in_s", s->stops ? -1 : wait / 1000));
}

static void reap(struct supervisor *s) {
    for (size_t i = 0; i < s->n_children; i++) {
        int status;
        struct child *child = &s->children[i];
        if (child->pid <= 0 || waitpid(child->pid, &status, WNOHANG) != child->pid) continue;
        if (child->is_probe)
            probe_ended(s, child, status);
        else
            child_ended(s, child, status);
    }
}

static void start_due(struct supervisor *s) {
    const struct child_setting setting = {s->program, s->threads, s->host_memory};
    for (size_t i = 0; i < s->n_children; i++) {
        struct error error;
        struct child *child = &s->children[i];
        if (child->pid > 0 || monotonic_ms() < child->restart_ms || s->stops > 0) continue;
        enum err rc = child->is_suspect ? child_start_probe(child, &error)
                                        : child_start(child, &setting, &error);
        if (rc == ERR_NONE) continue;
        child->failures++;
        child->restart_ms = monotonic_ms() + restart_wait_ms(child);
        log_error("a child cannot be started", log_text("role", child->role),
                  log_text("error", error.text));
    }
}

/* --- silence --- */

static int64_t watchdog_ms(const struct supervisor *s) {
    return s->systemd.watchdog_ms ? s->systemd.watchdog_ms : WATCHDOG_MS;
}

static int64_t silent_ms(const struct child *child) {
    return child->pid > 0 && !child->is_probe ? monotonic_ms() - child->heard_ms : 0;
}

/* A child that says nothing is killed and replaced. Before that, and if it cannot even be killed
 * (in a driver, say), the watchdog is not fed, and systemd does what it is told to. */
static bool is_one_silent(const struct supervisor *s) {
    for (size_t i = 0; i < s->n_children; i++)
        if (silent_ms(&s->children[i]) > watchdog_ms(s) / 2) return true;
    return false;
}

static void end_silent(struct supervisor *s) {
    for (size_t i = 0; i < s->n_children; i++) {
        struct child *child = &s->children[i];
        bool is_late = child->is_probe && child->pid > 0
                           ? monotonic_ms() - child->started_ms > PROBE_MS
                           : silent_ms(child) > watchdog_ms(s) * 2 / 3;
        if (!is_late || child->was_silent) continue;
        log_error("a child hangs and is killed", log_text("role", child->role),
                  log_text("device", child->device), log_number("pid", child->pid));
        child->was_silent = true;
        (void)kill(child->pid, SIGKILL);
    }
}

/* --- what systemd is told --- */

/* Everybody works, or has failed once, and there is a prover that works. */
static bool is_ready(const struct supervisor *s) {
    bool has_prover = false;
    for (size_t i = 0; i < s->n_children; i++) {
        const struct child *child = &s->children[i];
        if (!child->is_ready && !child->has_ended) return false;
        has_prover = has_prover || (child->is_ready && *child->device);
    }
    return has_prover;
}

static const char *state_of(const struct child *child) {
    if (child->is_quarantined) return "in quarantine";
    if (child->pid > 0 && child->is_probe) return "probed";
    if (child->pid > 0) return child->is_ready ? "at work" : "starting";
    return child->has_ended ? "ended, to be restarted" : "to be started";
}

static void put_status(const struct supervisor *s, char out[STATUS_BYTES]) {
    size_t n = 0;
    for (size_t i = 0; i < s->n_children && n < STATUS_BYTES; i++) {
        const struct child *child = &s->children[i];
        const char *name = *child->device ? child->device : child->role;
        if (s->stops > 0 && child->pid == 0) continue;
        n += (size_t)snprintf(out + n, STATUS_BYTES - n, "%s%s %s", n ? ", " : "STATUS=", name,
                              s->stops > 0 ? "stopping" : state_of(child));
    }
    if (n == 0) (void)snprintf(out, STATUS_BYTES, "STATUS=stopped");
}

static void tell_systemd(struct supervisor *s) {
    char status[STATUS_BYTES];
    put_status(s, status);
    if (strcmp(status, s->status) != 0) systemd_send(&s->systemd, status);
    memcpy(s->status, status, sizeof status);
    if (!s->is_ready && is_ready(s)) {
        s->is_ready = true;
        systemd_send(&s->systemd, "READY=1");
        log_info("ready");
    }
    if (s->systemd.watchdog_ms && monotonic_ms() - s->fed_ms >= s->systemd.watchdog_ms / 4 &&
        !is_one_silent(s)) {
        s->fed_ms = monotonic_ms();
        systemd_send(&s->systemd, "WATCHDOG=1");
    }
}

/* --- signals and the loop --- */

static void on_stop_signal(void *supervisor, int number, bool is_again) {
    (void)number, (void)is_again;
    stop_event_set(((struct supervisor *)supervisor)->told_fd);
}

static enum err take_signals(struct supervisor *s, struct error *error) {
    sigset_t set;
    enum err rc;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    s->child_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->child_fd < 0)
        TRY(error_set(error, ERR_INTERNAL, "cannot set up signals: %s", strerror(errno)));
    TRY(stop_event_open(&s->told_fd, error));
    TRY(stop_open(on_stop_signal, s, error));
fail:
    return rc;
}

/* The first time the provers are asked to stop; from the second time on all children are killed. */
static void stop_children(struct supervisor *s) {
    s->stops++;
    if (s->stops == 1) systemd_send(&s->systemd, "STOPPING=1");
    log_info(s->stops == 1 ? "stopping: provers finish what they have"
                           : "stopping at once: children are killed");
    for (size_t i = 0; i < s->n_children; i++) {
        const struct child *child = &s->children[i];
        bool is_now = s->stops > 1 || child->is_probe;
        if (child->pid > 0 && (is_now || *child->device))
            (void)kill(child->pid, is_now ? SIGKILL : SIGTERM);
    }
}

static void read_signals(struct supervisor *s) {
    struct signalfd_siginfo ended;
    uint64_t told = 0;
    while (read(s->child_fd, &ended, sizeof ended) == (ssize_t)sizeof ended)
        ; /* reap() finds out who */
    (void)!read(s->told_fd, &told, sizeof told);
    for (; told > 0; told--)
        stop_children(s);
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
    int64_t next = LOOP_MS, now = monotonic_ms(), feed = s->systemd.watchdog_ms / 4;
    for (size_t i = 0; i < s->n_children; i++)
        if (s->children[i].pid == 0 && s->stops == 0 && s->children[i].restart_ms - now < next)
            next = s->children[i].restart_ms - now;
    if (feed && feed < next) next = feed;
    return next > 0 ? (int)next : 0;
}

/* Until something is said, a signal comes, or it is time. */
static void wait_for_news(struct supervisor *s) {
    struct pollfd fds[2 + CHILDREN_MAX] = {{s->child_fd, POLLIN, 0}, {s->told_fd, POLLIN, 0}};
    for (size_t i = 0; i < s->n_children; i++) /* a negative descriptor is ignored */
        fds[2 + i] = (struct pollfd){s->children[i].report_fd, POLLIN, 0};
    (void)poll(fds, (nfds_t)(2 + s->n_children), poll_timeout(s));
    for (size_t i = 0; i < s->n_children; i++)
        child_hear(&s->children[i]);
}

static void supervise(struct supervisor *s) {
    bool finalizer_told = false;
    for (;;) {
        read_signals(s);
        reap(s);
        stop_finalizer(s, &finalizer_told);
        end_silent(s);
        start_due(s);
        tell_systemd(s);
        if (s->stops > 0 && running(s, false) == 0) return;
        wait_for_news(s);
    }
}

/* What an earlier supervisor of this host knew of the devices is history: they were probed. */
static void lift_quarantines(struct supervisor *s) {
    for (size_t i = 0; i < s->n_children; i++)
        if (*s->children[i].device) supervisor_db_quarantine(s->db, s->children[i].device, 0, NULL);
}

enum err supervisor_run(const struct options *options, struct error *error) {
    struct supervisor s = {
        .options = options, .child_fd = -1, .told_fd = -1, .systemd = {.fd = -1}};
    enum err rc;
    systemd_open(&s.systemd);
    TRY(options_export(options, error)); /* before there are threads: setenv is not safe then */
    TRY(choose_devices(&s, error));
    choose_threads(&s);
    choose_memory(&s);
    find_program(&s);
    s.children[s.n_children++] = (struct child){.role = "finalizer", .device = "", .report_fd = -1};
    TRY(supervisor_db_check(options, error));
    TRY(take_signals(&s, error)); /* until here they end it, which is right */
    TRY(supervisor_db_open(options, &s.db, error));
    lift_quarantines(&s);
    supervise(&s);
    log_info("stopped");
fail:
    supervisor_db_close(s.db);
    stop_close();
    if (s.child_fd >= 0) (void)close(s.child_fd);
    if (s.told_fd >= 0) (void)close(s.told_fd);
    systemd_close(&s.systemd);
    return rc;
}
