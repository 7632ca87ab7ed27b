/* Calculators in their processes, on the circuits of tests/circuits; needs wasm2c and a C compiler.
 * Those that do not mean well are in tests/e2e/synthesis.sh. */
#include "service/calculator/calculator.h"
#include "service/calculator/sym.h"
#include "service/calculator/tool_process.h"
#include "service/calculator/translate.h"
#include "tests/gpu/suite.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 25 };

static struct error error;
static char folder[64];
static struct calculators *all;
static const struct calculator_limits limits = {.timeout_ms = 20000, .memory_bytes = 1 << 30};

static struct circuit {
    const char *name;
    enum curve_id curve;
    struct calculator calculator;
    struct calculator_facts facts;
    uint8_t *witness; /* snarkjs's */
    size_t bytes;
} circuits[] = {{.name = "factor", .curve = CURVE_BN254},
                {.name = "factor381", .curve = CURVE_BLS12_381}};

static const char good[] = "p 65521\nq 49999\n";

static void read_witness(struct circuit *circuit) {
    char path[128];
    (void)snprintf(path, sizeof path, "tests/circuits/%s/witness.wtns", circuit->name);
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    circuit->witness = malloc(1 << 16);
    ck_assert_ptr_nonnull(circuit->witness);
    circuit->bytes = fread(circuit->witness, 1, 1 << 16, file);
    (void)fclose(file);
}

/* Once for all tests: compiling takes seconds. */
static void compile(struct circuit *circuit) {
    char wasm[128], own[96];
    (void)snprintf(wasm, sizeof wasm, "tests/circuits/%s/%s.wasm", circuit->name, circuit->name);
    (void)snprintf(own, sizeof own, "%s/%s", folder, circuit->name);
    ck_assert_int_eq(mkdir(own, 0700), 0);
    circuit->calculator.id = circuit - circuits;
    circuit->calculator.curve = curve_info(circuit->curve);
    CHECK_OK(translate_wasm(wasm, own, &circuit->calculator.path, &error));
    CHECK_OK(calculator_examine(circuit->calculator.path, &limits, &circuit->facts, &error));
    circuit->calculator.n_vars = circuit->facts.facts.n_vars;
    read_witness(circuit);
}

static void compile_all(void) {
    (void)snprintf(folder, sizeof folder, "/tmp/proverq-calculator-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (size_t i = 0; i < sizeof circuits / sizeof *circuits; i++)
        compile(&circuits[i]);
}

static void remove_all(void) {
    char command[96];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
    for (size_t i = 0; i < sizeof circuits / sizeof *circuits; i++) {
        free(circuits[i].calculator.path);
        free(circuits[i].witness);
    }
}

static void setup(void) {
    CHECK_OK(calculators_open(&limits, 2, &all, &error));
}

static void teardown(void) {
    calculators_close(all);
}

static void memory_for(const struct circuit *circuit, struct witness_memory *memory) {
    *memory = (struct witness_memory){.capacity = circuit->bytes + 4096};
    memory->bytes = malloc(memory->capacity);
    ck_assert_ptr_nonnull(memory->bytes);
}

static enum err compute(const struct circuit *circuit, const char *inputs, bool *same,
                        struct error *e) {
    struct witness_memory memory;
    memory_for(circuit, &memory);
    enum err rc =
        calculators_compute(all, &circuit->calculator, inputs, strlen(inputs), -1, &memory, e);
    *same = rc == ERR_NONE && memory.used == circuit->bytes &&
            memcmp(memory.bytes, circuit->witness, circuit->bytes) == 0;
    free(memory.bytes);
    return rc;
}

START_TEST(the_witness_is_snarkjs_s_byte_for_byte) {
    bool same;
    for (size_t i = 0; i < sizeof circuits / sizeof *circuits; i++) {
        CHECK_OK(compute(&circuits[i], good, &same, &error));
        ck_assert(same);
    }
}
END_TEST

START_TEST(facts_tell_prime_sizes_and_inputs) {
    for (size_t i = 0; i < sizeof circuits / sizeof *circuits; i++) {
        const struct calculator_facts *facts = &circuits[i].facts;
        ck_assert_mem_eq(facts->facts.prime, curve_info(circuits[i].curve)->r, SCALAR_BYTES);
        ck_assert_int_eq(facts->facts.abi, WASM_CIRCOM_2);
        ck_assert_uint_eq(facts->facts.n_inputs, 2);
        ck_assert_uint_eq(facts->n_inputs, 2);
        ck_assert_uint_eq(facts->inputs[0].size, 1);
    }
}
END_TEST

START_TEST(a_process_is_used_again_and_one_of_another_circuit_gives_way) {
    bool same;
    for (int i = 0; i < 5; i++)
        CHECK_OK(compute(&circuits[0], good, &same, &error));
    ck_assert_uint_eq(calculators_count(all), 1);
    CHECK_OK(compute(&circuits[1], good, &same, &error));
    ck_assert_uint_eq(calculators_count(all), 2);
    struct circuit third = circuits[0];
    third.calculator.id = 77;
    CHECK_OK(compute(&third, good, &same, &error));
    ck_assert(same);
    ck_assert_uint_eq(calculators_count(all), 2);
}
END_TEST

static void input_error(const char *inputs, const char *says) {
    bool same;
    enum err rc = compute(&circuits[0], inputs, &same, &error);
    ck_assert_msg(rc == ERR_INPUT, "%s: %s", error_name(rc), error.text);
    ck_assert_msg(strstr(error.text, says) != NULL, "%s", error.text);
}

START_TEST(wrong_inputs_are_told_and_the_process_lives) {
    bool same;
    input_error("p 65521\n", "an input signal is missing: the circuit's input number 2 of 2");
    input_error("", "an input signal is missing");
    input_error("p 65521\nq 49999\nother 1\n", "signal \"other\" is no input");
    input_error("p 65521 1\nq 49999\n", "signal \"p\" has 2 values; the circuit takes 1");
    input_error("p\nq 49999\n", "signal \"p\" has 0 values");
    input_error("p 65521\nq 1.5\n", "signal \"q\", value 0");
    input_error("p 65521\np 65521\nq 49999\n", "2 input");
    input_error("p 65521\nq 49998\n", "assertion of the circuit");
    CHECK_OK(compute(&circuits[0], good, &same, &error));
    ck_assert(same);
    ck_assert_uint_eq(calculators_count(all), 1);
}
END_TEST

static void *work(void *arg) {
    size_t *right = arg;
    struct error e;
    for (size_t i = 0; i < ROUNDS; i++) {
        bool same;
        (void)compute(&circuits[(i + *right) % 2], good, &same, &e);
        *right += same;
    }
    return NULL;
}

START_TEST(threads_compute_at_once) {
    pthread_t threads[THREADS];
    size_t right[THREADS] = {0};
    calculators_close(all);
    CHECK_OK(calculators_open(&limits, THREADS, &all, &error));
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &right[i]), 0);
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        ck_assert_uint_eq(right[i], ROUNDS);
    }
    ck_assert_uint_le(calculators_count(all), THREADS);
}
END_TEST

