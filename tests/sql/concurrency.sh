# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# Two sessions, step by step: what one sees and waits for while the other has not committed.
fresh
open a
open b

# Plain INSERTs of one job from two sessions.
ask a "insert into proverq.job (circuit, partitions) values ('mul', 2)"
ask a 'begin'
ask b 'begin'
ask a "insert into proverq.partition (job_seq, partition_idx, witness) values (1, 0, '\x01')"
tell b "insert into proverq.partition (job_seq, partition_idx, witness) values (1, 1, '\x01')"
it 'a second inserter waits for the first' "$(blocked b)" blocked
ask a commit
it 'then it goes on' "$(answer b)" ''
ask b commit
it 'the last one makes the job whole' "$(sql -c 'select test.state(1), test.states(1)')" 'queued|ready ready'

# The same, with the first rolled back.
ask a "insert into proverq.job (circuit, partitions) values ('mul', 2)"
ask a 'begin'
ask a "insert into proverq.partition (job_seq, partition_idx, witness) values (2, 0, '\x01')"
ask b 'begin'
tell b "insert into proverq.partition (job_seq, partition_idx, witness) values (2, 1, '\x01')"
it 'again it waits' "$(blocked b)" blocked
ask a rollback
answer b
ask b commit
it 'rows rolled back do not count' "$(sql -c 'select test.state(2), present from proverq.job where job_seq = 2')" \
    'incomplete|1'
ask a "insert into proverq.partition (job_seq, partition_idx, witness) values (2, 0, '\x01')"
it 'until they come again' "$(sql -c 'select test.state(2)')" queued

# Claims.
ask a begin
ask b begin
it 'one session claims the first two' "$(ask a 'select test.claim(2)')" '1/0 1/1'
it 'the other skips them without waiting' "$(ask b 'select test.claim(1, 2)')" '2/0'
ask a rollback
it 'a claim rolled back can be made by another' "$(ask b 'select test.claim(5, 2)')" '1/0 1/1 2/1'
ask b commit
it 'nothing is left' "$(ask a 'select test.claim(5)')" ''
it 'each was claimed once' "$(sql -c 'select sum(attempt) from proverq.partition')" 4

# More rows locked ahead than a claim reads at first.
ask a 'select count(test.job(40))' >/dev/null
ask a begin
ask a 'select test.claim(30)' >/dev/null
it 'a claim gets past thirty locked rows' "$(ask b 'select test.claim(1, 2)')" '3/30'
ask a rollback
sql -c "update proverq.partition set state = 'cancelled', token = null, lease_until = null where job_seq = 3"

# Completion against rescue and against failure of a sibling.
it 'two leases' "$(sql -c 'select test.job(2)' -c 'select test.claim(2)')" $'4\n4/0 4/1'
ask a begin
it 'one completes' "$(ask a 'select test.complete(4, 0)')" t
tell b 'select test.complete(4, 1)'
it 'its sibling waits for the job' "$(blocked b)" blocked
ask a commit
it 'and completes then' "$(answer b)" t
it 'the last one of two that complete at once completes the job' "$(sql -c 'select test.state(4)')" completing

# The job is locked before its partitions, by all: else this is a deadlock.
sql -c 'select test.job(5, priority => 50)' -c 'select test.claim(4)' >/dev/null
sql -c "update proverq.partition set lease_until = now() where (job_seq, partition_idx) = (5, 3)"
idx=0
for call in 'test.complete(5, 0)' 'test.fail(5, 1, true, true)' \
    "proverq_private.release(5, 2, test.token(5, 2), 'test', 0)" 'proverq.rescue_expired()' \
    'proverq.set_priority(5, 51)' 'proverq.cancel(5)' \
    "proverq.retry_with_witnesses(5, array_fill('\\x01'::bytea, array[5]))"; do
    ask a begin
    ask a 'select from proverq.job where job_seq = 5 for no key update'
    tell b "select $call::text"
    it "$call waits for the job" "$(blocked b)" blocked
    it "and has not locked the partition" \
        "$(ask a "update proverq.partition set error = null where (job_seq, partition_idx) = (5, $((idx % 5)))")" ''
    ask a commit
    it "then it goes on" "$(answer b | grep -c ERROR)" 0
    idx=$((idx + 1))
done
it 'all seven were done' "$(sql -c "select test.states(5), priority, run from proverq.job where job_seq = 5")" \
    'proved ready ready ready ready|51|2'
