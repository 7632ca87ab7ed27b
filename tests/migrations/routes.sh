# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# Every route of `proverq migrate` to a version ends in the same schema.

prepare_statements() {
    local file
    for file in sql/statements/*.sql; do
        echo "prepare \"$(basename "$file" .sql)\" as"
        sed -e '$a;' "$file"
    done | sql
}

is "the schema is the one that tests/sql/schema.txt describes" '' "$(description=$(by_psql >/dev/null &&
    sql -f tests/sql/schema_description.sql) && diff tests/sql/schema.txt - <<<"$description")"
empty

ok "up from nothing" "$proverq" migrate up
same "... is the schema that psql makes" newest
is "the role that did it owns its database and may nothing else" 'f|f|f' \
    "$(sql -c 'select rolsuper, rolcreaterole, rolcreatedb from pg_roles where rolname = current_user')"
ok "the program's statements prepare" prepare_statements
ok "up again" "$proverq" migrate up
same "... changes nothing" newest

ok "down to 0" "$proverq" migrate down 0
nothing_left "... leaves nothing"
ok "up once more" "$proverq" migrate up
same "... is the same schema" newest

# A release later and back: with indexes that are built beside the work, and functions that today's program has not.
ok "a later program migrates up" "$later" migrate up
same "... to its schema" later
is "its indexes are valid" 2 "$(sql -c "select count(*) from pg_index
    where indexrelid in ('proverq.job_finished'::regclass, 'proverq.job_note'::regclass) and indisvalid")"
ok "today's program's statements prepare there" prepare_statements
plan=$("$later" migrate plan "$newest")
is "it plans the way back" "1 3" \
    "$(grep -c 'functions and views are dropped' <<<"$plan") $(grep -c '\.down\.sql' <<<"$plan")"
same "... which changes nothing" later
back=$("$later" migrate down "$newest")
is "it takes its migrations back, and says what comes then" 1 \
    "$(grep -c 'with the proverq of that version run: proverq migrate up' <<<"$back")"
refused "... before that nothing of the older program starts" 'run: proverq migrate up' timeout 20 "$proverq" finalizer
ok "the older program installs its functions" "$proverq" migrate up
same "... and the schema is today's" newest
is "... with the functions and views of this program" 'functions and views: of this program' \
    "$("$proverq" migrate status | tail -n 1)"
empty
