# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# Each alert, raised by what it warns of, and gone when that is over. The owner is no superuser.
fresh
# raised NAME ALERT PATTERN: exactly this alert, whose text and advice, joined by " | ", match.
raised() {
    local said
    said=$(sql -F ' | ' -c 'select alert, what, advice from proverq.alerts')
    if grep -qE "^$2 \| .*($3)" <<<"$said" && [ "$(wc -l <<<"$said")" -eq 1 ]; then
        echo "ok $1"
    else
        echo "FAIL $1: said '$said'"
    fi
}
quiet() { it "$1" "$(sql -F ' | ' -c 'select alert, what from proverq.alerts')" ''; }
limit() { sql -c "update proverq.alert_limit set $2 where alert = '$1'"; }
finalizer() { PGAPPNAME='proverq finalizer test' sql "$@"; }

quiet 'nothing is wrong at first'
it 'every alert has a threshold or is a yes or no, and is described' \
    "$(sql -c "select count(*) from proverq.alert_limit where description = ''")" 0

# --- work ---
sql -c 'select test.job(2)' >/dev/null
quiet 'a job that has just come is no reason'
sql -c "update proverq.job set ready_at = clock_timestamp() - interval '16 min'"
raised 'a partition waits too long' ready_waits 'circuit mul, of job 1, is ready for 16 min .*select proverq.why\(1\);'
limit ready_waits "after = '17 min'"
quiet 'unless longer is allowed'
limit ready_waits "after = '15 min', muted = true"
quiet 'or it is muted'
limit ready_waits 'muted = false'
sql -c "select test.job(1, priority => 5)" -c "select test.job(1, 'other', 7)" >/dev/null
raised 'of several priorities and circuits the one that waits longest is named' ready_waits 'of job 1,'
sql -c "select proverq.pause('mul', 'the key is being replaced')" >/dev/null
raised 'a paused circuit has its own' paused_waits \
    "job 1 waits: circuit mul is paused by proverq: the key is being replaced .*select proverq.resume\('mul'\);"
sql -c "select proverq.resume('mul')" -c "update proverq.job set ready_at = clock_timestamp()" >/dev/null
quiet 'both are over'
sql -c "update proverq_private.prover set seen_at = clock_timestamp() - interval '3 min'"
raised 'no prover has given a sign of life' no_prover 'jobs of 2 circuit\(s\) wait, .*run: proverq serve'
sql -c "update proverq_private.prover set state = 'stopped', seen_at = clock_timestamp()"
raised 'or they all stopped' no_prover 'no prover runs'
sql -c "update proverq_private.prover set state = 'running' where prover_id <= 2"
quiet 'some run again'
sql -c "update proverq.partition set state = 'held', due_at = clock_timestamp() - interval '2 min'
        where (job_seq, partition_idx) = (1, 0)"
raised 'a backoff is over, and no finalizer ends it' no_finalizer \
    'partitions that are due again wait, .*run: proverq serve'
it 'a finalizer does' "$(finalizer -c 'select proverq.wake_due(), (select count(*) from proverq.alerts)')" '1|0'
sql -c "select proverq_private.circuit_refused(1, 2, 'device_memory', 'the key needs 9 GB')" >/dev/null
quiet 'one refuses the circuit, another takes it'
sql -c "select proverq_private.circuit_refused(2, 2, 'device_memory', 'the key needs 9 GB')" >/dev/null
raised 'all refuse it' circuit_refused \
    'all 2 running prover\(s\) refuse version 2 of circuit mul: the key needs 9 GB .*proverq.refusals'
sql -c "select proverq_private.circuit_refused(p, 2, null, null) from generate_series(1, 2) p" >/dev/null
sql -c "select proverq_private.device_quarantined('host1', 'cuda:1', 4, 'exit status 3')" >/dev/null
raised 'a device in quarantine' device_quarantined 'cuda:1 on host1 has failed 4 times: exit status 3'
sql -c "select proverq_private.device_quarantined('host1', 'cuda:1', 0, null)" >/dev/null
quiet 'it is tried again'

# --- leases, ends, webhooks ---
sql -c 'select proverq.make_timing_partitions(0)' >/dev/null
sql -c 'select test.claim(4)' >/dev/null
sql -c "update proverq.partition set lease_until = clock_timestamp() - interval '61 s' where job_seq = 1"
raised 'leases that nobody takes back' leases_expired '2 lease\(s\) ended, the first 61.*proverq.rescue_expired'
sql -c 'select proverq.rescue_expired()' -c 'select test.claim(2, 2)' \
    -c 'select test.complete(1, 0), test.complete(1, 1)' >/dev/null
