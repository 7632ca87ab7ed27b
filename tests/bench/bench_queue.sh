#!/usr/bin/env bash
# The queue alone, against graphile-worker and pg-boss from npm, on one private PostgreSQL in one run.
#
#   bench_queue.sh [rates] [latency] [claims] [smoke]      default: rates latency claims
#
#   rates     no-op partitions (jobs) per second: the medians of ROUNDS rounds, in each of which all take their turn
#   latency   from the insert to the start, one job at a time, for a worker that waits
#   claims    time of a claim: READY rows ready, HELD rows held, and dead rows ahead under an old snapshot
#   smoke     a second of each of ours, for its correctness (what `make check` runs; no npm)
#
# COUNT (3000), ROUNDS (5), CONCURRENCY ("1 4 16"), READY ("1000 100000 1000000"), HELD (1000000), DEAD ("1000 10000 100000
# 1000000"), FOLDER (where PostgreSQL's files are: a folder of /tmp; on /dev/shm what others write to the disk does not count).
#
# Ours are jobs of PARTITIONS (50) partitions. Each gets a proof under its token and 8 timing rows, and is checked in the tables.
#   N provers                  each with one partition at a time: a claim, a result, two commits
#   one prover, N at work      as the service does it: it claims 3 ahead (PACING_LEAST) of those, and records what has come
#   one prover, batches        128 in hand, claims of up to 32, records of up to 64
#   N provers, batches         the same by each
# The peers run N jobs at once; graphile-worker batched and pg-boss batched: see npm/*.mjs.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
[ $# -gt 0 ] || set -- rates latency claims
bench=${BENCH_QUEUE:-build/tests/bench/bench_queue} proverq=${PROVERQ:-build/proverq} npm=tests/bench/npm
count=${COUNT:-3000} rounds=${ROUNDS:-5} partitions=${PARTITIONS:-50} held=${HELD:-1000000}
read -ra concurrencies <<<"${CONCURRENCY:-1 4 16}"
read -ra readies <<<"${READY:-1000 100000 1000000}"
read -ra deads <<<"${DEAD:-1000 10000 100000 1000000}"
own_kinds=('N provers' 'one prover, N at work' 'one prover, batches' 'N provers, batches')
passed=0

if [ -n "${FOLDER-}" ]; then mkdir -p "$FOLDER" && work=$(mktemp -d "$FOLDER/queue.XXXXXX"); else work=$(mktemp -d); fi
chmod 711 "$work" # the server may run as another user
clean_up() {
    local pid
    for pid in $(jobs -p); do kill "$pid" 2>/dev/null; done
    contrib/scripts/private-postgres.sh remove "$work/postgres" 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

stop() {
    echo "bench_queue.sh: $*" >&2
    exit 1
}
read -ra settings <<<"${POSTGRES_SETTINGS-fsync=on shared_buffers=256MB max_wal_size=4GB}"
PROVERQ_DATABASE=$(contrib/scripts/private-postgres.sh start "$work/postgres" "${settings[@]}") || exit
export PROVERQ_DATABASE DATABASE_URL=$PROVERQ_DATABASE PGOPTIONS='-c client_min_messages=warning'
sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$PROVERQ_DATABASE" "$@"; }

"$proverq" migrate up >/dev/null || stop "the schema cannot be made"
sql -c "insert into proverq_private.artefact (sha256, kind, bytes, path) values (sha256('z'), 'zkey', 1, 'z')" \
    -c "insert into proverq.circuit (name, version, sha256, curve, n_vars, n_public, log_domain, zkey, vkey)
        values ('bench', 1, sha256('c'), 'bn128', 2, 1, 1, sha256('z'), '{}')" || stop "no circuit"

# load STATE JOBS PARTITIONS: past the triggers, which take their time (and refuse to make rows that are held).
load() {
    sql -1 -c 'alter table proverq.job disable trigger user' -c 'alter table proverq.partition disable trigger user' \
        -c "with j as (insert into proverq.job (circuit, circuit_id, partitions, present, remaining, state, ready_at)
                       select 'bench', 1, $3, $3, $3, 'queued', now() from generate_series(1, $2) returning job_seq)
            insert into proverq.partition (job_seq, partition_idx, circuit_id, priority, state, witness_path)
            select job_seq, i, 1, 0, '$1', 'w.wtns' from j, generate_series(0, $3 - 1) i" \
        -c 'alter table proverq.job enable trigger user' -c 'alter table proverq.partition enable trigger user' || stop "no rows"
    sql -c 'analyze proverq.partition, proverq.job'
}
empty() { sql -c 'truncate proverq.job, proverq.partition, proverq.timing, proverq_private.prover cascade' -c checkpoint 2>/dev/null; }

# --- rates ---

# Each partition was claimed once and proved, with its steps; each job is whole.
check() {
    local wrong
    wrong=$(sql -c "select count(*) from proverq.partition where state <> 'proved' or attempt <> 1 or token is not null or proof is null" \
        -c "select count(*) from proverq.job where state <> 'completing' or remaining <> 0" \
        -c "select (select count(*) from proverq.timing) - 8 * (select count(*) from proverq.partition)" | tr '\n' ' ')
    [ "$wrong" = '0 0 0 ' ] || stop "$1: the tables are wrong: $wrong"
    passed=$((passed + 1))
}

per_second() { awk -v wanted="$1" 'NF == 2 && $1 == wanted { printf "%.0f\n", $1 / $2; ok = 1 } END { exit !ok }'; }

# ours PROVERS IN_HAND ROWS
ours() {
    empty
    load ready $((count / partitions)) "$partitions"
    "$bench" drain "$@" | per_second $((count / partitions * partitions)) || stop "drain $* failed"
    check "drain $*"
}
peer() { node "$npm/$1.mjs" drain "$2" "$3" "$4" | per_second "$2" || stop "$1 $4 failed"; }

measure() {
    local c=$2
    case $1 in
    'N provers') ours "$c" 1 1 ;;
    'one prover, N at work') ours 1 $((c + 3)) $((c + 3)) ;;
    'one prover, batches') ours 1 128 32 ;;
    'N provers, batches') ours "$c" 128 32 ;;
    'graphile-worker') peer graphile "$count" "$c" default ;;
    'graphile-worker batched') peer graphile "$count" "$c" batched ;;
    'pg-boss') peer pgboss $((count / 10)) "$c" default ;; # slow
    'pg-boss batched') peer pgboss "$count" "$c" batched ;;
    esac
}
median() { sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }

