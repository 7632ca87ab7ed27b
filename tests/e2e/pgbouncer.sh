#!/usr/bin/env bash
# shellcheck disable=SC2119 # begin_prover and begin_finalizer take options; none is needed here
# The service behind pgbouncer in transaction mode, with two server connections for all: with a connection of its own past it
# for LISTEN, and without one.
#
#   pgbouncer.sh            all scenarios
#   pgbouncer.sh NAME ...   listening, polling, shared_sessions
source "$(dirname "$0")/service_lib.sh"

own=$root/tests/circuits
direct=$PROVERQ_DATABASE
port=0

# pgbouncer refuses to run as root.
as_nobody() { if [ "$(id -u)" = 0 ]; then exec setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups "$@"; else exec "$@"; fi; } # begin runs it in a process of its own

begin_pgbouncer() {
    local host_port password
    host_port=${direct##*@} host_port=${host_port%%/*}
    password=${direct#*//*:} password=${password%%@*}
    mkdir -p "$work/pgbouncer"
    chmod 777 "$work/pgbouncer"
    for _ in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 10000))
        cat >"$work/pgbouncer/ini" <<INI
[databases]
proverq = host=${host_port%:*} port=${host_port#*:} dbname=proverq user=proverq password=$password
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
server_round_robin = 1
INI
        begin pgbouncer as_nobody "$(PATH=$PATH:/usr/sbin command -v pgbouncer)" "$work/pgbouncer/ini"
        PROVERQ_DATABASE=postgresql://proverq@127.0.0.1:$port/proverq
        if until_true 5 sql -c 'select true' && kill -0 "${pids[pgbouncer]}"; then return 0; fi # else the port is another's
        end pgbouncer
    done
    fail "pgbouncer starts" "$(tail -n 5 "$work/pgbouncer.log")"
    finish
}

# Milliseconds from the moment at which a job was whole until its first claim began: of 10 jobs, one after the other, when
# the prover is idle: the median.
start_latency() {
    local i job
    for ((i = 0; i < 10; i++)); do
        until_true 20 sql -c "select bool_and(idle) from proverq_private.prover where state = 'running'"
        sleep 0.0$((RANDOM % 10))
        job=$(enqueue merkle "$own/merkle/witness.wtns" 1)
        until_true 60 sql -c "select state = 'finished' from proverq.job where job_seq = $job" || fail "job $job is finished"
        echo "$job" >>"$work/jobs"
    done
    sql -c "
        select round(1000 * percentile_cont(0.5) within group (order by extract(epoch from t.started_at + t.duration * interval '1 us' - j.ready_at))::numeric, 1)
        from proverq.job j join proverq.timing t using (job_seq)
        where t.step = 10 and j.job_seq in ($(paste -sd, "$work/jobs"))"
    rm "$work/jobs"
}

# is_below NAME MILLISECONDS MOST
is_below() { if awk "BEGIN { exit !($2 < $3) }"; then pass "$1 ($2 ms)"; else fail "$1" "$2 ms, not below $3"; fi; }

all_proved() {
    local job
    job=$(enqueue merkle "$own/merkle/witness.wtns" 40)
    eventually "$1: a job of 40 partitions is proved" 120 "select state = 'finished' from proverq.job where job_seq = $job"
    is "$1: each once" 40 "$(sql -c "select sum(attempt) from proverq.partition where job_seq = $job")"
    job=$(sql -c "select proverq.enqueue('range', array['$(cat "$own/range/input.json")'::jsonb])")
    eventually "$1: a job of inputs is proved" 60 "select state = 'finished' from proverq.job where job_seq = $job"
}

# Of all rows of provers: sessions tell at most once a second how many they made.
prover_changes() { sleep 1.2 && sql -c "select n_tup_upd from pg_stat_user_tables where relid = 'proverq_private.prover'::regclass"; }

listening() {
    echo "-- listening"
    local changes
    begin_finalizer --poll 30s --listen-database "$direct"
    begin_prover prover --poll 30s --listen-database "$direct"
    all_proved "with --listen-database"
    # A poll of 30 s would take longer than the jobs do.
    changes=$(prover_changes)
    is_below "with --listen-database an idle prover is woken at once" "$(start_latency)" 100
    changes=$(($(prover_changes) - changes))
    if [ "$changes" -lt 15 ]; then pass "ten jobs, one at a time, are not twenty changes of the prover's row (its activity made $changes)"; else fail "the prover's row was changed $changes times"; fi
    ends_well "the prover" prover
    ends_well "the finalizer" finalizer
}

polling() {
    echo "-- polling"
    begin_finalizer --poll 500ms
    begin_prover prover --poll 500ms
    all_proved "without"
    is_below "without --listen-database a job is found by the poll" "$(start_latency)" 600
    ok "the prover says what is amiss" grep -q 'behind a pooler.*--listen-database' "$work/prover.log"
    ok "so does the finalizer" grep -q 'behind a pooler.*--listen-database' "$work/finalizer.log"
    is "nothing listens in the pool" 0 "$(sql -c 'select count(*) from pg_listening_channels()')"
    ends_well "the prover" prover
    ends_well "the finalizer" finalizer
}

# What others find in the pool's sessions, and what a server that restarts leaves.
shared_sessions() {
    echo "-- shared_sessions"
    local job i seen=''
    begin_finalizer --listen-database "$direct"
    begin_prover prover --listen-database "$direct"
    job=$(enqueue merkle "$own/merkle/witness.wtns" 8)
    eventually "a job is proved" 60 "select state = 'finished' from proverq.job where job_seq = $job"
    for i in 1 2 3 4 5 6; do
        seen+=$(sql -c "select current_setting('statement_timeout'), current_setting('jit'), (select count(*) from pg_prepared_statements)")$'\n'
    done
    is "no setting and no prepared statement of ours is left to others" "0|on|0" "$(sort -u <<<"$seen" | grep .)"
    psql -X -q "$direct" -c "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and usename = 'proverq'" >/dev/null
    job=$(enqueue merkle "$own/merkle/witness.wtns" 8 || enqueue merkle "$own/merkle/witness.wtns" 8)
    eventually "after all connections were cut the next job is proved" 60 "select state = 'finished' from proverq.job where job_seq = $job"
    end prover
    end finalizer
}

begin_pgbouncer
ok "the schema is made through the pooler" "$proverq" migrate up || finish
add_circuit merkle "$own/merkle/merkle.zkey"
add_circuit range "$own/range/range.zkey" --wasm "$own/range/range.wasm"
[ $# -gt 0 ] || set -- listening polling shared_sessions
for scenario in "$@"; do
    "$scenario"
    for name in "${!pids[@]}"; do [ "$name" = pgbouncer ] || end "$name" KILL; done
done
finish
