#!/usr/bin/env bash
# The program as a user meets it: help, usage errors, exit statuses, and the commands that work on files.
# (Proofs against other people's tools: tests/e2e/circuits.sh.)
set -uo pipefail
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../e2e/lib.sh"
circuits=$root/tests/circuits
unset "${!PROVERQ_@}"
cd "$work" || exit

# status WANT NAME COMMAND ...: runs it into the files `out` and `err`; its exit status must be WANT.
status() {
    local want=$1 name=$2 have
    shift 2
    "$@" >out 2>err </dev/null
    have=$?
    if [ "$have" -eq "$want" ]; then pass "$name"; else fail "$name" "exit status $have, not $want: $*" "$(cat out err)"; fi
}
says() {
    if grep -qF -- "$3" "$2"; then pass "$1"; else fail "$1" "not in $2: $3" "$(cat "$2")"; fi
}
silent() {
    is "$1" '' "$(cat "$2")"
}

commands=(serve prover finalizer 'migrate up' 'migrate down' 'migrate plan' 'migrate status' 'migrate export' 'circuit add' 'circuit list' 'circuit show'
    'circuit rm' listen prove verify vkey setup)

echo "help and usage"
status 0 "--help" "$proverq" --help
for command in "${commands[@]}"; do says "--help names $command" out "  $command"; done
is "and no other command" "${#commands[@]}" "$(sed -n '/^commands:/,/^$/p' out | grep -c '^  [a-z]')"
for command in "${commands[@]}"; do
    # shellcheck disable=SC2086 # two words
    status 0 "$command --help" "$proverq" $command --help
    says "$command --help gives its usage" out "usage: proverq $command "
done
status 0 "--version" "$proverq" --version
ok "--version is one line of name and number" grep -qxE 'proverq [0-9]+\.[0-9]+\.[0-9]+' out
status 2 "no command is wrong usage" "$proverq"
status 2 "an unknown command is wrong usage" "$proverq" provve
says "and the nearest is named" err 'proverq prove'
status 2 "half a command is wrong usage" "$proverq" circuit
says "and the other halves are named" err 'circuit add, circuit list, circuit show, circuit rm'
status 2 "an unknown option is wrong usage" "$proverq" serve --webhook-alow 10.0.0.0/8
says "and the nearest is named with its help" err '--webhook-allow CIDR: private network'
silent "nothing of it goes to standard output" out
status 2 "a missing argument is wrong usage" "$proverq" prove key witness proof
says "and the usage is shown" err 'usage: proverq prove KEY.zkey WITNESS.wtns PROOF.json PUBLIC.json'
status 2 "a wrong value is wrong usage" env PROVERQ_LEASE=soon "$proverq" prover
says "and its source is named" err 'PROVERQ_LEASE: "soon" is not a time'
status 1 "a full disk is noticed" sh -c "'$proverq' vkey $circuits/factor/factor.zkey >/dev/full"

echo "prove and verify"
for name in factor merkle range factor381; do
    files=$circuits/$name
    rm -f proof.json public.json
    status 0 "$name: prove" "$proverq" prove "$files/$name.zkey" "$files/witness.wtns" proof.json public.json
    silent "$name: standard output stays empty" out
    is "$name: standard error is the line that names the device" 1 "$(grep -c '^proverq: proved on c.* in .* ms$' err)$(sed 1d err)"
    ok "$name: the public values are snarkjs's" diff <(jq -c . public.json) <(jq -c . "$files/public.json")
    status 0 "$name: verify" "$proverq" verify "$files/vkey.json" public.json proof.json
    is "$name: says valid" valid "$(cat out)"
    silent "$name: and nothing on standard error" err
    status 0 "$name: vkey" "$proverq" vkey "$files/$name.zkey"
    ok "$name: the verification key is snarkjs's" diff <(jq -cS . out) <(jq -cS . "$files/vkey.json")
done
files=$circuits/merkle
status 0 "--verbose" "$proverq" prove --verbose "$files/merkle.zkey" "$files/witness.wtns" proof.json public.json
says "shows the steps" err '  msm_h'
cp proof.json first.json
status 0 "prove again" "$proverq" prove "$files/merkle.zkey" "$files/witness.wtns" proof.json public.json
refused "two proofs of one witness differ" '' diff first.json proof.json
status 1 "a device that is missing is an error" "$proverq" prove --device cuda:999 "$files/merkle.zkey" "$files/witness.wtns" x.json y.json
says "and named" err cuda:999
ok "no other device is taken for it" test ! -e x.json
status 0 "what is no file can be written to" "$proverq" prove --device cpu "$files/merkle.zkey" "$files/witness.wtns" /dev/null /dev/stdout
ok "and stays what it was" test -c /dev/null -a -L /dev/stdout
ok "and gets what it should" diff <(jq -c . out) <(jq -c . "$files/public.json")

