#!/usr/bin/env bash
# The service on real circuits, against a PostgreSQL of its own: the main job, and what happens when things go wrong.
#
#   service.sh            all scenarios
#   service.sh NAME ...   main_job, killed_prover, supervisor, bad_partitions, database_away, webhooks, bad_requests
source "$(dirname "$0")/service_lib.sh"

circuits=(semaphore4-d20 unirep-epochKeyLite unirep-signup df-whitelist semaphore-identity)
zkey_of() { echo "$root/.cache/circuits/$1/$1.zkey"; }
own=$root/tests/circuits

begin_receiver() {
    rm -f "$work/webhooks" "$work/receiver.log"
    echo "/hook ${1-204}" >"$work/endpoints"
    begin receiver "$root/tests/receiver.py" "$work/endpoints" "$work/webhooks"
    until_true 10 test -s "$work/receiver.log" || return 1
    sql -c "select proverq.create_webhook_endpoint('receiver', 'http://127.0.0.1:$(cat "$work/receiver.log")/hook')" >"$work/secret"
}

# psql shows notifications after a command, so it is given one now and then.
begin_listener() {
    begin listener bash -c '
        { echo "listen proverq_job; \\echo listening"; while sleep 0.2; do echo "select;"; done; } |
            exec psql -X "$PROVERQ_DATABASE"'
    until_true 10 grep -q listening "$work/listener.log"
}
notified() { grep -o 'notification "proverq_job" with payload "{"job":[0-9]*' "$work/listener.log" | grep -o '[0-9]*$' | sort -n; }

