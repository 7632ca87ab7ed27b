#include "gpu/verify.h"
#include "gpu/r1cs.h"
#include "service/common/faults.h"
#include "service/common/log.h"
#include "service/prover/stages.h"
#include "service/prover/step.h"

#include <stdlib.h>

/* The host tail and a pairing take milliseconds. */
#define VERIFY_LIMIT_NS INT64_C(60000000000)

/* --- the usual case --- */

static void add_device_steps(struct task *task, const struct prove_span *spans, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (spans[i].step != PROVE_STEP_FINISH)
            timing_add(&task->timing, step_of_prove(spans[i].step), task->gpu_worker,
                       spans[i].start_ns, spans[i].start_ns + spans[i].duration_ns);
}

static enum err verify_proof(const struct task *task, const struct proof *proof,
                             struct error *error) {
    return verify(task->circuit->vkey, task->publics, task->circuit->vkey->n_public, proof, error);
}

static enum err finish_and_verify(const struct stage_thread *self, struct task *task,
                                  struct error *error) {
    struct prove_span spans[PROVE_STEP_COUNT];
    size_t n = 0;
    step_next(task, self->worker, STEP_FINISH, VERIFY_LIMIT_NS);
    enum err rc = prove_finish(task->pending, &task->proof, spans, &n, error);
    task->pending = NULL;
    if (rc != ERR_NONE) return rc;
    add_device_steps(task, spans, n);
    step_next(task, self->worker, STEP_VERIFY, VERIFY_LIMIT_NS);
    rc = verify_proof(task, &task->proof, error);
    step_end(task, self->worker);
    if (rc == ERR_NONE && fault_strikes(task->job, task->partition, task->attempt))
        rc = error_set(error, ERR_INTERNAL, "a fault was injected");
    return rc;
}

/* --- a proof that does not verify: whose fault is it? --- */

static enum err open_constraints(const struct pipeline *pipeline, struct loaded_circuit *circuit,
                                 struct error *error) {
    static const struct db_statement *const list[] = {&artefact_chunk_get};
    const struct db_settings settings =
        db_settings_for(pipeline->options->database, "prover (r1cs)", list, 1);
    struct db *db = NULL;
    char *path = NULL;
    bool fetched;
    enum err rc;
    TRY(db_open(&settings, &db, error));
    TRY(artefact_fetch(&pipeline->places, db, &circuit->r1cs, &path, &fetched, error));
    TRY(r1cs_open(path, &circuit->constraints, error));
fail:
    free(path);
    db_close(db);
    return rc;
}

/* ERR_WITNESS names the constraint; other errors say that the constraints are not to be had. */
static enum err check_constraints(const struct pipeline *pipeline, struct task *task,
                                  struct error *error) {
    enum err rc;
    if (!task->circuit->constraints) TRY(open_constraints(pipeline, task->circuit, error));
    TRY(r1cs_check_witness(task->circuit->constraints, task->wtns, error));
fail:
    return rc;
}

/* The CPU's proof of the same witness (with an r and s of its own), verified. */
static enum err prove_on_cpu(const struct pipeline *pipeline, const struct task *task,
                             struct proof *out, struct error *error) {
    const struct scalar *witness = task->wtns->values;
    struct device *cpu = NULL;
    struct key *key = NULL;
    struct pending *pending = NULL;
    enum err rc;
    TRY(device_open("cpu", pipeline->options->threads, &cpu, error));
    TRY(key_load(cpu, task->circuit->zkey, &key, error));
    TRY(prove_start(key, &witness, 1, &pending, error));
    rc = prove_finish(pending, out, NULL, NULL, error);
    pending = NULL;
    if (rc == ERR_NONE) rc = verify_proof(task, out, error);
fail:
    prove_abandon(pending);
    key_free(key);
    if (cpu) device_close(cpu);
    return rc;
}

static enum err blame_input_or_key(const struct task *task, bool satisfied, struct error *error) {
    if (satisfied)
        return error_set(error, ERR_KEY,
                         "the witness satisfies the constraints but its proof does not verify: the "
                         "proving key of circuit %s is not of these constraints",
                         task->circuit->name);
    return error_set(error, ERR_WITNESS, "the witness does not satisfy circuit %s%s",
                     task->circuit->name,
                     task->circuit->has_r1cs ? ""
                                             : "; add the circuit with --r1cs to be told which "
                                               "constraint fails");
}

/* A diagnosis has a deadline but is not a step: it is rare, and leaves no evidence. */
static void limit_diagnosis(struct task *task, int64_t limit_ns) {
    lease_limit(&task->lease, "diagnose", limit_ns);
}

/* ERR_NONE when the CPU found a proof that does verify: it is the task's now, and the device is to
 * blame. One diagnosis at a time: it uses all cores. */
static enum err diagnose(struct pipeline *pipeline, struct task *task, struct error *error) {
    bool satisfied = false;
    struct proof proof;
    limit_diagnosis(task, prove_limit_ns(true, task->circuit->zkey));
    if (task->circuit->has_r1cs) {
        enum err rc = check_constraints(pipeline, task, error);
        if (rc == ERR_WITNESS) return rc;
        if (rc != ERR_NONE)
            log_warn("constraints cannot be checked", log_text("circuit", task->circuit->name),
                     log_text("error", error->text));
        satisfied = rc == ERR_NONE;
    }
    limit_diagnosis(task, prove_limit_ns(true, task->circuit->zkey));
    enum err rc = prove_on_cpu(pipeline, task, &proof, error);
    if (rc == ERR_INVALID_PROOF) return blame_input_or_key(task, satisfied, error);
    if (rc != ERR_NONE) return rc;
    task->proof = proof;
    error_set(
        error, ERR_DEVICE_FAULT,
        "%s made a proof of job %lld, partition %d that does not verify, the CPU one that does",
        device_name(pipeline->device), (long long)task->job, task->partition);
    pipeline_fault(pipeline, error);
    return ERR_NONE;
}

static enum err diagnose_alone(struct pipeline *pipeline, struct task *task, struct error *error) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    limit_diagnosis(task, LEASE_NO_DEADLINE); /* the one before has a deadline */
    pthread_mutex_lock(&mutex);
    enum err rc = diagnose(pipeline, task, error);
    pthread_mutex_unlock(&mutex);
    return rc;
}

/* --- the stage --- */

/* True: nobody wants the proof any more. */
static bool drop(struct pipeline *pipeline, struct task *task) {
    if (!lease_is_lost(&task->lease)) return false;
    prove_abandon(task->pending);
    task->pending = NULL;
    return pipeline_is_lost(pipeline, task);
}

void *verify_main(void *arg) {
    struct stage_thread *self = arg;
    struct pipeline *pipeline = self->pipeline;
    struct error error;
    for (struct task *task; (task = queue_pop(&pipeline->verify)) != NULL;) {
        if (drop(pipeline, task)) continue;
        enum err rc = finish_and_verify(self, task, &error);
        if (rc == ERR_INVALID_PROOF) rc = diagnose_alone(pipeline, task, &error);
        if (rc == ERR_DEVICE_FAULT) pipeline_fault(pipeline, &error);
        if (rc == ERR_NONE)
            pipeline_proved(pipeline, task);
        else
            pipeline_give_up(pipeline, task, &error);
    }
    return NULL;
}