echo "other forms"
status 0 "--calldata" "$proverq" prove --calldata call "$files/merkle.zkey" "$files/witness.wtns" proof.json public.json
ok "has four arguments" jq -e 'length == 4' <(echo "[$(cat call)]")
status 0 "--compressed" "$proverq" prove --compressed short "$circuits/range/range.zkey" "$circuits/range/witness.wtns" proof.json public.json
is "has 192 bytes" 192 "$(wc -c <short)"
rm -f x.json
status 2 "--calldata of another curve is refused" "$proverq" prove --calldata call "$circuits/range/range.zkey" "$circuits/range/witness.wtns" x.json y.json
status 2 "--compressed of another curve is refused" "$proverq" prove --compressed short "$files/merkle.zkey" "$files/witness.wtns" x.json y.json
ok "before anything is written" test ! -e x.json

echo "what is wrong is refused"
bad() { # bad NAME STATUS TEXT COMMAND ...: refused with the text on standard error, earlier results untouched
    local name=$1 want=$2 text=$3
    shift 3
    echo before >kept.json
    status "$want" "$name" "$@" kept.json kept2.json
    says "$name: says why" err "$text"
    is "$name: nothing is written" before "$(cat kept.json)$(ls kept2.json kept.json.* 2>/dev/null)"
}
cp "$files/witness.wtns" bad.wtns
printf '\x01\x02' | dd of=bad.wtns bs=1 seek=$(($(stat -c %s bad.wtns) - 32)) conv=notrunc status=none
bad "a witness that breaks the circuit" 1 'does not satisfy the circuit' "$proverq" prove "$files/merkle.zkey" bad.wtns
bad "another circuit's witness" 1 signals "$proverq" prove "$files/merkle.zkey" "$circuits/factor/witness.wtns"
bad "another curve's witness" 1 bls12381 "$proverq" prove "$circuits/factor/factor.zkey" "$circuits/factor381/witness.wtns"
bad "a missing key" 1 nowhere.zkey "$proverq" prove nowhere.zkey "$files/witness.wtns"
head -c 5000 "$files/merkle.zkey" >short.zkey
bad "a truncated key" 1 short.zkey "$proverq" prove short.zkey "$files/witness.wtns"
head -c 500 "$files/witness.wtns" >short.wtns
bad "a truncated witness" 1 short.wtns "$proverq" prove "$files/merkle.zkey" short.wtns
bad "a key that is a folder" 1 "$circuits" "$proverq" prove "$circuits" "$files/witness.wtns"
status 1 "a folder that is missing" "$proverq" prove "$files/merkle.zkey" "$files/witness.wtns" p.json nowhere/q.json
ok "leaves no half result" test ! -e p.json
status 1 "a disk that is full" "$proverq" prove "$files/merkle.zkey" "$files/witness.wtns" p.json /dev/full

