#!/usr/bin/env bash
# Two and three sessions, step by step, in every order that matters: PostgreSQL's isolation tests of our functions.
#
#   tests/isolation/run.sh                  all specs, then whether they notice seeded faults
#   tests/isolation/run.sh NAME ...         specs/NAME.spec
#   tests/isolation/run.sh --faults         only the seeded faults
#   UPDATE=1 tests/isolation/run.sh ...     and write what came out to expected/
#
# A spec (specs/*.spec) is in the format of PostgreSQL's isolationtester, which runs it: it holds one connection per
# session, sends the steps in the order of a permutation, and learns from the server when one is blocked. Debian and
# Ubuntu have it in postgresql-client-NN, which psql needs anyway; so there is no runner of our own. A spec without
# permutations is run in all orders; where sessions block each other only some orders can be, and they are listed.
#
# Each permutation begins with an empty queue (iso.fresh) and ends with iso.verdict() of lib.sql, which looks for
# everything that must not be: a partition claimed or recorded twice, a stale result accepted, an earlier
# partition overtaken, counts that are wrong, inputs lost, a job finalized twice or never. Then it lets one
# prover do all that is left and looks again.
#
# condense.awk makes one line of each permutation; those lines must be the ones in
# expected/NAME.out. A verdict other than "all is well", a deadlock, and a claim, heartbeat or
# finalizer that waits for a lock fail whatever expected/ says.
#
# The database is PROVERQ_TEST_DSN's, whose schema proverq is made anew; without it, that of a private PostgreSQL.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
here=tests/isolation
work=$(mktemp -d)
chmod 711 "$work" # the server may run as another user
dsn=${PROVERQ_TEST_DSN-}
passed=0 failed=0
# As the service sets its own sessions (service/db/db.c).
export PGOPTIONS='-c client_min_messages=warning -c jit=off -c statement_timeout=20s'
export PGISOLATIONTIMEOUT=30 # seconds until a step that is blocked for ever ends the spec

