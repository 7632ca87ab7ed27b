# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# What `proverq migrate export` writes, run by the tools it is for: up, down, up; each time the same schema as by us.
ok "npm packages" need_npm

# The role is called proverq, as the schema: the search path must not begin with that.
dbmate_run() {
    "$npm/node_modules/@dbmate/linux-x64/bin/dbmate" --url "$dsn?sslmode=disable&search_path=public" \
        --migrations-dir "$1" --no-dump-schema "${@:2}"
}
# The newest node-pg-migrate needs Node 20; Debian 12 and Ubuntu 24.04 have Node 18.
pg_migrate=node-pg-migrate
[ "$(node -p 'parseInt(process.versions.node)')" -ge 20 ] || pg_migrate=node-pg-migrate-7
node_run() {
    (cd "$1" && DATABASE_URL=$dsn node "$npm/node_modules/$pg_migrate/bin/node-pg-migrate.js" \
        --migrations-dir "$1" --verbose false "${@:2}")
}

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

# A release later and back, as its users go: the later files join today's ($work/all); then they are rolled back, and
# the unit of functions before them too; they are removed, and today's functions are applied again.
dbmate_later() { cp "$work"/later/* "$work/all" && dbmate_up "$work/all"; }
dbmate_back() { dbmate_down "$work/all" $((later_units + 1)); }
dbmate_again() { (cd "$work/later" && for file in *; do rm "$work/all/$file"; done) && dbmate_up "$work/all"; }
node_later() { cp "$work"/later/* "$work/all" && node_up "$work/all"; }
node_back() { node_down "$work/all" $((later_units + 1)); }
node_again() { (cd "$work/later" && for file in *; do rm "$work/all/$file"; done) && node_up "$work/all"; }
golang_later() { golang_up "$work/later"; }
golang_back() { golang_down "$work/later" && node "$here/one_query.mjs" "$work"/all/*_functions.down.sql; }
golang_again() { node "$here/one_query.mjs" "$work"/all/*_functions.up.sql; }
psql_later() { psql_up "$work/later"; }
psql_back() { psql_down "$work/later"; }
psql_again() { sql -1 -f "$work/all/functions.up.sql"; }

# up_down_up NAME PREFIX FOLDER UNITS
up_down_up() {
    local name=$1 run=$2 folder=$3 units=$4
    ok "$name: up" "${run}_up" "$folder" || return
    same "... is today's schema" newest
    ok "$name: down" "${run}_down" "$folder" "$units" || return
    nothing_left "... leaves nothing"
    ok "$name: up again" "${run}_up" "$folder"
    same "... is today's schema" newest
}

# units_in FOLDER: how many migrations a tool finds there
units_in() { printf '%s\n' "$1"/[0-9]* | grep -vc '\.down\.sql$'; }

export_to() {
    rm -rf "${work:?}/$2" &&
        ok "export for $1${3:+ (${*:3})}" "$exporter" migrate export --format "$1" "${@:3}" "$work/$2"
}

for format in golang-migrate dbmate node-pg-migrate psql; do
    run=${format%%-*}
    empty
    exporter=$proverq
    export_to $format all
    up_down_up "$format" "$run" "$work/all" "$(units_in "$work/all")"
    is "... of which our program says that all is there" 0 \
        "$("$proverq" migrate status | grep -cE 'missing|not of this|another file')"

    # A release later and back: what it adds, in files of its own behind today's; with index
    # builds that cannot run in a transaction.
    exporter=$later
    export_to $format later --from 9001 --start-number 000101
    later_units=$(units_in "$work/later")
    ok "$format: a later release's files" "${run}_later"
    same "... are its schema" later
    ok "... back over its files and the functions before them" "${run}_back"
    ok "... and today's functions again" "${run}_again"
    same "... are today's schema" newest
done

dbmate_own() {
    "$npm/node_modules/@dbmate/linux-x64/bin/dbmate" --url "$dsn?sslmode=disable" --migrations-dir "$1" \
        --no-dump-schema "${@:2}"
}

# A queue of proverq beside an application's own migrations: one folder, one sequence, its own table of migrations.
empty
export_to dbmate own --start-number 002
printf -- '-- migrate:up\ncreate table public.mine (a int);\n-- migrate:down\ndrop table public.mine;\n' \
    >"$work/own/001_mine.sql"
printf -- '-- migrate:up\n%s;\n-- migrate:down\n%s;\n' \
    'alter table public.mine add job bigint references proverq.job' 'alter table public.mine drop job' \
    >"$work/own/900_mine.sql"
ok "among an application's own migrations" dbmate_own "$work/own" --migrations-table public.proverq_migrations migrate
is "... in the table that was named" "$(units_in "$work/own")" \
    "$(sql -c 'select count(*) from public.proverq_migrations')"
sql -c "drop table public.mine"
