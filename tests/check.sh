#!/usr/bin/env bash
# Everything that checks proverq, part by part: what `make check` runs.
#
#   check.sh            all parts
#   check.sh PART ...   those of `parts` below
#
# Any number of runs may be under way, also in one checkout: there a part waits for the same part of another run.
#
# Each part's output is in build/check/PART.log; here come its closing lines, how long it took, and in the end what failed
# and the sum: who sees only the last lines of a long run sees why it failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
out=$PWD/build/check
postgres=$out/postgres.$$ # another run in this checkout has its own
passed=0 failed=0 times='' failures=''
parts='packages build unit
    sql isolation migrations queue
    cli circuits service roles
    webhooks
    synthesis pipeline evidence
    control pgbouncer systemd
    readme demo lint sanitizers valgrind'
jobs=$(nproc)
export MAKEFLAGS='' # a dry run or -k of the caller is not for what is run here

# Adds the closing lines of Check and of our own scripts to the sums; prints "passed failed" for one log.
tally() {
    sed -nE -e 's/^[0-9]+%: Checks: ([0-9]+), Failures: ([0-9]+), Errors: ([0-9]+)$/\1 \2 \3/p' \
        -e 's/^([0-9]+) passed, ([0-9]+) failed$/\1 \2 - 0/p' "$1" |
        awk '$3 == "-" { p += $1; f += $2; next } { p += $1 - $2 - $3; f += $2 + $3 } END { print p + 0, f + 0 }'
}

what_failed() {
    grep -E '^  FAIL|^tests/.*:[FE]:|: error:|^make.*Error|exit status [1-9]|^(=+[0-9]+=+)?(ERROR|WARNING): |^SUMMARY: ' "$1" || echo "see $1"
}

part() {
    local name=$1 log=$out/$1.log start=$SECONDS status ran wrong took
    shift
    echo "== $name"
    exec 9>"$out/$name.lock"
    flock 9
    "$@" >"$log" 2>&1 </dev/null 9>&-
    status=$?
    took=$((SECONDS - start))
    read -r ran wrong < <(tally "$log")
    if [ $status -ne 0 ] && [ "$wrong" -eq 0 ]; then wrong=1; fi
    if [ $status -eq 0 ] && [ "$ran" -eq 0 ]; then ran=1; fi
    passed=$((passed + ran)) failed=$((failed + wrong))
    grep -E '^[0-9]+%: Checks:|^[0-9]+ passed, [0-9]+ failed$' "$log" | sed 's/^/   /'
    if [ "$wrong" -gt 0 ]; then
        what_failed "$log" | head -n 40
        failures+=$(what_failed "$log" | head -n 8 | sed "s/^ */  $name: /")$'\n'
        echo "   --- the end of $log:"
        tail -n 30 "$log" | sed 's/^/   /'
    fi
    exec 9>&-
    times+=$(printf '%-12s %5d s   %5d passed, %d failed' "$name" $took "$ran" "$wrong")$'\n'
}

build() {
    nice make -j"$jobs" build tests
}

# Runs the unit tests of the given build below FOLDER, "gpu" or "service".
unit_tests() {
    local test start wrong status=0
    for test in "$1"/tests/"$2"/test_* "$1"/tests/"$2"/*/test_*; do
        [[ -x $test && $test != *.[od] && ${test##*/} =~ ${3-} ]] || continue
        start=$SECONDS wrong=0
        nice "$test" || wrong=$?
        echo "-- $test: $((SECONDS - start)) s, exit status $wrong"
        [ $wrong -eq 0 ] || status=1
    done
    return $status
}

# All of them: those of gpu/ compute while those of service/, which find a PostgreSQL of their own by PROVERQ_TEST_DSN, wait.
unit() {
    local status=0
    unit_tests "$1" gpu "${2-}" >"$out/gpu.$$.log" 2>&1 &
    unit_tests "$1" service "${2-}" || status=1
    wait $! || status=1
    cat "$out/gpu.$$.log"
    return $status
}

