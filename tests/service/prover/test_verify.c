/* What happens after the device: a proof is verified before it is recorded, and when it does not
 * verify, the one to blame is found: the witness, the key, or the device. */
#include "gpu/monotonic.h"
#include "gpu/verify.h"
#include "gpu/wtns.h"
#include "service/prover/stages.h"
#include "service/prover/step.h"
#include "tests/gpu/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CIRCUIT "tests/circuits/merkle/"

static struct error error;
static struct options options;
static struct pipeline pipeline;
static struct loaded_circuit circuit;
static struct wtns *good;
static struct scalar *bad_values; /* the witness with its last value changed */
static struct wtns bad;

static void open_circuit(void) {
    circuit = (struct loaded_circuit){
        .circuit_id = 1, .name = "merkle", .version = 1, .state = CIRCUIT_READY};
    CHECK_OK(zkey_open(CIRCUIT "merkle.zkey", &circuit.zkey, &error));
    CHECK_OK(vkey_from_zkey(circuit.zkey, &circuit.vkey, &error));
    CHECK_OK(key_load(pipeline.device, circuit.zkey, &circuit.key, &error));
    CHECK_OK(wtns_open(CIRCUIT "witness.wtns", &good, &error));
    bad_values = malloc(good->n_vars * sizeof *bad_values);
    ck_assert_ptr_nonnull(bad_values);
    memcpy(bad_values, good->values, good->n_vars * sizeof *bad_values);
    bad_values[good->n_vars - 1].le[0] ^= 1;
    bad = *good;
    bad.values = bad_values;
    bad.file = NULL;
}

static void setup(void) {
    memset(&pipeline, 0, sizeof pipeline);
    options = (struct options){.database = "host=/nonexistent", .threads = 1};
    pipeline.options = &options;
    pipeline.places = (struct artefact_places){"/nonexistent", ""};
    queue_init(&pipeline.verify);
    queue_init(&pipeline.record);
    pthread_mutex_init(&pipeline.fault_mutex, NULL);
    pipeline.stop_fd = eventfd(0, EFD_NONBLOCK);
    pipeline.dispatcher_wake = eventfd(0, EFD_NONBLOCK);
    pipeline.loader_wake = eventfd(0, EFD_NONBLOCK);
    CHECK_OK(leases_open(&pipeline.leases, &error));
    CHECK_OK(device_open("cpu", 1, &pipeline.device, &error));
    budget_init(&pipeline.host, BUDGET_UNLIMITED);
    pacing_init(&pipeline.pacing);
    CHECK_OK(buffers_open(pipeline.device, &pipeline.host, 1, &pipeline.buffers, &error));
    open_circuit();
}

static void teardown(void) {
    key_free(circuit.key);
    vkey_free(circuit.vkey);
    zkey_close(circuit.zkey);
    wtns_close(good);
    free(bad_values);
    buffers_close(pipeline.buffers);
    device_close(pipeline.device);
    leases_close(pipeline.leases);
    queue_destroy(&pipeline.verify);
    queue_destroy(&pipeline.record);
    close(pipeline.stop_fd);
    close(pipeline.dispatcher_wake);
    close(pipeline.loader_wake);
}

/* A task whose witness is `claimed` while the device proves `proved`; after the verify stage. */
static struct task *verify_one(const struct wtns *claimed, const struct wtns *proved,
                               enum lease_fate fate) {
    struct task *task = calloc(1, sizeof *task);
    struct stage_thread self = {.pipeline = &pipeline, .worker = WORKER_VERIFY};
    ck_assert_ptr_nonnull(task);
    step_begin(task, STEP_FINISH_WAIT, LEASE_NO_DEADLINE);
    pipeline_begin(&pipeline, task);
    atomic_store(&task->lease.fate, fate);
    task->circuit = &circuit;
    task->wtns = malloc(sizeof *task->wtns);
    task->publics = calloc(circuit.zkey->n_public, sizeof *task->publics);
    ck_assert(task->wtns && task->publics);
    *task->wtns = *claimed;
    task->wtns->file = NULL;
    memcpy(task->publics, claimed->values + 1, circuit.zkey->n_public * sizeof *task->publics);
    CHECK_OK(prove_start(circuit.key, &proved->values, 1, &task->pending, &error));
    queue_push(&pipeline.verify, task);
    queue_close(&pipeline.verify);
    ck_assert_ptr_null(verify_main(&self));
    ck_assert_ptr_eq(queue_pop(&pipeline.record), task);
    return task;
}

static struct task *verify_task(const struct wtns *claimed, const struct wtns *proved) {
    return verify_one(claimed, proved, LEASE_VALID);
}