clean_up() {
    [ -n "${PROVERQ_TEST_DSN-}" ] || contrib/scripts/private-postgres.sh remove "$work/postgres"
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# Prints the newest isolationtester; it need not be of the server's version.
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
    for file in migrations/*.up.sql sql/functions/*.sql sql/views/*.sql sql/grants.sql; do
        [ ! -f "$file" ] || files+=(-f "$file")
    done
    sql -c 'drop schema if exists proverq, proverq_private, test, iso cascade' && sql -1 "${files[@]}" >/dev/null &&
        sql -f tests/sql/lib.sql -c 'select test.fixture()' -f $here/lib.sql >/dev/null
}

# run_spec NAME [REGEX]: runs a spec, of listed permutations only those that match. They are in $work/got, a line each;
# those that were not expected or are faulty by themselves in $work/wrong.
run_spec() {
    local expected=$here/expected/$1.out
    grep -E "^permutation .*${2-}|^[^p]|^$|^p[^e]" "$here/specs/$1.spec" >"$work/spec"
    : >"$work/wrong"
    timeout 300 "$tester" "$dsn" <"$work/spec" 2>&1 >"$work/out" | grep -v '^unused step name: ' >"$work/err"
    [ "${PIPESTATUS[0]}" -eq 0 ] || echo 'it failed, or did not end in 300 s' >>"$work/err"
    awk -f $here/condense.awk "$work/out" >"$work/got"
    if [ -s "$work/err" ]; then
        { echo "isolationtester:" && tail -n 20 "$work/err"; } | tr '\n' ' ' >"$work/wrong"
        echo >>"$work/wrong"
        return
    fi
    if [ -n "${UPDATE-}" ]; then cp "$work/got" "$expected"; fi
    [ -f "$expected" ] || expected=/dev/null
    awk '!ran { expected[$0]; order[++n] = $0; next }
         { got[$0]; if (!($0 in expected) || / \[[A-Z ]+\]$/) print }
         END { for (i = 1; i <= n; i++) if (!(order[i] in got) && part == "") print "wanted: " order[i] }' \
        part="${2-}" "$expected" ran=1 - <"$work/got" >"$work/wrong"
}

# How many permutations went wrong.
wrong() {
    awk '!/^wanted: / { got++ } /^wanted: / { missing++ } END { print (got > missing ? got : missing) + 0 }' \
        "$work/wrong"
}

check_spec() {
    local total bad
    run_spec "$1"
    total=$(wc -l <"$work/got")
    bad=$(wrong)
    echo "-- $1: $total permutations"
    sed "s/^/  FAIL $1: /" "$work/wrong" | head -n 20
    passed=$((passed + total - (bad < total ? bad : total))) failed=$((failed + bad))
    if [ "$total" -eq 0 ] && [ "$bad" -eq 0 ]; then echo "  FAIL $1: nothing was run" && failed=$((failed + 1)); fi
}

# fault "WHAT IS WRONG" FUNCTIONS-FILE SED-SCRIPT SPEC [REGEX]: the functions with this fault must fail the spec.
fault() {
    local file=sql/functions/$2.sql bad
    sed "$3" "$file" >"$work/faulty.sql"
    if cmp -s "$file" "$work/faulty.sql" || ! sql -f "$work/faulty.sql"; then
        echo "  FAIL fault: $1: it cannot be seeded in $file, which has changed: adapt $here/run.sh"
        failed=$((failed + 1))
        return
    fi
    UPDATE='' run_spec "$4" "${5-}"
    sql -f "$file"
    bad=$(wrong)
    if [ -s "$work/err" ]; then
        echo "  FAIL fault: $1: $(<"$work/wrong")"
        failed=$((failed + 1))
    elif [ "$bad" -gt 0 ]; then
        echo "-- fault: $1: seen by $bad of $(wc -l <"$work/got") permutations of $4"
        passed=$((passed + 1))
    else
        echo "  FAIL fault: $1: $4 does not see it"
        failed=$((failed + 1))
    fi
}

faults() {
    fault 'a result is taken without its token' complete 's/ and p.token = r.token$//' late
    fault 'results are taken without their tokens' complete 's/ and p.token = r.token$//' batch 'q_(expired|cancel)'
    fault 'a proof counts twice' complete \
        's/remaining = j.remaining - d.n/remaining = greatest(0, j.remaining - 2 * d.n)/' \
        siblings ' p_complete q_complete'
    fault 'a result locks its partition before its job' complete \
        '/perform from proverq.job j$/,/for no key update;/d' stopped ' q_complete l_go'
    fault 'finalizers do not lock the job' finalize 's/for no key update skip locked;/;/' finalize \
        'f_finalize g_finalize f_commit'
    fault 'claims wait for locks' claim 's/ of p skip locked/ of p/' stopped 'q_claim'
    fault 'who wakes what is due waits for locks' wake_due 's/ skip locked//' wake_due ' v_wake w_wake p_fail v_commit'
    fault 'a rescue does not look whether the lease was renewed' rescue_expired \
        's/ and (not if_expired or .*)$//' takeover 'p_heartbeat r_expired'
    fault 'a failure leaves its siblings alone' fail \
        "s/and p.state::text in ('held', 'ready', 'leased')/and p.partition_idx = partition_failed.partition_idx/" \
        fail 'p_fail q_(complete|claim)'
    fault 'what has ended can be cancelled' cancel '/elsif j.finished_at is not null/,/end if;/c end if;' cancel_end \
        'f_commit c_cancel'
    fault 'a new priority passes by what came back to wait' set_priority \
        '/perform from proverq.partition/d' repeatable_read 'q_expired r_priority'
    fault 'a job that was pruned meanwhile is retried' lock_job 's/^        if found then$/        if true then/' \
        prune 'x_prune o_(retry|cancel)'
    fault 'webhooks wait for an endpoint that is disabled' claim_deliveries \
        's/where e.disabled_at is not null$/where false/' delivery_beside 'a_gone b_finalize'
}

tester=$(find_tester) || exit
[ -n "$dsn" ] || dsn=$(contrib/scripts/private-postgres.sh start "$work/postgres") || exit
apply || exit
if [ "${1-}" = --faults ]; then
    faults
elif [ $# -gt 0 ]; then
    for name in "$@"; do check_spec "$name"; done
else
    for file in "$here"/specs/*.spec; do
        name=${file##*/}
        check_spec "${name%.spec}"
    done
    faults
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
