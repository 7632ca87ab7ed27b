/* The queue without proofs: the statements of a prover, on partitions for which nothing is proved.
 *
 *     bench_queue drain PROVERS IN_HAND ROWS   claims and records all that is ready; prints partitions and seconds
 *     bench_queue latency COUNT                from the insert of a job to its claim by a prover that waits; prints ms
 *     bench_queue claim COUNT bounds|full      claims one partition after the other; prints ms
 *
 * The connection string is PROVERQ_DATABASE. A prover is two threads with a connection each, as in the
 * service: one claims as many partitions as have room, at most ROWS at a time and IN_HAND in hand, the
 * other records what has come meanwhile, at most 64 in a transaction. With IN_HAND 1 it is one thread:
 * a claim, its result, the next claim. Each partition gets a real proof and TIMED_STEPS timing rows.
 * Claims of the only prover must come in order. bench_queue.sh checks the tables.
 */
#include "gpu/monotonic.h"
#include "service/prover/claims.h"
#include "service/prover/timing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TIMED_STEPS = 8, BATCH = 64, IN_HAND_MAX = 256, LEASE_MS = 60000, PROVERS_MAX = 64 };

static const struct db_statement complete = {"complete", "LIUJJXISSZL", "i"};
static const struct db_statement prover_register = {"prover_register", "utittt", "i"};
static const struct db_statement prover_idle = {"prover_idle", "ib", ""};
static const struct db_statement *const statements[] = {&claims_statement, &complete,
                                                        &prover_register, &prover_idle};

static char *proof, *publics; /* as snarkjs writes them */

static void die(const char *what, const struct error *error) {
    fprintf(stderr, "bench_queue: %s%s%s\n", what, error ? ": " : "", error ? error->text : "");
    exit(EXIT_FAILURE);
}

static void *need(void *memory) {
    if (!memory) die("out of memory", NULL);
    return memory;
}

static char *read_file(const char *path) {
    FILE *file = fopen(path, "re");
    char *text = need(calloc(1, 16384));
    if (!file || fread(text, 1, 16383, file) == 0) die(path, NULL);
    (void)fclose(file);
    return text;
}

/* --- a prover --- */

struct item {
    int64_t job;
    int32_t partition;
    struct uuid token;
};

struct prover {
    int32_t id;
    struct db *db, *record_db, *listen_db;
    struct claims claims;
    int rows, in_hand_max;
    long proved;
    pthread_t thread, recorder;

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct item queued[IN_HAND_MAX]; /* claimed, to be recorded */
    int n_queued, in_hand;
    struct item last; /* claimed */
    bool is_over;
};

static struct db *connect_db(void) {
    struct error error;
    struct db *db;
    const char *conninfo = getenv("PROVERQ_DATABASE");
    struct db_settings settings = {.conninfo = conninfo ? conninfo : "",
                                   .application = "bench_queue",
                                   .statement_timeout_ms = DB_STATEMENT_TIMEOUT_MS,
                                   .lock_timeout_ms = DB_LOCK_TIMEOUT_MS,
                                   .statements = statements,
                                   .n_statements = sizeof statements / sizeof *statements};
    if (db_open(&settings, &db, &error) != ERR_NONE) die("no connection", &error);
    return db;
}

static void prover_open(struct prover *prover, int in_hand, int rows) {
    struct error error;
    struct uuid instance;
    struct db_result *result;
    memset(prover, 0, sizeof *prover);
    prover->last.partition = -1;
    prover->db = connect_db();
    prover->record_db = connect_db();
    prover->rows = rows;
    prover->in_hand_max = in_hand;
    pthread_mutex_init(&prover->mutex, NULL);
    pthread_cond_init(&prover->changed, NULL);
    if (uuid_random(&instance, &error) != ERR_NONE ||
        db_run(prover->db, &prover_register,
               DB_PARAMS(db_uuid(&instance), db_text("bench"), db_int(getpid()), db_text("cpu"),
                         db_text(""), db_text("")),
               &result, &error) != ERR_NONE)
        die("a prover cannot be registered", &error);
    prover->id = (int32_t)db_get_int(result, 0, 0);
    db_free(result);
}

