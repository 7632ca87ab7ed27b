# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# Cancel, retry and priority against what else happens to a job: whoever comes first decides,
# the other sees it, and nobody waits for ever.
fresh
open a
open b
ask a 'select 1' >/dev/null
ask b 'select 1' >/dev/null
race() { # race "SQL of a" "SQL of b": a first, b waits for a's commit; prints b's answer
    ask a begin
    ask a "$1" >/dev/null
    tell b "$2"
    [ "$(blocked b)" = blocked ] || echo 'not blocked'
    ask a commit
    answer b
}
leased() {
    sql -c 'select test.job(2, priority => 50)' -c 'select test.claim(2, lease_ms => 1)' -c 'select pg_sleep(0.002)' |
        sed -n 1p
}
token() { sql -c "select test.token($1, 0)"; }
invariants() { sql -c 'select * from proverq.check_invariants()'; }
job=$(leased)
token=$(token "$job")
it 'a proof that waits for a cancel is refused' \
    "$(race "select proverq.cancel($job)" "select test.complete($job, 0, '$token')")" f
job=$(leased) && token=$(token "$job")
it 'a cancel that waits for a proof keeps it' \
    "$(race "select test.complete($job, 0, '$token')" \
        "select proverq.cancel($job)")|$(sql -c "select test.states($job)")" 't|proved cancelled'
job=$(leased) && token=$(token "$job")
it 'a failure that waits for a cancel is stale' \
    "$(race "select proverq.cancel($job)" "select test.fail($job, 0, true, true, '$token')")" stale
job=$(leased) && token=$(token "$job")
it 'a cancel that waits for a failure takes what is held' \
    "$(race "select test.fail($job, 0, true, true)" \
        "select proverq.cancel($job)")|$(sql -c "select test.states($job)")" 't|cancelled cancelled'
sql -c "select proverq.cancel(job_seq) from proverq.job where finished_at is null" >/dev/null
job=$(leased)
it 'a rescue that waits for a cancel finds nothing' \
    "$(race "select proverq.cancel($job)" 'select proverq.rescue_expired()')" 0
job=$(leased)
it 'a cancel that waits for a rescue takes what is ready' \
    "$(race 'select proverq.rescue_expired()' "select proverq.cancel($job)")|$(sql -c "select test.states($job)")" \
    't|cancelled cancelled'
job=$(sql -c 'select test.job(2, priority => 50)')
it 'a cancel waits for a claim, and takes the lease away' \
    "$(race 'select test.claim(1)' "select proverq.cancel($job)")|$(sql -c "select test.states($job)")" \
    't|cancelled cancelled'
job=$(sql -c 'select test.job(2, priority => 50)')
ask a begin
ask a "select proverq.cancel($job)" >/dev/null
it 'a claim does not wait for a cancel, and leaves its job alone' "$(ask b 'select test.claim(1)' | grep -c "^$job/")" 0
ask a rollback
sql -c "update proverq.partition set state = 'ready', token = null, lease_until = null where state = 'leased'"
it 'a cancel rolled back can be claimed' "$(ask b 'select test.claim(2)')" "$job/0 $job/1"
it 'of two that cancel one does' "$(race "select proverq.cancel($job)" "select proverq.cancel($job)")" f
job=$(leased)
it 'a retry that waits for a cancel begins the next run' \
    "$(race "select proverq.cancel($job)" \
        "select proverq.retry_with_witnesses($job, array['\\x01'::bytea, '\\x02'])")" 2
sql -c "select proverq.cancel($job)" >/dev/null
it 'of two that retry one does' \
    "$(race "select proverq.retry_with_witnesses($job, array['\\x01'::bytea, '\\x02'])" \
        "select proverq.retry_with_witnesses($job, array['\\x01'::bytea, '\\x02'])")" \
    "ERROR:  job $job cannot be retried: it has not ended, it is queued"
sql -c "select proverq.cancel($job)" -c "insert into proverq.job (circuit, partitions) values ('mul', 2)" >/dev/null
job=$((job + 1))
it 'partitions that wait for a cancel are refused' \
    "$(race "select proverq.cancel($job)" \
        "insert into proverq.partition (job_seq, partition_idx, witness) values ($job, 0, '\\x01')" | head -n 1)" \
    "ERROR:  job $job is cancelled"
sql -c "insert into proverq.job (circuit, partitions) values ('mul', 1)"
job=$((job + 1))
it 'a job that is moved while its partition comes' \
    "$(race "select proverq.set_priority($job, 60)" \
        "insert into proverq.partition (job_seq, partition_idx, witness) values ($job, 0, '\\x01')")" ''
it 'has it in its new place' "$(sql -c "select priority from proverq.partition where job_seq = $job")" 60
sql -c "select proverq.cancel($job)" >/dev/null
job=$(leased)
sql -c "select test.complete($job, 0)" >/dev/null
it 'a cancel that waits for the last proof comes before the finalizer' \
    "$(race "select test.complete($job, 1)" \
        "select proverq.cancel($job)")|$(sql -c "select test.states($job), test.state($job)")" \
    't|proved proved|cancelled'
job=$(leased)
sql -c "select test.complete($job, i) from generate_series(0, 1) i" >/dev/null
it 'a cancel that waits for the finalizer is too late' \
    "$(race 'select test.finalize_next()' "select proverq.cancel($job)" | head -n 1 | sed 's/since.*//')" \
    "ERROR:  job $job cannot be cancelled: it is finished "
