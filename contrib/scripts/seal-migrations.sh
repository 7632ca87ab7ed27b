#!/usr/bin/env bash
# Seals the migrations: the last line of each, which records it in the database, gets the SHA-256 of all the lines above it.
# To be run after each change to such a file; `make lint` checks. A file that was in a release is never changed again:
# databases have run it, and `proverq migrate` refuses where the checksums differ. The change belongs into a new migration.
#
#   seal-migrations.sh            write the checksums
#   seal-migrations.sh --check    only look: fails, naming the files, where one is missing or wrong
set -euo pipefail
cd "$(dirname "$0")/../.."

record='insert into proverq.schema_migration (version, name, breaking, checksum) values'

# The line that records a file: its version, name, breaking mark and checksum.
last_line() {
    local file=$1 name breaking
    name=$(basename "$file" .up.sql)
    breaking=$(tail -n 1 "$file" | sed -nE "s/^insert into proverq\.schema_migration .*values \([0-9]+, '[a-z0-9_]+', (true|false)[,)].*;$/\1/p")
    if [ -z "$breaking" ]; then
        echo "$file: its last line must be: $record (N, 'name', true or false, 'checksum');" >&2
        return 1
    fi
    echo "$record ($((10#${name%%_*})), '${name#*_}', $breaking, '$(head -n -1 "$file" | sha256sum | cut -d ' ' -f 1)');"
}

case ${1-} in
'' | --check) ;;
*) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
status=0
for file in migrations/*.up.sql; do
    wanted=$(last_line "$file") || { status=1; continue; }
    [ "$(tail -n 1 "$file")" != "$wanted" ] || continue
    if [ "${1-}" = --check ]; then
        echo "$file: its last line is not: $wanted" >&2
        status=1
    else
        { head -n -1 "$file" && echo "$wanted"; } >"$file.sealed"
        mv "$file.sealed" "$file"
        echo "$file sealed"
    fi
done
exit $status