static void prover_close(struct prover *prover) {
    db_close(prover->db);
    db_close(prover->record_db);
    pthread_cond_destroy(&prover->changed);
    pthread_mutex_destroy(&prover->mutex);
}

static bool is_alone; /* one prover, so that the order of its claims is that of all */

static bool is_before(const struct item *a, const struct item *b) {
    return a->job < b->job || (a->job == b->job && a->partition < b->partition);
}

/* Claims at most BATCH partitions of the circuit 1, the only one. */
static int claim_rows(struct prover *prover, int rows, struct item *out) {
    static const int64_t circuit = 1;
    struct claims_wish wish = {prover->id, &circuit, 1, LEASE_MS, rows, false};
    struct db_result *result;
    struct error error;
    if (claims_take(&prover->claims, prover->db, &wish, &result, &error) != ERR_NONE)
        die("claim", &error);
    int n = db_rows(result);
    for (int i = 0; i < n; i++) {
        out[i] = (struct item){db_get_int(result, i, 0), (int32_t)db_get_int(result, i, 1),
                               db_get_uuid(result, i, 3)};
        if (is_alone && !is_before(&prover->last, &out[i])) die("a claim out of order", NULL);
        prover->last = out[i];
    }
    db_free(result);
    return n;
}

struct steps {
    int16_t steps[BATCH * TIMED_STEPS], workers[BATCH * TIMED_STEPS];
    int64_t started_us[BATCH * TIMED_STEPS], durations_us[BATCH * TIMED_STEPS];
};

/* The steps of a witness from a file on a GPU. */
static void fill_steps(struct steps *out, int n) {
    static const enum step steps[TIMED_STEPS] = {
        STEP_CLAIM,       STEP_READ_WITNESS, STEP_CHECK_WITNESS, STEP_QUEUE_WAIT,
        STEP_DEVICE_WAIT, STEP_FINISH,       STEP_VERIFY,        STEP_RECORD};
    int64_t now = timing_to_us(monotonic_ns(), timing_wall_offset());
    for (int i = 0; i < n * TIMED_STEPS; i++) {
        out->steps[i] = (int16_t)steps[i % TIMED_STEPS];
        out->workers[i] = (int16_t)(10 * (i % TIMED_STEPS));
        out->started_us[i] = now + i;
        out->durations_us[i] = 100 + i;
    }
}

static void record(struct db *db, const struct item *items, int n) {
    int64_t jobs[BATCH];
    int32_t partitions[BATCH], first[BATCH];
    struct uuid tokens[BATCH];
    struct db_item proofs[BATCH], all_publics[BATCH], compressed[BATCH];
    struct db_result *result;
    struct error error;
    struct steps s;
    size_t count = (size_t)n, timed = count * TIMED_STEPS;
    fill_steps(&s, n);
    for (int i = 0; i < n; i++) {
        jobs[i] = items[i].job;
        partitions[i] = items[i].partition;
        tokens[i] = items[i].token;
        first[i] = 1 + i * TIMED_STEPS;
        proofs[i] = (struct db_item){proof, strlen(proof)};
        all_publics[i] = (struct db_item){publics, strlen(publics)};
        compressed[i] = (struct db_item){NULL, 0};
    }
    if (db_run(db, &complete,
               DB_PARAMS(db_int8_array(jobs, count), db_int4_array(partitions, count),
                         db_uuid_array(tokens, count), db_item_array(proofs, count),
                         db_item_array(all_publics, count), db_item_array(compressed, count),
                         db_int4_array(first, count), db_int2_array(s.steps, timed),
                         db_int2_array(s.workers, timed), db_time_array(s.started_us, timed),
                         db_int8_array(s.durations_us, timed)),
               &result, &error) != ERR_NONE)
        die("complete", &error);
    if (db_rows(result) != n) die("results were refused", NULL);
    db_free(result);
}