echo "one file under two names"
mkdir here elsewhere
one_file() { # one_file NAME COMMAND ...: refused before anything starts; key, witness and constraints stay
    local name=$1
    shift
    cp "$files/merkle.zkey" here/k
    cp "$files/witness.wtns" here/w
    cp "$files/merkle.r1cs" here/c
    ln -f here/k here/hard
    ln -sfn ../here/k elsewhere/link
    ln -sfn ../here here/folder
    ln -sfn ../here/new elsewhere/dangling
    status 2 "$name" "$@"
    says "$name: says so" err ' are one file: '
    ok "$name: the key is kept" cmp here/k "$files/merkle.zkey"
    ok "$name: the witness is kept" cmp here/w "$files/witness.wtns"
    ok "$name: the constraints are kept" cmp here/c "$files/merkle.r1cs"
    is "$name: nothing is written" 'c folder hard k w ' "$(find here -mindepth 1 -printf '%f\n' | sort | tr '\n' ' ')"
}
one_file "the proof over the key" "$proverq" prove here/k here/w here/k here/new
one_file "the public values over the key" "$proverq" prove here/k here/w here/new here/k
one_file "the proof over the witness" "$proverq" prove here/k here/w here/new ./here/w
one_file "the key under its whole name" "$proverq" prove here/k here/w "$PWD/elsewhere/../here/k" here/new
one_file "the key's second name" "$proverq" prove here/k here/w here/hard here/new
one_file "a link to the key" "$proverq" prove here/k here/w elsewhere/link here/new
one_file "a key that was given as a link" "$proverq" prove elsewhere/link here/w here/k here/new
one_file "the key in a linked folder" "$proverq" prove here/k here/w here/folder/k here/new
one_file "proof and public values in one file" "$proverq" prove here/k here/w here/new ./here/new
one_file "the same in a linked folder" "$proverq" prove here/k here/w here/new here/folder/new
one_file "the same behind a link to no file" "$proverq" prove here/k here/w elsewhere/dangling here/new
one_file "calldata over the witness" "$proverq" prove --calldata here/w here/k here/w here/new here/new2
one_file "calldata over the proof" "$proverq" prove --calldata here/new here/k here/w here/new here/new2
one_file "a compressed proof over the key" "$proverq" prove --compressed here/k here/k here/w here/new here/new2
one_file "standard output over the key" sh -c "'$proverq' prove here/k here/w /dev/stdout here/new 1<>here/k"
one_file "a verification key after its key" sh -c "'$proverq' vkey here/k >>here/k"
one_file "a key over its constraints" "$proverq" setup here/c here/c
one_file "the same by a longer name" "$proverq" setup here/c "$PWD/here/folder/c"
status 0 "two outputs to one device are allowed" "$proverq" prove here/k here/w /dev/null /dev/null
echo before >here/target
ln -s ../here/target elsewhere/to-target
status 1 "an output behind a link, whose command fails" sh -c "trap '' XFSZ; ulimit -f 0; exec '$proverq' prove here/k here/w elsewhere/to-target here/new"
is "stays whole" before "$(cat here/target)"
status 0 "an output behind a link" "$proverq" prove here/k here/w elsewhere/to-target elsewhere/dangling
ok "is written where the link leads" jq -e .pi_a here/target
ok "also if there was no file" jq -e 'length > 0' here/new
ok "and the links stay" test -L elsewhere/to-target -a -L elsewhere/dangling
rm -f here/new
status 1 "an output in place of a folder" "$proverq" prove here/k here/w here/new elsewhere
ok "leaves no other output" test ! -e here/new
status 1 "a device that is full" "$proverq" prove here/k here/w here/new /dev/full
ok "leaves no other output either" test ! -e here/new

"$proverq" prove "$files/merkle.zkey" "$files/witness.wtns" proof.json public.json 2>err
invalid() { # invalid NAME VKEY PUBLIC PROOF
    status 1 "$1 is invalid" "$proverq" verify "${@:2}"
    ok "$1: says so" grep -q '^invalid: ' out
    silent "$1: on standard output alone" err
}
jq -c '.[0] = (.[0] | .[:-1] + if endswith("7") then "8" else "7" end)' public.json >other.json
invalid "a proof for another public value" "$files/vkey.json" other.json proof.json
invalid "a proof of another circuit" "$circuits/factor/vkey.json" public.json proof.json
invalid "a proof of another curve" "$files/vkey.json" public.json "$circuits/range/proof.json"
jq -c '.pi_a[0] = "1"' proof.json >other.json
invalid "a point off the curve" "$files/vkey.json" public.json other.json
jq -c '.pi_c = ["0", "1", "0"]' proof.json >other.json
invalid "a point at infinity" "$files/vkey.json" public.json other.json
head -c 100 proof.json >other.json
invalid "half a proof" "$files/vkey.json" public.json other.json
jq -c '.[1:]' public.json >other.json
invalid "a public value too few" "$files/vkey.json" other.json proof.json
jq -c --arg r 21888242871839275222246405745257275088548364400416034343698204186575808495617 '.[0] = $r' public.json >other.json
invalid "a public value that is r" "$files/vkey.json" other.json proof.json
status 1 "a missing proof is an error" "$proverq" verify "$files/vkey.json" public.json nowhere.json
says "and named" err nowhere.json
silent "but no verdict" out
names() { # names NAME FILE VKEY PUBLIC PROOF: it is invalid, and the file that is at fault is named
    invalid "$1" "${@:3}"
    says "$1: names the file" out "invalid: $2: "
}
jq -c '.vk_alpha_1[0] = "1"' "$files/vkey.json" >other-key.json
names "a verification key off its curve" other-key.json other-key.json public.json proof.json
jq -c '.vk_alpha_1[0] = "x"' "$files/vkey.json" >other-key.json
names "a verification key without numbers" other-key.json other-key.json public.json proof.json
jq -c '.[0] = "x"' public.json >other.json
names "a public value that is no number" other.json "$files/vkey.json" other.json proof.json
jq -c '.[1:]' public.json >other.json
names "missing public values" other.json "$files/vkey.json" other.json proof.json
jq -c '.pi_a[0] = "1"' proof.json >other.json
names "a proof off its curve" other.json "$files/vkey.json" public.json other.json
cp "$files/merkle.zkey" bad.zkey
alpha=$(($(LC_ALL=C grep -obUaP '\x02\x00\x00\x00.{8}\x20\x00\x00\x00' bad.zkey | head -n 1 | cut -d: -f1) + 12 + 4 + 32 + 4 + 32 + 12))
printf '\x01\x02' | dd of=bad.zkey bs=1 seek=$alpha conv=notrunc status=none
bad "a key whose alpha is off the curve" 1 'bad.zkey: ' "$proverq" prove bad.zkey "$files/witness.wtns"

