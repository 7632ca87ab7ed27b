# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# Deleting beside others: one session deletes at a time, nobody waits for it, and a batch costs
# the same whatever is kept.
fresh
open a
open b
sql -c "select proverq.make_timing_partitions(0)" \
    -c "create table proverq_private.timing_20200101 partition of proverq.timing
        for values from ('2020-01-01 00:00+00') to ('2020-01-02 00:00+00')" \
    -c "insert into proverq_private.prover (instance, host, pid, device, state, seen_at)
        values (gen_random_uuid(), 'old', 1, 'cpu', 'stopped', '2020-01-01')" >/dev/null
# Milliseconds that a statement takes, psql's start included.
ms() {
    local start=${EPOCHREALTIME/./}
    sql -c "$1" >/dev/null
    echo $(((${EPOCHREALTIME/./} - start) / 1000))
}

ask a begin
ask a 'select count(*) from proverq.timings' >/dev/null
it 'a table that is being read is not dropped; what else is due is deleted' \
    "$(ask b "select what, removed from proverq.prune()")" 'provers|1'
tell b "select what from proverq.prune()"
took=$(ms "insert into proverq.timing (prover_id, device, worker, step, started_at, duration)
    values (1, 'cpu', 0, 10, now(), 1)")
it 'and an insert waits for it less than a second' "$([ "$took" -lt 1000 ] && echo yes || echo "$took ms")" yes
answer b >/dev/null
ask a commit
ask a begin
it 'when it is read no more, it is' "$(ask a 'select what, removed from proverq.prune()')" 'timing tables|1'
it 'another session that deletes meanwhile does nothing, at once' "$(ask b 'select count(*) from proverq.prune()')" 0
ask a commit
it 'it is gone' "$(sql -c "select to_regclass('proverq_private.timing_20200101') is null")" t

# A job that somebody has locked is left for later.
sql -c 'select test.job(2), test.job(2)' -c "select proverq.cancel(1), proverq.cancel(2)" \
    -c "update proverq.job set created_at = '2020-01-01', finished_at = '2020-01-01'" >/dev/null
ask a begin
ask a 'select from proverq.job where job_seq = 1 for update'
it 'a locked job is passed over' "$(ask b 'select what, removed from proverq.prune()')" 'jobs|3'
ask a commit
it 'and comes next' "$(ask b 'select what, removed from proverq.prune()')" 'jobs|3'

# Retry against deletion: whoever comes first.
sql -c "select proverq.enqueue_witness('mul', array['\\x01'::bytea, '\\x02'], keep_inputs => true)" \
    -c 'select proverq.cancel(3)' \
    -c "update proverq.job set created_at = '2020-01-01', finished_at = '2020-01-01'" >/dev/null
ask a begin
ask a 'select proverq.retry(3)' >/dev/null
it 'a job that is retried is passed over' "$(ask b 'select count(*) from proverq.prune()')" 0
ask a commit
it 'and stays' "$(ask b 'select count(*) from proverq.prune()' && sql -c 'select test.states(3)')" $'0\nready ready'
sql -c 'select proverq.cancel(3)' -c "update proverq.job set finished_at = '2020-01-01'" >/dev/null
ask a begin
it 'a job of which a part is deleted' "$(ask a 'select what, removed from proverq.prune(1)')" 'jobs|1'
tell b 'select proverq.retry(3)'
it 'is waited for' "$(blocked b)" blocked
ask a commit
it 'and cannot be retried' "$(answer b | grep -c '^ERROR:  job 3 ')" 1
close a
close b
sql -c 'select * from proverq.prune()' >/dev/null

# 50,000 partitions of one job, behind 5,000 jobs that stay.
sql -c "insert into proverq.job (circuit, partitions) select 'mul', 1 from generate_series(1, 5000)" \
    -c "select proverq.enqueue_path('mul', array_agg('w' || i)) from generate_series(1, 50000) i" \
    -c 'select proverq.cancel(max(job_seq)) from proverq.job' \
    -c "update proverq.job
        set created_at = '2020-01-01', finished_at = case when partitions > 1 then '2020-01-01'::timestamptz end" \
    -c 'analyze proverq.job, proverq.partition' >/dev/null
took=$(ms 'select * from proverq.prune(1000)')
echo "-- 1,000 of 50,000 rows behind 5,000 jobs that stay: $took ms"
it 'a batch is short' "$([ "$took" -lt 2000 ] && echo yes || echo "$took ms")" yes
took=$(ms "do \$\$ declare n bigint; begin
    loop select sum(removed) into n from proverq.prune(1000); exit when n is null; commit; end loop; end \$\$")
echo "-- the other 49: $took ms"
it 'all are deleted' \
    "$(sql -c 'select count(*) from proverq.partition' -c 'select count(*) from proverq.job where partitions > 1')" \
    $'0\n0'
took=$(ms 'select * from proverq.prune(1000)')
echo "-- with nothing to delete: $took ms"
