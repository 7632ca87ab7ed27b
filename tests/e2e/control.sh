#!/usr/bin/env bash
# shellcheck disable=SC2119 # begin_prover and begin_finalizer take options; none is needed here
# What an operator, a device and a database that goes away do to work that is under way.
#
#   control.sh            all scenarios
#   control.sh NAME ...   cancelled_synthesis, cancelled_proof, device_faults, refused_circuit, stopping
#
# DEVICE (cpu) is what cancelled_proof and device_faults prove on; PROVERQ_FAULTS the program with faults.
source "$(dirname "$0")/service_lib.sh"

own=$root/tests/circuits
faults=${PROVERQ_FAULTS:-$root/build/proverq-faults}
device=${DEVICE:-cpu}

calculators() { pgrep -P "${pids[prover]}" -f '^proverq calculator-process' -a || pgrep -f "^$work.* /proc/self/fd/7" -a; }
no_calculator() { ! calculators >/dev/null; }

# within NAME MILLISECONDS COMMAND ...: it succeeds in that time.
within() {
    local name=$1 most=$2 start now
    shift 2
    start=$(date +%s%3N)
    until "$@" >/dev/null 2>&1; do
        now=$(date +%s%3N)
        if [ $((now - start)) -gt "$most" ]; then
            fail "$name" "not within $most ms: $*" "$(tail -n 5 "$work"/*.log)"
            return 1
        fi
        sleep 0.02
    done
    pass "$name ($(($(date +%s%3N) - start)) ms)"
}

# Two calculators that never end: in WebAssembly and as a program.
make_endless() {
    awk 'NR == FNR { body = body $0; next } { sub(/BODY/, body); print }' <(echo '(loop $l (br $l))') \
        "$root/tests/e2e/calculators/hostile.wat" >"$work/endless.wat"
    wat2wasm "$work/endless.wat" -o "$work/endless.wasm"
    gcc -O1 -pthread -DDO=LOOP -o "$work/endless" "$root/tests/e2e/calculators/program.c" -lm
    cp "$own/factor/witness.wtns" "$work/endless.dat"
    add_circuit endless-wasm "$own/factor/factor.zkey" --wasm "$work/endless.wasm"
    add_circuit endless-program "$own/factor/factor.zkey" --calculator "$work/endless"
}

# Synthesis stops within a second of the cancel, and nothing else is touched.
cancelled_synthesis() {
    echo "-- cancelled_synthesis"
    local kind job other
    make_endless
    begin_finalizer
    begin_prover prover
    for kind in wasm program; do
        job=$(sql -c "select proverq.enqueue('endless-$kind', array['{\"p\": 65521, \"q\": 49999}'::jsonb])")
        eventually "$kind: a witness is being computed" 60 "select state = 'leased' from proverq.partition where job_seq = $job"
        until_true 20 calculators
        sleep 1
        ok "$kind: a calculator is at work" calculators
        sql -c "select proverq.cancel($job)" >/dev/null
        within "$kind: after the cancel it is killed within a second" 1000 no_calculator
        within "$kind: the log says that the job was cancelled" 500 grep -q "partition dropped.*job=$job .*the job was cancelled" "$work/prover.log"
        is "$kind: nothing was failed, nothing was told" 'cancelled|0|' "$(sql -c "select state, failures, token from proverq.partition where job_seq = $job")"
    done
    is "no lease is said to be taken away" 0 "$(grep -c 'taken away' "$work/prover.log")"
    job=$(sql -c "select proverq.enqueue('endless-wasm', array['{\"p\": 65521, \"q\": 49999}'::jsonb])")
    until_true 20 calculators
    sql -c "update proverq.partition set lease_until = '2000-01-01' where job_seq = $job and state = 'leased'; select proverq.pause('endless-wasm'), proverq.rescue_expired()" >/dev/null
    within "a lease that is taken away ends it as well" 1000 no_calculator
    within "and is called that" 500 grep -q "partition dropped.*job=$job .*the lease was taken away" "$work/prover.log"
    sql -c "select proverq.cancel($job)" >/dev/null
    other=$(enqueue merkle "$own/merkle/witness.wtns" 2)
    eventually "other jobs go on" 60 "select state = 'finished' from proverq.job where job_seq = $other"
    is "the prover is the same" 1 "$(sql -c "select count(*) from proverq_private.prover where state = 'running'")"
    ends_well "the prover" prover
    end finalizer
}

