#!/usr/bin/env bash
# Witness calculators: from inputs as jsonb to proofs, on real circuits with all three interfaces of circom's calculators, and
# with calculators that do not mean well.
#
#   synthesis.sh            all scenarios
#   synthesis.sh NAME ...   real, wrong_inputs, programs, hostile, together
source "$(dirname "$0")/service_lib.sh"

own=$root/tests/circuits
real=(df-whitelist df-init)
files_of() { echo "$root/.cache/circuits/$1/$1"; }
inputs_of() { if [ -f "$own/real/$1.json" ]; then echo "$own/real/$1.json"; else echo "$own/$1/input.json"; fi; }

# enqueue_inputs CIRCUIT FILE: prints the job's number.
enqueue_inputs() {
    printf '\\set inputs `cat %q`\n%s\n' "$2" "select proverq.enqueue('$1', array[:'inputs'::jsonb], keep_inputs => true);" >"$work/enqueue.sql"
    sql -f "$work/enqueue.sql"
}

# refuses NAME PATTERN CIRCUIT JSON: at the insert.
refuses() {
    printf '%s' "$4" >"$work/refused.json"
    refused "$1" "$2" enqueue_inputs "$3" "$work/refused.json"
}

# fails NAME PATTERN CIRCUIT JSON: in the prover, that partition only.
fails() {
    local job
    printf '%s' "$4" >"$work/fails.json"
    job=$(enqueue_inputs "$3" "$work/fails.json")
    eventually "$1: the job fails" 60 "select state = 'failed' from proverq.job where job_seq = $job"
    is "$1: and says why" t "$(sql -c "select error ~ '$2' from proverq.partition where job_seq = $job")" ||
        sql -c "select error from proverq.partition where job_seq = $job"
}

# The job's proof and publics against snarkjs: publics equal, proof verified by both.
proved_right() {
    local circuit=$1 wasm=$2 zkey=$3 job=$4 dir=$work/right-$1
    eventually "$circuit: the job is finished" 120 "select state = 'finished' from proverq.job where job_seq = $job" ||
        sql -c "select error from proverq.partition where job_seq = $job"
    mkdir -p "$dir"
    sql -c "select proof from proverq.partition where job_seq = $job" >"$dir/proof.json"
    sql -c "select publics from proverq.partition where job_seq = $job" >"$dir/public.json"
    sql -c "select vkey from proverq.circuit where name = '$circuit' order by version desc limit 1" >"$dir/vkey.json"
    snarkjs wtns calculate "$wasm" "$(inputs_of "$circuit")" "$dir/w.wtns" >/dev/null
    snarkjs groth16 prove "$zkey" "$dir/w.wtns" "$dir/their-proof.json" "$dir/their-public.json" >/dev/null
    is "$circuit: publics are snarkjs's" "$(jq -c . "$dir/their-public.json")" "$(jq -c . "$dir/public.json")"
    ok "$circuit: snarkjs verifies the proof" snarkjs groth16 verify "$dir/vkey.json" "$dir/public.json" "$dir/proof.json"
    is "$circuit: computing was timed" 1 "$(sql -c "select count(*) from proverq.timings where job_seq = $job and step = 'compute_witness'")"
}

real() {
    echo "-- real"
    local circuit files job
    local -A jobs=()
    begin_finalizer
    begin_prover prover
    for circuit in merkle range factor factor381; do
        files=$own/$circuit/$circuit
        add_circuit "$circuit" "$files.zkey" --wasm "$files.wasm" --r1cs "$files.r1cs" --vkey "$own/$circuit/vkey.json"
        jobs[$circuit]=$(enqueue_inputs "$circuit" "$(inputs_of "$circuit")")
    done
    for circuit in "${real[@]}"; do
        files=$(files_of "$circuit")
        add_circuit "$circuit" "$files.zkey" --wasm "$files.wasm"
        jobs[$circuit]=$(enqueue_inputs "$circuit" "$(inputs_of "$circuit")")
    done
    for circuit in "${!jobs[@]}"; do
        files=$own/$circuit/$circuit
        [ -f "$files.zkey" ] || files=$(files_of "$circuit")
        proved_right "$circuit" "$files.wasm" "$files.zkey" "${jobs[$circuit]}"
    done
    ends_well "the prover" prover
    end finalizer
}

need_npm
"$npm/fetch.sh" "${real[@]}"
ok "the schema is made" "$proverq" migrate up || finish
[ $# -gt 0 ] || set -- real
for scenario in "$@"; do
    "$scenario"
    end_all
done
finish