# 100 jobs of 4 partitions each, inserted before two provers start, so that the order of claims can be told.
main_job() {
    echo "-- main_job"
    local i circuit webhooks
    begin_receiver
    begin_listener
    for circuit in "${circuits[@]}"; do add_circuit "$circuit" "$(zkey_of "$circuit")"; done
    for ((i = 0; i < 100; i++)); do
        circuit=${circuits[i % ${#circuits[@]}]}
        enqueue "$circuit" "$(witness_of "$circuit")" 4 "webhook => 'receiver'"
    done >"$work/jobs"
    is "100 jobs are enqueued" 100 "$(sort -un "$work/jobs" | wc -l)"
    begin_finalizer --webhook-http --webhook-allow 127.0.0.0/8
    begin_prover prover-1
    begin_prover prover-2
    eventually "100 jobs of 4 partitions are finished" 240 \
        "select count(*) = 100 from proverq.jobs where state = 'finished' and proved = 4 and partitions = 4"
    is "both provers proved" 2 "$(sql -c "select count(distinct prover_id) from proverq.partition")"
    is "none was proved twice" 400 "$(sql -c "select count(*) from proverq.partition where attempt = 1 and state = 'proved'")"
    claims_in_order
    full_timing
    all_verify
    eventually "each webhook is delivered" 20 "select count(*) = 100 from proverq.deliveries where state = 'delivered' and attempts = 1"
    webhooks=$(jq -r '.body | fromjson | .data.job' "$work/webhooks" | sort -n)
    is "one webhook came for each job" "$(sort -n "$work/jobs")" "$webhooks"
    is "the Standard Webhooks library finds every signature right" 100 "$(node "$root/tests/e2e/verify_webhooks.mjs" "$work/webhooks" "$work/secret" 2>&1)"
    is "each webhook has an id of its own" 100 "$(jq -r '.headers["webhook-id"]' "$work/webhooks" | sort -u | wc -l)"
    sleep 0.5
    is "one NOTIFY came for each job" "$(sort -n "$work/jobs")" "$(notified)"
    ends_well "a prover" prover-1
    ends_well "the other prover" prover-2
    ends_well "the finalizer" finalizer
    end listener
    end receiver
}

# Each prover claims in order; between two, a claim may overtake only what was in flight at the other.
claims_in_order() {
    is "each prover claimed in order" 0 "$(sql -c "
        select count(*)
        from (select t.job_seq, t.partition_idx, lag((t.job_seq, t.partition_idx)) over (partition by t.prover_id order by t.started_at, t.job_seq, t.partition_idx) as before
              from proverq.timings t where t.step = 'claim' and t.job_seq is not null) c
        where c.before > (c.job_seq, c.partition_idx)")"
    local most
    most=$(sql -c "
        select max(abs(place - by_key))
        from (select row_number() over (order by t.started_at + t.duration * interval '1 us', t.job_seq, t.partition_idx) as place,
                     row_number() over (order by t.job_seq, t.partition_idx) as by_key
              from proverq.timings t where t.step = 'claim' and t.job_seq is not null) c")
    if [ "$most" -le 8 ]; then pass "no claim was out of its place by more than 8 (at most $most)"; else fail "a claim was $most out of its place"; fi
}

full_timing() {
    # copy_in and copy_out are a GPU's.
    local steps='claim synthesis_wait read_witness check_witness queue_wait pick_up slot_wait compute matvec ntt'
    steps+=' msm_a msm_b1 msm_b2 msm_c msm_h finish_wait finish verify record'
    is "every partition has the full set of timing rows, once" "400 $steps" "$(sql -F ' ' -c "
        select count(*), steps
        from (select t.job_seq, t.partition_idx, string_agg(s.name, ' ' order by s.step) as steps
              from proverq.timing t join proverq.step s using (step)
              where t.attempt = 1 and s.name not in ('fetch_key', 'check_key', 'load_key', 'hand_over')
              group by 1, 2) p
        group by steps")"
    is "no step took less than nothing" 0 "$(sql -c "select count(*) from proverq.timing where duration < 0")"
}

# Takes each proof out of the database and verifies it with ours, and the first of each circuit with snarkjs.
all_verify() {
    local job part circuit proof publics valid=0 theirs=0 dir=$work/out
    local -A seen=()
    mkdir -p "$dir"
    for circuit in "${circuits[@]}"; do sql -c "select vkey from proverq.circuit where name = '$circuit'" >"$dir/$circuit.json"; done
    while IFS='|' read -r job part circuit proof publics; do
        printf '%s\n' "$proof" >"$dir/$circuit.$job.$part.proof"
        printf '%s\n' "$publics" >"$dir/$circuit.$job.$part.publics"
    done < <(sql -c "select job_seq, partition_idx, circuit, proof, publics from proverq.partition join proverq.job using (job_seq)")
    for proof in "$dir"/*.proof; do
        circuit=$(basename "$proof" | sed 's/\.[0-9]*\.[0-9]*\.proof$//')
        ! "$proverq" verify "$dir/$circuit.json" "${proof%.proof}.publics" "$proof" >/dev/null || valid=$((valid + 1))
        [ -z "${seen[$circuit]-}" ] || continue
        seen[$circuit]=1
        ! snarkjs groth16 verify "$dir/$circuit.json" "${proof%.proof}.publics" "$proof" >/dev/null || theirs=$((theirs + 1))
    done
    is "all 400 proofs verify" 400 "$valid"
    is "the first of each circuit verifies with snarkjs" "${#circuits[@]}" "$theirs"
    is "no proof is like another" 400 "$(sql -c "select count(distinct proof) from proverq.partition")"
}

killed_prover() {
    echo "-- killed_prover"
    local job witness
    add_circuit killed "$(zkey_of semaphore4-d20)"
    begin_finalizer
    begin_prover prover-1 --lease 2s
    begin_prover prover-2 --lease 2s
    witness=$(witness_of semaphore4-d20)
    job=$(enqueue killed "$witness" 24)
    eventually "both provers are at work" 60 "
        select count(distinct prover_id) = 2 and bool_or(state = 'proved') from proverq.partition where job_seq = $job and state in ('leased', 'proved')"
    end prover-1 KILL
    eventually "after kill -9 of a prover the job is finished all the same" 120 "select state = 'finished' from proverq.job where job_seq = $job"
    is "what it had was proved again" t "$(sql -c "select bool_or(attempt = 2) and max(attempt) <= 2 from proverq.partition where job_seq = $job")"
    is "no retry was spent, a loss was counted" t "$(sql -c "select max(failures) = 0 and max(losses) = 1 from proverq.partition where job_seq = $job")"
    end prover-2
    end finalizer
}

# The supervisor reaps the prover it lost, gives back its leases before they expire, and starts another.
supervisor() {
    echo "-- supervisor"
    local job pid session
    add_circuit supervised "$(zkey_of semaphore4-d20)"
    begin serve setsid "$proverq" serve --device cpu --threads 2 --lease 10m --poll 200ms
    job=$(enqueue supervised "$(witness_of semaphore4-d20)" 12)
    eventually "the supervisor's prover is at work" 60 "
        select bool_or(state = 'leased') and bool_or(state = 'proved') from proverq.partition where job_seq = $job"
    session=${pids[serve]}
    is "its children are in its session" 2 "$(pgrep -P "$session" -s "$session" -c)"
    pid=$(sql -c "select pid from proverq.provers where state = 'running' and leased > 0 limit 1")
    kill -9 "$pid"
    eventually "after kill -9 of its prover the job is finished long before the lease ends" 90 "select state = 'finished' from proverq.job where job_seq = $job"
    is "the lost prover is known as lost" lost "$(sql -c "select state from proverq.provers where pid = $pid order by prover_id desc limit 1")"
    ends_well "the supervisor" serve
    is "and leaves nobody behind" '' "$(pgrep -s "$session" -a | grep -v defunct)"
}

bad_partitions() {
    echo "-- bad_partitions"
    local good job other files=$root/.cache/circuits/df-init/df-init
    jq '.x = "100" | .y = "200" | .r = "1000"' "$own/real/df-init.json" >"$work/bad.json"
    snarkjs wtns calculate "$files.wasm" "$work/bad.json" "$work/bad.wtns" >/dev/null
    add_circuit df-init "$files.zkey" --r1cs "$files.r1cs"
    add_circuit merkle "$own/merkle/merkle.zkey"
    good=$(witness_of df-init)
    begin_finalizer
    begin_prover prover-1
    job=$(sql <<SQL
\\set good \`base64 -w0 $good\`
\\set bad \`base64 -w0 $work/bad.wtns\`
select proverq.enqueue_witness('df-init', array[decode(:'good', 'base64'), decode(:'bad', 'base64'), decode(:'good', 'base64')]);
SQL
    )
    other=$(enqueue merkle "$own/merkle/witness.wtns" 2)
    eventually "a job with a bad partition fails" 120 "select state = 'failed' from proverq.job where job_seq = $job"
    is "the partition names the constraint" t "$(sql -c "select error ~ 'constraint 64([^0-9]|$)' from proverq.partition where job_seq = $job and partition_idx = 1")"
    is "the job names the partition" t "$(sql -c "select error ~ 'partition 1' and error ~ 'constraint 64' from proverq.job where job_seq = $job")"
    is "a bad witness is not tried again" 1 "$(sql -c "select attempt from proverq.partition where job_seq = $job and partition_idx = 1")"
    eventually "other jobs go on" 60 "select state = 'finished' from proverq.job where job_seq = $other"
    is "proverq.why says what happened" t "$(sql -c "select proverq.why($job) ~ 'constraint 64'")"
    head -c 20000 "$own/merkle/witness.wtns" >"$work/short.wtns"
    damaged merkle "$work/short.wtns" "a truncated witness" 'truncated|short|section|end'
    damaged merkle "$own/range/witness.wtns" "a witness of another curve" 'curve|prime|field'
    damaged merkle "$own/factor/witness.wtns" "a witness of another circuit" 'values|signals|length'
    job=$(enqueue merkle "$own/merkle/witness.wtns" 1)
    eventually "no device is blamed: the prover goes on" 60 "
        select state = 'finished' and (select count(*) > 0 from proverq.provers where state = 'running') from proverq.job where job_seq = $job"
    end prover-1
    end finalizer
}

# damaged CIRCUIT WITNESS WHAT PATTERN: its job fails and says why.
damaged() {
    local job
    job=$(enqueue "$1" "$2" 1)
    eventually "$3 fails its job" 60 "select state = 'failed' from proverq.job where job_seq = $job"
    is "and the error says so" t "$(sql -c "select error ~ '$4' from proverq.partition where job_seq = $job")" ||
        sql -c "select error from proverq.partition where job_seq = $job"
}

database_away() {
    echo "-- database_away"
    local job
    add_circuit away "$(zkey_of semaphore4-d20)"
    "$postgres" stop "$work/pg"
    refused "a command says that the database is away" 'cannot be reached' "$proverq" migrate status
    refused "the service says so at its start" 'cannot be reached' timeout 20 "$proverq" serve --device cpu
    begin_prover prover-1
    begin_finalizer
    sleep 2
    ok "a prover that finds no database waits" kill -0 "${pids[prover-1]}"
    ok "a finalizer, too" kill -0 "${pids[finalizer]}"
    "$postgres" start "$work/pg" >/dev/null
    job=$(enqueue away "$(witness_of semaphore4-d20)" 16)
    eventually "and goes on when it is there" 60 "select count(*) > 1 from proverq.partition where job_seq = $job and state = 'proved'"
    "$postgres" stop "$work/pg"
    sleep 3
    "$postgres" start "$work/pg" >/dev/null
    eventually "after an outage in the middle the job is finished" 120 "select state = 'finished' from proverq.job where job_seq = $job"
    is "no retry was spent" 0 "$(sql -c "select max(failures) from proverq.partition where job_seq = $job")"
    end prover-1
    end finalizer
}

webhooks() {
    echo "-- webhooks"
    local job
    sql -c "delete from proverq_private.webhook_delivery; update proverq.job set endpoint_id = null; delete from proverq_private.webhook_endpoint"
    begin_receiver 500
    "$proverq" circuit list | grep -q '^merkle ' || add_circuit merkle "$own/merkle/merkle.zkey"
    begin_finalizer --webhook-http --webhook-allow 127.0.0.0/8
    begin_prover prover-1
    job=$(enqueue merkle "$own/merkle/witness.wtns" 1 "webhook => 'receiver'")
    eventually "a job is finished whatever its webhook's receiver says" 60 "select state = 'finished' from proverq.job where job_seq = $job"
    eventually "a refused webhook waits for its next attempt" 20 "
        select state = 'pending' and last_status = 500 and attempts = 1 and next_attempt_at > now() from proverq.deliveries where job_seq = $job"
    echo "/hook 204" >"$work/endpoints"
    eventually "and is delivered then" 30 "select state = 'delivered' and attempts = 2 from proverq.deliveries where job_seq = $job"
    is "both attempts have the same id and body" 1 "$(jq -c '[.headers["webhook-id"], .body]' "$work/webhooks" | sort -u | wc -l)"
    is "both are signed" 2 "$(node "$root/tests/e2e/verify_webhooks.mjs" "$work/webhooks" "$work/secret" 2>&1)"
    end finalizer
    begin_finalizer --webhook-http
    job=$(enqueue merkle "$own/merkle/witness.wtns" 1 "webhook => 'receiver'")
    eventually "an address of this machine is refused unless allowed" 30 "
        select attempts >= 1 and last_status is null and last_error ~ '127.0.0.1' from proverq.deliveries where job_seq = $job"
    is "and was not sent to" 2 "$(wc -l <"$work/webhooks")"
    end finalizer
    end prover-1
    end receiver
}

bad_requests() {
    echo "-- bad_requests"
    local job outside
    mkdir -p "$work/root"
    cp "$own/merkle/witness.wtns" "$work/root/good.wtns"
    cp "$own/merkle/witness.wtns" "$work/outside.wtns"
    ln -s "$work/outside.wtns" "$work/root/link.wtns"
    "$proverq" circuit list | grep -q '^merkle ' || add_circuit merkle "$own/merkle/merkle.zkey"
    refused "an unknown circuit" 'there is no circuit nosuch' sql -c "select proverq.enqueue_witness('nosuch', array['\\x00'::bytea])"
    refused "no partitions" 'at least one witness' sql -c "select proverq.enqueue_witness('merkle', '{}')"
    refused "inputs for a circuit that has no calculator" 'no witness calculator' sql -c "select proverq.enqueue('merkle', array['{}'::jsonb])"
    refused "a circuit without its file" 'nosuch.zkey' "$proverq" circuit add missing "$work/nosuch.zkey"
    refused "a circuit from something else" 'zkey|magic|format' "$proverq" circuit add wrong "$own/merkle/merkle.r1cs"
    begin_finalizer
    begin_prover prover-1 --witness-root "$work/root"
    job=$(sql -c "select proverq.enqueue_path('merkle', array['good.wtns'])")
    eventually "a witness file under the root is proved" 60 "select state = 'finished' from proverq.job where job_seq = $job"
    for outside in ../outside.wtns "$work/outside.wtns" link.wtns; do
        job=$(sql -c "select proverq.enqueue_path('merkle', array['$outside'])")
        eventually "a path outside the root fails its job (${outside##*/})" 60 "
            select j.state = 'failed' and p.error ~* 'root|outside|folder|directory'
            from proverq.job j join proverq.partition p using (job_seq) where job_seq = $job"
    done
    job=$(sql -c "select proverq.enqueue_path('merkle', array['absent.wtns'])")
    eventually "a file that is absent gives the partition back unspent" 30 "
        select attempt >= 1 and failures = 0 and state in ('held', 'ready', 'leased') and error ~ 'absent.wtns' from proverq.partition where job_seq = $job"
    cp "$own/merkle/witness.wtns" "$work/root/absent.wtns"
    eventually "and when the file comes it is proved" 120 "select state = 'finished' from proverq.job where job_seq = $job"
    end prover-1
    end finalizer
}

need_npm || exit
"$npm/fetch.sh" "${circuits[@]}" df-init
ok "the schema is made" "$proverq" migrate up || finish
[ $# -gt 0 ] || set -- main_job killed_prover supervisor bad_partitions database_away webhooks bad_requests
for scenario in "$@"; do
    "$scenario"
    end_all
done
finish
