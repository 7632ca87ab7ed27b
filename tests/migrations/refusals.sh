# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# What is refused, and what it says then.
empty
"$proverq" migrate up >/dev/null

# Checksums.
for file in migrations/*.up.sql; do
    echo "$(number_of "$file")|$(head -n -1 "$file" | sha256sum | cut -d ' ' -f 1)"
done >"$work/checksums"
is "each recorded checksum is its file's" '' \
    "$(sql -c 'select version, checksum from proverq.schema_migration order by version' | diff "$work/checksums" -)"
sql -c "update proverq.schema_migration set checksum = repeat('0', 64) where version = 1"
changed='version 1 .* made by another migrations/0001_initial.up.sql'
changed+='.*recorded: 0000000000000000.*use the proverq that applied it'
for command in up 'down 0' plan; do
    # shellcheck disable=SC2086
    refused "a file that was changed after it ran is refused: migrate $command" "$changed" "$proverq" migrate $command
done
is "... and status names it" 1 \
    "$("$proverq" migrate status | grep -c '1  initial .* by another file than this program has')"
empty
"$proverq" migrate up >/dev/null

# Versions.
refused "a version that is not there" 'migration "11x" does not exist' "$proverq" migrate down 11x
refused "up takes no version" 'unexpected argument|takes no argument|too many' "$proverq" migrate up 1
"$later" migrate up >/dev/null 2>&1
for command in up 'down 0'; do
    # shellcheck disable=SC2086
    refused "a schema that a later program made: migrate $command" \
        "version 9003 and this program .* knows $newest: use the proverq that migrated it" "$proverq" migrate $command
done
"$later" migrate down "$newest" >/dev/null
"$proverq" migrate up >/dev/null

# What others have built upon our views and functions is not taken from them.
sql -c 'create view public.mine as select * from proverq.jobs'
refused "a view of somebody else's on ours" \
    'cannot drop view proverq.jobs: view public.mine depends on view proverq.jobs .*; Drop what depends on it' \
    "$proverq" migrate down 0
same "... and nothing was changed" newest
sql -c 'drop view public.mine'

# Export.
rm -rf "$work/export"
ok "export" "$proverq" migrate export "$work/export"
echo mine >"$work/export/up.sql"
rm "$work/export/0001_initial.up.sql"
refused "a file that exists is not overwritten" \
    'is not overwritten: remove it, or choose another --start-number or folder' "$proverq" migrate export "$work/export"
is "... and none is written then" no "$(test -e "$work/export/0001_initial.up.sql" && echo yes || echo no)"
refused "a disk that is full" 'cannot write: File too large' \
    sh -c "trap '' XFSZ; ulimit -f 4; exec '$proverq' migrate export '$work/small'"
is "... leaves no file" '' "$(ls "$work/small")"
refused "a folder that cannot be made" 'No such file or directory' "$proverq" migrate export "$work/not/there"
refused "an unknown format" 'is not golang-migrate' "$proverq" migrate export --format flyway "$work/x"
refused "a version that is not there to export" "there is no version 5 to export" \
    "$proverq" migrate export --from 5 "$work/x"
refused "a number that is none" 'start-number: "1a" is not a number' \
    "$proverq" migrate export --start-number 1a "$work/x"
empty
