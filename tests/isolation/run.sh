#!/usr/bin/env bash
# Two and three sessions, step by step, in every order that matters: PostgreSQL's isolation tests of our functions.
#
#   tests/isolation/run.sh                  all specs, then whether they notice seeded faults
#   tests/isolation/run.sh NAME ...         specs/NAME.spec
#   tests/isolation/run.sh --faults         only the seeded faults
#   UPDATE=1 tests/isolation/run.sh ...     and write what came out to expected/
#
# A spec (specs/*.spec) is in the format of PostgreSQL's isolationtester, which runs it: it holds one connection per session,
# sends the steps in the order of a permutation, and learns from the server when one is blocked. Debian and Ubuntu have it in
# postgresql-client-NN, which psql needs anyway; so there is no runner of our own. A spec without permutations is run in all
# orders; where sessions block each other only some orders can be, and they are listed.
#
# Each permutation begins with an empty queue (iso.fresh) and ends with iso.verdict() of lib.sql, which looks for everything
# that must not be: a partition claimed or recorded twice, a stale result accepted, an earlier partition overtaken, counts that
# are wrong, inputs lost, a job finalized twice or never. Then it lets one prover do all that is left and looks again.
#
# condense.awk makes one line of each permutation; those lines must be the ones in expected/NAME.out. A verdict other than "all is
# well", a deadlock, and a claim, heartbeat or finalizer that waits for a lock fail whatever expected/ says.
#
# The database is PROVERQ_TEST_DSN's, whose schema proverq is made anew; without it, that of a private PostgreSQL.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
here=tests/isolation
work=$(mktemp -d)
chmod 711 "$work" # the server may run as another user
dsn=${PROVERQ_TEST_DSN-}
passed=0 failed=0
# As the service sets its own sessions (service/db.c).
export PGOPTIONS='-c client_min_messages=warning -c jit=off -c statement_timeout=20s'
export PGISOLATIONTIMEOUT=30 # seconds until a step that is blocked for ever ends the spec

clean_up() {
    [ -n "${PROVERQ_TEST_DSN-}" ] || contrib/scripts/private-postgres.sh remove "$work/postgres"
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# Prints the newest isolationtester; any that is not older than the server will do.
find_tester() {
    local found
    found=$(compgen -G '/usr/lib/postgresql/*/lib/pgxs/src/test/isolation/isolationtester' ||
        compgen -G '/usr/pgsql-*/lib/pgxs/src/test/isolation/isolationtester' ||
        compgen -G "$(dirname "$(pg_config --pgxs 2>/dev/null)")/../test/isolation/isolationtester")
    [ -n "$found" ] || {
        echo "$here/run.sh: no isolationtester found; Debian and Ubuntu have it in postgresql-client-NN" >&2
        return 1
    }
    sort -V <<<"$found" | tail -n 1
}

sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$dsn" "$@"; }

# What `proverq migrate up` does; then the fixture and lib.sql.
apply() {
    local files=() file
    for file in migrations/*.up.sql sql/functions/*.sql sql/views/*.sql; do files+=(-f "$file"); done
    sql -c 'drop schema if exists proverq, test, iso cascade' && sql -1 "${files[@]}" &&
        sql -f tests/sql/lib.sql -c 'select test.fixture()' -f $here/lib.sql >/dev/null
}

# Runs a spec; its permutations, a line each, are in $work/got.
run_spec() {
    "$tester" "$dsn" <"$here/specs/$1.spec" >"$work/out" 2>"$work/err"
    local status=$?
    awk -f $here/condense.awk "$work/out" >"$work/got"
    [ $status -eq 0 ] && [ -s "$work/got" ] && [ ! -s "$work/err" ]
}

# Compares what came out with expected/, permutation by permutation.
check_spec() {
    local expected=$here/expected/$1.out total faulty different=0
    if ! run_spec "$1"; then
        echo "  FAIL $1: isolationtester ended early or complained" && tail -n 20 "$work/err"
        failed=$((failed + 1))
        return
    fi
    if [ -n "${UPDATE-}" ]; then cp "$work/got" "$expected"; fi
    [ -f "$expected" ] || : >"$work/none"
    total=$(wc -l <"$work/got")
    # A line that differs, or is faulty, is a failure once; one that is missing as well.
    diff "$work/got" "$([ -f "$expected" ] && echo "$expected" || echo "$work/none")" >"$work/diff"
    grep ' \[[A-Z ]*\]$' "$work/got" >"$work/faulty"
    faulty=$(wc -l <"$work/faulty")
    different=$(grep -c '^<' "$work/diff")
    [ "$different" -gt 0 ] || different=$(grep -c '^>' "$work/diff")
    if [ "$faulty" -gt 0 ]; then sed "s/^/  FAIL $1: /" "$work/faulty" | head -n 20; fi
    if [ "$different" -gt 0 ]; then sed -n "s/^[<>]/  FAIL $1: &/p" "$work/diff" | head -n 20; fi
    [ "$different" -gt "$faulty" ] || different=$faulty
    echo "-- $1: $total permutations"
    passed=$((passed + total - different)) failed=$((failed + different))
}
