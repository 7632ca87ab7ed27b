# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# The schema as a whole: its golden description, migrations down and up, comments, and what every function must have.
#
# The description (schema.txt) is written by schema_description.sql rather than pg_dump, whose text differs by version.
# After a wanted change: UPDATE=1 tests/sql/run.sh schema
fresh
PGOPTIONS='-c client_min_messages=warning' sql -c 'drop schema test, proverq, proverq_private cascade' && apply
sql -f tests/sql/schema_description.sql >"$work/schema.txt"
[ -z "${UPDATE-}" ] || cp "$work/schema.txt" tests/sql/schema.txt
it 'the schema is the one in schema.txt' "$(diff tests/sql/schema.txt "$work/schema.txt")" ''

dump() {
    pg_dump --schema='proverq*' --no-owner "$dsn" | grep -vE '^--|^.(un)?restrict |^$|[0-9]{4}-[0-9]{2}-[0-9]{2}'
}
dump >"$work/before"
PGOPTIONS='-c client_min_messages=warning' sql -1 -f migrations/0001_initial.down.sql
it 'down leaves nothing' "$(sql -c "select count(*) from pg_namespace where nspname ~ '^proverq'")" 0
apply
it 'down and up give the same dump' "$(dump | diff "$work/before" -)" ''
cat sql/functions/*.sql sql/views/*.sql sql/grants.sql | sql -1
it 'functions and views can be applied again' "$(dump | diff "$work/before" -)" ''
it 'the owner is no superuser' \
    "$(sql -c "select rolsuper or rolcreaterole or rolcreatedb from pg_roles where rolname = current_user")" f
it 'nothing needs an extension' \
    "$(sql -c "select string_agg(extname, ' ') from pg_extension where extname <> 'plpgsql'")" ''
it 'nothing is outside the two schemas' \
    "$(sql -c "select count(*) from pg_class where relnamespace = 'public'::regnamespace")" 0

# A dump restores: what pg_dump wrote, with rows in every state, into an empty schema.
sql -f tests/sql/lib.sql -c 'select test.fixture()' -c "select test.job(3, webhook => 'hook'), test.job(2)" \
    -c 'select test.claim(2)' -c 'select test.complete(1, 0)' -c 'select proverq.make_timing_partitions(1)' \
    -c 'drop schema test cascade' >/dev/null 2>&1
pg_dump --schema='proverq*' "$dsn" >"$work/dump.sql"
PGOPTIONS='-c client_min_messages=warning' sql -c 'drop schema proverq, proverq_private cascade'
PGOPTIONS='-c client_min_messages=warning' sql -1 -f "$work/dump.sql" >/dev/null
it 'a dump restores, with live work in it' "$(pg_dump --schema='proverq*' "$dsn" | grep -vE '^.(un)?restrict ' |
    diff <(grep -vE '^.(un)?restrict ' "$work/dump.sql") -)" ''