START_TEST(what_is_not_wanted_any_more_is_given_up) {
    struct witness_memory memory;
    int cancelled = eventfd(1, EFD_CLOEXEC);
    memory_for(&circuits[0], &memory);
    ck_assert_int_eq(calculators_compute(all, &circuits[0].calculator, good, strlen(good),
                                         cancelled, &memory, &error),
                     ERR_LOST_LEASE);
    ck_assert_uint_eq(calculators_count(all), 0);
    (void)close(cancelled);
    free(memory.bytes);
}
END_TEST

START_TEST(an_object_that_is_none_is_refused) {
    struct circuit broken = circuits[0];
    char path[96];
    bool same;
    (void)snprintf(path, sizeof path, "%s/broken.so", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs("no ELF", file);
    (void)fclose(file);
    broken.calculator.path = path;
    ck_assert_int_eq(compute(&broken, good, &same, &error), ERR_FORMAT);
    broken.calculator.path = (char[]){"/nonexistent"};
    ck_assert_int_eq(compute(&broken, good, &same, &error), ERR_IO);
    ck_assert_uint_eq(calculators_count(all), 0);
}
END_TEST

START_TEST(a_witness_of_another_size_is_refused) {
    struct circuit small = circuits[0];
    struct witness_memory memory;
    memory_for(&small, &memory);
    memory.capacity = 100;
    ck_assert_int_eq(
        calculators_compute(all, &small.calculator, good, strlen(good), -1, &memory, &error),
        ERR_MISMATCH);
    ck_assert_uint_eq(memory.used, 0);
    free(memory.bytes);
}
END_TEST

static enum err name_signals(const char *text, char **json) {
    char path[96];
    (void)snprintf(path, sizeof path, "%s/names.sym", folder);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs(text, file);
    (void)fclose(file);
    *json = NULL;
    return sym_name_inputs(path, &circuits[0].facts, json, &error);
}

START_TEST(sym_files_name_the_inputs) {
    char *json;
    CHECK_OK(name_signals("1,1,2,main.p\n2,2,2,main.q\n3,-1,2,main.minus[0]\n4,3,0,main.n.in\r\n",
                          &json));
    ck_assert_str_eq(json, "{\"p\":1,\"q\":1}");
    free(json);
    ck_assert_int_eq(name_signals("1,1,2,main.p\n2,2,1,main.sub.q\n", &json), ERR_MISMATCH);
    ck_assert_int_eq(name_signals("", &json), ERR_MISMATCH);
    ck_assert_int_eq(name_signals("main.p\n,\nmain.[0]\n1,1,1,main.]\n", &json), ERR_MISMATCH);
    ck_assert_ptr_null(json);
}
END_TEST

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], CALCULATOR_COMMAND) == 0) return calculator_process_main();
    if (argc > 3 && strcmp(argv[1], TOOL_COMMAND) == 0) return tool_process_main(argv + 2);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    puts("left out: a sanitizer reserves more memory than a calculator process may have");
    return 0;
#endif
    const TTest *const *const tests[] = {
        &the_witness_is_snarkjs_s_byte_for_byte,
        &facts_tell_prime_sizes_and_inputs,
        &a_process_is_used_again_and_one_of_another_circuit_gives_way,
        &wrong_inputs_are_told_and_the_process_lives,
        &threads_compute_at_once,
        &what_is_not_wanted_any_more_is_given_up,
        &an_object_that_is_none_is_refused,
        &a_witness_of_another_size_is_refused,
        &sym_files_name_the_inputs};
    Suite *suite = suite_create("calculator");
    TCase *tcase =
        add_tests(suite, "calculator", setup, teardown, tests, sizeof tests / sizeof *tests);
    tcase_add_unchecked_fixture(tcase, compile_all, remove_all);
    return run_suite(suite);
}
