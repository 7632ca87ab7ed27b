#include "service/prover/prover.h"
#include "service/common/faults.h"
#include "service/common/log.h"
#include "service/common/report.h"
#include "service/common/stop.h"
#include "service/common/version.h"
#include "service/prover/stages.h"
#include "service/schema/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const struct db_statement prover_register = {"prover_register", "utittt", "i"};
static const struct db_statement prover_stop = {"prover_stop", "i", ""};

enum { DISPATCHER_STATEMENTS_MAX = 16 };

static void on_stop_signal(void *pipeline, int number, bool is_again) {
    if (is_again) {
        log_warn("a second signal: ending at once; leases expire by themselves");
        _exit(EXIT_FAILURE);
    }
    log_info("stopping: no more claims, what is on the device is finished",
             log_number("signal", number));
    pipeline_stop(pipeline);
}

/* --- connections --- */

static enum err open_db(const struct pipeline *pipeline, const char *conninfo, const char *role,
                        const struct db_statement *const *list, size_t n, struct db **out,
                        struct error *error) {
    const struct db_settings settings =
        db_settings_for_daemon(conninfo, role, device_name(pipeline->device), list, n);
    return db_open_patiently(&settings, pipeline->stop_fd, out, error);
}

static enum err open_stage_db(const struct pipeline *pipeline, const char *role,
                              const struct stage_statements *statements, struct db **out,
                              struct error *error) {
    return open_db(pipeline, pipeline->options->database, role, statements->list, statements->n,
                   out, error);
}

/* The dispatcher's connection also says hello and goodbye. */
static enum err open_dispatcher_db(struct pipeline *pipeline, const struct db_statement **list,
                                   struct error *error) {
    size_t n = 0;
    list[n++] = &prover_register;
    list[n++] = &prover_stop;
    for (size_t i = 0; i < dispatcher_statements.n && n < DISPATCHER_STATEMENTS_MAX; i++)
        list[n++] = dispatcher_statements.list[i];
    return open_db(pipeline, pipeline->options->database, "prover", list, n,
                   &pipeline->dispatcher_db, error);
}

static enum err open_listen_db(struct pipeline *pipeline, struct error *error) {
    const char *other = pipeline->options->listen_database;
    enum err rc;
    pipeline->listen_db = pipeline->dispatcher_db;
    if (*other) {
        pipeline->listen_db = NULL;
        TRY(open_db(pipeline, other, "prover-listen", NULL, 0, &pipeline->listen_db, error));
    }
    TRY(db_listen(pipeline->listen_db, "proverq_work", error));
fail:
    return rc;
}

static enum err open_connections(struct pipeline *pipeline, const struct db_statement **list,
                                 struct error *error) {
    enum err rc;
    TRY(open_dispatcher_db(pipeline, list, error));
    TRY(schema_check(pipeline->dispatcher_db, error));
    TRY(open_listen_db(pipeline, error));
    TRY(open_stage_db(pipeline, "prover-loader", &loader_statements, &pipeline->loader_db, error));
    TRY(open_stage_db(pipeline, "prover-record", &record_statements, &pipeline->record_db, error));
    TRY(open_stage_db(pipeline, "prover-heartbeat", &heartbeat_statements, &pipeline->heartbeat_db,
                      error));
fail:
    return rc;
}

static void close_connections(struct pipeline *pipeline) {
    if (pipeline->listen_db != pipeline->dispatcher_db) db_close(pipeline->listen_db);
    db_close(pipeline->dispatcher_db);
    db_close(pipeline->loader_db);
    db_close(pipeline->record_db);
    db_close(pipeline->heartbeat_db);
}

static enum err register_prover(struct pipeline *pipeline, struct error *error) {
    char host[256] = "?";
    struct uuid instance;
    struct db_result *rows = NULL;
    enum err rc;
    (void)gethostname(host, sizeof host - 1);
    if (*pipeline->options->instance)
        TRY(uuid_parse(pipeline->options->instance, &instance, error));
    else
        TRY(uuid_random(&instance, error));
    TRY(db_run(pipeline->dispatcher_db, &prover_register,
               DB_PARAMS(db_uuid(&instance), db_text(host), db_int(getpid()),
                         db_text(device_name(pipeline->device)),
                         db_text(device_description(pipeline->device)), db_text(PROVERQ_VERSION)),
               &rows, error));
    pipeline->prover_id = (int32_t)db_get_int(rows, 0, 0);
fail:
    db_free(rows);
    return rc;
}

static void say_goodbye(struct pipeline *pipeline) {
    struct error error;
    if (db_run(pipeline->dispatcher_db, &prover_stop, DB_PARAMS(db_int(pipeline->prover_id)), NULL,
               &error) != ERR_NONE)
        log_warn("the database was not told that this prover stopped",
                 log_text("error", error.text));
}

