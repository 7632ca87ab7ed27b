#!/usr/bin/env bash
# See proverq work, from nothing: `make demo`.
#
#   demo.sh         build, start a private PostgreSQL, a service and a webhook consumer, and prove real jobs
#   demo.sh stop    stop all of it and remove it
#
# Everything is in .demo/ of the checkout (or in DEMO_DIR). Each run starts anew. Afterwards the service is left running, to be played with.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
demo=${DEMO_DIR:-$root/.demo}
postgres=$root/contrib/scripts/private-postgres.sh

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() { printf '  $ %s\n' "$*"; }

fail() {
    printf '\ndemo: %s\n' "$*" >&2
    if [ -f "$demo/serve.log" ]; then
        echo "the service's log ($demo/serve.log) ends with:" >&2
        tail -n 15 "$demo/serve.log" >&2
    fi
    exit 1
}

# Runs a command in the background, free of this terminal, with its process number in .demo/NAME.pid.
background() {
    local name=$1
    shift
    setsid "$@" </dev/null >>"$demo/$name.log" 2>&1 &
    echo $! >"$demo/$name.pid"
}

# Whether a process is there, and runs in this checkout: not another one that got its number later, and no zombie.
is_ours() {
    [ "$(readlink "/proc/$1/cwd" 2>/dev/null)" = "$root" ]
}

end_process() {
    local pid
    pid=$(cat "$demo/$1.pid" 2>/dev/null) || return 0
    ! is_ours "$pid" || kill "$pid"
    for _ in {1..150}; do
        is_ours "$pid" || return 0
        sleep 0.1
    done
    kill -9 "$pid"
}

stop() {
    [ -d "$demo" ] || return 0
    end_process serve
    end_process receiver
    [ ! -d "$demo/postgres" ] || "$postgres" remove "$demo/postgres"
    rm -rf "$demo"
}

# Waits until a command succeeds; says what was waited for when it does not within 30 s.
until_true() {
    local what=$1
    shift
    for _ in {1..300}; do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.1
    done
    fail "waited 30 s for $what"
}

psql_app() { psql -X -q -v ON_ERROR_STOP=1 -P pager=off "$PROVERQ_DATABASE" "$@"; }

build() {
    say "1. Build"
    contrib/scripts/install-packages.sh build demo
    make -s -j"$(nproc)" build
    build/proverq --version
}

start_services() {
    say "2. A private PostgreSQL, a webhook consumer, and the service"
    PROVERQ_DATABASE=$("$postgres" start "$demo/postgres")
    export PROVERQ_DATABASE
    show "proverq migrate up"
    build/proverq migrate up
    touch "$demo/secret"
    background receiver contrib/consumers/webhook_receiver.py --secret-file "$demo/secret"
    until_true "the webhook consumer" grep listening "$demo/receiver.log"
    webhook_url=$(sed -n 's/^listening on //p' "$demo/receiver.log")
    psql_app -A -t -c "select proverq.create_webhook_endpoint('demo', '$webhook_url')" >"$demo/secret"
    show "proverq serve --webhook-http --webhook-allow 127.0.0.0/8"
    background serve build/proverq serve --webhook-http --webhook-allow 127.0.0.0/8 --cache-dir "$demo/cache"
    until_true "a prover" bash -c "[ \"\$(psql -X -A -t '$PROVERQ_DATABASE' -c \"select count(*) > 0 from proverq.provers where state = 'running'\")\" = t ]"
}

takes_inputs=1 # unless the calculator cannot be compiled
add_circuits() {
    say "3. Two circuits, one on each curve"
    local range=tests/circuits/range/range merkle=tests/circuits/merkle/merkle
    show "proverq circuit add range $range.zkey --wasm $range.wasm --r1cs $range.r1cs"
    if ! build/proverq circuit add range $range.zkey --wasm $range.wasm --r1cs $range.r1cs; then
        echo "This machine cannot compile the witness calculator (see above): the job takes witnesses instead of inputs."
        build/proverq circuit add range $range.zkey --r1cs $range.r1cs
        takes_inputs=0
    fi
    show "proverq circuit add merkle $merkle.zkey --r1cs $merkle.r1cs"
    build/proverq circuit add merkle $merkle.zkey --r1cs $merkle.r1cs
}