# A witness that waits for the device never gets there; the one on it is dropped at its end.
cancelled_proof() {
    echo "-- cancelled_proof"
    local job
    begin_finalizer
    PROVERQ_SLEEP=$([ "$device" = cpu ] && echo compute || echo device_wait):3000 PROVERQ_WORKERS=1 proverq=$faults begin_prover prover
    job=$(enqueue merkle "$own/merkle/witness.wtns" 3)
    eventually "a proof is on the device, others wait" 60 "select bool_and(state = 'leased') from proverq.partition where job_seq = $job"
    sleep 1
    sql -c "select proverq.cancel($job, 'not needed')" >/dev/null
    within "all three are dropped" 4000 test 3 = "$(sleep 3.5; grep -c "partition dropped.*job=$job " "$work/prover.log")"
    is "one was on the device" 1 "$(grep -c "work is dropped.*job=$job .*step=prove" "$work/prover.log")"
    is "none was proved, refused or failed" 0 "$(grep -cE "(partition proved|partition failed|result is refused).*job=$job " "$work/prover.log")"
    job=$(enqueue merkle "$own/merkle/witness.wtns" 1)
    eventually "the prover goes on" 60 "select state = 'finished' from proverq.job where job_seq = $job"
    ends_well "the prover" prover
    end finalizer
}

# The device fails at every proof, and at the probe's, while a file is there.
device_faults() {
    echo "-- device_faults"
    local job before
    touch "$work/fault"
    before=$(sql -c "select coalesce(max(prover_id), 0) from proverq_private.prover")
    rm "$work/fault"
    PROVERQ_DEVICE_FAULT=$work/fault begin serve "$faults" serve --device "$device" --threads 1 --poll 200ms
    eventually "a prover runs" 30 "select count(*) = 1 from proverq_private.prover where state = 'running' and prover_id > $before"
    touch "$work/fault"
    job=$(enqueue merkle "$own/merkle/witness.wtns" 2)
    eventually "a device that fails again and again is in quarantine" 60 "
        select count(*) = 1 from proverq.provers where quarantine ~ 'a fault that a test wants' and prover_id > $before"
    is "proverq.why says so" t "$(sql -c "select proverq.why($job) ~ '$device on .* is in quarantine'")"
    is "no retry was spent, and no partition lost" '0|0' "$(sql -c "select max(failures), max(losses) from proverq.partition where job_seq = $job")"
    is "every attempt's error is kept" t "$(sql -c "select bool_or(error_code = 'device_fault' and error ~ 'a fault that a test wants') from proverq.partition where job_seq = $job")"
    is "the probe keeps provers away" 1 "$(sql -c "select count(*) from proverq_private.prover where prover_id > $before")"
    rm "$work/fault"
    eventually "when the device works again the job is finished" 60 "select state = 'finished' from proverq.job where job_seq = $job"
    is "no device is in quarantine" 0 "$(sql -c 'select count(*) from proverq_private.device_quarantine')"
    is "no retry was spent" 0 "$(sql -c "select max(failures) from proverq.partition where job_seq = $job")"
    ends_well "the supervisor" serve
}

# A key that does not fit: the reason is in the database, and goes when the prover does.
refused_circuit() {
    echo "-- refused_circuit"
    local job
    begin_prover prover --device-memory 1k
    job=$(enqueue merkle "$own/merkle/witness.wtns" 1)
    eventually "the database knows why" 60 "select count(*) = 1 from proverq.refusals where circuit = 'merkle' and code = 'device_memory'"
    is "proverq.why says it" t "$(sql -c "select proverq.why($job) ~ 'the one running prover does not take this circuit: prover .*device_memory'")"
    ends_well "the prover" prover
    is "and with the prover the refusal is gone" 0 "$(sql -c 'select count(*) from proverq.refusals')"
    sql -c "select proverq.cancel($job)" >/dev/null
}

# SIGTERM while the database is away, with results in hand: the end is near all the same.
stopping() {
    echo "-- stopping"
    local job start
    begin_finalizer
    PROVERQ_SLEEP=verify:300 proverq=$faults begin_prover prover
    job=$(enqueue merkle "$own/merkle/witness.wtns" 24)
    eventually "a prover is at work" 60 "select count(*) > 2 from proverq.partition where job_seq = $job and state = 'proved'"
    "$postgres" stop "$work/pg"
    sleep 2
    start=$SECONDS
    ends_well "with the database away the prover" prover
    if [ $((SECONDS - start)) -le 15 ]; then pass "within 15 s"; else fail "it took $((SECONDS - start)) s"; fi
    end finalizer
    "$postgres" start "$work/pg" >/dev/null
    begin_finalizer
    begin_prover prover --lease 2s
    sql -c "update proverq.partition set lease_until = '2000-01-01' where state = 'leased'"
    eventually "what it held is proved by another" 90 "select state = 'finished' from proverq.job where job_seq = $job"
    is "no retry was spent" 0 "$(sql -c "select max(failures) from proverq.partition where job_seq = $job")"
    ends_well "the prover" prover
    end finalizer
}

ok "the schema is made" "$proverq" migrate up || finish
add_circuit merkle "$own/merkle/merkle.zkey"
[ $# -gt 0 ] || set -- cancelled_synthesis cancelled_proof device_faults refused_circuit stopping
for scenario in "$@"; do
    "$scenario"
    end_all
done
finish
