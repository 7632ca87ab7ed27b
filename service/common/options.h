/* The command line: commands and options are tables, from which parsing, --help, the environment
 * variables and the test of the documentation come.
 *
 * A value comes from the command line, else from the environment (PROVERQ_ and the name in
 * capitals, with `_` for `-`: --cache-dir is PROVERQ_CACHE_DIR), else from the table. A list is
 * given by repeating the option, or in the environment with commas. Sizes take k, M, G (powers of
 * 1024), durations ms, s, m, h.
 */
#ifndef PROVERQ_OPTIONS_H
#define PROVERQ_OPTIONS_H

#include "gpu/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* X(id, words, arguments, fewest arguments, most arguments, help) */
#define COMMAND_TABLE(X)                                                                           \
    X(COMMAND_SERVE, "serve", "", 0, 0,                                                            \
      "run one prover per device and a finalizer on this machine, and restart them")               \
    X(COMMAND_PROVER, "prover", "", 0, 0, "run one prover on one device")                          \
    X(COMMAND_FINALIZER, "finalizer", "", 0, 0,                                                    \
      "run the process that completes jobs and delivers webhooks")                                 \
    X(COMMAND_MIGRATE_UP, "migrate up", "", 0, 0,                                                  \
      "bring the database's schema to the version of this program")                                \
    X(COMMAND_MIGRATE_DOWN, "migrate down", "VERSION", 1, 1,                                       \
      "take the schema back to VERSION; 0 removes it with everything in it")                       \
    X(COMMAND_MIGRATE_PLAN, "migrate plan", "[VERSION]", 0, 1,                                     \
      "print what `migrate up`, or `migrate down VERSION`, would do, and change nothing")          \
    X(COMMAND_MIGRATE_STATUS, "migrate status", "", 0, 0, "list the migrations and their state")   \
    X(COMMAND_MIGRATE_EXPORT, "migrate export", "DIR", 1, 1,                                       \
      "write the schema's migrations, functions and views for another migration tool")             \
    X(COMMAND_CIRCUIT_ADD, "circuit add", "NAME KEY.zkey", 2, 2,                                   \
      "check a proving key and add it as the newest version of circuit NAME")                      \
    X(COMMAND_CIRCUIT_LIST, "circuit list", "", 0, 0, "list the circuits")                         \
    X(COMMAND_CIRCUIT_SHOW, "circuit show", "NAME", 1, 1, "show one circuit in full")              \
    X(COMMAND_CIRCUIT_RM, "circuit rm", "NAME", 1, 1,                                              \
      "let no new job use the newest version of circuit NAME")                                     \
    X(COMMAND_LISTEN, "listen", "", 0, 0,                                                          \
      "receive webhooks on this machine and print them, for development")                          \
    X(COMMAND_PROVE, "prove", "KEY.zkey WITNESS.wtns PROOF.json PUBLIC.json", 4, 4,                \
      "prove one witness and check the proof; files only, no database")                            \
    X(COMMAND_VERIFY, "verify", "VKEY.json PUBLIC.json PROOF.json", 3, 3,                          \
      "verify one proof; the exit status is 0 only for a valid one")                               \
    X(COMMAND_VKEY, "vkey", "KEY.zkey", 1, 1,                                                      \
      "print the verification key of a proving key, as snarkjs does")                              \
    X(COMMAND_SETUP, "setup", "CIRCUIT.r1cs KEY.zkey", 2, 2,                                       \
      "make an INSECURE development key: whoever makes it could forge proofs")

enum command {
#define X(id, words, arguments, least, most, help) id,
    COMMAND_TABLE(X)
#undef X
        COMMAND_COUNT
};

