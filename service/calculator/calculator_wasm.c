#include "service/calculator/calculator_wasm.h"
#include "service/calculator/sort.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    GLUE_VERSION = 1,
    PAGE = 65536,
    WORDS = SCALAR_BYTES / 4,
    WTNS_HEAD_BYTES = 76,
    SIGNAL_STACK_BYTES = 65536,
};

/* A 32-bit address and a 32-bit offset reach that far. */
#define RESERVED_BYTES ((UINT64_C(1) << 33) + PAGE)

/* As in service/calculator/calculator_glue.inc. */
enum { EXCEPTION, ERROR_MESSAGE, LOG_MESSAGE, LOG_NUMBER, ERROR_1 };
enum { TRAP_OOB = 1, TRAP_UNREACHABLE = 5, TRAP_EXHAUSTION = 8, TRAP_MEMORY = 100 };

struct host {
    void (*import)(unsigned function, const unsigned *arguments);
    void (*trap)(unsigned code);
    void *(*reserve)(unsigned pages);
    int (*grow)(void *data, unsigned pages, unsigned more);
    void (*release)(void *data);
};

struct memory {
    uint8_t *data;
    uint32_t pages, max_pages, size;
};

/* What circom's calculators export, and our glue. Objects that an older version of proverq has made
 * leave env_memory NULL when the memory is the calculator's own; that one is of the same form. */
static struct {
    void *(*instantiate)(void);
    void (*free_instance)(void);
    struct memory *(*env_memory)(void);
    struct memory *(*memory)(void *);
    void (*begin)(const struct host *);
    /* circom 2 */
    uint32_t (*get_version)(void *), (*rw_start)(void *), (*field_words)(void *);
    uint32_t (*witness_size)(void *), (*input_size)(void *), (*message_char)(void *);
    uint32_t (*signal_size)(void *, uint32_t, uint32_t);
    void (*init)(void *, uint32_t), (*raw_prime)(void *), (*get_witness)(void *, uint32_t);
    void (*set_input)(void *, uint32_t, uint32_t, uint32_t);
    /* circom 1 */
    uint32_t (*n_vars)(void *), (*fr_len)(void *), (*p_raw_prime)(void *);
    uint32_t (*witness_buffer)(void *);
    void (*signal_offset)(void *, uint32_t, uint32_t, uint32_t, uint32_t);
    void (*set_signal)(void *, uint32_t, uint32_t, uint32_t, uint32_t);
} calls;

static struct {
    bool has_begun;
    void *instance;        /* NULL: none */
    struct memory *memory; /* of the instance */
    uint8_t *reserved;
    uint32_t scratch; /* circom 1: address of 64 bytes for our use */
    uint32_t counter; /* circom 1: address of how many inputs are lacking; 0: not known */
    struct wasm_facts facts;
    struct wasm_input inputs[WASM_INPUTS_MAX]; /* circom 2: by position */
    size_t n_known;
} self;

/* Why a call did not return. */
static struct {
    sigjmp_buf target;
    volatile sig_atomic_t is_armed;
    enum { STOP_NONE, STOP_EXCEPTION, STOP_ERROR_1, STOP_TRAP } kind;
    unsigned code;
    char message[300]; /* the calculator's own words */
} stop;

/* --- calling: everything that runs the calculator's code goes through here --- */

static _Noreturn void jump_back(int kind, unsigned code) {
    stop.kind = kind;
    stop.code = code;
    siglongjmp(stop.target, 1);
}

typedef void step(void *argument);

/* Whether the step ended; else `stop` says why it did not. */
static bool attempt(step *run, void *argument) {
    stop.kind = STOP_NONE;
    stop.message[0] = '\0';
    if (sigsetjmp(stop.target, 1) == 0) {
        stop.is_armed = 1;
        run(argument);
    }
    stop.is_armed = 0;
    return stop.kind == STOP_NONE;
}

static const char *trap_text(unsigned code) {
    static const char *const texts[] = {"",
                                        "it reached outside its memory",
                                        "an integer overflowed",
                                        "a division by zero",
                                        "a number that is none",
                                        "it reached code that it says cannot be reached",
                                        "a wrong indirect call",
                                        "an exception",
                                        "its calls are nested too deep"};
    if (code == TRAP_MEMORY) return "it needs more memory than --synthesis-memory allows";
    return code < sizeof texts / sizeof *texts ? texts[code] : "it trapped";
}