/* --- threads --- */

/* The threads, by stage, in the order in which they are ended. */
struct threads {
    int n_gpu;
    struct stage_thread dispatcher, loader, record, heartbeat;
    struct stage_thread synthesis[SYNTHESIS_THREADS_MOST], gpu[GPU_THREADS], verify[VERIFY_THREADS];
};

/* A process that cannot start its threads ends: nothing is claimed yet. */
static void start(struct stage_thread *thread, struct pipeline *pipeline, stage_main *run,
                  int worker) {
    thread->pipeline = pipeline;
    thread->worker = (int16_t)worker;
    if (pthread_create(&thread->thread, NULL, run, thread) == 0) return;
    log_error("a thread cannot be started");
    _exit(EXIT_FAILURE);
}

/* From the end of the pipeline to its beginning, so that whoever hands over is heard. */
static void start_all(struct threads *threads, struct pipeline *pipeline) {
    start(&threads->heartbeat, pipeline, heartbeat_main, WORKER_HEARTBEAT);
    start(&threads->record, pipeline, record_main, WORKER_RECORD);
    for (int i = 0; i < VERIFY_THREADS; i++)
        start(&threads->verify[i], pipeline, verify_main, WORKER_VERIFY + i);
    int workers = fault_switch("PROVERQ_WORKERS");
    threads->n_gpu = workers > 0 && workers < GPU_THREADS ? workers : GPU_THREADS;
    for (int i = 0; i < threads->n_gpu; i++)
        start(&threads->gpu[i], pipeline, gpu_worker_main, WORKER_GPU + i);
    for (int i = 0; i < pipeline->synthesis_threads; i++)
        start(&threads->synthesis[i], pipeline, synthesis_main, WORKER_SYNTHESIS + i);
    start(&threads->loader, pipeline, loader_main, WORKER_LOADER);
    start(&threads->dispatcher, pipeline, dispatcher_main, WORKER_DISPATCHER);
}

static void join(const struct stage_thread *threads, int n) {
    for (int i = 0; i < n; i++)
        pthread_join(threads[i].thread, NULL);
}

/* Returns when the pipeline was stopped and all that was in it is recorded. Each stage ends when
 * the one before it has and its own queue is empty. */
static void join_all(struct threads *threads, struct pipeline *pipeline) {
    join(&threads->dispatcher, 1);
    join(threads->synthesis, pipeline->synthesis_threads);
    queue_close(&pipeline->gpu);
    join(threads->gpu, threads->n_gpu);
    queue_close(&pipeline->verify);
    join(threads->verify, VERIFY_THREADS);
    queue_close(&pipeline->record);
    join(&threads->record, 1);
    wake_up(pipeline->heartbeat_stop);
    join(&threads->heartbeat, 1);
    join(&threads->loader, 1);
}

/* --- the process --- */

static void log_started(const struct pipeline *pipeline) {
    log_info("prover started", log_number("prover", pipeline->prover_id),
             log_text("device", device_name(pipeline->device)),
             log_text("description", device_description(pipeline->device)),
             log_text("busy_times", device_activity_source(pipeline->device)));
}

static void log_stopped(struct pipeline *pipeline) {
    size_t keys;
    uint64_t evictions;
    keyring_figures(pipeline->keyring, &keys, &evictions);
    log_info("prover stopped", log_number("prover", pipeline->prover_id),
             log_number("witness_bytes_peak", (int64_t)budget_peak(&pipeline->host)),
             log_number("device_bytes_peak", (int64_t)keys),
             log_number("keys_evicted", (int64_t)evictions));
}

enum err prover_run(const struct options *options, struct error *error) {
    const struct db_statement *list[DISPATCHER_STATEMENTS_MAX];
    struct pipeline pipeline;
    struct threads threads;
    enum err rc;
    TRY(pipeline_open(&pipeline, options, error));
    TRY(stop_open(on_stop_signal, &pipeline, error)); /* before anything makes threads */
    TRY(pipeline_equip(&pipeline, error));
    TRY(open_connections(&pipeline, list, error));
    TRY(register_prover(&pipeline, error));
    log_started(&pipeline);
    start_all(&threads, &pipeline);
    report_ready();
    join_all(&threads, &pipeline);
    say_goodbye(&pipeline);
    if (pipeline.fault.code != ERR_NONE) {
        *error = pipeline.fault;
        rc = error->code;
    }
    log_stopped(&pipeline);
fail:
    if (rc == ERR_CONNECTION && atomic_load(&pipeline.stopping)) rc = ERR_NONE; /* it was told to */
    stop_close();
    close_connections(&pipeline);
    pipeline_close(&pipeline);
    return rc;
}
