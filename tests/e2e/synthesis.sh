#!/usr/bin/env bash
# shellcheck disable=SC2119 # begin_finalizer takes options; none is needed here
# Witness calculators: from inputs as jsonb to proofs, on real circuits with all three interfaces of circom's calculators, and
# with calculators that do not mean well.
#
#   synthesis.sh            all scenarios
#   synthesis.sh NAME ...   real, wrong_inputs, mismatches, versions, hostile, elsewhere
source "$(dirname "$0")/service_lib.sh"

own=$root/tests/circuits
circuits=(df-whitelist df-init semaphore2-d16 semaphore4-d20 semaphore-identity)
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
    for circuit in "${circuits[@]}"; do
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

# What the submitter is told at the insert, and what only the calculator knows.
wrong_inputs() {
    echo "-- wrong_inputs"
    local files good whitelist job
    begin_finalizer
    begin_prover prover
    files=$own/merkle/merkle
    good=$(cat "$own/merkle/input.json")
    sed 's/^ *//' >"$work/merkle.sym" <<'SYM'
        1,1,0,main.root
        2,2,0,main.nullifier
        3,3,0,main.signal
        4,4,0,main.secret
        5,5,0,main.hasher.out
SYM
    refused "a .sym file that lacks signals" 'input signals' "$proverq" circuit add sym "$files.zkey" --wasm "$files.wasm" --sym "$work/merkle.sym"
    (cd "$work" && sym_of merkle)
    add_circuit sym "$files.zkey" --wasm "$files.wasm" --sym "$work/merkle.sym"
    add_circuit nosym "$files.zkey" --wasm "$files.wasm"
    job=$(enqueue_inputs sym "$own/merkle/input.json")
    eventually "with --sym the good inputs are proved" 60 "select state = 'finished' from proverq.job where job_seq = $job"
    local first
    first=$(jq -r 'to_entries | map(select(.value | type == "array")) | .[0].key' <<<"$good")
    refuses "a missing signal is named" "signal \"$first\" is missing" sym "$(jq "del(.$first)" <<<"$good")"
    refuses "an extra signal is named" 'signal "other" is no input of circuit sym' sym "$(jq '.other = 1' <<<"$good")"
    refuses "a short signal is named" "signal \"$first\" has [0-9]+ value.s.; the circuit takes" sym "$(jq ".$first |= .[1:]" <<<"$good")"
    refuses "a long signal is named" "signal \"$first\" has [0-9]+ value.s.; the circuit takes" sym "$(jq ".$first += [1]" <<<"$good")"
    refuses "a fraction is refused" "signal \"$first\", value 0: 1.5 is no integer" sym "$(jq ".${first}[0] = 1.5" <<<"$good")"
    refuses "without --sym the total is told" 'input values; circuit nosym takes' nosym "$(jq "del(.$first)" <<<"$good")"
    fails "a name that the calculator does not know" 'signal "other" is no input' nosym "$(jq ".other = .$first | del(.$first)" <<<"$good")"
    fails "one signal too short, another too long" 'has [0-9]+ values; the circuit takes' nosym \
        "$(jq "(to_entries | map(select(.value | type != \"array\")) | .[0].key) as \$s | .$first |= .[1:] | .[\$s] = [.[\$s], 1]" <<<"$good")"

    # circom 1 tells nothing of its signals; the calculator's counter of what is missing does.
    add_circuit whitelist "$(files_of df-whitelist).zkey" --wasm "$(files_of df-whitelist).wasm"
    whitelist=$(cat "$own/real/df-whitelist.json")
    fails "circom 1: a missing signal" '1 of the circuit.s 2 input values are missing' whitelist "$(jq 'del(.key)' <<<"$whitelist")"
    fails "circom 1: no signals" 'none is given' whitelist '{}'
    fails "circom 1: an unknown signal" 'signal "other" is no input' whitelist "$(jq '.other = 1' <<<"$whitelist")"
    fails "circom 1: a long signal" 'has 2 values; the circuit takes 1' whitelist "$(jq '.key = [.key, 1]' <<<"$whitelist")"
    fails "circom 1: a long signal in the place of another" 'signal "(key|recipient)"' whitelist "$(jq '.recipient = [.recipient, 1] | del(.key)' <<<"$whitelist")"
    add_circuit negative "$(files_of df-init).zkey" --wasm "$(files_of df-init).wasm" --r1cs "$(files_of df-init).r1cs"
    fails "df-init, outside its circle" 'constraint 64([^0-9]|$)' negative "$(jq '.x = "100" | .y = "200" | .r = "1000"' "$own/real/df-init.json")"

    # Numbers: each the same proof's publics as the decimal string.
    same_publics negative "$(cat "$own/real/df-init.json")"
    end prover
    end finalizer
}

# A .sym file that names the input signals of a circuit as circom does, from its input.json.
sym_of() {
    jq -r 'to_entries[] | .key as $k | if (.value | type) == "array" then range(.value | length) | "1,1,0,main.\($k)[\(.)]" else "1,1,0,main.\($k)" end' \
        "$own/$1/input.json" >"$work/$1.sym"
}

# The values of circuit $1's inputs $2 as numbers, as hexadecimal strings, and less the field's order.
same_publics() {
    local python='
import json, sys
r = 21888242871839275222246405745257275088548364400416034343698204186575808495617
d = json.loads(sys.argv[1])
def each(x, f): return [each(y, f) for y in x] if isinstance(x, list) else f(int(x))
forms = {"number": lambda v: v, "hex": hex, "negative": lambda v: str(v - r), "larger": lambda v: v + r}
print(json.dumps({k: each(v, forms[sys.argv[2]]) for k, v in d.items()}))'
    local form job want=''
    for form in number hex negative larger; do
        python3 -c "$python" "$2" "$form" >"$work/form.json"
        job=$(enqueue_inputs "$1" "$work/form.json")
        eventually "inputs in the form: $form" 60 "select state = 'finished' from proverq.job where job_seq = $job"
        sql -c "select publics from proverq.partition where job_seq = $job" >>"$work/forms"
    done
    is "all forms give the same publics" 1 "$(sort -u "$work/forms" | wc -l)"
    want=$(sql -c "select publics ->> 0 from proverq.partition where job_seq = $job")
    is "and publics there are" t "$([ -n "$want" ] && echo t)"
}

# export_named NAME: makes other.wasm, a calculator whose function "init" is exported by this name as well.
export_named() {
    local wat
    wat=$(<"$root/tests/e2e/calculators/hostile.wat")
    wat=${wat/'(export "init")'/"(export \"init\") (export \"$1\")"}
    printf '%s\n' "${wat//BODY/(nop)}" >"$work/other.wat"
    wat2wasm "$work/other.wat" -o "$work/other.wasm"
}

# What circuit add refuses: files that do not belong together.
mismatches() {
    echo "-- mismatches"
    local files=$own/factor/factor
    refused "a calculator of another circuit" 'does not belong' "$proverq" circuit add bad "$files.zkey" --wasm "$own/merkle/merkle.wasm"
    refused "a calculator of another curve" 'does not belong' "$proverq" circuit add bad "$files.zkey" --wasm "$own/factor381/factor381.wasm"
    refused "constraints of another circuit" 'does not belong' "$proverq" circuit add bad "$files.zkey" --wasm "$files.wasm" --r1cs "$own/merkle/merkle.r1cs"
    refused "a verification key of another circuit" 'does not belong' "$proverq" circuit add bad "$files.zkey" --vkey "$own/merkle/vkey.json"
    files=$(files_of semaphore-identity)
    refused "semaphore-identity's shipped verification key is not its zkey's" 'does not belong' \
        "$proverq" circuit add bad "$files.zkey" --vkey "$files.vkey.json"
    refused "what is no WebAssembly" 'cannot be translated' "$proverq" circuit add bad "$files.zkey" --wasm "$files.vkey.json"
    echo '(module (func (export "main")))' >"$work/other.wat"
    wat2wasm "$work/other.wat" -o "$work/other.wasm"
    refused "WebAssembly that is no calculator" 'no witness calculator of circom' "$proverq" circuit add bad "$files.zkey" --wasm "$work/other.wasm"
    echo '(module (import "env" "system" (func (param i32))) (func (export "main") (call 0 (i32.const 1))))' >"$work/other.wat"
    wat2wasm "$work/other.wat" -o "$work/other.wasm"
    refused "an import that circom's do not have" 'cannot be compiled' "$proverq" circuit add bad "$files.zkey" --wasm "$work/other.wasm"
    sed 's/(memory /(memory $second 1) &/; s/BODY/(nop)/' "$root/tests/e2e/calculators/hostile.wat" >"$work/other.wat"
    wat2wasm --enable-all "$work/other.wat" -o "$work/other.wasm"
    refused "two memories" 'cannot be translated|it trapped' "$proverq" circuit add bad "$own/factor/factor.zkey" --wasm "$work/other.wasm"
    export_named '*/ __attribute__((constructor)) void f(void) { __builtin_trap(); } /*'
    refused "an export whose name is C" 'other.wasm cannot be translated: the name ".*constructor' "$proverq" circuit add bad "$own/factor/factor.zkey" --wasm "$work/other.wasm"
    export_named '*/\0a#include \22/etc/passwd\22\0a/*'
    refused "an export whose name includes a file" 'the name ".*\\x0a#include' "$proverq" circuit add bad "$own/factor/factor.zkey" --wasm "$work/other.wasm"
    refused "no compiler" 'no C compiler .*apt-get install' env CC=/nonexistent "$proverq" circuit add bad "$own/factor/factor.zkey" --wasm "$own/factor/factor.wasm"
    refused "no wasm2c" 'wasm2c is not there.*wabt' env PATH=/nonexistent "$proverq" circuit add bad "$own/factor/factor.zkey" --wasm "$own/factor/factor.wasm"
    refused "a program and a .wasm" 'not both' "$proverq" circuit add bad "$own/factor/factor.zkey" --wasm a --calculator b
    is "nothing was added" 0 "$(sql -c "select count(*) from proverq.circuit where name = 'bad'")"
}

# wasm2c_says VERSION [LINE]: the system's wasm2c, which says that it is of another version, and ends what it makes with LINE.
wasm2c_says() {
    mkdir -p "$work/other-wasm2c"
    cat >"$work/other-wasm2c/wasm2c" <<EOF
#!/bin/sh
[ "\$1" != --version ] || { echo "$1"; exit; }
"$(command -v wasm2c)" "\$@" && echo "${2-}" >>calculator.c
EOF
    chmod +x "$work/other-wasm2c/wasm2c"
}

# A wasm2c that is older than those that proverq knows is refused; a newer one is tried.
versions() {
    echo "-- versions"
    local add=(env PATH="$work/other-wasm2c:$PATH" "$proverq" circuit add) factor=("$own/factor/factor.zkey" --wasm "$own/factor/factor.wasm")
    wasm2c_says 1.0.27
    refused "a wasm2c that is too old" '1\.0\.27 is too old; known .*1\.0\.36 \(Debian 13\).*--calculator' "${add[@]}" old "${factor[@]}"
    wasm2c_says nothing
    refused "a wasm2c of no version" 'does not tell its version .*nothing.*known' "${add[@]}" old "${factor[@]}"
    wasm2c_says 2.0.0 '#error another interface'
    refused "a newer wasm2c whose output is another" '2\.0\.0 may be too new.*known .*another interface' "${add[@]}" newer "${factor[@]}"
    is "nothing was added" 0 "$(sql -c "select count(*) from proverq.circuit where name in ('old', 'newer')")"
    wasm2c_says '1.1.0 (git~1.1.0-7-g0123456)'
    ok "a newer wasm2c is tried" "${add[@]}" newer "${factor[@]}"
}

# hostile_wasm NAME BODY PATTERN: registers it for factor's key, and its partition fails with PATTERN.
hostile_wasm() {
    sed "s/BODY/$2/" "$root/tests/e2e/calculators/hostile.wat" >"$work/$1.wat"
    wat2wasm "$work/$1.wat" -o "$work/$1.wasm" || return
    add_circuit "$1" "$own/factor/factor.zkey" --wasm "$work/$1.wasm"
    fails "a calculator: $1" "$3" "$1" '{"p": 65521, "q": 49999}'
}

# hostile_program NAME PATTERN
hostile_program() {
    gcc -O1 -DDO="$1" -o "$work/$1" "$root/tests/e2e/calculators/program.c" -lpthread || return
    cp "$own/factor/witness.wtns" "$work/$1.dat"
    add_circuit "$1" "$own/factor/factor.zkey" --calculator "$work/$1"
    [ $# -lt 2 ] || fails "a program: $1" "$2" "$1" '{"p": 65521, "q": 49999}'
}

hostile() {
    echo "-- hostile"
    local job before calculators attack
    before=$(sql -c "select count(*) from proverq_private.prover")
    begin_finalizer
    begin_prover prover --synthesis-timeout 3s --synthesis-memory 300M
    add_circuit factor "$own/factor/factor.zkey" --wasm "$own/factor/factor.wasm"
    hostile_wasm loops '(loop $l (br $l))' 'took more than 3000 ms'
    hostile_wasm eats-memory '(loop $l (drop (memory.grow (i32.const 256))) (br $l))' 'more memory than --synthesis-memory'
    hostile_wasm gives-up '(unreachable)' 'cannot be reached'
    hostile_wasm reads-outside '(i32.store (i32.const 8) (i32.load (i32.const 0x7ffffff0)))' 'outside its memory'
    hostile_wasm writes-outside '(i32.store (i32.const -4) (i32.const 1))' 'outside its memory'
    hostile_wasm nests '(call $nest (i32.const 0))' 'nested too deep'
    hostile_wasm divides '(i32.store (i32.const 8) (i32.div_u (local.get 0) (i32.const 0)))' 'division by zero'
    hostile_wasm overflows '(i32.store (i32.const 8) (i32.div_s (i32.const 0x80000000) (i32.sub (local.get 2) (i32.const 1))))' 'integer overflowed'
    hostile_wasm converts '(i32.store (i32.const 8) (i32.trunc_f32_s (f32.div (f32.const 0) (f32.convert_i32_u (local.get 2)))))' 'a number that is none'
    hostile_wasm calls-wrongly '(call_indirect (type $other) (i64.const 0) (i32.const 0))' 'a wrong indirect call'
    hostile_wasm asserts '(call $exception (i32.const 4))' 'assertion of the circuit'
    hostile_wasm gives-zeros '(nop)' 'element 0|not 1'
    hostile_wasm gives-zeros-from-new-memory '(drop (memory.grow (i32.const 1))) (global.set $shared (i32.const 65536))' 'element 0|not 1'
    printf '%s\n' '{"p": 65521, "q": 49999}' >"$work/good.json"
    hostile_program 0
    job=$(enqueue_inputs 0 "$work/good.json")
    eventually "a good program's witness is proved" 60 "select state = 'finished' from proverq.job where job_seq = $job" ||
        sql -c "select error from proverq.partition where job_seq = $job"
    fails "a program that finds its inputs wrong" 'ended with status 6: other inputs' 0 '{"p": 65521, "q": 50000}'
    hostile_program READ_FILE 'status 3: /etc/passwd: Permission denied'
    hostile_program WRITE_FILE 'status 4: cannot write: Permission denied'
    is "it wrote nothing" '' "$(find "$work" -name '*.written')"
    hostile_program SOCKET 'system call that calculators may not make'
    hostile_program FORK 'system call that calculators may not make'
    hostile_program EXEC 'system call that calculators may not make'
    hostile_program KILL 'system call that calculators may not make'
    for attack in PRLIMIT SETOWN SETSIG NOTIFY; do
        hostile_program "$attack" 'system call that calculators may not make'
    done
    hostile_program THREADS 'more than 64 threads'
    hostile_program LOOP 'took more than 3000 ms'
    hostile_program EAT 'status 5: no memory'
    hostile_program CRASH 'crashed .*: an assertion of the program'
    hostile_program NOTHING 'wrote no witness'
    job=$(enqueue_inputs factor "$work/good.json")
    eventually "after all that a good calculator is at work" 60 "select state = 'finished' from proverq.job where job_seq = $job"
    is "each failed at its first attempt" 1 "$(sql -c "select max(attempt) from proverq.partition where state = 'failed'")"
    is "the prover is the same all along" 1 "$(sql -c "select count(*) - $before from proverq_private.prover")"
    calculators=$(pgrep -d, -P "${pids[prover]}" -f '^proverq calculator-process')
    ok "its calculator waits for more" test -n "$calculators"
    ends_well "the prover" prover
    is "and leaves no calculator behind" '' "$(ps -o pid=,args= -p "$calculators")"
    end finalizer
}

# A prover of another machine, and plain INSERTs, several partitions, cancelling, inputs that are deleted.
elsewhere() {
    echo "-- elsewhere"
    local job
    add_circuit elsewhere "$own/factor/factor.zkey" --wasm "$own/factor/factor.wasm"
    sql -c "update proverq_private.calculator set machine = 'vax' where circuit_id = (select circuit_id from proverq.circuit where name = 'elsewhere')"
    begin_finalizer
    begin_prover prover
    job=$(sql -c "insert into proverq.job (circuit, partitions) values ('elsewhere', 2) returning job_seq")
    sql -c "insert into proverq.partition (job_seq, partition_idx, inputs) select $job, i, '{\"p\": 65521, \"q\": 49999}' from generate_series(0, 1) i"
    eventually "without a calculator for its machine a prover gives the partition back" 30 \
        "select bool_or(error ~ 'no calculator for machines like this one') and max(failures) = 0 and bool_and(state in ('held', 'ready', 'leased')) from proverq.partition where job_seq = $job"
    eventually "and proverq.why says so" 30 "select proverq.why($job) ~ 'no calculator for machines like this one'"
    end prover
    ok "adding the circuit on this machine gives it one" "$proverq" circuit add elsewhere "$own/factor/factor.zkey" --wasm "$own/factor/factor.wasm"
    is "as the same version" 1 "$(sql -c "select count(*) from proverq.circuit where name = 'elsewhere'")"
    begin_prover prover
    eventually "then it is proved" 60 "select state = 'finished' from proverq.job where job_seq = $job"
    is "the inputs are deleted with the final state" 0 "$(sql -c "select count(*) from proverq.partition where job_seq = $job and inputs is not null")"
    job=$(sql -c "select proverq.enqueue('elsewhere', array_fill('{\"p\": 65521, \"q\": 49999}'::jsonb, array[40]))")
    eventually "forty partitions are proved" 120 "select state = 'finished' from proverq.job where job_seq = $job"
    end prover
    end finalizer
}

need_npm || exit
"$npm/fetch.sh" "${circuits[@]}"
ok "the schema is made" "$proverq" migrate up || finish
[ $# -gt 0 ] || set -- real wrong_inputs mismatches versions hostile elsewhere
for scenario in "$@"; do
    "$scenario"
    end_all
done
finish
