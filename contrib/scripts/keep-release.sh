#!/usr/bin/env bash
# Keeps what a release has, for those who come back to its version of the schema: a step of every release.
#
#   keep-release.sh                   this tree's, under the number of its newest migration
#   keep-release.sh VERSION COMMIT    those of an earlier commit
#
# sql/kept/NNNN.list names the functions, views and grants of the newest release whose newest migration was NNNN, in the
# order in which they are applied; their texts are in sql/kept/NNNN/, those that did not change since in the folder of the
# release that had them first. `proverq migrate to NNNN` installs them; they are compiled in. The release's statements go to
# tests/migrations/statements/NNNN/: the tests run them as that release's programs would. A migration whose number is kept
# is released: it is never changed again (contrib/scripts/seal-migrations.sh). A release without a new migration keeps its
# code in place of the last one's.
set -euo pipefail
export LC_ALL=C # the order of files is that of bytes, as in the program
cd "$(dirname "$0")/../.."

fail() {
    echo "keep-release.sh: $*" >&2
    exit 1
}

# The release's files under sql/ go to $work/sql.
take_files() {
    if [ $# -eq 0 ]; then
        contrib/scripts/seal-migrations.sh --check || fail "seal the migrations first: contrib/scripts/seal-migrations.sh"
        cp -r sql "$work/sql"
        rm -rf "$work/sql/kept"
    else
        git archive "$1" sql | tar -x -C "$work" --exclude sql/kept
    fi
}

newest_migration() {
    local newest
    newest=$(printf '%s\n' migrations/*.up.sql | sort | tail -n 1)
    basename "${newest%%_*}"
}

# Where the text of a file is kept already; fails if it is nowhere.
kept_copy() {
    local file copy
    file=$1
    for copy in sql/kept/*/"$file"; do
        if [ -f "$copy" ] && cmp -s "$copy" "$work/sql/$file"; then
            echo "${copy#sql/kept/}"
            return 0
        fi
    done
    return 1
}

keep_file() {
    if ! kept_copy "$1"; then
        mkdir -p "sql/kept/$number/$(dirname "$1")"
        cp "$work/sql/$1" "sql/kept/$number/$1"
        echo "$number/$1"
    fi
}

keep_code() {
    local file
    rm -rf "sql/kept/$number" "sql/kept/$number.list"
    mkdir -p sql/kept
    (cd "$work/sql" && printf '%s\n' functions/*.sql views/*.sql *.sql) | while read -r file; do
        [ ! -f "$work/sql/$file" ] || keep_file "$file"
    done >"$work/list"
    mv "$work/list" "sql/kept/$number.list"
}

keep_statements() {
    rm -rf "tests/migrations/statements/$number"
    mkdir -p tests/migrations/statements
    cp -r "$work/sql/statements" "tests/migrations/statements/$number"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $# in
0) number=$(newest_migration) ;;
2) number=$(printf '%04d' "$1") ;;
*) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
compgen -G "migrations/${number}_*.up.sql" >/dev/null || fail "there is no migration $number"
newer=$(printf '%s\n' sql/kept/*.list | sort | tail -n 1)
[[ ! $(basename "$newer" .list) > $number ]] || fail "a later release is kept already ($newer); its list may name files of $number"
take_files "${@:2}"
keep_code
keep_statements
echo "kept as $number: $(wc -l <"sql/kept/$number.list") files, $(grep -c "^$number/" "sql/kept/$number.list") of them new"