with_postgres() {
    local status PROVERQ_TEST_DSN
    PROVERQ_TEST_DSN=$(contrib/scripts/private-postgres.sh start "$postgres") || return 1
    export PROVERQ_TEST_DSN
    "$@"
    status=$?
    contrib/scripts/private-postgres.sh remove "$postgres"
    return $status
}

# All unit tests under ASan and UBSan; under TSan those whose subject is threads.
sanitizers() {
    local status=0 threads='_(pool|prover|backend_cpu|activity|queue|leases|buffers|pipeline|keyring|synthesis|verify|heartbeat|evidence|timeline|log|stop|webhook|finalizer|janitor)$' tests
    export CFLAGS='-O1 -g'
    nice make -j"$jobs" SAN=address,undefined tests || status=1
    unit build/san-address-undefined || status=1
    mapfile -t tests < <(printf '%s\n' tests/gpu/test_*.c tests/service/*/test_*.c | sed 's/\.c$//' | grep -E "$threads" | sed 's|^|build/san-thread/|')
    nice make -j"$jobs" SAN=thread "${tests[@]}" || status=1
    unit build/san-thread "$threads" || status=1
    return $status
}

# The leak of a byte, or the use of one that nobody wrote, in a proof and its verification on each curve.
valgrind_run() {
    nice valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect "$@"
}
valgrind_proofs() {
    local circuit files dir=$out/valgrind ran=0 wrong=0
    count() { if [ "$1" -eq "$2" ]; then ran=$((ran + 1)); else wrong=$((wrong + 1)); fi; }
    mkdir -p "$dir"
    for circuit in factor factor381 range; do
        files=tests/circuits/$circuit
        valgrind_run build/proverq prove $files/$circuit.zkey $files/witness.wtns "$dir/proof.json" "$dir/public.json"
        count $? 0
        valgrind_run build/proverq verify $files/vkey.json "$dir/public.json" "$dir/proof.json"
        count $? 0
        valgrind_run build/proverq prove $files/$circuit.zkey tests/circuits/merkle/witness.wtns "$dir/proof.json" "$dir/public.json"
        count $? 1
    done
    echo "$ran passed, $wrong failed"
    [ $wrong -eq 0 ]
}

run_part() {
    case $1 in
    packages) part packages contrib/scripts/install-packages.sh ;;
    build) part build build ;;
    unit) part unit with_postgres unit build ;;
    sql) part sql tests/sql/run.sh ;;
    isolation) part isolation nice tests/isolation/run.sh ;;
    migrations) part migrations nice tests/migrations/run.sh ;;
    cli) part cli nice tests/cli/run.sh ;;
    circuits) part circuits nice tests/e2e/circuits.sh ;;
    service) part service nice tests/e2e/service.sh ;;
    roles) part roles nice tests/e2e/roles.sh ;;
    webhooks) part webhooks nice tests/e2e/webhooks.sh ;;
    pipeline) part pipeline nice tests/e2e/pipeline.sh ;;
    evidence) part evidence nice tests/e2e/evidence.sh ;;
    synthesis) part synthesis nice tests/e2e/synthesis.sh ;;
    control) part control nice tests/e2e/control.sh ;;
    systemd) part systemd nice tests/e2e/systemd.sh ;;
    queue) part queue nice tests/bench/bench_queue.sh smoke ;;
    pgbouncer) part pgbouncer nice tests/e2e/pgbouncer.sh ;;
    readme) part readme nice tests/e2e/readme.sh ;;
    demo) part demo nice tests/e2e/demo.sh ;;
    lint) part lint nice tests/lint.sh ;;
    sanitizers) part sanitizers with_postgres sanitizers ;;
    valgrind) part valgrind valgrind_proofs ;;
    *) echo "check.sh: there is no part $1" >&2 && exit 2 ;;
    esac
}

mkdir -p "$out"
trap 'contrib/scripts/private-postgres.sh remove "$postgres" 2>/dev/null' EXIT
trap 'exit 130' INT TERM
# shellcheck disable=SC2086 # words
[ $# -gt 0 ] || set -- $parts
for name in "$@"; do run_part "$name"; done
echo
printf '%s' "$times"
echo
[ -z "$failures" ] || printf 'what failed:\n%s\n' "$failures"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
