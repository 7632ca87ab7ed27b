#!/usr/bin/env bash
# Seals the migrations that are in no release yet: the last line of each, which records it in the database, gets the
# SHA-256 of all the lines above it. To be run after each change to such a file; `make lint` checks.
#
#   seal-migrations.sh            write the checksums
#   seal-migrations.sh --check    only look: fails, naming the files, where one is missing or wrong
#
# A file of a release (one whose version sql/kept/ has, or an earlier one) is never written: databases have run it. If its
# checksum is wrong, the change belongs into a new migration. 1 to 4 are older than checksums; 0005 has theirs.
set -euo pipefail
cd "$(dirname "$0")/../.."

oldest_with_one=5
constants=migrations/0005_checksums.up.sql
record='insert into proverq.schema_migration (version, name, breaking, checksum) values'
wrong=0

complain() {
    echo "$*" >&2
    wrong=1
}

newest_released() {
    local newest
    newest=$(printf '%s\n' sql/kept/[0-9]*.list | sort | tail -n 1)
    newest=$(basename "$newest" .list)
    [[ $newest =~ ^[0-9]+$ ]] || newest=4
    echo $((10#$newest))
}

# The line that records a file: its version, name, breaking mark and checksum.
last_line() {
    local file=$1 name breaking
    name=$(basename "$file" .up.sql)
    breaking=$(tail -n 1 "$file" | sed -nE "s/^insert into proverq\.schema_migration .*values \([0-9]+, '[a-z0-9_]+', (true|false)[,)].*;$/\1/p")
    [ -n "$breaking" ] || { complain "$file: its last line must be: $record (N, 'name', true or false, 'checksum');" && return 1; }
    echo "$record ($((10#${name%%_*})), '${name#*_}', $breaking, '$(checksum "$file")');"
}

checksum() {
    head -n -1 "$1" | sha256sum | cut -d ' ' -f 1
}

check() {
    local file=$1 version=$2 wanted
    if [ "$version" -lt "$oldest_with_one" ]; then
        grep -q "($version, '$(checksum "$file")')" "$constants" ||
            complain "$file was changed after it was released: its checksum is not the one in $constants"
        return 0
    fi
    wanted=$(last_line "$file") || return 0
    [ "$(tail -n 1 "$file")" = "$wanted" ] || complain "$file: its last line is not: $wanted"
}

seal() {
    local file=$1 version=$2 wanted
    if [ "$version" -le "$released" ]; then
        check "$file" "$version"
        return 0
    fi
    wanted=$(last_line "$file") || return 0
    [ "$(tail -n 1 "$file")" != "$wanted" ] || return 0
    { head -n -1 "$file" && echo "$wanted"; } >"$file.sealed"
    mv "$file.sealed" "$file"
    echo "$file sealed"
}

what=seal
case ${1-} in
'') ;;
--check) what=check ;;
*) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
released=$(newest_released)
for file in migrations/*.up.sql; do
    version=$(basename "$file")
    $what "$file" $((10#${version%%_*}))
done
exit $wrong
