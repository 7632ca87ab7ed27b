#!/usr/bin/env bash
# Tests of migrations, with the built program, psql and other people's migration tools, against a real PostgreSQL and as a
# role that owns its database and nothing else.
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

# The group roles are there, made by an administrator, so that routes differ in grants if they do. Without a password the
# superuser comes in by the socket.
home=$work/postgres
[ ! -L "$home/home" ] || home=$home/home
for role in operator producer prover finalizer reader; do
    psql -X -q -h "$(cat "$home/socket-folder" 2>/dev/null || echo "$home/socket")" -p "$(cat "$home/port")" -U postgres -d proverq \
        -c "create role proverq_$role nologin" || exit
done

sql() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$dsn" "$@"; }

empty() { sql -c 'drop schema if exists proverq cascade' -c 'drop table if exists schema_migrations, proverq_migrations, pgmigrations'; }

# The files, in order, that make a version from nothing; those of the newest are the tree's own.
files_of() {
    local version=$1 file
    for file in migrations/*.up.sql; do [[ $(number_of "$file") -gt $version ]] || echo "$file"; done
    if [ "$version" = "$newest" ]; then
        for file in sql/functions/*.sql sql/views/*.sql sql/*.sql; do [ ! -f "$file" ] || echo "$file"; done
    else
        sed 's,^,sql/kept/,' "sql/kept/$(printf %04d "$version").list"
    fi
}

number_of() {
    local name=${1##*/}
    echo $((10#${name%%_*}))
}

# By hand: psql in one transaction.
by_psql() {
    local file arguments=(-1)
    while read -r file; do arguments+=(-f "$file"); done < <(files_of "$1")
    sql "${arguments[@]}"
}

# Everything that makes one schema differ from another, but for times, checksums and the mark of whose functions they are;
# without the lines that match $1.
describe() {
    {
        sql -f tests/sql/schema_description.sql
        sql -c "select format('rights on %s: %s', c.oid::regclass, array(select unnest(coalesce(c.relacl, acldefault('r', c.relowner)))::text order by 1)) from pg_class c where c.relnamespace = 'proverq'::regnamespace and c.relkind in ('r', 'p', 'v') order by 1" \
            -c "select format('rights on %s: %s', p.oid::regprocedure, array(select unnest(coalesce(p.proacl, acldefault('f', p.proowner)))::text order by 1)) from pg_proc p where p.pronamespace = 'proverq'::regnamespace order by 1" \
            -c "select format('policy %s on %s: %s', polname, polrelid::regclass, pg_get_expr(polqual, polrelid)) from pg_policy order by 1" \
            -c "select format('row security of %s: %s %s', oid::regclass, relrowsecurity, relforcerowsecurity) from pg_class where relnamespace = 'proverq'::regnamespace and relrowsecurity order by 1" \
            -c 'select * from proverq.step order by step' \
            -c "select version, name, breaking from proverq.schema_migration order by version"
    } | grep -v 'code_digest()' | grep -vE "${1:-^$}"
}

# same NAME VERSION: the schema is the one of VERSION. 0003.down.sql, which is shipped, does not take two descriptions back.
same() {
    local difference skip='^$'
    case $2 in 1 | 2) skip='^column timing\.worker |^40[|]queue_wait[|]' ;; esac
    if difference=$(describe "$skip" 2>&1 | diff <(grep -vE "$skip" "$work/golden.$2") -); then pass "$1"; else fail "$1" "$difference"; fi
}

nothing_left() { is "$1" 0 "$(sql -c "select count(*) from pg_namespace where nspname = 'proverq'")"; }

newest=$(number_of "$(printf '%s\n' migrations/*.up.sql | tail -n 1)")
kept=()
for list in sql/kept/*.list; do
    [ "$(number_of "${list%.list}_")" = "$newest" ] || kept+=("$(number_of "${list%.list}_")")
done

# What each version is: made from nothing by psql.
for version in "${kept[@]}" "$newest"; do
    empty
    by_psql "$version" >/dev/null || fail "psql makes version $version"
    describe >"$work/golden.$version"
done
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