sql -c "delete from proverq.partition where job_seq = 5" -c 'delete from proverq.job where job_seq = 5'

# Finalization.
ask a begin
it 'one session finalizes' "$(ask a 'select job_seq from test.finalize_next()')" 4
it 'the other skips the job without waiting' "$(ask b 'select job_seq from test.finalize_next()')" ''
ask a commit
it 'once it is done there is none' "$(ask b 'select job_seq from test.finalize_next()')" ''
sql -c 'select test.job(1), test.claim(1)' -c 'select test.complete(6, 0)' >/dev/null
ask a begin
ask a 'select job_seq from test.finalize_next()' >/dev/null
ask a rollback
it 'a finalization rolled back is made by another' "$(ask b 'select job_seq from test.finalize_next()')" 6

# Rescue while the result is on its way.
sql -c 'select test.job(1), test.claim(1, lease_ms => 1)' >/dev/null
ask a begin
it 'a late result that comes first is taken' "$(ask a 'select test.complete(7, 0)')" t
tell b 'select proverq.rescue_expired()'
it 'rescue waits' "$(blocked b)" blocked
ask a commit
it 'and leaves it alone' "$(answer b)" 0
it 'the proof stays' "$(sql -c 'select test.states(7)')" proved
sql -c 'select test.job(1), test.claim(1, lease_ms => 1)' >/dev/null
ask a begin
it 'a rescue that comes first' "$(ask a 'select proverq.rescue_expired()')" 1
tell b "select test.complete(8, 0, '$(sql -c 'select test.token(8, 0)')')"
blocked b >/dev/null
ask a commit
it 'refuses the late result' "$(answer b)" f
it 'the partition is ready' "$(sql -c 'select test.states(8)')" ready

# A heartbeat against a rescue: who renews in time keeps the lease.
# By another prover: the one that lost it would leave it alone.
sql -c 'select test.claim(1, 2, lease_ms => 1)' >/dev/null
ask a begin
ask a 'select count(*) from test.heartbeat(2, array[test.token(8, 0)], 60000)' >/dev/null
tell b 'select proverq.rescue_expired()'
blocked b >/dev/null
ask a commit
it 'a lease renewed meanwhile is not taken away' "$(answer b)" 0
it 'nor its token' "$(sql -c 'select test.states(8)')" leased

# A heartbeat waits for nobody, and counts what others have locked as still held.
sql -c 'select test.job(2, priority => 60)' >/dev/null
job=$(sql -c 'select max(job_seq) from proverq.job')
sql -c 'select test.claim(2, 2, lease_ms => 1000)' >/dev/null
ask a begin
ask a "select test.complete($job, 0)" >/dev/null
it 'a heartbeat does not wait for a result' "$(ask b "select count(*)
    from test.heartbeat(2, (select array_agg(token) from proverq.partition where job_seq = $job), 60000)")" 2
it 'and renews the other lease' "$(sql -c "select partition_idx from proverq.partition where job_seq = $job
    and lease_until > clock_timestamp() + interval '30 s'")" 1
ask a rollback
sql -c "delete from proverq.partition where job_seq = $job" -c "delete from proverq.job where job_seq = $job"

# One request from two sessions.
ask a begin
it 'a request' "$(ask a "select proverq.enqueue_witness('mul', array['\\x01'::bytea], request_id => 'r')")" 10
tell b "select proverq.enqueue_witness('mul', array['\\x01'::bytea], request_id => 'r')"
it 'its repetition waits' "$(blocked b)" blocked
ask a commit
it 'and is the same job' "$(answer b)" 10
ask a begin
ask a "select proverq.enqueue_witness('mul', array['\\x01'::bytea], request_id => 's')" >/dev/null
tell b "select proverq.enqueue_witness('mul', array['\\x01'::bytea], request_id => 's')"
blocked b >/dev/null
ask a rollback
it 'after a rollback it is a job of its own' "$(answer b)" \
    "$(sql -c "select job_seq from proverq.job where request_id = 's'")"

# Waiting.
tell b 'select proverq.wait(8)'
sleep 0.2
sql -c 'select test.complete(8, 0)' -c 'select test.finalize_next()' -c 'select test.finalize_next()' >/dev/null
it 'wait sees the end in another session' "$(answer b)" finished

