# shellcheck shell=bash disable=SC2034
# What the end-to-end tests of the service share: a private PostgreSQL, the processes, waiting. Sources lib.sh.
# shellcheck source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

postgres=$root/contrib/scripts/private-postgres.sh
chmod 711 "$work"
export PROVERQ_CACHE_DIR=$work/cache PROVERQ_DATABASE
# shellcheck disable=SC2086 # settings, separated by blanks
PROVERQ_DATABASE=$("$postgres" start "$work/pg" ${POSTGRES_SETTINGS-}) || exit 1
at_exit=(end_all "'$postgres' remove '$work/pg'" "${at_exit[@]}")
declare -A pids=()

sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$PROVERQ_DATABASE" "$@"; }

# begin NAME COMMAND ...: in the background, output in $work/NAME.log.
begin() {
    local name=$1
    shift
    "$@" </dev/null >>"$work/$name.log" 2>&1 &
    pids[$name]=$!
}

# end NAME [SIGNAL]: and waits for it; its exit status is the process's.
end() {
    local pid=${pids[$1]-}
    [ -n "$pid" ] || return 0
    unset "pids[$1]"
    kill "-${2-TERM}" "$pid"
    for _ in {1..300}; do
        kill -0 "$pid" || break
        sleep 0.1
    done
    kill -9 "$pid"
    wait "$pid"
} 2>/dev/null # bash's own word that a process was killed

ends_well() {
    local status
    end "$2"
    status=$?
    is "$1 ends well when it is asked to" 0 $status
}

end_all() {
    local name
    for name in "${!pids[@]}"; do end "$name" KILL; done
}

begin_prover() { begin "$1" nice "$proverq" prover --device "${DEVICE:-cpu}" --threads 1 --poll 200ms "${@:2}"; }
begin_finalizer() { begin finalizer "$proverq" finalizer --poll 200ms "$@"; }

# until_true SECONDS COMMAND ...: whether it succeeds (or, for sql, prints t) within that time.
until_true() {
    local deadline=$((SECONDS + $1)) said
    shift
    while [ $SECONDS -lt $deadline ]; do
        if said=$("$@" 2>/dev/null) && [[ $1 != sql || $said == t ]]; then return 0; fi
        sleep 0.1
    done
    return 1
}

# eventually NAME SECONDS QUERY: the query gives t in that time; else shows what the processes said last.
eventually() {
    if until_true "$2" sql -c "$3"; then
        pass "$1"
    else
        fail "$1" "not within $2 s: $3" "$(tail -n 8 "$work"/*.log 2>/dev/null)"
        return 1
    fi
}

# enqueue CIRCUIT WITNESS COUNT [ARGUMENTS]: prints the job's number.
enqueue() {
    printf '\\set w `base64 -w0 %q`\n%s\n' "$2" \
        "select proverq.enqueue_witness('$1', array_fill(decode(:'w', 'base64'), array[$3])${4:+, $4});" >"$work/enqueue.sql"
    sql -f "$work/enqueue.sql"
}

add_circuit() {
    ok "circuit $1 is added" "$proverq" circuit add "$@"
}

# The real circuits' witnesses, computed once.
witness_of() {
    local wtns=$root/.cache/circuits/$1/$1.wtns
    if [ ! -f "$wtns" ]; then
        snarkjs wtns calculate "$root/.cache/circuits/$1/$1.wasm" "$root/tests/circuits/real/$1.json" "$wtns.new" >/dev/null &&
            mv "$wtns.new" "$wtns"
    fi
    echo "$wtns"
}
