#!/usr/bin/env bash
# What can be seen without running proverq: form, static analysis, the layers of the design, the documentation of options.
# Each rule is a check of its own; the last line is the sum.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
passed=0 failed=0

# Everything that git knows or would take, so that a new file is not forgotten.
sources() {
    git ls-files --cached --others --exclude-standard -- "$@" | sort -u | while read -r file; do [ ! -f "$file" ] || echo "$file"; done
}
mapfile -t c_files < <(sources 'gpu/*.[ch]' 'gpu/*.inc' 'service/*.[ch]' 'tests/*.[ch]')
mapfile -t formatted < <(printf '%s\n' "${c_files[@]}" | grep -v '\.inc$') # names made by macros are beyond clang-format
mapfile -t c_units < <(sources 'gpu/*.c' 'service/*.c' | grep -vE '^gpu/(error|cpu/curve_.*)\.c$')
mapfile -t scripts < <(sources '*.sh' .ci/run)

# rule NAME COMMAND ...: the command must succeed; what it prints otherwise is shown.
rule() {
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        passed=$((passed + 1))
        echo "  ok    $name"
    else
        failed=$((failed + 1))
        echo "  FAIL  $name"
        head -n 60 <<<"$output" | sed 's/^/        /'
    fi
}

# none NAME PATTERN FILE ...: no line of the files may match; a comment that only mentions the word is let through.
none() {
    local name=$1
    shift
    rule "$name" nowhere "$@"
}
nowhere() {
    local pattern=$1 found
    shift
    found=$(grep -nE -- "$pattern" "$@" /dev/null | grep -vE '^[^:]+:[0-9]+: *(\*|/\*|//|#[^ifn])')
    [ -z "$found" ] || { echo "$found" && false; }
}

files_like() {
    printf '%s\n' "${c_files[@]}" | grep -E "$1" | grep -vE "${2-^$}"
}

formatted() {
    local major
    major=$(clang-format --version | sed -E 's/.*version ([0-9]+).*/\1/')
    if [ "$major" != 14 ]; then
        echo "  skip  formatting: clang-format $major writes some lines otherwise than 14, which the code has" >&2
        return 0
    fi
    clang-format --dry-run --Werror "${formatted[@]}"
}

tidy() {
    local cppflags output
    read -ra cppflags < <(pkg-config --cflags libpq libcurl libcrypto jansson libmicrohttpd)
    output=$(printf '%s\n' "${c_units[@]}" | nice xargs -P "$(nproc)" -I{} \
        clang-tidy --quiet {} -- "${cppflags[@]}" -include tests/lint_model.h -I. -D_GNU_SOURCE -std=c11 -pthread 2>/dev/null)
    ! grep -E 'warning:|error:' <<<"$output"
}

cppcheck_run() {
    nice cppcheck -j "$(nproc)" --quiet --error-exitcode=1 --enable=warning,portability,performance --inline-suppr \
        --std=c11 -I. --suppress=missingInclude --suppress=unknownMacro --suppress=nullPointerArithmeticRedundantCheck \
        --suppress=normalCheckLevelMaxBranches \
        "${c_units[@]}"
}

# Lengths of the functions of our C: half under 20 lines, nine of ten under 60.
function_lengths() {
    awk 'FNR == 1 { start = 0 }
         /^[a-z].*[^;]$/ && /\(/ && !/^#/ { if (!start) { start = FNR; name = $0 } }
         /^}/ { if (start) { print FNR - start + 1, FILENAME ":" start; start = 0 } }
         /;$/ && /^[a-z]/ { start = 0 }' "$@" | sort -n >/tmp/lengths.$$
    awk '{ n[NR] = $1; at[NR] = $2 }
         END { half = n[int((NR + 1) / 2)]; nine = n[int(NR * 0.9 + 0.999)]
               printf "median %d, nine of ten under %d, longest %d at %s\n", half, nine + 1, n[NR], at[NR]
               exit !(half < 20 && nine < 60) }' /tmp/lengths.$$
    local status=$?
    rm -f /tmp/lengths.$$
    return $status
}

# Options are in contrib/docs/options.md: tests/service/common/test_options.c compares.
commands_documented() {
    local words status=0
    while read -r words; do
        grep -q "proverq $words" README.md || { echo "README.md does not tell of: proverq $words"; status=1; }
    done < <(sed -nE 's/^ *X\(COMMAND_[A-Z_]+, "([a-z ]+)".*/\1/p' service/common/options.h)
    return $status
}

tests_mirror_sources() {
    local test stem status=0
    for test in tests/gpu/test_*.c tests/service/*/test_*.c; do
        stem=$(basename "$test" .c)
        stem=${stem#test_}
        case $test in
        tests/gpu/*) compgen -G "gpu/$stem*" || compgen -G "gpu/*/$stem*" ;;
        *) compgen -G "$(dirname "${test#tests/}")/$stem*" ;;
        esac >/dev/null || { echo "$test: no source of that name"; status=1; }
    done
    return $status
}