raised 'no finalizer' no_finalizer 'no finalizer is connected .*proverq serve'
it 'with one there is none' "$(finalizer -c 'select count(*) from proverq.alerts')" 0
sql -c "update proverq.partition set proved_at = clock_timestamp() - interval '2 min' where job_seq = 1"
it 'but the job should have been finalized' "$(finalizer -F ' | ' -c 'select alert, what from proverq.alerts')" \
    'job_stuck | job 1 is completing'
sql -c "update proverq.job set finalize_failures = 3, finalize_error = 'no space left' where job_seq = 1"
it 'and why it was not' "$(finalizer -c 'select what from proverq.alerts')" \
    'job 1 is completing, and its last step has failed 3 time(s): no space left'
sql -c 'select test.finalize_next()' >/dev/null
quiet 'it is'
sql -c "select test.job(1, webhook => 'hook', priority => 50)" -c 'select test.claim(1)' \
    -c 'select test.fail(4, 0, false, true)' >/dev/null
sql -c "update proverq_private.failure set failed_at = clock_timestamp() - interval '2 min'" \
    -c "update proverq.job set ready_at = ready_at - interval '3 min' where job_seq = 4"
it 'a job that should have been finalized as failed' \
    "$(finalizer -F ' | ' -c 'select alert, what from proverq.alerts')" 'job_stuck | job 4 is failing'
sql -c 'select test.finalize_next()' >/dev/null
raised 'a webhook is to be sent, and no finalizer' no_finalizer 'a webhook to be sent'
sql -c "update proverq_private.webhook_delivery set next_attempt_at = clock_timestamp() - interval '11 min'"
it 'a webhook that is overdue' "$(finalizer -F ' | ' -c 'select alert, what from proverq.alerts' |
    sed -E 's/\(11 min\|660.*/x/')" 'delivery_overdue | webhooks to endpoint hook should have been sent 11 min ago'
answer=$(sql -c "select delivery_id, token from proverq_private.claim_deliveries(1, 1, 1, 60000)")
sql -c "select proverq_private.record_deliveries(jsonb_build_array(jsonb_build_object('delivery', '${answer%|*}',
    'token', '${answer#*|}', 'status', 410, 'error', 'HTTP 410')))" >/dev/null
calls="enable_webhook_endpoint\('proverq/hook'\), proverq.redeliver_failed\('proverq/hook'"
raised 'the endpoint is disabled by what it answers' endpoint_disabled \
    "endpoint hook of proverq was disabled: it answered 410 Gone .*$calls"
advice=$(sql -c 'select advice from proverq.alerts')
it 'the advice can be followed' "$(finalizer -c "$advice" 2>&1)" '|1'
sql -c "update proverq_private.webhook_delivery set state = 'delivered', next_attempt_at = null"
quiet 'and helps'
sql -c "select proverq.disable_webhook_endpoint('hook', 'on purpose')" >/dev/null
quiet 'what is disabled on purpose is no reason'

# --- upkeep ---
sql -c "insert into proverq.timing (recorded_at, prover_id, device, worker, step, started_at, duration)
    values (now() + interval '1 day', 1, 'cpu', 0, 10, now(), 1)"
raised 'rows in the default table' timing_default 'timing_default has rows.*make_timing_partitions'
sql -c 'select proverq.make_timing_partitions(1)' >/dev/null
quiet 'they are moved'
sql -c "insert into proverq_private.device_activity (recorded_at, prover_id, device, kind, started_at, duration, busy)
    values ('2020-01-01', 1, 'cpu', 'cpu_span', '2020-01-01', 1, 1)"
raised 'of activity, too' timing_default 'device_activity_default has rows'
sql -c 'select * from proverq.prune()' >/dev/null
sql -c "update proverq.job set created_at = clock_timestamp() - interval '33 days',
    finished_at = finished_at - interval '31 days'"
quiet 'a job that should have been deleted yesterday'
sql -c "update proverq.job set finished_at = finished_at - interval '2 days' where job_seq = 1"
raised 'or days ago' retention_behind 'job 1 is to be kept for 30 days, and is older by 3 days.*proverq.prune'
sql -c 'select * from proverq.prune()' >/dev/null
quiet 'it is deleted'
sql -c "create table proverq_private.timing_20200101 partition of proverq.timing
    for values from ('2020-01-01 00:00+00') to ('2020-01-02 00:00+00')"
raised "a day's table that should be gone" retention_behind 'table timing_20200101 is to be kept for 14 days'
sql -c 'select * from proverq.prune()' >/dev/null

