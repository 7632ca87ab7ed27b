# shellcheck shell=bash disable=SC2034 # used by those who source it
# What the end-to-end tests share: counting, the tools of other people, folders. Source it first.
#
#   ok NAME COMMAND ...                the command must succeed
#   refused NAME PATTERN COMMAND ...   the command must exit 1..125 (no signal) and say PATTERN (grep -E)
#   is NAME WANT HAVE                  two texts must be equal
#   finish                             prints "N passed, N failed" and exits
set -uo pipefail

root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
proverq=${PROVERQ:-$root/build/proverq}
npm=$root/tests/npm
snarkjs() { node --no-deprecation "$npm/node_modules/.bin/snarkjs" "$@"; }
work=$(mktemp -d "${TMPDIR:-/tmp}/proverq-e2e.XXXXXX")
at_exit=("rm -rf '$work'")
passed=0 failed=0

clean_up() {
    local command
    for command in "${at_exit[@]}"; do eval "$command"; done
}
trap clean_up EXIT
trap 'exit 130' INT TERM

pass() {
    passed=$((passed + 1))
    echo "  ok    $1"
}

fail() {
    failed=$((failed + 1))
    echo "  FAIL  $1"
    [ $# -lt 2 ] || printf '%s\n' "${@:2}" | head -n 40 | sed 's/^/        /'
}

ok() {
    local name=$1 output status
    shift
    output=$("$@" 2>&1 </dev/null) && { pass "$name"; return 0; }
    status=$?
    fail "$name" "exit status $status: $*" "$output"
    return 1
}

refused() {
    local name=$1 pattern=$2 output status
    shift 2
    output=$("$@" 2>&1 </dev/null)
    status=$?
    if [ $status -eq 0 ] || [ $status -gt 125 ]; then
        fail "$name" "exit status $status, not a refusal: $*" "$output"
    elif ! grep -qE -- "$pattern" <<<"$output"; then
        fail "$name" "does not say /$pattern/: $*" "$output"
    else
        pass "$name"
        return 0
    fi
    return 1
}

is() {
    if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "wanted: $2" "have:   $3"; fi
}

finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
}

need_npm() {
    [ "$npm/node_modules/.package-lock.json" -nt "$npm/package-lock.json" ] && return
    (cd "$npm" && npm ci --silent --no-audit --no-fund --ignore-scripts && touch node_modules/.package-lock.json) ||
        { echo "npm ci failed in $npm: these tests need packages from the npm registry" >&2 && return 1; }
}