static const char *exception_text(unsigned code) {
    static const char *const texts[] = {"",
                                        "signal not found",
                                        "too many signals set",
                                        "signal already set",
                                        "an assertion of the circuit does not hold",
                                        "not enough memory",
                                        "an array is longer than the signal"};
    return code < sizeof texts / sizeof *texts ? texts[code] : "an exception of the calculator";
}

static enum err stopped(struct error *error) {
    const char *message = stop.message;
    if (stop.kind == STOP_TRAP)
        return error_set(error, ERR_CALCULATOR, "the witness calculator failed: %s",
                         trap_text(stop.code));
    if (stop.kind == STOP_ERROR_1)
        return error_set(error, ERR_INPUT, "the witness calculator refuses the inputs: %s",
                         *message ? message : "error");
    return error_set(error, ERR_INPUT, "the witness calculator refuses the inputs: %s%s%s",
                     exception_text(stop.code), *message ? ": " : "", message);
}

/* --- what the calculator calls --- */

static void add_message_char(size_t *n, char c) {
    bool printable = c >= ' ' && c < 127;
    if (*n + 1 >= sizeof stop.message) return;
    stop.message[(*n)++] = printable ? c : ' ';
    stop.message[*n] = '\0';
}

/* Reads the message to its end, however much of it is kept. */
static void take_message(bool is_kept) {
    size_t n = strlen(stop.message);
    if (!calls.message_char || !self.instance) return;
    if (is_kept && n > 0) add_message_char(&n, ' ');
    for (uint32_t c; (c = calls.message_char(self.instance)) != 0;)
        if (is_kept) add_message_char(&n, (char)c);
    while (n > 0 && stop.message[n - 1] == ' ')
        stop.message[--n] = '\0';
}

/* circom 1: the first argument after the code is the address of a text. */
static void take_text(uint32_t address) {
    size_t n = 0;
    if (!self.memory) return;
    for (; address < self.memory->size && self.memory->data[address]; address++)
        add_message_char(&n, (char)self.memory->data[address]);
}

static void on_import(unsigned function, const unsigned *arguments) {
    switch (function) {
    case EXCEPTION:
        jump_back(STOP_EXCEPTION, arguments[0]);
    case ERROR_1:
        take_text(arguments[1]);
        jump_back(STOP_ERROR_1, arguments[0]);
    case ERROR_MESSAGE:
        take_message(true);
        break;
    case LOG_MESSAGE:
        take_message(false);
        break;
    default:
        break;
    }
}

static void on_trap(unsigned code) {
    jump_back(STOP_TRAP, code);
}

/* The whole range is reserved, so that no access needs a check: what is not in the memory faults. */
static void *on_reserve(unsigned pages) {
    void *data =
        mmap(NULL, RESERVED_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) jump_back(STOP_TRAP, TRAP_MEMORY);
    self.reserved = data;
    size_t bytes = (size_t)pages * PAGE;
    if (pages >= PAGE || (bytes && mprotect(data, bytes, PROT_READ | PROT_WRITE) != 0))
        jump_back(STOP_TRAP, TRAP_MEMORY);
    return data;
}

static int on_grow(void *data, unsigned pages, unsigned more) {
    uint8_t *end = (uint8_t *)data + (size_t)pages * PAGE;
    if ((uint64_t)pages + more >= PAGE) return 0;
    if (more && mprotect(end, (size_t)more * PAGE, PROT_READ | PROT_WRITE) != 0)
        jump_back(STOP_TRAP, TRAP_MEMORY);
    return 1;
}

static void on_release(void *data) {
    if (data) (void)munmap(data, RESERVED_BYTES);
    if (data == self.reserved) self.reserved = NULL;
}

static const struct host host = {on_import, on_trap, on_reserve, on_grow, on_release};

static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    uint8_t *at = info->si_addr;
    bool is_memory = self.reserved && at >= self.reserved && at < self.reserved + RESERVED_BYTES;
    if (!stop.is_armed) _Exit(EXIT_FAILURE);
    jump_back(STOP_TRAP, is_memory ? TRAP_OOB : TRAP_EXHAUSTION);
}

/* --- loading --- */

