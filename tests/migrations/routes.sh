# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# Every route of `proverq migrate` to a version ends in the same schema.

prepare_statements() {
    local folder=$1 file
    for file in "$folder"/*.sql; do
        echo "prepare \"$(basename "$file" .sql)\" as"
        sed -e '$a;' "$file"
    done | sql
}

is "the newest version is the one that tests/sql/schema.txt describes" '' \
    "$(description=$(by_psql "$newest" >/dev/null && sql -f tests/sql/schema_description.sql) && diff tests/sql/schema.txt - <<<"$description")"
empty

ok "up from nothing" "$proverq" migrate up
same "... is the schema that psql makes" "$newest"
is "the role that did it owns its database and may nothing else" 'f|f|f' "$(sql -c 'select rolsuper, rolcreaterole, rolcreatedb from pg_roles where rolname = current_user')"

for version in "${kept[@]}"; do
    ok "from $newest to $version" "$proverq" migrate to "$version"
    same "... is the schema of $version" "$version"
    ok "... on which its programs' statements prepare" prepare_statements "$here/statements/$(printf %04d "$version")"
    ok "and up again" "$proverq" migrate up
    same "... is the newest schema" "$newest"
done
ok "the newest program's statements prepare" prepare_statements sql/statements

ok "down to 0" "$proverq" migrate down 0
nothing_left "... leaves nothing"

# A step at a time, each way.
for version in "${kept[@]}" "$newest"; do
    ok "from the version before to $version" "$proverq" migrate to "$version"
    same "... is the schema of $version" "$version"
done
for ((i = ${#kept[@]} - 1; i >= 0; i--)); do
    ok "a version back, to ${kept[i]}" "$proverq" migrate down "${kept[i]}"
    same "... is the schema of ${kept[i]}" "${kept[i]}"
done

# What contrib/docs/migrations.md tells to build before the upgrade from version 4, if there are many deliveries.
"$proverq" migrate to 4 >/dev/null
ok "the documented indexes are built while programs work" sql -f <(sed -n '/^create index concurrently webhook_/p' contrib/docs/migrations.md)
built=$(sql -c "select count(*) from pg_class where relkind = 'i' and relname in ('webhook_delivery_pending', 'webhook_delivery_under_way', 'webhook_delivery_failed')")
is "... all three" 3 "$built"
ok "... and the upgrade takes them" "$proverq" migrate up
same "... and is the newest schema" "$newest"

# A later release and back: with indexes that are built beside the work, and functions that today's program has not.
ok "a later program migrates up" "$later" migrate up
is "its indexes are valid" 2 "$(sql -c "select count(*) from pg_index where indexrelid in ('proverq.job_finished'::regclass, 'proverq.job_note'::regclass) and indisvalid")"
ok "and back to $newest" "$later" migrate to "$newest"
same "... is the newest schema of today" "$newest"
is "whose functions and views are this program's" 'functions and views: of this program' "$("$proverq" migrate status | tail -n 1)"
empty
