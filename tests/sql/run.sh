#!/usr/bin/env bash
# Tests of the schema, its functions and views, with psql against a real PostgreSQL.
#
#   tests/sql/run.sh [NAME ...]      all tests, or those in NAME.sql and NAME.sh
#
# The database is PROVERQ_TEST_DSN's, whose schema proverq is made anew; without it, that of a private PostgreSQL which
# is started and removed again. Each test file begins with a fresh schema and the fixture of lib.sql.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
work=$(mktemp -d)
chmod 711 "$work" # the server may run as another user
dsn=${PROVERQ_TEST_DSN-}
passed=0 failed=0
export PGOPTIONS='-c statement_timeout=60s'

clean_up() {
    local pid
    for pid in $(jobs -p); do kill "$pid" 2>/dev/null; done
    [ -n "${PROVERQ_TEST_DSN-}" ] || contrib/scripts/private-postgres.sh remove "$work/postgres"
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

[ -n "$dsn" ] || dsn=$(contrib/scripts/private-postgres.sh start "$work/postgres") || exit
sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$dsn" "$@"; }

# What `proverq migrate up` does; the same files in the same order.
apply() {
    local files=() file
    for file in migrations/*.up.sql sql/functions/*.sql sql/views/*.sql sql/grants.sql; do
        [ ! -f "$file" ] || files+=(-f "$file")
    done
    sql -1 "${files[@]}"
}

fresh() {
    PGOPTIONS='-c client_min_messages=warning' sql -c 'drop schema if exists proverq, proverq_private, test cascade' &&
        apply &&
        sql -f tests/sql/lib.sql -c 'select test.fixture()' >/dev/null
}

# Counts the lines that begin with "ok "; any other is a failure, but for remarks ("-- "): a test is silent otherwise.
count() {
    local line
    while IFS= read -r line; do
        case $line in
        'ok '*) passed=$((passed + 1)) ;;
        '-- '*) echo "   ${line#-- }" ;;
        '') ;;
        *) failed=$((failed + 1)) && echo "  FAIL ${line#FAIL }" ;;
        esac
    done <"$1"
}

run_file() {
    local before=$((passed + failed)) status
    echo "-- $1"
    if ! fresh >"$work/out" 2>&1; then
        echo "  FAIL the schema cannot be applied" && cat "$work/out"
        failed=$((failed + 1))
        return
    fi
    case $1 in
    *.sql) sql -f "$1" >"$work/out" 2>&1 ;;
    *.sh)
        # shellcheck disable=SC1090
        (. "$1") >"$work/out" 2>&1
        ;;
    esac
    status=$?
    count "$work/out"
    if [ $status -ne 0 ] || { [ $((passed + failed)) -eq $before ] && ! grep -q '^-- left out' "$work/out"; }; then
        echo "  FAIL $1 ended with status $status after $((passed + failed - before)) test(s)"
        failed=$((failed + 1))
    fi
}

# --- for the .sh tests ---

# it NAME GOT WANT
it() {
    if [ "$2" = "$3" ]; then echo "ok $1"; else printf 'FAIL %s: got %q, wanted %q\n' "$1" "$2" "$3"; fi
}

# A session that stays open:  open a;  tell a "SQL";  answer a  (what it printed, once it is
# done; errors as "ERROR: ...")
open() {
    mkfifo "$work/$1.in"
    PGAPPNAME=session_$1 psql -X -q -A -t -v VERBOSITY=terse "$dsn" <"$work/$1.in" >"$work/$1.out" 2>&1 &
    eval "exec {session_$1}>'$work/$1.in'"
    echo 0 >"$work/$1.asked" # a file: callers are in subshells
    eval "printf '%s\n' '\echo DONE-0' >&\$session_$1"
}
tell() {
    local fd=session_$1 asked
    asked=$(($(<"$work/$1.asked") + 1))
    echo $asked >"$work/$1.asked"
    printf '%s;\n\\echo DONE-%d\n' "$2" $asked >&"${!fd}"
}
answer() {
    local asked i
    asked=$(<"$work/$1.asked")
    for ((i = 0; i < 1000; i++)); do
        if grep -q "^DONE-$asked\$" "$work/$1.out"; then
            sed "/^DONE-$asked\$/,\$d" "$work/$1.out" | sed "0,/^DONE-$((asked - 1))\$/d" | sed 's/^psql:[^ ]* //'
            return
        fi
        sleep 0.01
    done
    echo "no answer in 10 s"
}
ask() { tell "$1" "$2" && answer "$1"; }

# Waits until the session waits for a lock.
blocked() {
    local i
    for ((i = 0; i < 500; i++)); do
        [ "$(sql -c "select count(*) from pg_stat_activity where application_name = 'session_$1'
            and datname = current_database() and wait_event_type = 'Lock'")" = 0 ] ||
            { echo blocked && return; }
        sleep 0.01
    done
    echo "not blocked in 5 s"
}
close() {
    local fd=session_$1
    eval "exec ${!fd}>&-"
    rm -f "$work/$1".*
}

if [ $# -eq 0 ]; then
    for file in tests/sql/*.sql tests/sql/*.sh; do
        case $file in */lib.sql | */schema_description.sql | */run.sh) ;; *) run_file "$file" ;; esac
    done
else
    for name in "$@"; do
        for file in tests/sql/"$name".sql tests/sql/"$name".sh; do [ ! -f "$file" ] || run_file "$file"; done
    done
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