# Notifications.
ask b 'listen proverq_work; listen proverq_finalize; listen proverq_job'
notified() {
    ask b 'select 1' | sed -nE 's/^Asynchronous notification "([a-z_]*)"( with payload "(.*)")? received.*/\1 \3/p' |
        sed 's/ $//' | sort -u | paste -sd+
}
sql -c 'update proverq_private.prover set idle = false' -c 'select test.job(2)' >/dev/null
it 'an insert without idle provers notifies nobody' "$(notified)" ''
sql -c 'update proverq_private.prover set idle = true where prover_id = 1' -c 'select test.job(2)' >/dev/null
it 'with one it wakes them' "$(notified)" proverq_work
sql -c "insert into proverq.job (circuit, partitions) values ('mul', 2)" >/dev/null
job=$(sql -c 'select max(job_seq) from proverq.job')
sql -c "insert into proverq.partition (job_seq, partition_idx, witness) values ($job, 0, '\\x01')"
it 'an incomplete job wakes nobody' "$(notified)" ''
sql -c "insert into proverq.partition (job_seq, partition_idx, witness) values ($job, 1, '\\x01')"
it 'its last partition does' "$(notified)" proverq_work
sql -c "select test.job(1, priority => 100, webhook => 'hook')" -c 'select test.claim(1)' >/dev/null
job=$(sql -c 'select max(job_seq) from proverq.job')
notified >/dev/null
sql -c "select test.complete($job, 0)" >/dev/null
it 'the last proof wakes the finalizer' "$(notified)" proverq_finalize
sql -c 'select test.finalize_next()' >/dev/null
it 'the end is told to users, and a webhook to the finalizer' "$(notified)" \
    "proverq_finalize+proverq_job {\"job\":$job,\"run\":1,\"state\":\"finished\"}"
sql -c 'select test.job(1, priority => 100)' -c 'select test.claim(1)' >/dev/null
job=$((job + 1))
notified >/dev/null
sql -c "select test.fail($job, 0, false, true)" >/dev/null
it 'a failure wakes the finalizer too' "$(notified)" proverq_finalize
sql -c 'select test.finalize_next()' >/dev/null
it 'and is told' "$(notified)" "proverq_job {\"job\":$job,\"run\":1,\"state\":\"failed\"}"
close a
close b

# Many sessions at once: nothing is claimed twice, in vain, or out of order, and no deadlock.
sql -c 'set client_min_messages = warning' -c 'truncate proverq.timing, proverq.partition, proverq.job cascade' \
    -c 'select count(test.job(5)) from generate_series(1, 40)' >/dev/null
cat >"$work/worker.sql" <<'END'
do $$
declare
    c record;
begin
    loop
        for c in select * from proverq_private.claim((random() * 3)::int + 1, '{1,2,3}', 60000, 3) loop
            commit; -- a claim is a transaction of its own
            if random() < 0.1 then
                perform proverq_private.fail(c.job_seq, c.partition_idx, c.token, 'test', 'test', true, false,
                    '{}', '{}', '{}', '{}');
            elsif random() < 0.1 then
                perform proverq_private.release(c.job_seq, c.partition_idx, c.token, 'test', 0);
            else
                perform test.record(c.job_seq, c.partition_idx, c.token, '{}', '[]', null,
                    '{10}', '{0}', array[now()], '{1}');
            end if;
            commit;
        end loop;
        update proverq.partition set due_at = clock_timestamp() 
        where (job_seq, partition_idx) = (select job_seq, partition_idx from proverq.partition where due_at is not null
                                          limit 1 for no key update skip locked);
        commit;
        perform proverq.wake_due(), proverq.rescue_expired(), test.finalize_next();
        commit;
        exit when not exists (select from proverq.job where finished_at is null);
    end loop;
end
$$
END
workers=()
for i in 1 2 3 4 5 6; do
    sql -f "$work/worker.sql" >"$work/worker.$i" 2>&1 &
    workers+=($!)
done
wait "${workers[@]}"
it 'six sessions work without an error' "$(cat "$work"/worker.[1-6])" ''
it 'and finish every job' \
    "$(sql -c "select count(*), count(*) filter (where state = 'finished'), sum(remaining) from proverq.job")" '40|40|0'
it 'with each proof recorded once' \
    "$(sql -c 'select count(*), count(distinct (job_seq, partition_idx)) from proverq.timing')" '200|200'
