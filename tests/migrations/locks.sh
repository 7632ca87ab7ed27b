# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# A migration that does not get a table waits briefly, so that nobody queues behind it for long, and tries again.
ok "npm packages" need_npm
# shellcheck source=tests/migrations/live.sh
[ "$(type -t old_program_runs)" = function ] || source <(sed '/^# with_live_work/,$d' "$here/live.sh")

# A session that reads the job table in a transaction that stays open, until release_table.
hold_table() {
    { echo "begin isolation level repeatable read; select count(*) from proverq.job;" && exec sleep 60; } |
        PGAPPNAME=report psql -X -q -A -t "$dsn" >/dev/null 2>&1 &
    for ((i = 0; i < 100; i++)); do [ "$(sessions report)" = 0 ] || return 0; sleep 0.05; done
    fail "a table is held"
}
release_table() {
    sql -c "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'report'" >/dev/null
}
sessions() {
    sql -c "select count(*) from pg_stat_activity where application_name = '$1' and state like '%in transaction%'"
}

empty
"$later" migrate up >/dev/null
fixture
hold_table
refused "a table in use for too long is said, with who uses it" \
    "process [0-9]+ \(user proverq, report, transaction for [0-9]+ s\) has proverq.job in use" \
    "$later" migrate down "$newest" --lock-wait 1s
same "... and nothing was changed" later
ok "... not even tried by plan" "$later" migrate plan "$newest"

blocked_then_free() {
    "$later" migrate down "$newest" >"$work/migrate.out" 2>&1 &
    local pid=$!
    sleep 2.5
    kill -0 $pid || return
    release_table
    wait $pid && "$proverq" migrate up
}
ok "while it waits, programs work on; when it gets the table it goes on" old_program_runs blocked_then_free
echo "        $(tail -n 1 "$work/old.out")"
is "... it had said who was in the way" 1 "$(grep -c '^waiting: process .* report' "$work/migrate.out")"
is "... nobody waited for a table longer than it and a migration take" true \
    "$(of_report '.jobs > 30 and .slowest_ms < 3000')"
is "... nothing was lost" "$(of_report .jobs)" \
    "$(sql -c "select count(*) from proverq.job where job_seq > 4 and state = 'finished'")"
same "... the schema is today's" newest

# Two at once: the second waits for the first and then has nothing to do.
"$later" migrate up >"$work/first.out" 2>&1 &
first=$!
ok "two at once: the second" "$later" migrate up
wait $first
is "... and the first" 0 $?
is "... apply each file once" 1 "$(sql -c 'select count(*) from proverq.schema_migration where version = 9002')"
same "... and the schema is the later one" later
back_to_today >/dev/null

# An index that is built beside the work: writers go on, an old transaction is waited for, a
# failed build leaves nothing.
hold_table # its snapshot must end before the build can
"$later" migrate up >"$work/later.out" 2>&1 &
building=$!
for ((i = 0; i < 100; i++)); do
    [ "$(sql -c "select count(*) from pg_stat_progress_create_index")" = 0 ] || break
    sleep 0.05
done
ok "while an index is built, jobs are inserted" sql -c "set statement_timeout = '2s'" \
    -c "insert into proverq.job (circuit, partitions) values ('mul', 1)"
"$later" migrate up >"$work/second.out" 2>&1 & # waits, without a snapshot that the build would wait for
second=$!
sleep 0.5
is "... and another migrate waits" 1 "$(kill -0 $second && sql -c "select count(*) from pg_stat_progress_create_index")"
kill -9 $second
kill -9 $building
sql -c "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'proverq migrate'" >/dev/null
wait $building 2>/dev/null
is "a build that was broken off leaves an index that is not valid" f \
    "$(sql -c "select indisvalid from pg_index where indexrelid = 'proverq.job_finished'::regclass")"
release_table
ok "... which the next one replaces" "$later" migrate up
is "... by a valid one" t \
    "$(sql -c "select indisvalid from pg_index where indexrelid = 'proverq.job_finished'::regclass")"
empty
sql -c 'drop schema if exists live cascade'