/* --- drain --- */

static void *record_main(void *arg) {
    struct prover *prover = arg;
    struct item items[BATCH];
    for (;;) {
        pthread_mutex_lock(&prover->mutex);
        while (prover->n_queued == 0 && !prover->is_over)
            pthread_cond_wait(&prover->changed, &prover->mutex);
        int n = prover->n_queued < BATCH ? prover->n_queued : BATCH;
        memcpy(items, prover->queued, (size_t)n * sizeof *items);
        prover->n_queued -= n;
        memmove(prover->queued, prover->queued + n, (size_t)prover->n_queued * sizeof *items);
        pthread_mutex_unlock(&prover->mutex);
        if (n == 0) return NULL;
        record(prover->record_db, items, n);
        pthread_mutex_lock(&prover->mutex);
        prover->proved += n;
        prover->in_hand -= n;
        pthread_cond_broadcast(&prover->changed);
        pthread_mutex_unlock(&prover->mutex);
    }
}

/* How many may be claimed; waits until it is one. */
static int wait_for_room(struct prover *prover) {
    pthread_mutex_lock(&prover->mutex);
    while (prover->in_hand == prover->in_hand_max)
        pthread_cond_wait(&prover->changed, &prover->mutex);
    int room = prover->in_hand_max - prover->in_hand;
    pthread_mutex_unlock(&prover->mutex);
    return room < prover->rows ? room : prover->rows;
}

static void hand_over(struct prover *prover, const struct item *items, int n) {
    pthread_mutex_lock(&prover->mutex);
    memcpy(prover->queued + prover->n_queued, items, (size_t)n * sizeof *items);
    prover->n_queued += n;
    prover->in_hand += n;
    prover->is_over = n == 0;
    pthread_cond_broadcast(&prover->changed);
    pthread_mutex_unlock(&prover->mutex);
}

static void drain_in_two_threads(struct prover *prover) {
    struct item items[BATCH];
    int n;
    if (pthread_create(&prover->recorder, NULL, record_main, prover) != 0) die("no thread", NULL);
    do {
        n = claim_rows(prover, wait_for_room(prover), items);
        hand_over(prover, items, n);
    } while (n > 0);
    pthread_join(prover->recorder, NULL);
}

static void *drain_main(void *arg) {
    struct prover *prover = arg;
    struct item item;
    if (prover->in_hand_max > 1) {
        drain_in_two_threads(prover);
        return NULL;
    }
    for (; claim_rows(prover, 1, &item) > 0; prover->proved++)
        record(prover->db, &item, 1);
    return NULL;
}

static void drain(int n, int in_hand, int rows) {
    struct prover *provers = need(calloc((size_t)n, sizeof *provers));
    long proved = 0;
    is_alone = n == 1;
    for (int i = 0; i < n; i++)
        prover_open(&provers[i], in_hand, rows);
    int64_t start = monotonic_ns();
    for (int i = 0; i < n; i++)
        if (pthread_create(&provers[i].thread, NULL, drain_main, &provers[i]) != 0)
            die("no thread", NULL);
    for (int i = 0; i < n; i++)
        pthread_join(provers[i].thread, NULL);
    double seconds = (double)(monotonic_ns() - start) / 1e9;
    for (int i = 0; i < n; i++) {
        proved += provers[i].proved;
        prover_close(&provers[i]);
    }
    free(provers);
    printf("%ld %.3f\n", proved, seconds);
}

/* --- latency --- */

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* p50, p99 and the longest, in milliseconds. */
static void print_percentiles(int64_t *ns, int n) {
    int middle = n / 2, late = (n - 1) * 99 / 100;
    qsort(ns, (size_t)n, sizeof *ns, by_value);
    printf("%.3f %.3f %.3f\n", (double)ns[middle] / 1e6, (double)ns[late] / 1e6,
           (double)ns[n - 1] / 1e6);
}

static _Atomic(int64_t) claimed_ns; /* when the last job was claimed; 0 until it is */
static atomic_bool is_stopping;