/* Sets of commands, for the table below. */
#define FOR(command)       (1u << (command))
#define FOR_DAEMONS        (FOR(COMMAND_SERVE) | FOR(COMMAND_PROVER) | FOR(COMMAND_FINALIZER))
#define FOR_MIGRATE        (FOR_SCHEMA_CHANGES | FOR(COMMAND_MIGRATE_PLAN) | FOR(COMMAND_MIGRATE_STATUS))
#define FOR_SCHEMA_CHANGES (FOR(COMMAND_MIGRATE_UP) | FOR(COMMAND_MIGRATE_DOWN))
#define FOR_CIRCUIT                                                                                \
    (FOR(COMMAND_CIRCUIT_ADD) | FOR(COMMAND_CIRCUIT_LIST) | FOR(COMMAND_CIRCUIT_SHOW) |            \
     FOR(COMMAND_CIRCUIT_RM))
#define FOR_DATABASE  (FOR_DAEMONS | FOR_MIGRATE | FOR_CIRCUIT | FOR(COMMAND_LISTEN))
#define FOR_PROVERS   (FOR(COMMAND_SERVE) | FOR(COMMAND_PROVER))
#define FOR_FINALIZER (FOR(COMMAND_SERVE) | FOR(COMMAND_FINALIZER))
#define FOR_CHILDREN  (FOR(COMMAND_PROVER) | FOR(COMMAND_FINALIZER))

/* X(field, kind, name, argument, default, commands, help). The kind is the type of the field:
 *
 *     STRING     const char *
 *     CHOICE     const char *, one of the words of its argument
 *     FLAG       bool
 *     COUNT      uint32_t
 *     SIZE       uint64_t, bytes
 *     DURATION   uint32_t, milliseconds
 *     LIST       struct option_list
 */
