#include "service/prover/pipeline.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static enum err make_event(int *fd, struct error *error) {
    *fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return *fd < 0 ? error_set(error, ERR_INTERNAL, "eventfd failed") : ERR_NONE;
}

enum err pipeline_open(struct pipeline *pipeline, const struct options *options,
                       struct error *error) {
    struct queue *queues[] = {&pipeline->synthesis, &pipeline->gpu, &pipeline->verify,
                              &pipeline->record};
    enum err rc;
    *pipeline = (struct pipeline){.options = options,
                                  .stop_fd = -1,
                                  .dispatcher_wake = -1,
                                  .loader_wake = -1,
                                  .heartbeat_stop = -1};
    pthread_mutex_init(&pipeline->fault_mutex, NULL);
    pacing_init(&pipeline->pacing);
    budget_init(&pipeline->host, 0);
    timeline_log_init(&pipeline->timelines);
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
        queue_init(queues[i]);
    TRY(make_event(&pipeline->stop_fd, error));
    TRY(make_event(&pipeline->dispatcher_wake, error));
    TRY(make_event(&pipeline->loader_wake, error));
    TRY(make_event(&pipeline->heartbeat_stop, error));
fail:
    return rc;
}

/* What keys may take of the device, and witnesses of the host. On the CPU both are the host's. */
static size_t divide_memory(const struct pipeline *pipeline, size_t *witnesses) {
    const struct options *options = pipeline->options;
    bool is_cpu = strcmp(device_name(pipeline->device), "cpu") == 0;
    size_t host = options->host_memory ? options->host_memory : host_memory() / 2;
    size_t keys = options->device_memory ? options->device_memory : SIZE_MAX;
    if (is_cpu && !options->device_memory) keys = host / 4 * 3;
    if (is_cpu && keys > host) keys = host;
    *witnesses = is_cpu ? host - keys : host;
    return keys;
}

static enum err equip_memory(struct pipeline *pipeline, struct error *error) {
    size_t witnesses, keys = divide_memory(pipeline, &witnesses);
    enum err rc;
    pipeline->host.limit = witnesses;
    TRY(keyring_open(pipeline->device, keys, &pipeline->keyring, error));
    TRY(buffers_open(pipeline->device, &pipeline->host,
                     BUFFERS + (size_t)pipeline->synthesis_threads, &pipeline->buffers, error));
fail:
    return rc;
}

/* How many witnesses are computed at once. */
static int choose_synthesis_threads(const struct options *options) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long n = options->synthesis_threads ? (long)options->synthesis_threads
             : options->threads         ? (long)options->threads
                                        : cores;
    if (n < SYNTHESIS_THREADS_LEAST) n = SYNTHESIS_THREADS_LEAST;
    return n > SYNTHESIS_THREADS_MOST ? SYNTHESIS_THREADS_MOST : (int)n;
}

static enum err open_calculators(struct pipeline *pipeline, struct error *error) {
    const struct calculator_limits limits = {pipeline->options->synthesis_timeout_ms,
                                             pipeline->options->synthesis_memory};
    pipeline->synthesis_threads = choose_synthesis_threads(pipeline->options);
    return calculators_open(&limits, (size_t)pipeline->synthesis_threads, &pipeline->calculators,
                            error);
}

enum err pipeline_equip(struct pipeline *pipeline, struct error *error) {
    const struct options *options = pipeline->options;
    const char *device = options->devices.n ? options->devices.item[0] : "auto";
    char *cache = NULL;
    enum err rc;
    TRY(artefact_cache_dir(options->cache_dir, &cache, error));
    pipeline->places = (struct artefact_places){cache, options->artefact_root};
    TRY(device_open(device, options->threads, &pipeline->device, error));
    TRY(device_activity_start(pipeline->device, error));
    TRY(leases_open(&pipeline->leases, error));
    TRY(open_calculators(pipeline, error));
    TRY(equip_memory(pipeline, error));
fail:
    return rc;
}

void pipeline_close(struct pipeline *pipeline) {
    const int fds[] = {pipeline->stop_fd, pipeline->dispatcher_wake, pipeline->loader_wake,
                       pipeline->heartbeat_stop};
    struct queue *queues[] = {&pipeline->synthesis, &pipeline->gpu, &pipeline->verify,
                              &pipeline->record};
    calculators_close(pipeline->calculators);
    buffers_close(pipeline->buffers);
    keyring_close(pipeline->keyring);
    leases_close(pipeline->leases);
    if (pipeline->device) device_close(pipeline->device);
    free((char *)(uintptr_t)pipeline->places.cache);
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
        queue_destroy(queues[i]);
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0) close(fds[i]);
    budget_destroy(&pipeline->host);
    pacing_destroy(&pipeline->pacing);
    timeline_log_destroy(&pipeline->timelines);
    pthread_mutex_destroy(&pipeline->fault_mutex);
}