echo "what snarkjs takes"
for curve in bn-128 BN128 bn254 alt-bn128 alt_bn128; do
    jq -c --arg curve "$curve" '.curve = $curve' "$files/vkey.json" >other-key.json
    status 0 "a key of $curve" "$proverq" verify other-key.json public.json proof.json
    jq -c --arg curve "$curve" '.curve = $curve' proof.json >other.json
    status 0 "a proof of $curve" "$proverq" verify "$files/vkey.json" public.json other.json
done
jq -c 'del(.protocol)' proof.json >other.json
jq -c 'del(.protocol)' "$files/vkey.json" >other-key.json
status 0 "a proof and a key that name no protocol" "$proverq" verify other-key.json public.json other.json
jq -c '.protocol = "plonk"' proof.json >other.json
invalid "a proof of another protocol" "$files/vkey.json" public.json other.json

echo "keys that prove nothing"
status 0 "setup" "$proverq" setup "$circuits/merkle/merkle.r1cs" made.zkey
says "says that the key is INSECURE" out INSECURE
ok "and marks it so" grep -qa 'INSECURE: made by proverq setup' made.zkey
status 0 "its proofs are made" "$proverq" prove made.zkey "$files/witness.wtns" proof.json public.json
says "with a warning" err 'made.zkey is an INSECURE development key'
status 0 "its verification key" "$proverq" vkey made.zkey
cp out made.json
says "too" err 'made.zkey is an INSECURE development key'
status 0 "its proof is valid" "$proverq" verify made.json public.json proof.json
status 1 "setup of what is no circuit" "$proverq" setup "$files/merkle.zkey" made2.zkey
status 1 "setup in a missing folder" "$proverq" setup "$circuits/merkle/merkle.r1cs" nowhere/made.zkey
ok "leaves nothing" test ! -e made2.zkey

need_npm || exit
{
    snarkjs powersoftau new bn128 6 tau0 && snarkjs powersoftau contribute tau0 tau1 --name=test -e="$RANDOM$RANDOM" &&
        snarkjs powersoftau prepare phase2 tau1 tau &&
        snarkjs groth16 setup "$circuits/factor/factor.r1cs" tau open.zkey
} >snarkjs.log 2>&1 || fail "snarkjs makes a key without a second phase" "$(cat snarkjs.log)"
status 0 "a key with gamma = delta proves" "$proverq" prove open.zkey "$circuits/factor/witness.wtns" proof.json public.json
says "with a warning" err 'anybody can forge proofs'
"$proverq" vkey open.zkey >open.json 2>/dev/null
ok "to a proof that snarkjs takes" snarkjs groth16 verify open.json public.json proof.json
invalid "under a forgeable key every proof" open.json public.json proof.json
says "for that reason" out delta
cp "$circuits/factor/witness.wtns" bad.wtns
printf '\x01\x02' | dd of=bad.wtns bs=1 seek=$(($(stat -c %s bad.wtns) - 32)) conv=notrunc status=none
bad "gamma = delta hides no bad witness" 1 'does not satisfy' "$proverq" prove open.zkey bad.wtns

finish