static void publish_idle(struct prover *prover, bool is_idle) {
    struct error error;
    if (db_run(prover->db, &prover_idle, DB_PARAMS(db_int(prover->id), db_int(is_idle)), NULL,
               &error) != ERR_NONE)
        die("idle", &error);
}

/* As the dispatcher: idle is published, then it scans, then it waits. */
static void *wait_main(void *arg) {
    struct prover *prover = arg;
    struct error error;
    struct item item;
    enum db_wake wake;
    bool is_idle = false;
    if (db_listen(prover->listen_db, "proverq_work", &error) != ERR_NONE) die("listen", &error);
    while (!atomic_load(&is_stopping)) {
        if (claim_rows(prover, 1, &item) > 0) {
            atomic_store(&claimed_ns, monotonic_ns());
            if (is_idle) publish_idle(prover, is_idle = false);
            record(prover->db, &item, 1);
        } else if (!is_idle) {
            publish_idle(prover, is_idle = true);
        } else if (db_wait(prover->listen_db, -1, 1000, &wake, &error) != ERR_NONE) {
            die("waiting", &error);
        }
    }
    return NULL;
}

static void latency(int count) {
    struct prover prover;
    struct error error;
    struct db *db = connect_db();
    int64_t *ns = need(calloc((size_t)count, sizeof *ns));
    prover_open(&prover, 1, 1);
    prover.listen_db = connect_db();
    if (pthread_create(&prover.thread, NULL, wait_main, &prover) != 0) die("no thread", NULL);
    for (int i = 0; i < count; i++) {
        (void)usleep(10000 + (unsigned)random() % 10000); /* until it waits again */
        atomic_store(&claimed_ns, 0);
        int64_t start = monotonic_ns();
        if (db_script(db, "enqueue", "select proverq.enqueue_path('bench', '{w.wtns}')", &error) !=
            ERR_NONE)
            die("enqueue", &error);
        while (!atomic_load(&claimed_ns))
            (void)usleep(20);
        ns[i] = atomic_load(&claimed_ns) - start;
    }
    atomic_store(&is_stopping, true);
    pthread_join(prover.thread, NULL);
    db_close(prover.listen_db);
    prover_close(&prover);
    db_close(db);
    print_percentiles(ns, count);
    free(ns);
}

/* --- claim --- */

/* `full`: as if there were no bounds. */
static void claim_latency(int count, bool full) {
    struct prover prover;
    struct item item;
    int64_t *ns = need(calloc((size_t)count, sizeof *ns));
    prover_open(&prover, 1, 1);
    for (int i = 0; i < count; i++) {
        if (full) prover.claims.n = 0;
        int64_t start = monotonic_ns();
        if (claim_rows(&prover, 1, &item) != 1) die("nothing is ready", NULL);
        ns[i] = monotonic_ns() - start;
    }
    prover_close(&prover);
    print_percentiles(ns, count);
    free(ns);
}

static int number(const char *text, int most) {
    long n = strtol(text, NULL, 10);
    if (n < 1 || n > most) die("a number is out of range", NULL);
    return (int)n;
}

int main(int argc, char **argv) {
    proof = read_file("tests/circuits/factor/proof.json");
    publics = read_file("tests/circuits/factor/public.json");
    if (argc == 5 && strcmp(argv[1], "drain") == 0)
        drain(number(argv[2], PROVERS_MAX), number(argv[3], IN_HAND_MAX), number(argv[4], BATCH));
    else if (argc == 3 && strcmp(argv[1], "latency") == 0)
        latency(number(argv[2], 1000000));
    else if (argc == 4 && strcmp(argv[1], "claim") == 0)
        claim_latency(number(argv[2], 1000000), strcmp(argv[3], "full") == 0);
    else
        die("usage: bench_queue drain PROVERS IN_HAND ROWS | latency COUNT | claim COUNT "
            "bounds|full",
            NULL);
    free(proof);
    free(publics);
    return EXIT_SUCCESS;
}