# The rows of the drawing in service/main.c: a folder includes its own headers and those of the rows below it.
service_layers() {
    local file folder included status=0
    local -A row=([common]=0 [db]=1 [calculator]=2 [schema]=2 [supervisor]=3 [prover]=3 [finalizer]=3 [commands]=4)
    while IFS=: read -r file included; do
        folder=${file#service/} folder=${folder%%/*}
        included=${included#*service/} included=${included%%/*}
        [ "$folder" != main.c ] && [ "$folder" != "$included" ] || continue
        [ "${row[$included]-9}" -lt "${row[$folder]--1}" ] || { echo "$file includes a header of service/$included/"; status=1; }
    done < <(grep -E '^#include "service/' "$@")
    return $status
}

# A step of a spec is left out: its SQL is one line, for tests/isolation/condense.awk.
sql_tests_fit() {
    local files
    mapfile -t files < <(sources 'tests/sql/*.sql' 'tests/sql/*.sh' 'tests/isolation/*.sql' 'tests/isolation/*.sh' \
        'tests/isolation/specs/*.spec' 'tests/migrations/*.sh')
    awk 'length > 120 && !(FILENAME ~ /[.]spec$/ && /^step /) { print FILENAME ":" FNR ": " length " columns"; long = 1 }
         END { exit long }' "${files[@]}"
}

migrations_paired() {
    local up status=0
    for up in migrations/*.up.sql; do
        [ -f "${up%.up.sql}.down.sql" ] || { echo "$up has no .down.sql"; status=1; }
    done
    return $status
}

links_lead_somewhere() {
    local link status=0
    while read -r link; do
        [ -e "$link" ] || { echo "README.md: $link is not there"; status=1; }
    done < <(grep -oE '\]\([^)#:]+\)' README.md | sed 's/^](//; s/)$//')
    return $status
}

# Files and folders that comments, Markdown and Python cite by path, and headers and sources that comments in C cite by name, are in
# the tree. Names in capitals are placeholders. tests/bench/RESULTS.md is left out: it keeps commands as they were run.
citations_lead_somewhere() {
    local cited at='' status=0
    local -A names=()
    while read -r cited; do names[$cited]=1; done < <(
        sources | sed 's|.*/||'
        grep -hoP '^\s*#\s*include\s+[<"]\K[^>"]+' "${c_files[@]}" gpu/cuda/*.cu*)
    while read -r cited; do
        case $cited in
        *:) at=$cited ;;
        */*) [ -e "${cited%.}" ] || [[ $cited =~ [A-Z]{2} ]] || { echo "$at ${cited%.} is not there"; status=1; } ;;
        *) [ -n "${names[$cited]-}" ] || { echo "$at there is no $cited"; status=1; } ;;
        esac
    done < <(
        local of_a_path='(?<![\w/.*<>$}\]-])(?>(?:gpu|service|sql|migrations|tests|contrib)/[\w./-]*)(?![*?{[<$(])'
        local of_a_name='(?<![\w/.*<>$}\]-])(?>[\w-]+(?:/[\w-]+)*\.(?:cuh?|inc|c|h)\b)(?![.(])'
        sources | grep -vE '(^tests/bench/RESULTS\.md|\.(md|py|json|wtns|wasm|zkey|r1cs|[ch]|inc|cuh?))$' |
            xargs grep -IHnoP '(^|\s)(#|//|--)\s.*' | grep -oP "^[^:]+:\d+:|$of_a_path"
        sources '*.md' '*.py' | grep -vE '^tests/bench/RESULTS\.md$' | xargs grep -Hn '' | grep -oP "^[^:]+:\d+:|$of_a_path"
        grep -HnoP '(^|\s)(//|/\*|\*)\s.*' "${c_files[@]}" gpu/cuda/*.cu* tests/*/*.cu* | grep -oP "^[^:]+:\d+:|$of_a_path|$of_a_name"
    )
    return $status
}

mapfile -t gpu < <(files_like '^gpu/')
mapfile -t service < <(files_like '^service/')
mapfile -t not_db < <(files_like '' '^service/db/')
mapfile -t not_webhook < <(files_like '^(gpu|service)/' '^service/finalizer/webhook')
mapfile -t not_gpu < <(files_like '^(service|tests/service)/')
mapfile -t ours < <(files_like '^(gpu|service)/')
mapfile -t c_and_scripts < <(printf '%s\n' "${ours[@]}" "${scripts[@]}" Makefile | grep -v '^tests/lint')

rule "formatting (clang-format 14)" formatted
none "libpq only in the database module" '#include <(libpq-fe|postgres_ext|libpq/.*)\.h>' "${not_db[@]}"
none "curl only in the webhook module" '#include <curl/' "${not_webhook[@]}"
none "CUDA headers only under gpu/" '#include <(cuda|cupti|nv)' "${not_gpu[@]}"
none "the prover library knows no service" '#include "(service|sql|migrations)/' "${gpu[@]}"
none "the prover library knows no database, HTTP or JSON of the service" '#include <(libpq-fe|curl/.*|microhttpd)\.h>' "${gpu[@]}"
rule "service/ is layered as service/main.c draws it" service_layers "${service[@]}"
none "no unsafe string functions" '\b(strcpy|strcat|strncpy|sprintf|vsprintf|gets|atoi|atol|atoll|atof|strtok|sscanf|alloca|system|popen|tmpnam|mktemp)\(' "${ours[@]}"
none "no typedefs for structs" '^typedef (struct|enum|union)( [a-z_]+)?( \{| [a-z_]+;)' "${ours[@]}"
none "nothing dead or for later" '#if 0|\b(TODO|FIXME|XXX)\b' "${c_and_scripts[@]}"
none "migrations run in one transaction" '^ *(begin|commit|rollback)( work| transaction)?;' migrations/*.sql
rule "each migration has its way back" migrations_paired
rule "each migration carries its checksum" contrib/scripts/seal-migrations.sh --check
rule "tests are named after what they test" tests_mirror_sources
rule "lines of the SQL tests fit 120 columns" sql_tests_fit
rule "functions fit a screen" function_lengths "${ours[@]}"
rule "every command is in README.md" commands_documented
rule "README.md's links lead somewhere" links_lead_somewhere
rule "what comments cite is there" citations_lead_somewhere
rule "scripts (shellcheck)" shellcheck -x -P SCRIPTDIR "${scripts[@]}"
rule "cppcheck" cppcheck_run
rule "clang-tidy" tidy

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
