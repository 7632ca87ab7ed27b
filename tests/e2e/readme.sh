#!/usr/bin/env bash
# Runs every command of README.md, in order, against a PostgreSQL of its own: the lines of its `sh` blocks, the `sql` blocks
# with psql. Changed is only where the database and the webhook consumer are.
source "$(dirname "$0")/service_lib.sh"

readme=$root/README.md
database=$PROVERQ_DATABASE
unset PROVERQ_DATABASE PROVERQ_CACHE_DIR
export HOME=$work PATH="$work/bin:$PATH"
mkdir "$work/bin"
ln -s "$proverq" "$work/bin/proverq"
ln -s "$root/tests" "$root/contrib" "$work"
at_exit=("kill \$(jobs -p) 2>/dev/null; wait" "${at_exit[@]}")
cd "$work" || exit

# Prints the blocks as lines: the kind, a tab, the text; an sql block is one line with \n escaped.
blocks() {
    awk '/^```(sh|sql)$/ { kind = substr($0, 4); text = ""; next }
         /^```/ && kind { if (kind == "sql") print "sql\t" text; kind = ""; next }
         kind == "sh" { print "sh\t" $0 }
         kind == "sql" { gsub(/\\/, "\\\\"); text = text $0 "\\n" }' "$readme"
}

local_database() {
    if [[ $1 == "export PROVERQ_DATABASE="* ]]; then echo "export PROVERQ_DATABASE='$database'"; else echo "$1"; fi
}

run_line() {
    local output=$work/output
    if eval "$(local_database "$1")" >"$output" 2>&1 </dev/null; then pass "$1"; else fail "$1" "$(cat "$output")"; fi
}

run_sql() {
    local sql=$work/block.sql output
    printf '%b' "$1" | sed 's|https://example.com|http://127.0.0.1:1|' >"$sql"
    if output=$(psql -X -v ON_ERROR_STOP=1 "$PROVERQ_DATABASE" -f "$sql" 2>&1); then
        pass "$(grep -m 1 '^[a-z]' "$sql")"
        echo "$output" >>"$work/answers"
    else
        fail "$(head -n 2 "$sql")" "$output"
    fi
}

while IFS=$'\t' read -r kind text; do
    if [ "$kind" = sh ]; then run_line "$text"; else run_sql "$text"; fi
done < <(blocks)
is "both jobs are finished, and neither proved by luck of an earlier one" 2 "$(grep -c '^ finished' "$work/answers")"
is "why says where the proof is" 1 "$(grep -c 'get it with: select proverq.proof(1);' "$work/answers")"
finish