rates() {
    local kinds=("${own_kinds[@]}" 'graphile-worker' 'graphile-worker batched' 'pg-boss' 'pg-boss batched') kind c i row
    for ((i = 1; i <= rounds; i++)); do
        for c in "${concurrencies[@]}"; do
            for kind in "${kinds[@]}"; do measure "$kind" "$c" >>"$work/$kind $c" || exit; done
            echo "round $i of $rounds, concurrency $c: $(for kind in "${kinds[@]}"; do printf '%s %s; ' "$kind" "$(tail -n 1 "$work/$kind $c")"; done)" >&2
        done
    done
    printf '| per second |%s\n|---|%s\n' "$(printf ' %s |' "${concurrencies[@]}")" "$(printf -- '---|%.0s' "${concurrencies[@]}")"
    for kind in "${kinds[@]}"; do
        row=''
        for c in "${concurrencies[@]}"; do row+=" $(median <"$work/$kind $c") |"; done
        echo "| $kind |$row"
    done
}

# --- latency ---

latency() {
    local n=$((count / 10)) i
    empty
    echo '| start latency, ms: p50, p99, longest | |'
    echo '|---|---|'
    for ((i = 1; i <= 2; i++)); do
        echo "| proverq | $("$bench" latency "$n") |" || exit
        check latency
        echo "| graphile-worker | $(node "$npm/graphile.mjs" latency "$n") |" || exit
    done
    echo "| pg-boss | $(node "$npm/pgboss.mjs" latency 30) |"
}

# --- claims ---

# row NAME COUNT COUNT_FULL
row() {
    local bounds full
    bounds=$("$bench" claim "$2" bounds) && full=$("$bench" claim "$3" full) || stop "claims failed: $1"
    echo "| $1 | $bounds | $full |"
}

claims() {
    local ready snapshot n gone=0
    echo '| a claim, ms: p50, p99, longest | from the bounds | full scan |'
    echo '|---|---|---|'
    for ready in "${readies[@]}"; do
        empty
        load ready $((ready / 1000)) 1000
        row "$ready ready" 200 200
    done
    load held $((held / 1000)) 1000
    row "and $held held" 200 200
    load ready 10 1000
    mkfifo "$work/snapshot"
    psql -X -q "$PROVERQ_DATABASE" <"$work/snapshot" >/dev/null &
    exec {snapshot}>"$work/snapshot"
    echo 'begin isolation level repeatable read; select 1 from proverq.circuit;' >&"$snapshot"
    sleep 1
    for n in "${deads[@]}"; do
        sql -c "with g as (select job_seq, partition_idx from proverq.partition where state = 'ready'
                              order by job_seq, partition_idx limit $((n - gone)))
                update proverq.partition p set state = 'cancelled' from g where p.job_seq = g.job_seq and p.partition_idx = g.partition_idx"
        gone=$n
        row "$n dead ahead" 200 30
    done
    exec {snapshot}>&-
}

# --- smoke ---

smoke() {
    local kind
    count=400
    for kind in "${own_kinds[@]}"; do measure "$kind" 4 >/dev/null || exit; done
    empty
    COUNT=20 "$bench" latency 20 >/dev/null || stop "latency failed"
    check latency
    readies=(1000) held=1000 deads=(500)
    claims >/dev/null
    echo "$((passed + 4)) passed, 0 failed"
}

case " $* " in *" rates "* | *" latency "*) [ -d "$npm/node_modules" ] || (cd "$npm" && npm ci --no-audit --no-fund >&2) || stop "npm cannot install the peers" ;; esac
for part in "$@"; do
    case $part in
    rates | latency | claims | smoke) "$part" ;;
    *) stop "there is no part $part" ;;
    esac
done
