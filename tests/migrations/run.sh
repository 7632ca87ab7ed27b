#!/usr/bin/env bash
# Tests of migrations, with the built program, psql and other people's migration tools, against a real PostgreSQL and as
# a role that owns its database and nothing else.
#
#   tests/migrations/run.sh [NAME ...]      all of them, or tests/migrations/NAME.sh
#
# The schema is described in lines (describe) and compared: after every route to a version the description is the same.
# shellcheck disable=SC2034 # the parts use what is set here
source "$(dirname "$0")/../e2e/lib.sh"
cd "$root" || exit
here=tests/migrations
later=$root/build/proverq-later
export PGOPTIONS='-c client_min_messages=warning -c statement_timeout=60s'

chmod 711 "$work" # the server may run as another user
dsn=$(contrib/scripts/private-postgres.sh start "$work/postgres") || exit
at_exit=("contrib/scripts/private-postgres.sh remove '$work/postgres'" "${at_exit[@]}")
export PROVERQ_DATABASE=$dsn

# The group roles are there, made by an administrator, so that routes differ in grants if they do. Without a
# password the superuser comes in by the socket.
home=$work/postgres
[ ! -L "$home/home" ] || home=$home/home
for role in operator producer prover finalizer reader; do
    psql -X -q -h "$(cat "$home/socket-folder" 2>/dev/null || echo "$home/socket")" -p "$(cat "$home/port")" \
        -U postgres -d proverq -c "create role proverq_$role nologin" || exit
done

sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$dsn" "$@"; }

empty() {
    sql -c 'drop schema if exists proverq, proverq_private cascade' \
        -c 'drop table if exists schema_migrations, proverq_migrations, pgmigrations'
}

number_of() {
    local name=${1##*/}
    echo $((10#${name%%_*}))
}

# By hand: psql in one transaction, with the tree's own files.
by_psql() {
    local file arguments=(-1)
    for file in migrations/*.up.sql sql/functions/*.sql sql/views/*.sql sql/grants.sql; do arguments+=(-f "$file"); done
    sql "${arguments[@]}"
}

# Everything that makes one schema differ from another, but for times, checksums and the mark of
# whose functions they are.
describe() {
    {
        sql -f tests/sql/schema_description.sql
        sql -c "select format('rights on %s: %s', c.oid::regclass,
            array(select unnest(coalesce(c.relacl, acldefault('r', c.relowner)))::text order by 1))
            from pg_class c where c.relnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace)
            and c.relkind in ('r', 'p', 'v') order by 1" \
            -c "select format('rights on %s: %s', p.oid::regprocedure,
                array(select unnest(coalesce(p.proacl, acldefault('f', p.proowner)))::text order by 1)) from pg_proc p
                where p.pronamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace) order by 1" \
            -c "select format('policy %s on %s: %s', polname, polrelid::regclass, pg_get_expr(polqual, polrelid))
                from pg_policy order by 1" \
            -c "select format('row security of %s: %s %s', oid::regclass, relrowsecurity, relforcerowsecurity)
                from pg_class where relnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace)
                and relrowsecurity order by 1" \
            -c 'select * from proverq.step order by step' \
            -c "select version, name, breaking from proverq.schema_migration order by version"
    } | grep -v 'code_digest()'
}

# same NAME VERSION: the schema is that of VERSION, "newest" or "later".
same() {
    local difference
    if difference=$(describe 2>&1 | diff "$work/golden.$2" -); then pass "$1"; else fail "$1" "$difference"; fi
}

nothing_left() { is "$1" 0 "$(sql -c "select count(*) from pg_namespace where nspname ~ '^proverq'")"; }

newest=$(number_of "$(printf '%s\n' migrations/*.up.sql | tail -n 1)")

# What each version is: today's made by psql, the later one's by its program.
empty
by_psql >/dev/null || fail "psql makes the schema"
describe >"$work/golden.newest"
empty
"$later" migrate up >/dev/null || fail "the later program makes its schema"
describe >"$work/golden.later"
empty

[ $# -gt 0 ] || set -- routes refusals locks live tools
for name in "$@"; do
    echo "-- $name"
    start=$SECONDS
    # shellcheck disable=SC1090
    source "$here/$name.sh"
    echo "   $((SECONDS - start)) s"
done
finish
