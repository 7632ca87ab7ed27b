#!/usr/bin/env bash
# Prints C that holds the given SQL files, and the glue of calculators (paths from the top of the source tree): see
# service/common/embedded.h.
#     bash service/common/embed.sh migrations/*.sql sql/*.sql sql/*/*.sql > embedded.c
set -euo pipefail

symbol_of() {
    local symbol=${1%.sql}
    echo "${symbol//[^A-Za-z0-9]/_}"
}

# Bytes, not string literals: C11 promises only 4095 characters of those.
print_bytes() {
    echo "static const char $(symbol_of "$1")[] = {"
    od -An -v -t d1 -w20 "$1" | sed -E 's/^ +//; s/ +/,/g; s/$/,/'
    echo "0};"
}

print_table() {
    local folder=$1 file name
    shift
    echo "const struct embedded_file embedded_${folder##*/}[] = {"
    for file in "$@"; do
        name=${file#"$folder/"}
        [ "$name" != "$file" ] || continue
        [[ $folder != sql || $name != */* ]] || continue
        echo "    {\"$file\", \"${name%.sql}\", $(symbol_of "$file")},"
    done
    echo "    {NULL, NULL, NULL}};"
}

echo '#include "service/common/embedded.h"'
glue=service/calculator/calculator_glue.inc
for file in "$@" "$glue"; do print_bytes "$file"; done
echo "const char *const embedded_calculator_glue = $(symbol_of "$glue");"
for folder in migrations sql/functions sql/views sql sql/statements; do print_table "$folder" "$@"; done