# --- vacuum ---
open a
open b
ask a 'begin isolation level repeatable read' && ask a 'select count(*) from proverq.step' >/dev/null
limit old_snapshot "after = '0.1 s'"
sleep 0.3
raised 'an old snapshot' old_snapshot \
    'session [0-9]+ of proverq \(session_a, idle in transaction\) keeps the rows of .* pg_terminate_backend'
ask a commit
quiet 'it is over'
ask a begin && ask a "update proverq.step set description = description where step = 10"
sleep 0.3
raised 'a transaction that has written and is idle' old_snapshot 'session_a, idle in transaction'
ask a rollback
limit old_snapshot "after = '30 min'"

limit dead_rows 'above = 500'
ask a 'begin isolation level repeatable read' && ask a 'select count(*) from proverq.step' >/dev/null
for _ in 1 2 3; do
    sql -c "select proverq.enqueue_path('mul', array_agg('w' || i)) from generate_series(1, 400) i" \
        -c 'select pg_stat_force_next_flush()' >/dev/null
done
for _ in 1 2 3 4 5 6 7 8 9 10; do
    sql -c "select pg_stat_force_next_flush()" \
        -c "update proverq.partition set priority = priority where state = 'ready'" >/dev/null
    [ "$(sql -c "select n_dead_tup > 500 + n_live_tup / 5 from pg_stat_user_tables
        where relid = 'proverq.partition'::regclass")" = t ] && break
    sleep 0.2
done
raised 'dead rows that vacuum cannot remove' dead_rows \
    'table partition has [0-9]+ dead rows beside .*vacuum \(verbose\) proverq.partition'
ask a commit
sql -c 'vacuum proverq.partition, proverq.job' >/dev/null
quiet 'then it can'
sql -c 'alter table proverq.partition set (autovacuum_enabled = false)'
raised 'a table without autovacuum' autovacuum_off \
    'autovacuum is off for table partition .*reset \(autovacuum_enabled\)'
sql -c 'alter table proverq.partition reset (autovacuum_enabled)'

# The queue is 8 GB: a tenth of it is too much for a test, a page is not.
limit notify_queue 'above = 0'
ask b 'listen proverq_test'
ask b 'begin' && ask b 'select 1' >/dev/null
sql -c "do \$\$ begin for i in 1..30 loop perform pg_notify('proverq_test', i || repeat('x', 7000)); end loop; end \$\$"
raised 'a listener that does not listen fills the queue' notify_queue \
    '% of the notification queue is full .*in transaction'
ask b commit >/dev/null
for _ in {1..50}; do
    [ "$(sql -c 'select pg_notification_queue_usage() = 0')" = t ] && break
    sql -c "notify proverq_test" && sleep 0.1
done
limit notify_queue 'above = 0.1'
close a
close b
quiet 'all is well in the end'

# --- what needs the superuser of a private PostgreSQL ---
[ -z "${PROVERQ_TEST_DSN-}" ] || return 0
home=$work/postgres
[ ! -L "$home/home" ] || home=$home/home
admin() {
    psql -X -q -A -t -h "$(cat "$home/socket-folder" 2>/dev/null || echo "$home/socket")" -p "$(cat "$home/port")" \
        -U postgres -d proverq "$@"
}
limit old_snapshot "after = '0.1 s'"
(PGAPPNAME=theirs admin -c 'begin isolation level repeatable read; select 1; select pg_sleep(60); commit' \
    >/dev/null 2>&1) &
for _ in {1..50}; do
    [ "$(sql -c "select count(*) from pg_stat_activity where application_name = 'theirs'
        and backend_xmin is not null")" = 1 ] && break
    sleep 0.1
done
sleep 0.3
quiet 'since when the snapshot of another user is held, the owner cannot see'
limit old_snapshot 'above = -1'
cannot_see='since when, proverq cannot see: grant pg_read_all_stats to proverq;'
raised 'how many transactions it holds back, it can, and says what it cannot see' old_snapshot \
    "session [0-9]+ of postgres \(theirs\) keeps the rows of .*; $cannot_see"
limit old_snapshot 'above = 1000000'
admin -c 'grant pg_read_all_stats to proverq'
raised 'as a member of pg_read_all_stats it sees it' old_snapshot 'session [0-9]+ of postgres \(theirs, active\) keeps'
admin -c 'revoke pg_read_all_stats from proverq'
admin -c "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'theirs'" >/dev/null
wait $!
limit old_snapshot "after = '30 min'"
