#!/usr/bin/env bash
# Proofs of real circuits, made by other people's tools and checked against them: the circuits of tests/circuits and,
# fetched from npm, those of tests/npm/real.tsv.
#
#   circuits.sh            all of them
#   circuits.sh NAME ...   only these
#
# For each: our proof verifies with snarkjs and with us, snarkjs's verifies with us, our verification key is snarkjs's and
# the shipped one, and everything that tamper.py makes is refused.
source "$(dirname "$0")/lib.sh"

own=(merkle factor range factor381)
real=(semaphore4-d20 semaphore4-d32 semaphore2-d16 unirep-epochKeyLite unirep-signup df-init df-whitelist semaphore-identity)
[ $# -eq 0 ] || { mapfile -t own < <(comm -12 <(printf '%s\n' "${own[@]}" | sort) <(printf '%s\n' "$@" | sort))
    mapfile -t real < <(comm -12 <(printf '%s\n' "${real[@]}" | sort) <(printf '%s\n' "$@" | sort)); }

need_npm || exit
[ ${#real[@]} -eq 0 ] || "$npm/fetch.sh" "${real[@]}"

# The same key, whatever the order and the white space; old ones lack the pairing that saves a verifier some time.
same_vkey() { # shellcheck disable=SC2317
    diff <(jq -S 'del(.vk_alphabeta_12)' "$1") <(jq -S 'del(.vk_alphabeta_12)' "$2")
}

both_ways() {
    local name=$1 zkey=$2 wtns=$3 dir=$4
    ok "$name: snarkjs exports its key" snarkjs zkey export verificationkey "$zkey" "$dir/theirs.vkey.json"
    ok "$name: we prove" "$proverq" prove "$zkey" "$wtns" "$dir/proof.json" "$dir/public.json"
    ok "$name: snarkjs verifies our proof" snarkjs groth16 verify "$dir/theirs.vkey.json" "$dir/public.json" "$dir/proof.json"
    ok "$name: we verify our proof" "$proverq" verify "$dir/theirs.vkey.json" "$dir/public.json" "$dir/proof.json"
    ok "$name: snarkjs proves" snarkjs groth16 prove "$zkey" "$wtns" "$dir/theirs.json" "$dir/theirs.public.json"
    ok "$name: we verify snarkjs's proof" "$proverq" verify "$dir/theirs.vkey.json" "$dir/theirs.public.json" "$dir/theirs.json"
    ok "$name: the public values agree" diff <(jq -c . "$dir/public.json") <(jq -c . "$dir/theirs.public.json")
}

vkeys() {
    local name=$1 zkey=$2 shipped=$3 dir=$4
    "$proverq" vkey "$zkey" >"$dir/ours.vkey.json"
    ok "$name: it is the one that snarkjs exports" diff <(jq -S . "$dir/ours.vkey.json") <(jq -S . "$dir/theirs.vkey.json")
    [ -f "$shipped" ] || return 0
    if [ "$name" = semaphore-identity ]; then
        refused "$name: the shipped key is noticed to be another" '' same_vkey "$dir/ours.vkey.json" "$shipped"
        refused "$name: no proof verifies with it" invalid "$proverq" verify "$shipped" "$dir/public.json" "$dir/proof.json"
    else
        ok "$name: it is the shipped one" same_vkey "$dir/ours.vkey.json" "$shipped"
    fi
}

# Each false proof is refused; those with a point outside the subgroup, for that reason.
false_proofs() {
    local name=$1 dir=$2 case reason accepted=() said
    mkdir "$dir/false"
    python3 "$root/tests/e2e/tamper.py" "$dir/proof.json" "$dir/public.json" "$dir/false"
    for proof in "$dir"/false/*.proof.json; do
        case=$(basename "$proof" .proof.json)
        reason=invalid
        [[ $case != subgroup-* ]] || reason='invalid.*subgroup'
        said=$("$proverq" verify "$dir/theirs.vkey.json" "${proof%.proof.json}.public.json" "$proof" 2>&1)
        [ $? -eq 1 ] && grep -q "$reason" <<<"$said" || accepted+=("$case: $said")
    done
    is "$name: $(find "$dir/false" -name '*.proof.json' | wc -l) false proofs are refused" '' "${accepted[*]-}"
}

# What contracts and Filecoin take: calldata as snarkjs writes it, and for BLS12-381 192 bytes.
other_forms() {
    local name=$1 zkey=$2 wtns=$3 dir=$4
    if [ "$(jq -r .curve "$dir/proof.json")" = bn128 ]; then
        ok "$name: we write calldata" "$proverq" prove --calldata "$dir/calldata" "$zkey" "$wtns" "$dir/proof.json" "$dir/public.json"
        is "$name: it is snarkjs's" "$(cd "$dir" && snarkjs zkey export soliditycalldata public.json proof.json | tr -d ' \n')" \
            "$(tr -d ' \n' <"$dir/calldata")"
    else
        ok "$name: we write the short form" "$proverq" prove --compressed "$dir/short" "$zkey" "$wtns" "$dir/proof.json" "$dir/public.json"
        is "$name: it has 192 bytes" 192 "$(wc -c <"$dir/short")"
    fi
}

circuit() {
    local name=$1 zkey=$2 wtns=$3 shipped=$4 dir=$work/$1
    both_ways "$name" "$zkey" "$wtns" "$dir"
    vkeys "$name" "$zkey" "$shipped" "$dir"
    false_proofs "$name" "$dir"
    other_forms "$name" "$zkey" "$wtns" "$dir"
}

for name in "${own[@]}"; do
    mkdir "$work/$name"
    circuit "$name" "$root/tests/circuits/$name/$name.zkey" "$root/tests/circuits/$name/witness.wtns" "$root/tests/circuits/$name/vkey.json"
done
for name in "${real[@]}"; do
    mkdir "$work/$name"
    files=$root/.cache/circuits/$name/$name
    ok "$name: snarkjs computes the witness" snarkjs wtns calculate "$files.wasm" "$root/tests/circuits/real/$name.json" "$work/$name/w.wtns" || continue
    circuit "$name" "$files.zkey" "$work/$name/w.wtns" "$files.vkey.json"
done

# A circom 1 calculator that takes an input outside the circuit and says nothing: the witness breaks a constraint.
if [[ " ${real[*]} " == *" df-init "* ]]; then
    files=$root/.cache/circuits/df-init/df-init
    jq '.x = "100" | .y = "200" | .r = "1000"' "$root/tests/circuits/real/df-init.json" >"$work/bad.json"
    ok "df-init: the calculator takes a wrong input" snarkjs wtns calculate "$files.wasm" "$work/bad.json" "$work/bad.wtns"
    refused "df-init: the bad witness is refused" 'does not satisfy' \
        "$proverq" prove "$files.zkey" "$work/bad.wtns" "$work/bad.proof.json" "$work/bad.public.json"
    ok "df-init: and leaves no proof" test ! -e "$work/bad.proof.json"
fi
finish
