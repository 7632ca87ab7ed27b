#!/usr/bin/env bash
# proverq against snarkjs, and rapidsnark when it is on PATH, on the same files in one run: whole commands, from the files
# of key and witness to that of the proof. Every proof is verified by the other side before a time is printed.
#
#   compare.sh [CASE ...]      a case is CURVE/KIND/LOG2; default: bn128 bits and dense at 2^14 and 2^17, bls12381 at 2^14
#   RUNS=5 compare.sh          median of 5 runs in turn (default 3)
set -euo pipefail
cd "$(dirname "$0")/../.."
files=$PWD/build/bench
runs=${RUNS:-3}
proverq=$PWD/build/proverq
snarkjs=$PWD/tests/npm/node_modules/.bin/snarkjs

[ $# -gt 0 ] || set -- bn128/bits/14 bn128/dense/14 bn128/bits/17 bn128/dense/17 bls12381/bits/14 bls12381/dense/14
mkdir -p "$files"
[ -x "$snarkjs" ] || (cd tests/npm && npm ci --silent --no-audit --no-fund --ignore-scripts)

fail() {
    echo "compare.sh: $*" >&2
    exit 1
}

# Makes circuit, witness and a development key once; the same names give the same circuit.
prepare() {
    local curve=$1 kind=$2 log2=$3 at=$4
    [ -f "$at.vkey.json" ] && return
    build/tests/bench/make_circuit "$curve" "$kind" "$log2" 2 "$at.r1cs" "$at.wtns"
    "$proverq" setup "$at.r1cs" "$at.zkey" >/dev/null
    node "$snarkjs" zkey export verificationkey "$at.zkey" "$at.vkey.json" >/dev/null
}

# The command of a prover for one case.
command_of() {
    case $1 in
    proverq) echo "$proverq" prove "$2.zkey" "$2.wtns" "$2.proverq.json" "$2.proverq.public.json" --device cpu ;;
    snarkjs) echo node "$snarkjs" groth16 prove "$2.zkey" "$2.wtns" "$2.snarkjs.json" "$2.snarkjs.public.json" ;;
    rapidsnark) echo rapidsnark "$2.zkey" "$2.wtns" "$2.rapidsnark.json" "$2.rapidsnark.public.json" ;;
    esac
}

# Ours is verified by snarkjs, the others' by us.
verify() {
    if [ "$1" = proverq ]; then
        node "$snarkjs" groth16 verify "$2.vkey.json" "$2.$1.public.json" "$2.$1.json" >/dev/null
    else
        "$proverq" verify "$2.vkey.json" "$2.$1.public.json" "$2.$1.json" >/dev/null
    fi || fail "the proof of $1 for $2 does not verify"
}

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

compare() {
    local curve kind log2 tool at provers=(proverq snarkjs) command
    IFS=/ read -r curve kind log2 <<<"$1"
    at=$files/$curve-$kind-$log2
    prepare "$curve" "$kind" "$log2" "$at"
    if [ "$curve" = bn128 ] && command -v rapidsnark >/dev/null; then provers+=(rapidsnark); fi
    rm -f "$at".*.times
    for ((i = 0; i < runs; i++)); do
        for tool in "${provers[@]}"; do
            read -ra command < <(command_of "$tool" "$at")
            tests/bench/measure.py "${command[@]}" 2>"$at.log" >>"$at.$tool.times" || { cat "$at.log" >&2; fail "$tool failed"; }
            verify "$tool" "$at"
        done
    done
    local ours_s ours_mb s mb
    ours_s=$(cut -d' ' -f1 "$at.proverq.times" | median)
    ours_mb=$(cut -d' ' -f2 "$at.proverq.times" | median)
    for tool in "${provers[@]}"; do
        s=$(cut -d' ' -f1 "$at.$tool.times" | median)
        mb=$(cut -d' ' -f2 "$at.$tool.times" | median)
        awk -v c="$curve $kind 2^$log2" -v t="$tool" -v s="$s" -v mb="$mb" -v os="$ours_s" -v om="$ours_mb" \
            'BEGIN { printf "| %-20s | %-10s | %8.2f | %6d | %6.1f | %6.1f |\n", c, t, s, mb, s / os, mb / om }'
    done
}

echo "$(nproc) cores; median of $runs runs; the ratios are to proverq's"
echo "| circuit              | prover     |  seconds |     MB |   time | memory |"
echo "|----------------------|------------|----------|--------|--------|--------|"
for case in "$@"; do compare "$case"; done