static void is_blamed(struct task *task, enum err code, const char *words) {
    ck_assert_int_eq(task->outcome, OUTCOME_FAILURE);
    ck_assert_msg(task->error.code == code && strstr(task->error.text, words), "%s: %s",
                  error_name(task->error.code), task->error.text);
    ck_assert_int_eq(pipeline.fault.code, ERR_NONE); /* the device is not blamed */
    pipeline_end(&pipeline, task);
}

static int times(const struct task *task, enum step step) {
    int n = 0;
    for (size_t i = 0; i < task->timing.n; i++)
        n += task->timing.spans[i].step == step;
    return n;
}

START_TEST(a_proof_that_verifies_goes_on_with_its_times) {
    struct task *task = verify_task(good, good);
    ck_assert_int_eq(task->outcome, OUTCOME_PROOF);
    CHECK_OK(verify(circuit.vkey, task->publics, circuit.zkey->n_public, &task->proof, &error));
    static const enum step steps[] = {STEP_FINISH_WAIT, STEP_MATVEC, STEP_NTT,   STEP_MSM_A,
                                      STEP_MSM_B1,      STEP_MSM_B2, STEP_MSM_C, STEP_MSM_H,
                                      STEP_FINISH,      STEP_VERIFY};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        ck_assert_int_eq(times(task, steps[i]), 1);
    for (size_t i = 0; i < task->timing.n; i++)
        ck_assert_int_ge(task->timing.spans[i].duration_ns, 0);
    pipeline_end(&pipeline, task);
}
END_TEST

START_TEST(a_proof_that_is_not_wanted_any_more_is_dropped) {
    struct task *task = verify_one(good, good, LEASE_CANCELLED);
    ck_assert_int_eq(task->outcome, OUTCOME_DROP);
    ck_assert_str_eq(task->error.text, "the job was cancelled");
    ck_assert_int_eq(times(task, STEP_VERIFY), 0);
    ck_assert_ptr_null(task->pending);
    pipeline_end(&pipeline, task);
}
END_TEST

START_TEST(a_bad_witness_is_blamed_when_the_constraints_are_not_known) {
    is_blamed(verify_task(&bad, &bad), ERR_WITNESS, "--r1cs");
}
END_TEST

START_TEST(a_bad_witness_is_told_its_constraint) {
    circuit.has_r1cs = true;
    CHECK_OK(r1cs_open(CIRCUIT "merkle.r1cs", &circuit.constraints, &error));
    is_blamed(verify_task(&bad, &bad), ERR_WITNESS, "constraint");
    r1cs_close(circuit.constraints);
}
END_TEST

START_TEST(a_bad_witness_is_blamed_when_the_constraints_cannot_be_had) {
    circuit.has_r1cs = true; /* in a database that is away */
    is_blamed(verify_task(&bad, &bad), ERR_WITNESS, "does not satisfy");
}
END_TEST

START_TEST(a_key_of_other_constraints_is_blamed) {
    struct r1cs none = {.curve = circuit.zkey->curve,
                        .n_vars = circuit.zkey->n_vars,
                        .n_public = circuit.zkey->n_public};
    circuit.has_r1cs = true;
    circuit.constraints = &none; /* every witness satisfies them */
    is_blamed(verify_task(&bad, &bad), ERR_KEY, "not of these constraints");
}
END_TEST

START_TEST(a_device_that_computes_wrongly_is_blamed_and_the_cpu_proves) {
    struct task *task = verify_task(good, &bad); /* it computed with a value that was not given */
    ck_assert_int_eq(pipeline.fault.code, ERR_DEVICE_FAULT);
    ck_assert(atomic_load(&pipeline.stopping));
    ck_assert_int_eq(task->outcome, OUTCOME_PROOF);
    CHECK_OK(verify(circuit.vkey, task->publics, circuit.zkey->n_public, &task->proof, &error));
    pipeline_end(&pipeline, task);
}
END_TEST

int main(void) {
    const TTest *const *const tests[] = {
        &a_proof_that_verifies_goes_on_with_its_times,
        &a_proof_that_is_not_wanted_any_more_is_dropped,
        &a_bad_witness_is_blamed_when_the_constraints_are_not_known,
        &a_bad_witness_is_told_its_constraint,
        &a_bad_witness_is_blamed_when_the_constraints_cannot_be_had,
        &a_key_of_other_constraints_is_blamed,
        &a_device_that_computes_wrongly_is_blamed_and_the_cpu_proves};
    return run_tests("verify", setup, teardown, tests, sizeof tests / sizeof *tests);
}