prove_jobs() {
    say "4. Two jobs, inserted and awaited with psql"
    cat >"$demo/jobs.sql" <<'SQL'
\if :takes_inputs
\echo by function, from inputs, with a webhook:
\set range `jq -c . tests/circuits/range/input.json`
select proverq.enqueue('range', array_fill(:'range'::jsonb, array[4]), webhook => 'demo') as job \gset
\echo '  select proverq.enqueue(''range'', array[''' :range '''::jsonb, ...], webhook => ''demo'');    -- job' :job
\else
\echo by function, from witnesses, with a webhook:
\set range `base64 -w0 tests/circuits/range/witness.wtns`
select proverq.enqueue_witness('range', array_fill(decode(:'range', 'base64'), array[4]), webhook => 'demo') as job \gset
\echo '  select proverq.enqueue_witness(''range'', array[...], webhook => ''demo'');    -- job' :job
\endif

\echo by plain INSERT, of witnesses:
\set merkle `base64 -w0 tests/circuits/merkle/witness.wtns`
begin;
insert into proverq.job (circuit, partitions) values ('merkle', 2) returning job_seq as second \gset
insert into proverq.partition (job_seq, partition_idx, witness)
    select :second, idx, decode(:'merkle', 'base64') from generate_series(0, 1) idx;
commit;
\echo '  insert into proverq.job (circuit, partitions) values (''merkle'', 2) ...    -- job' :second
\echo

select proverq.wait(:job) as first_job, proverq.wait(:second) as second_job;
SQL
    psql_app -v takes_inputs=$takes_inputs -f "$demo/jobs.sql"
}

show_results() {
    say "5. The proofs, each verified before it was recorded"
    psql_app -c "
        select p.job_seq as job, p.partition_idx as part, j.circuit, c.curve, p.state, r.device,
               (select round(t.duration / 1000.0, 1) from proverq.timings t
                where (t.job_seq, t.partition_idx, t.attempt, t.step) = (p.job_seq, p.partition_idx, p.attempt, 'verify')) as verify_ms,
               left(p.proof -> 'pi_a' ->> 0, 16) || '...' as pi_a
        from proverq.partition p join proverq.job j using (job_seq) join proverq.circuit c on c.circuit_id = j.circuit_id
        join proverq_private.prover r using (prover_id)
        order by 1, 2"
    verify_again
    say "6. Where the time went, by step (microseconds)"
    psql_app -c "
        select t.step, count(*), percentile_disc(0.5) within group (order by t.duration) as p50,
               percentile_disc(0.95) within group (order by t.duration) as p95, max(t.duration), d.description
        from proverq.timings t join proverq.step d on d.name = t.step
        where t.job_seq is not null
        group by d.step, t.step order by d.step"
    say "7. The webhook that arrived"
    until_true "the webhook" grep 'job 1,.*signature right' "$demo/receiver.log"
    grep 'job 1,' "$demo/receiver.log" | sed 's/^/  /'
    psql_app -c "select webhook_id, event, state, attempts, last_status from proverq.deliveries"
}

# Takes the proofs out of the database and verifies them as anybody could.
verify_again() {
    local job part circuit valid=0 total=0
    while IFS='|' read -r job part circuit; do
        psql_app -A -t -c "select proof from proverq.partition where job_seq = $job and partition_idx = $part" >"$demo/proof.json"
        psql_app -A -t -c "select publics from proverq.partition where job_seq = $job and partition_idx = $part" >"$demo/public.json"
        total=$((total + 1))
        if build/proverq verify "tests/circuits/$circuit/vkey.json" "$demo/public.json" "$demo/proof.json" >/dev/null; then
            valid=$((valid + 1))
        fi
    done < <(psql_app -A -t -c "select job_seq, partition_idx, circuit from proverq.partition join proverq.job using (job_seq) order by 1, 2")
    echo "taken out and verified again with proverq verify: $valid of $total valid"
    [ "$valid/$total" = 6/6 ] || fail "not every proof is valid"
}

farewell() {
    say "It is still running. Play with it, then stop it and remove it all:"
    cat <<TEXT
  psql '$PROVERQ_DATABASE'
      select * from proverq.jobs;
      select proverq.why(1);
      select * from proverq.timings where job_seq = 1 order by started_at;
  tail -f .demo/serve.log
  make demo-stop
TEXT
}

case ${1-start} in
start) ;;
stop) stop && exit ;;
*) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
stop
mkdir -p "$demo"
build
start_services
add_circuits
prove_jobs
show_results
farewell