static bool find(void *object, const char *name, void *out) {
    void *symbol = dlsym(object, name);
    memcpy(out, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool find_circom_2(void *object) {
    (void)find(object, "Z_calculatorZ_getInputSignalSize", &calls.signal_size);
    (void)find(object, "Z_calculatorZ_getMessageChar", &calls.message_char);
    return find(object, "Z_calculatorZ_memory", &calls.memory) &&
           find(object, "Z_calculatorZ_getVersion", &calls.get_version) &&
           find(object, "Z_calculatorZ_getSharedRWMemoryStart", &calls.rw_start) &&
           find(object, "Z_calculatorZ_getFieldNumLen32", &calls.field_words) &&
           find(object, "Z_calculatorZ_getRawPrime", &calls.raw_prime) &&
           find(object, "Z_calculatorZ_getWitnessSize", &calls.witness_size) &&
           find(object, "Z_calculatorZ_getInputSize", &calls.input_size) &&
           find(object, "Z_calculatorZ_getWitness", &calls.get_witness) &&
           find(object, "Z_calculatorZ_setInputSignal", &calls.set_input);
}

static bool find_circom_1(void *object) {
    return find(object, "Z_calculatorZ_getNVars", &calls.n_vars) &&
           find(object, "Z_calculatorZ_getFrLen", &calls.fr_len) &&
           find(object, "Z_calculatorZ_getPRawPrime", &calls.p_raw_prime) &&
           find(object, "Z_calculatorZ_getSignalOffset32", &calls.signal_offset) &&
           find(object, "Z_calculatorZ_setSignal", &calls.set_signal) &&
           find(object, "Z_calculatorZ_getWitnessBuffer", &calls.witness_buffer);
}

static bool find_glue(void *object) {
    const unsigned *version = NULL;
    return find(object, "proverq_glue_version", &version) && *version == GLUE_VERSION &&
           find(object, "proverq_begin", &calls.begin) &&
           find(object, "proverq_instantiate", &calls.instantiate) &&
           find(object, "proverq_free", &calls.free_instance) &&
           find(object, "proverq_env_memory", &calls.env_memory);
}

/* Faults of the calculator are caught on another stack: its calls may have used up its own. */
static enum err catch_faults(struct error *error) {
    stack_t stack = {.ss_size = SIGNAL_STACK_BYTES, .ss_sp = malloc(SIGNAL_STACK_BYTES)};
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK, .sa_sigaction = on_fault};
    if (!stack.ss_sp || sigaltstack(&stack, NULL) != 0 || sigaction(SIGSEGV, &action, NULL) != 0 ||
        sigaction(SIGBUS, &action, NULL) != 0)
        return error_set(error, ERR_INTERNAL, "faults of the calculator cannot be caught");
    return ERR_NONE;
}

enum err wasm_load(const char *path, struct error *error) {
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return error_set(error, ERR_FORMAT, "the compiled calculator cannot be loaded: %.300s",
                         dlerror());
    if (!find_glue(object))
        return error_set(error, ERR_FORMAT,
                         "the compiled calculator is of another version of proverq; add the "
                         "circuit again: proverq circuit add");
    if (!find(object, "Z_calculatorZ_init", &calls.init) ||
        (!find_circom_2(object) && !find_circom_1(object)))
        return error_set(error, ERR_UNSUPPORTED,
                         "the .wasm is no witness calculator of circom 1 or 2 (it lacks their "
                         "functions)");
    self.facts.abi = !calls.rw_start || !calls.set_input ? WASM_CIRCOM_1
                     : calls.signal_size                 ? WASM_CIRCOM_2
                                                         : WASM_CIRCOM_2_FIRST;
    return catch_faults(error);
}

/* --- instances --- */

static void begin_step(void *argument) {
    (void)argument;
    if (!self.has_begun) calls.begin(&host);
    self.has_begun = true;
    self.instance = calls.instantiate();
    self.memory = calls.env_memory();
    if (!self.memory && calls.memory) self.memory = calls.memory(self.instance);
}

static enum err begin_instance(struct error *error) {
    self.instance = NULL;
    self.memory = NULL;
    if (!attempt(begin_step, NULL)) return stopped(error);
    if (!self.memory || !self.memory->data)
        return error_set(error, ERR_UNSUPPORTED, "the calculator has no memory");
    return ERR_NONE;
}

static void free_step(void *argument) {
    (void)argument;
    calls.free_instance();
}

static void end_instance(void) {
    if (self.instance) (void)attempt(free_step, NULL);
    if (self.reserved) on_release(self.reserved); /* it stopped before it was an instance */
    self.instance = NULL;
    self.memory = NULL;
}

/* `n` bytes of the instance's memory, or NULL. */
static uint8_t *memory_at(uint32_t address, uint64_t n) {
    return address + n <= self.memory->size ? self.memory->data + address : NULL;
}

/* The same in a step, which stops without it. */
static uint8_t *needed(uint32_t address, uint64_t n) {
    uint8_t *at = memory_at(address, n);
    if (at) return at;
    jump_back(STOP_TRAP, TRAP_OOB);
}

static uint32_t read_u32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t read_u64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void write_u32(uint8_t *at, uint32_t value) {
    memcpy(at, &value, sizeof value);
}

/* --- facts --- */

struct raw_facts {
    uint32_t words, n_vars, n_inputs, prime; /* prime: its address */
};

static void facts_2_step(void *argument) {
    struct raw_facts *raw = argument;
    raw->words = calls.field_words(self.instance);
    raw->n_vars = calls.witness_size(self.instance);
    raw->n_inputs = calls.input_size(self.instance);
    calls.raw_prime(self.instance);
    raw->prime = calls.rw_start(self.instance);
}

/* circom 1's field elements are a small number, a type, and the words. */
static void facts_1_step(void *argument) {
    struct raw_facts *raw = argument;
    raw->words = calls.fr_len(self.instance) / 4 - 2;
    raw->n_vars = calls.n_vars(self.instance);
    raw->n_inputs = WASM_INPUTS_UNKNOWN;
    raw->prime = calls.p_raw_prime(self.instance);
}

/* Whether an entry of a hash table with open addressing would be found: it is at its slot, or all
 * slots before it are taken. */
static bool is_reachable(const uint8_t *table, size_t entry_bytes, size_t slot) {
    uint64_t hash = read_u64(table + slot * entry_bytes);
    for (size_t at = hash % WASM_INPUTS_MAX; at != slot; at = (at + 1) % WASM_INPUTS_MAX)
        if (read_u64(table + at * entry_bytes) == 0) return false;
    return true;
}

static int by_position(const void *a, const void *b) {
    const struct wasm_input *x = a, *y = b;
    return (x->position > y->position) - (x->position < y->position);
}

/* circom 2's table of input signals: 256 slots of a hash, a position and, in today's interface, a
 * size; the first versions have none, but the positions follow each other. */
static bool read_table(const uint8_t *table, size_t entry_bytes) {
    uint64_t total = 0;
    size_t n = 0;
    for (size_t slot = 0; slot < WASM_INPUTS_MAX; slot++) {
        const uint8_t *entry = table + slot * entry_bytes;
        if (read_u64(entry) == 0) continue;
        if (!is_reachable(table, entry_bytes, slot)) return false;
        self.inputs[n++] = (struct wasm_input){read_u64(entry), read_u32(entry + 8),
                                               entry_bytes == 16 ? read_u32(entry + 12) : 0};
    }
    sort(self.inputs, n, sizeof *self.inputs, by_position);
    for (size_t i = 0; i < n; i++) {
        struct wasm_input *input = &self.inputs[i];
        uint64_t end =
            i + 1 < n ? input[1].position : (uint64_t)self.inputs[0].position + self.facts.n_inputs;
        if (entry_bytes == 12) input->size = (uint32_t)(end - input->position);
        if (input->position + (uint64_t)input->size != end || input->size == 0) return false;
        total += input->size;
    }
    self.n_known = n;
    return total == self.facts.n_inputs;
}

/* The table comes soon after the memory through which values are exchanged. */
static void find_table(void) {
    enum { NEAR = 512 };
    size_t entry_bytes = self.facts.abi == WASM_CIRCOM_2 ? 16 : 12;
    uint32_t start = calls.rw_start(self.instance);
    for (uint32_t at = start; at < start + NEAR; at += 4) {
        const uint8_t *table = memory_at(at, WASM_INPUTS_MAX * entry_bytes);
        if (table && self.facts.n_inputs && read_table(table, entry_bytes)) return;
    }
    self.n_known = 0;
}

static void find_table_step(void *argument) {
    (void)argument;
    find_table();
}

static enum err read_facts(struct error *error) {
    struct raw_facts raw = {0};
    bool is_1 = self.facts.abi == WASM_CIRCOM_1;
    if (!attempt(is_1 ? facts_1_step : facts_2_step, &raw)) return stopped(error);
    if (raw.words != WORDS)
        return error_set(error, ERR_UNSUPPORTED,
                         "the calculator's field has %u bits; known are those of BN254 and "
                         "BLS12-381",
                         raw.words * 32);
    const uint8_t *prime = memory_at(raw.prime, SCALAR_BYTES);
    if (!prime || prime[SCALAR_BYTES - 1] == 0)
        return error_set(error, ERR_FORMAT, "the calculator gives no prime");
    memcpy(self.facts.prime, prime, SCALAR_BYTES);
    self.facts.n_vars = raw.n_vars;
    self.facts.n_inputs = raw.n_inputs;
    if (!is_1 && !attempt(find_table_step, NULL)) return stopped(error);
    return ERR_NONE;
}

enum err wasm_facts(struct wasm_facts *out, struct error *error) {
    enum err rc;
    TRY(begin_instance(error));
    TRY(read_facts(error));
    *out = self.facts;
fail:
    end_instance();
    return rc;
}

static const struct wasm_input *known(uint64_t hash) {
    for (size_t i = 0; i < self.n_known; i++)
        if (self.inputs[i].hash == hash) return &self.inputs[i];
    return NULL;
}

size_t wasm_inputs(const struct wasm_input **out) {
    *out = self.inputs;
    return self.n_known;
}

/* --- counts --- */

static enum err unknown_signal(const struct input *signal, struct error *error) {
    return error_set(error, ERR_INPUT, "signal \"%.100s\" is no input of the circuit",
                     signal->name);
}

static enum err wrong_size(const struct input *signal, uint32_t size, struct error *error) {
    return error_set(error, ERR_INPUT, "signal \"%.100s\" has %zu values; the circuit takes %u",
                     signal->name, signal->n, size);
}

static bool is_given(const struct inputs *inputs, uint64_t hash) {
    for (size_t i = 0; i < inputs->n; i++)
        if (inputs->signals[i].hash == hash) return true;
    return false;
}

/* The names of the signals that were given, as far as they fit. */
static const char *names(const struct inputs *inputs, char *out, size_t size) {
    size_t used = 0;
    (void)snprintf(out, size, "none");
    for (size_t i = 0; i < inputs->n && used + 8 < size; i++) {
        int n = snprintf(out + used, size - used, "%s%s", i ? ", " : "", inputs->signals[i].name);
        if (n < 0) break;
        used += (size_t)n;
    }
    return out;
}

static enum err missing(const struct inputs *inputs, struct error *error) {
    char given[200];
    for (size_t i = 0; i < self.n_known; i++)
        if (!is_given(inputs, self.inputs[i].hash))
            return error_set(error, ERR_INPUT,
                             "an input signal is missing: the circuit's input number %zu of %zu, "
                             "with %u value(s); given are: %s",
                             i + 1, self.n_known, self.inputs[i].size,
                             names(inputs, given, sizeof given));
    return error_set(error, ERR_INPUT, "%zu of the circuit's %u input values are given: %s",
                     inputs->n_values, self.facts.n_inputs, names(inputs, given, sizeof given));
}

struct size_query {
    uint64_t hash;
    uint32_t size;
};

static void signal_size_step(void *argument) {
    struct size_query *query = argument;
    query->size =
        calls.signal_size(self.instance, (uint32_t)(query->hash >> 32), (uint32_t)query->hash);
}

/* By the table; without one, by what the calculator says. */
static enum err check_signal(const struct input *signal, struct error *error) {
    const struct wasm_input *input = known(signal->hash);
    struct size_query query = {.hash = signal->hash};
    if (self.n_known > 0) {
        if (!input) return unknown_signal(signal, error);
        return signal->n == input->size ? ERR_NONE : wrong_size(signal, input->size, error);
    }
    if (!calls.signal_size) return ERR_NONE;
    if (!attempt(signal_size_step, &query) || query.size == 0 || query.size > INT32_MAX)
        return unknown_signal(signal, error);
    return signal->n == query.size ? ERR_NONE : wrong_size(signal, query.size, error);
}

static enum err check_counts(const struct inputs *inputs, struct error *error) {
    enum err rc = ERR_NONE;
    for (size_t i = 0; i < inputs->n; i++)
        TRY(check_signal(&inputs->signals[i], error));
    if (inputs->n_values != self.facts.n_inputs) TRY(missing(inputs, error));
fail:
    return rc;
}

/* --- circom 2 --- */

struct setting {
    const struct input *signal;
    uint32_t at;
};

static void set_input_step(void *argument) {
    struct setting *setting = argument;
    const struct input *signal = setting->signal;
    for (size_t i = 0; i < signal->n; i++) {
        uint8_t *shared = needed(calls.rw_start(self.instance), SCALAR_BYTES);
        memcpy(shared, signal->values[i].le, SCALAR_BYTES);
        setting->at = (uint32_t)i;
        calls.set_input(self.instance, (uint32_t)(signal->hash >> 32), (uint32_t)signal->hash,
                        (uint32_t)i);
    }
}

/* Setting the last one computes the witness. */
static enum err set_inputs_2(const struct inputs *inputs, struct error *error) {
    for (size_t i = 0; i < inputs->n; i++) {
        struct setting setting = {.signal = &inputs->signals[i]};
        if (attempt(set_input_step, &setting)) continue;
        enum err rc = stopped(error);
        bool is_signal = stop.kind == STOP_EXCEPTION && stop.code != 4 && stop.code != 5;
        if (is_signal)
            return error_prefix(error, "signal \"%.100s\", value %u", setting.signal->name,
                                setting.at);
        return rc;
    }
    return ERR_NONE;
}

static void init_step(void *argument) {
    (void)argument;
    calls.init(self.instance, 0);
}

static void read_witness_2_step(void *argument) {
    uint8_t *out = argument;
    for (uint32_t i = 0; i < self.facts.n_vars; i++, out += SCALAR_BYTES) {
        calls.get_witness(self.instance, i);
        const uint8_t *shared = needed(calls.rw_start(self.instance), SCALAR_BYTES);
        memcpy(out, shared, SCALAR_BYTES);
    }
}

static enum err compute_2(const struct inputs *inputs, uint8_t *values, struct error *error) {
    enum err rc;
    TRY(check_counts(inputs, error));
    TRY(set_inputs_2(inputs, error));
    if (!attempt(read_witness_2_step, values)) TRY(stopped(error));
fail:
    return rc;
}

/* --- circom 1 ---
 *
 * A signal is an offset, and nothing tells its size, which signals are inputs, or how many there are.
 * But the main component has a counter of the inputs that it lacks: each set lowers it, and the
 * component computes when it is 0, and makes it 0 - 1. Where it is in memory is found by setting
 * one signal and looking what was lowered. */

struct place { /* a signal's value */
    const struct input *signal;
    uint32_t at, offset;
};

/* The calculator's free memory begins where its first word says; what we take is ours. */
static enum err take_scratch(struct error *error) {
    enum { SCRATCH_BYTES = 64 };
    uint8_t *bottom = memory_at(0, 4);
    if (!bottom) return error_set(error, ERR_CALCULATOR, "the calculator has no memory");
    self.scratch = (read_u32(bottom) + 7) & ~7u;
    write_u32(bottom, self.scratch + SCRATCH_BYTES);
    return ERR_NONE;
}

static void offset_step(void *argument) {
    struct size_query *query = argument;
    calls.signal_offset(self.instance, self.scratch, 0, (uint32_t)(query->hash >> 32),
                        (uint32_t)query->hash);
    const uint8_t *found = needed(self.scratch, 4);
    query->size = read_u32(found);
}

/* Numbers of 31 bits and a sign have a short form. */
static bool short_form(const struct scalar *value, uint32_t *out) {
    uint8_t negated[SCALAR_BYTES];
    unsigned borrow = 0;
    for (size_t i = 0; i < SCALAR_BYTES; i++) {
        int t = (int)self.facts.prime[i] - (int)value->le[i] - (int)borrow;
        negated[i] = (uint8_t)t;
        borrow = t < 0;
    }
    bool is_small = le_is_zero(value->le + 4, SCALAR_BYTES - 4);
    bool is_small_negative = le_is_zero(negated + 4, SCALAR_BYTES - 4);
    uint32_t positive = read_u32(value->le), negative = read_u32(negated);
    *out = is_small ? positive : 0u - negative;
    return (is_small && positive <= INT32_MAX) ||
           (is_small_negative && negative <= (uint32_t)INT32_MAX + 1);
}

static void set_signal_step(void *argument) {
    const struct place *place = argument;
    const struct scalar *value = &place->signal->values[place->at];
    uint32_t number, address = self.scratch + 8;
    uint8_t *element = needed(address, 8 + SCALAR_BYTES);
    bool is_short = short_form(value, &number);
    write_u32(element, is_short ? number : 0);
    write_u32(element + 4, is_short ? 0 : UINT32_C(0x80000000));
    memcpy(element + 8, value->le, SCALAR_BYTES);
    calls.set_signal(self.instance, 0, 0, place->offset, address);
}

static bool set_place(struct place *place) {
    return attempt(set_signal_step, place);
}

static enum err find_places(const struct inputs *inputs, struct place *places,
                            struct error *error) {
    for (size_t i = 0; i < inputs->n; i++) {
        const struct input *signal = &inputs->signals[i];
        struct size_query query = {.hash = signal->hash};
        if (!attempt(offset_step, &query)) return unknown_signal(signal, error);
        for (uint32_t at = 0; at < signal->n; at++)
            *places++ = (struct place){signal, at, query.size + at};
    }
    return ERR_NONE;
}

static int by_offset(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    if (x->offset != y->offset) return x->offset > y->offset ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Values of two signals at one place: the earlier signal is too long. */
static enum err check_overlaps(const struct place *places, size_t n, struct error *error) {
    for (size_t i = 0; i + 1 < n; i++) {
        const struct place *one = &places[i], *other = &places[i + 1];
        if (one->offset != other->offset) continue;
        const struct place *longer = one->at > other->at ? one : other;
        return wrong_size(longer->signal, longer->at, error);
    }
    return ERR_NONE;
}

static uint32_t counter(void) {
    const uint8_t *at = memory_at(self.counter, 4);
    return at ? read_u32(at) : 0;
}

/* Looks in the `n` bytes of memory that `before` is a copy of for a number that became one less, or
 * was 1 and became 0 - 1. */
static bool find_lowered(const uint8_t *before, uint32_t n) {
    for (uint32_t at = 0; at + 4 <= n; at += 4) {
        uint32_t old = read_u32(before + at), now = read_u32(self.memory->data + at);
        if (old == 0 || old == now || (now != old - 1 && !(old == 1 && now == UINT32_MAX)))
            continue;
        self.counter = at;
        self.facts.n_inputs = old;
        return true;
    }
    return false;
}

/* Sets the place in an instance that is thrown away; its value is a number that no counter was
 * before. Not found: it is no input. */
static enum err find_counter(const struct place *place, bool *found, struct error *error) {
    static const struct scalar five = {{5}};
    struct input signal = {.values = &five, .n = 1};
    struct place probe = {&signal, 0, place->offset};
    uint8_t *before = NULL;
    enum err rc;
    *found = false;
    TRY(begin_instance(error));
    if (!attempt(init_step, NULL)) TRY(stopped(error));
    TRY(take_scratch(error));
    uint32_t n = self.scratch < self.memory->size ? self.scratch : 0;
    before = malloc(n ? n : 1);
    if (!before) TRY(error_set(error, ERR_HOST_MEMORY, "out of memory"));
    memcpy(before, self.memory->data, n);
    (void)set_place(&probe); /* it may compute, and not like it */
    *found = find_lowered(before, n);
fail:
    free(before);
    end_instance();
    return rc;
}

static enum err missing_1(const struct place *places, size_t n, struct error *error) {
    for (size_t i = 0; i + 1 < n; i++)
        if (places[i].offset + 1 < places[i + 1].offset)
            return error_set(
                error, ERR_INPUT,
                "%u of the circuit's %u input values are missing: signal \"%.80s\" has "
                "%u value(s), and before signal \"%.80s\" the circuit has %u more",
                counter(), self.facts.n_inputs, places[i].signal->name, places[i].at + 1,
                places[i + 1].signal->name, places[i + 1].offset - places[i].offset - 1);
    return error_set(error, ERR_INPUT,
                     "%u of the circuit's %u input values are missing, before signal \"%.80s\" or "
                     "after the %u value(s) of signal \"%.80s\"",
                     counter(), self.facts.n_inputs, places[0].signal->name, places[n - 1].at + 1,
                     places[n - 1].signal->name);
}

static enum err set_inputs_1(struct place *places, size_t n, struct error *error) {
    for (size_t i = 0; i < n; i++) {
        uint32_t lacking = counter();
        if (!set_place(&places[i])) return stopped(error);
        if (counter() != lacking) continue;
        return places[i].at ? wrong_size(places[i].signal, places[i].at, error)
                            : unknown_signal(places[i].signal, error);
    }
    return counter() == UINT32_MAX ? ERR_NONE : missing_1(places, n, error);
}

struct reading_1 {
    uint8_t *out;
    bool is_whole;
};

static void read_witness_1_step(void *argument) {
    struct reading_1 *reading = argument;
    uint64_t bytes = (uint64_t)self.facts.n_vars * SCALAR_BYTES;
    const uint8_t *values = memory_at(calls.witness_buffer(self.instance), bytes);
    reading->is_whole = values != NULL;
    if (values) memcpy(reading->out, values, bytes);
}

static enum err set_all_1(const struct inputs *inputs, struct place *places, struct error *error) {
    size_t n = inputs->n_values;
    bool found = self.counter != 0;
    enum err rc;
    TRY(take_scratch(error));
    TRY(find_places(inputs, places, error));
    sort(places, n, sizeof *places, by_offset);
    TRY(check_overlaps(places, n, error));
    if (!found) {
        end_instance();
        TRY(find_counter(&places[0], &found, error));
        if (!found) TRY(unknown_signal(places[0].signal, error));
        TRY(begin_instance(error));
        if (!attempt(init_step, NULL)) TRY(stopped(error));
        TRY(take_scratch(error));
    }
    TRY(set_inputs_1(places, n, error));
fail:
    return rc;
}

static enum err compute_1(const struct inputs *inputs, uint8_t *values, struct error *error) {
    size_t n = inputs->n_values;
    struct place *places = calloc(n ? n : 1, sizeof *places);
    struct reading_1 reading = {NULL, false};
    enum err rc;
    if (!places) return error_set(error, ERR_HOST_MEMORY, "out of memory");
    if (n == 0) TRY(error_set(error, ERR_INPUT, "the input signals are missing: none is given"));
    TRY(set_all_1(inputs, places, error));
    reading.out = values;
    if (!attempt(read_witness_1_step, &reading)) TRY(stopped(error));
    if (!reading.is_whole)
        TRY(error_set(error, ERR_CALCULATOR, "the calculator's witness is not in its memory"));
fail:
    free(places);
    return rc;
}

/* --- the witness --- */

static void put_u32(uint8_t **at, uint32_t value) {
    write_u32(*at, value);
    *at += 4;
}

static void put_u64(uint8_t **at, uint64_t value) {
    memcpy(*at, &value, sizeof value);
    *at += 8;
}

/* The head of a .wtns file of version 2; little-endian hosts only, as all of wasm2c's output. */
static void put_head(uint8_t *at) {
    memcpy(at, "wtns", 4);
    at += 4;
    put_u32(&at, 2); /* version */
    put_u32(&at, 2); /* sections */
    put_u32(&at, 1);
    put_u64(&at, 8 + SCALAR_BYTES);
    put_u32(&at, SCALAR_BYTES);
    memcpy(at, self.facts.prime, SCALAR_BYTES);
    at += SCALAR_BYTES;
    put_u32(&at, self.facts.n_vars);
    put_u32(&at, 2);
    put_u64(&at, (uint64_t)self.facts.n_vars * SCALAR_BYTES);
}

enum err wasm_compute(const struct inputs *inputs, uint8_t *wtns, size_t capacity, size_t *used,
                      struct error *error) {
    uint64_t bytes = WTNS_HEAD_BYTES + (uint64_t)self.facts.n_vars * SCALAR_BYTES;
    enum err rc;
    if (bytes > capacity)
        return error_set(error, ERR_MISMATCH,
                         "the calculator's witness has %u values, more than the circuit's",
                         self.facts.n_vars);
    TRY(begin_instance(error));
    if (!attempt(init_step, NULL)) TRY(stopped(error));
    put_head(wtns);
    if (self.facts.abi == WASM_CIRCOM_1)
        TRY(compute_1(inputs, wtns + WTNS_HEAD_BYTES, error));
    else
        TRY(compute_2(inputs, wtns + WTNS_HEAD_BYTES, error));
    *used = (size_t)bytes;
fail:
    end_instance();
    return rc;
}