#define OPTION_TABLE(X)                                                                            \
    X(database, STRING, "database", "CONNINFO", "", FOR_DATABASE,                                  \
      "connection string or URI of the database; what it leaves out comes from PG* variables")     \
    X(lock_wait_ms, DURATION, "lock-wait", "TIME", "1m", FOR_SCHEMA_CHANGES,                       \
      "how long to try for tables that others have in use; each try waits less than a second")     \
    X(format, CHOICE, "format", "golang-migrate|dbmate|node-pg-migrate|psql", "psql",              \
      FOR(COMMAND_MIGRATE_EXPORT), "the tool that is to run the files")                            \
    X(from, COUNT, "from", "N", "1", FOR(COMMAND_MIGRATE_EXPORT),                                  \
      "first version to export; those before it are in the database already")                      \
    X(start_number, STRING, "start-number", "M", "000001", FOR(COMMAND_MIGRATE_EXPORT),            \
      "number of the first file in your own sequence, with its zeros in front (001, "              \
      "20260131120000)")                                                                           \
    X(listen_database, STRING, "listen-database", "CONNINFO", "", FOR_DAEMONS,                     \
      "connection for LISTEN when --database goes through a pooler (default: --database)")         \
    X(log_level, CHOICE, "log-level", "error|warn|info|debug", "info", FOR_DAEMONS,                \
      "least important messages that are logged")                                                  \
    X(log_format, CHOICE, "log-format", "text|json", "text", FOR_DAEMONS,                          \
      "form of a log line on standard error")                                                      \
    X(log_timing, FLAG, "log-timing", NULL, NULL, FOR_DAEMONS,                                     \
      "log every timed step too (SYNTH_TIMING, GPU_TIMING, FIN_TIMING)")                           \
    X(devices, LIST, "device", "auto|cpu|cuda:N", "auto", FOR_PROVERS | FOR(COMMAND_PROVE),        \
      "device to prove on; `serve` takes several. auto: each CUDA device that works, else the "    \
      "CPU; CUDA takes BN254 only: `prove` falls back to the CPU, `serve` needs --device auto "    \
      "--device cpu")                                                                              \
    X(threads, COUNT, "threads", "N", "0", FOR_PROVERS | FOR(COMMAND_PROVE),                       \
      "CPU threads of a prover (0: one per core)")                                                 \
    X(cache_dir, STRING, "cache-dir", "DIR", "", FOR_PROVERS,                                      \
      "where keys from the database are kept (default: $CACHE_DIRECTORY, "                         \
      "$XDG_CACHE_HOME/proverq or ~/.cache/proverq)")                                              \
    X(witness_root, STRING, "witness-root", "DIR", "", FOR_PROVERS,                                \
      "directory that holds the witness files of enqueue_path (default: none are taken)")          \
    X(artefact_root, STRING, "artefact-root", "DIR", "", FOR_PROVERS | FOR(COMMAND_CIRCUIT_ADD),   \
      "directory that every host sees, for artefacts above --artefact-limit")                      \
    X(artefact_limit, SIZE, "artefact-limit", "SIZE", "1G", FOR(COMMAND_CIRCUIT_ADD),              \
      "largest artefact that is stored in the database")                                           \
    X(r1cs, STRING, "r1cs", "FILE", "", FOR(COMMAND_CIRCUIT_ADD),                                  \
      "the circuit's constraints, so that a bad witness is told which one it breaks")              \
    X(vkey, STRING, "vkey", "FILE", "", FOR(COMMAND_CIRCUIT_ADD),                                  \
      "the verification key that came with the proving key: they must belong together")            \
    X(wasm, STRING, "wasm", "FILE", "", FOR(COMMAND_CIRCUIT_ADD),                                  \
      "circom's witness calculator: the circuit then takes inputs; needs wasm2c and a C compiler") \
    X(sym, STRING, "sym", "FILE", "", FOR(COMMAND_CIRCUIT_ADD),                                    \
      "circom's .sym file: wrong inputs are then told by the names of their signals")              \
    X(calculator, STRING, "calculator", "PROGRAM", "", FOR(COMMAND_CIRCUIT_ADD),                   \
      "circom's C++ witness calculator, with PROGRAM.dat beside it, instead of --wasm")            \
    X(synthesis_timeout_ms, DURATION, "synthesis-timeout", "TIME", "5m",                           \
      FOR_PROVERS | FOR(COMMAND_CIRCUIT_ADD), "longest time that computing one witness may take")  \
    X(synthesis_memory, SIZE, "synthesis-memory", "SIZE", "4G",                                    \
      FOR_PROVERS | FOR(COMMAND_CIRCUIT_ADD), "memory that one witness calculator may use")        \
    X(synthesis_threads, COUNT, "synthesis-threads", "N", "0", FOR_PROVERS,                        \
      "witnesses that are computed at once (0: one per core, or as --threads says)")               \
    X(host_memory, SIZE, "host-memory", "SIZE", "0", FOR_PROVERS,                                  \
      "memory for witnesses, and on the CPU for keys and proofs; `serve` divides it among its "    \
      "provers (0: half of the machine's)")                                                        \
    X(device_memory, SIZE, "device-memory", "SIZE", "0", FOR_PROVERS,                              \
      "memory of each device for keys and proofs; keys that do not fit take turns (0: all that "   \
      "there is; on the CPU three quarters of --host-memory)")                                     \
    X(group_claims, COUNT, "group-claims", "N", "0", FOR_PROVERS,                                  \
      "claim N partitions (at most 32) at a time and prove those of a circuit together; for "      \
      "circuits that alternate but whose keys do not fit on the device at once (0: strict order)") \
    X(lease_ms, DURATION, "lease", "TIME", "30s", FOR_PROVERS,                                     \
      "time after which the work of a prover that died is given to another")                       \
    X(poll_ms, DURATION, "poll", "TIME", "1s", FOR_DAEMONS,                                        \
      "longest time between two looks for work when nothing is notified")                          \
    X(instance, STRING, "instance", "UUID", "", FOR(COMMAND_PROVER),                               \
      "identity of this process; the supervisor gives one (default: a new one)")                   \
    X(report_fd, COUNT, "report-fd", "FD", "0", FOR_CHILDREN,                                      \
      "descriptor to which the error that ended the process is written; 0: none")                  \
    X(webhook_allow, LIST, "webhook-allow", "CIDR", "", FOR_FINALIZER,                             \
      "private network that webhooks may reach, such as 10.0.0.0/8 (default: none)")               \
    X(webhook_http, FLAG, "webhook-http", NULL, NULL, FOR_FINALIZER,                               \
      "deliver to http:// endpoints too, unencrypted")                                             \
    X(webhook_ca, STRING, "webhook-ca", "FILE", "", FOR_FINALIZER,                                 \
      "certificate authorities that endpoints must be certified by (default: the system's)")       \
    X(webhook_timeout_ms, DURATION, "webhook-timeout", "TIME", "15s", FOR_FINALIZER,               \
      "time that an endpoint has to answer")                                                       \
    X(webhook_parallel, COUNT, "webhook-parallel", "N", "256", FOR_FINALIZER,                      \
      "deliveries under way at once; endpoints that keep failing have half of them")               \
    X(webhook_per_endpoint, COUNT, "webhook-per-endpoint", "N", "8", FOR_FINALIZER,                \
      "of them to one endpoint")                                                                   \
    X(port, COUNT, "port", "N", "0", FOR(COMMAND_LISTEN),                                          \
      "port on 127.0.0.1 to receive webhooks on (0: any that is free)")                            \
    X(endpoint, STRING, "endpoint", "NAME", "listen", FOR(COMMAND_LISTEN),                         \
      "webhook endpoint that is made for it, or was by an earlier run")                            \
    X(calldata, STRING, "calldata", "FILE", "", FOR(COMMAND_PROVE),                                \
      "also write the arguments of the Solidity verifier (BN254)")                                 \
    X(compressed, STRING, "compressed", "FILE", "", FOR(COMMAND_PROVE),                            \
      "also write the proof as 192 bytes (BLS12-381)")                                             \
    X(verbose, FLAG, "verbose", NULL, NULL, FOR(COMMAND_PROVE),                                    \
      "say on standard error which device was used and how long each step took")

