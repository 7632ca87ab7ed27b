# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# What `proverq migrate export` writes, run by the tools it is for: up, down, up; each time the same schema as by us.
ok "npm packages" need_npm

# The role is called proverq, as the schema: the search path must not begin with that.
dbmate_run() { "$npm/node_modules/@dbmate/linux-x64/bin/dbmate" --url "$dsn?sslmode=disable&search_path=public" --migrations-dir "$1" --no-dump-schema "${@:2}"; }
# The newest node-pg-migrate needs Node 20; Debian 12 and Ubuntu 24.04 have Node 18.
pg_migrate=node-pg-migrate
[ "$(node -p 'parseInt(process.versions.node)')" -ge 20 ] || pg_migrate=node-pg-migrate-7
node_run() { (cd "$1" && DATABASE_URL=$dsn node "$npm/node_modules/$pg_migrate/bin/node-pg-migrate.js" --migrations-dir "$1" --verbose false "${@:2}"); }

dbmate_up() { dbmate_run "$1" migrate; }
dbmate_down() {
    local i
    for ((i = 0; i < $2; i++)); do dbmate_run "$1" rollback || return; done
}
node_up() { node_run "$1" up; }
node_down() { node_run "$1" down "$2"; }

# As golang-migrate runs a file: its whole text as one query, without a transaction around it.
golang_up() { node "$here/one_query.mjs" "$1"/*.up.sql; }
golang_down() { printf '%s\n' "$1"/*.down.sql | sort -r | xargs node "$here/one_query.mjs"; }
psql_up() { (cd "$1" && bash -c "$(sed -n '1s/^-- //p' up.sql | sed "s,^psql,& -q '$dsn',")"); }
psql_down() { (cd "$1" && bash -c "$(sed -n '1s/^-- //p' down.sql | sed "s,^psql,& -q '$dsn',")"); }

# up_down_up NAME PREFIX FOLDER UNITS BEFORE AFTER: BEFORE is the version that is there before ('': nothing is)
up_down_up() {
    local name=$1 run=$2 folder=$3 units=$4 before=$5 after=$6
    ok "$name: up" "${run}_up" "$folder" "$units" || return
    same "... is the schema of $after" "$after"
    ok "$name: down" "${run}_down" "$folder" "$units" || return
    if [ -n "$before" ]; then same "... is the schema of $before" "$before"; else nothing_left "... leaves nothing"; fi
    ok "$name: up again" "${run}_up" "$folder" "$units"
    same "... is the schema of $after" "$after"
}

# units_in FOLDER: how many migrations a tool finds there
units_in() { printf '%s\n' "$1"/[0-9]* | grep -vc '\.down\.sql$'; }

export_to() { rm -rf "${work:?}/$2" && ok "export for $1${3:+ (${*:3})}" "$exporter" migrate export --format "$1" "${@:3}" "$work/$2"; }

exporter=$proverq
for format in golang-migrate dbmate node-pg-migrate psql; do
    run=${format%%-*}
    empty
    export_to $format all
    up_down_up "$format" "$run" "$work/all" "$(units_in "$work/all")" '' "$newest"
    is "... of which our program says that all is there" 0 "$("$proverq" migrate status | grep -cE 'missing|not of this|another file')"
    case $format in golang-migrate | node-pg-migrate) continue ;; esac # the same units as in the other two
    empty
    "$proverq" migrate to 4 >/dev/null
    export_to $format some --from 5 --start-number 20270131120000
    up_down_up "$format, from version 4 on" "$run" "$work/some" "$(units_in "$work/some")" 4 "$newest"
done

"$later" migrate up >/dev/null
describe >"$work/golden.later"

# Index builds that cannot run in a transaction.
exporter=$later
for format in golang-migrate dbmate node-pg-migrate psql; do
    run=${format%%-*}
    empty
    "$proverq" migrate up >/dev/null
    export_to $format later --from 9001
    up_down_up "$format, with concurrent builds" "$run" "$work/later" "$(units_in "$work/later")" "$newest" later
done

dbmate_own() { "$npm/node_modules/@dbmate/linux-x64/bin/dbmate" --url "$dsn?sslmode=disable" --migrations-dir "$1" --no-dump-schema "${@:2}"; }

# A queue of proverq beside an application's own migrations: one folder, one sequence, its own table of migrations.
empty
export_to dbmate own --start-number 002
printf -- '-- migrate:up\ncreate table public.mine (a int);\n-- migrate:down\ndrop table public.mine;\n' >"$work/own/001_mine.sql"
printf -- '-- migrate:up\nalter table public.mine add job bigint references proverq.job;\n-- migrate:down\nalter table public.mine drop job;\n' >"$work/own/900_mine.sql"
ok "among an application's own migrations" dbmate_own "$work/own" --migrations-table public.proverq_migrations migrate
is "... in the table that was named" "$(units_in "$work/own")" "$(sql -c 'select count(*) from public.proverq_migrations')"
sql -c "drop table public.mine"
