# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# What is refused, and what it says then.
empty
"$proverq" migrate up >/dev/null

# Checksums.
for file in migrations/*.up.sql; do echo "$(number_of "$file")|$(head -n -1 "$file" | sha256sum | cut -d ' ' -f 1)"; done >"$work/checksums"
sql -c 'select version, checksum from proverq.schema_migration where checksum is not null order by version' >"$work/recorded"
is "each recorded checksum is its file's" '' "$(grep -vxFf "$work/checksums" "$work/recorded")"
is "... 1 to 5 have one at least" 5 "$(head -n 5 "$work/recorded" | cut -d '|' -f 1 | paste -sd ' ' | wc -w)"
sql -c "update proverq.schema_migration set checksum = repeat('0', 64) where version = 3"
for command in up 'to 4' 'down 2' plan; do
    # shellcheck disable=SC2086
    refused "a file that was changed after it ran is refused: migrate $command" 'version 3 .* made by another migrations/0003_evidence.up.sql.*recorded: 0000000000000000.*use the proverq that applied it' \
        "$proverq" migrate $command
done
is "... and status names it" 1 "$("$proverq" migrate status | grep -c '3  evidence .* by another file than this program has')"
sql -c "update proverq.schema_migration set checksum = null where version = 3"
ok "one without a checksum is not" "$proverq" migrate up

# Versions.
refused "a version that is not there" "there is no migration '11x'" "$proverq" migrate to 11x
between=$(for file in migrations/*.up.sql; do number_of "$file"; done | grep -vxE "$(IFS='|'; echo "${kept[*]}|$newest")" | head -n 1)
[ -z "$between" ] || refused "a version that was in no release" "version $between was in no release.*those that do: 0, 1, 2, 3, 4" "$proverq" migrate to "$between"
refused "up is no way down" 'to go back run: proverq migrate down 4' "$proverq" migrate up 4
"$later" migrate up >/dev/null 2>&1
refused "a schema that a later program made" "version 9003 and this program .* knows $newest: use the proverq that migrated it" "$proverq" migrate to 4
"$later" migrate to "$newest" >/dev/null

# What others have built upon our views and functions is not taken from them.
sql -c 'create view public.mine as select * from proverq.jobs'
refused "a view of somebody else's on ours" 'cannot drop view proverq.jobs: view mine depends on view .*jobs .*; Drop what depends on it' "$proverq" migrate to 4
same "... and nothing was changed" "$newest"
sql -c 'drop view public.mine'

# The released code: what is kept for the newest version, if anything, is the tree's own.
list=sql/kept/$(printf %04d "$newest").list
if [ -f "$list" ]; then
    is "the newest release's code is kept as it is" '' "$(while read -r file; do diff "sql/kept/$file" "sql/${file#*/}"; done <"$list")"
else
    ok "the newest version's code is the tree's own: nothing of it is kept before its release" test ! -e "${list%.list}"
fi
refused "a released version's code is not overwritten by an earlier one" 'a later release is kept already' \
    bash -c "cd '$root/build/later/tree' && touch sql/kept/9999.list && contrib/scripts/keep-release.sh; status=\$?; rm sql/kept/9999.list; exit \$status"

# Export.
rm -rf "$work/export"
ok "export" "$proverq" migrate export "$work/export"
echo mine >"$work/export/up.sql"
rm "$work/export/0001_initial.up.sql"
refused "a file that exists is not overwritten" 'is not overwritten: remove it, or choose another --start-number or folder' "$proverq" migrate export "$work/export"
is "... and none is written then" no "$(test -e "$work/export/0001_initial.up.sql" && echo yes || echo no)"
refused "a folder that cannot be made" 'No such file or directory' "$proverq" migrate export "$work/not/there"
refused "an unknown format" 'is not golang-migrate' "$proverq" migrate export --format flyway "$work/x"
refused "a range that is empty" "there are no versions 5 to 4" "$proverq" migrate export --from 5 --to 4 "$work/x"
refused "a number that is none" 'start-number: "1a" is not a number' "$proverq" migrate export --start-number 1a "$work/x"
empty