enum { OPTION_LIST_MAX = 32 };

struct option_list {
    const char *item[OPTION_LIST_MAX];
    size_t n;
};

#define OPTION_TYPE_STRING   const char *
#define OPTION_TYPE_CHOICE   const char *
#define OPTION_TYPE_FLAG     bool
#define OPTION_TYPE_COUNT    uint32_t
#define OPTION_TYPE_SIZE     uint64_t
#define OPTION_TYPE_DURATION uint32_t
#define OPTION_TYPE_LIST     struct option_list

/* Strings are never NULL: "" says that an option was not given and has no default. */
struct options {
    enum command command;
    bool help, version; /* asked for: `command` is COMMAND_COUNT for the program's own help */
    const char *const *arguments;
    size_t n_arguments; /* within the command's bounds unless help or version is asked for */
#define X(field, kind, name, argument, default, commands, help) OPTION_TYPE_##kind field;
    OPTION_TABLE(X)
#undef X
    char **owned; /* what options_free frees */
    size_t n_owned;
};

/* Reads the command line and the environment; both must outlive `out`. ERR_USAGE, with the nearest
 * thing that would have been right, for anything else. The caller calls options_free in each case.
 */
MUST_USE enum err options_parse(int argc, const char *const *argv, struct options *out,
                                struct error *error);
void options_free(struct options *options);

/* Puts every value of `options` that the command's children may want into the environment, so that
 * a child process needs only its own arguments and no connection string shows in `ps`. */
MUST_USE enum err options_export(const struct options *options, struct error *error);

/* Help for one command, or for the program when `command` is COMMAND_COUNT. */
void options_help(FILE *stream, enum command command);

/* The words of a command, such as "migrate up". */
const char *options_command_words(enum command command);

#endif