first=$(leased)
job=$(leased)
sql -c "select test.complete($first, i), test.complete($job, i) from generate_series(0, 1) i" >/dev/null
ask a begin
ask a "select proverq.cancel($first)" >/dev/null
it 'a finalizer does not wait for a cancel' "$(ask b 'select job_seq from test.finalize_next()')" "$job"
ask a rollback
job=$(sql -c 'select test.job(1)')
it 'a cancel that waits for a deletion finds no job' \
    "$(race "delete from proverq.partition where job_seq = $job; delete from proverq.job where job_seq = $job" \
        "select proverq.cancel($job)" | head -n 1)" "ERROR:  there is no job $job"
it 'after all that the invariants hold' "$(invariants)" ''

# What is told is small, whatever the reason.
ask b 'listen proverq_job; listen proverq_work' >/dev/null
notified() {
    ask b 'select 1' | sed -nE 's/^Asynchronous notification "([a-z_]*)"( with payload "(.*)")? received.*/\1 \3/p' |
        sed 's/ $//' | sort -u | paste -sd+
}
job=$(sql -c 'select test.job(1)')
notified >/dev/null
sql -c "select proverq.cancel($job, repeat('x', 100000))" >/dev/null
it 'a cancel is told in few bytes' "$(notified)" "proverq_job {\"job\":$job,\"run\":1,\"state\":\"cancelled\"}"
sql -c 'update proverq_private.prover set idle = true where prover_id = 1' -c "select proverq.pause()" >/dev/null
it 'a pause wakes nobody' "$(notified)" ''
sql -c 'select proverq.resume()' >/dev/null
it 'a resume wakes idle provers' "$(notified)" proverq_work
sql -c "select proverq.retry_with_witnesses($job, array['\\x01'::bytea])" >/dev/null
it 'and so does a retry' "$(notified)" proverq_work
sql -c "select proverq.cancel($job)" >/dev/null
close a
close b

# Many sessions that claim, prove, fail, lose, cancel, retry, move, pause and finalize, while
# another one looks at the invariants.
sql -c 'set client_min_messages = warning' \
    -c 'truncate proverq.timing, proverq_private.failure, proverq.partition, proverq.job restart identity cascade' \
    -c "select count(test.job(5, keep_inputs => true, webhook => 'hook')) from generate_series(1, 80)" >/dev/null
cat >"$work/worker.sql" <<'END'
do $$
declare
    c record;
    any_job bigint;
    step int;
begin
    loop
        for c in
            select * from proverq_private.claim((random() * 3)::int + 1, '{1,2,3}',
                case when random() < 0.1 then 1 else 60000 end, 3)
        loop
            commit; -- a claim is a transaction of its own
            if random() < 0.1 then
                perform proverq_private.fail(c.job_seq, c.partition_idx, c.token, 'test', 'test',
                    random() < 0.9, random() < 0.5, '{}', '{}', '{}', '{}');
            elsif random() < 0.1 then
                perform proverq_private.release(c.job_seq, c.partition_idx, c.token, 'test', (random() * 2)::int);
            else
                perform test.record(c.job_seq, c.partition_idx, c.token, '{}', '[]', null,
                    '{10,90}', '{0,40}', array[now(), now()], '{1,2}');
            end if;
            commit;
        end loop;
        update proverq.partition set due_at = clock_timestamp(), avoid_until = null
        where (job_seq, partition_idx) = (select job_seq, partition_idx from proverq.partition where due_at is not null
                                          limit 1 for no key update skip locked);
        commit;
        step := (random() * 12)::int;
        select job_seq into any_job from proverq.job
        where step not in (2, 3) or (state in ('failed', 'cancelled') and run < 4)
        order by random()
        limit 1;
        begin
            case step
            when 0, 1 then perform proverq.cancel(any_job, 'test');
            when 2, 3 then perform proverq.retry(any_job);
            when 4 then perform proverq.set_priority(any_job, (random() * 3)::int);
            when 5 then perform proverq.pause('mul');
            else perform proverq.resume('mul');
            end case;
        exception when object_not_in_prerequisite_state or no_data_found then
            null; -- it has ended, or not, or there is none to retry
        end;
        commit;
        perform proverq.wake_due(), proverq.rescue_expired(), test.finalize_next();
        commit;
        exit when not exists (select from proverq.job where finished_at is null);
    end loop;
end
$$
END
sql -c "create function test.look()
    returns text language sql as 'select string_agg(i::text, e''\\n'') from proverq.check_invariants() i'"
workers=()
for i in 1 2 3 4; do
    sql -f "$work/worker.sql" >"$work/worker.$i" 2>&1 &
    workers+=($!)
done
while [ -n "$(jobs -r)" ]; do
    looks=$((${looks-0} + 1))
    sql -c 'select test.look()'
done >"$work/looks"
wait "${workers[@]}"
it 'four sessions do all that without an error' "$(cat "$work"/worker.[1-4])" ''
it 'the invariants hold all the time' "$(grep -v '^$' "$work/looks" | head -n 3)" ''
it 'they were looked at more than once' "$([ "$looks" -gt 1 ] && echo yes || echo "$looks")" yes
it 'and at the end' "$(invariants)" ''
it 'every job has ended' "$(sql -c 'select count(*) filter (where finished_at is null), count(*) from proverq.job')" \
    '0|80'
it 'and every run has told it' "$(sql -c "select count(*) from proverq.job j, generate_series(1, j.run) r
    where not exists (select from proverq_private.webhook_delivery d where d.job_seq = j.job_seq and d.run = r)")" 0
it 'there were other runs than first ones' "$(sql -c 'select max(run) > 1 from proverq.job')" t
