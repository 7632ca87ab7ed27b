-- What is deleted, what is kept, and in what pieces.
create function test.ended(n int, age interval, webhook text default null) returns bigint language plpgsql as $$
declare
    seq bigint := test.job(n, priority => 100, webhook => webhook);
begin
    perform test.claim(n);
    perform test.complete(seq, i) from generate_series(0, n - 1) i;
    perform test.finalize_next();
    update proverq.job
    set created_at = clock_timestamp() - age - interval '1 min', finished_at = clock_timestamp() - age
    where job_seq = seq;
    -- As if it had been so.
    update proverq.job set created_at = least(created_at, clock_timestamp() - age - interval '1 min')
    where job_seq < seq;
    update proverq_private.webhook_delivery
    set state = 'delivered', next_attempt_at = null, created_at = clock_timestamp() - age where job_seq = seq;
    return seq;
end
$$;
create function test.jobs() returns text language sql as $$
    select string_agg(job_seq::text, ' ' order by job_seq) from proverq.job
$$;
create function test.prune(n int default 1000) returns text language sql as $$
    select string_agg(what || ' ' || removed, ', ' order by what) from proverq.prune(n)
$$;

-- 1 waits since long, 2 is old, 3 too but has a webhook that is pending, 4 is old and has one that was
-- delivered, 5 is young, 6 runs, 7 is being inserted.
select test.job(2), test.claim(2) \g /dev/null
select test.ended(3, '31 days'), test.ended(1, '40 days', 'hook'), test.ended(2, '31 days', 'hook'),
       test.ended(2, '29 days', 'hook') \g /dev/null
update proverq.job set created_at = clock_timestamp() - interval '50 days' where job_seq = 1;
update proverq_private.webhook_delivery set state = 'pending', next_attempt_at = clock_timestamp() where job_seq = 3;
select test.job(1) \g /dev/null
insert into proverq.job (circuit, partitions) values ('mul', 2);
insert into proverq.partition (job_seq, partition_idx, witness) values (7, 0, '\x01');
update proverq.job set created_at = clock_timestamp() - interval '50 days' where job_seq = 7;
select test.is(test.prune(), 'deliveries 1, jobs 7', 'old jobs go with their partitions and deliveries');
select test.is(test.jobs(), '1 3 5 6 7', 'those that wait, are young, incomplete, or have a webhook to be sent, stay');
select test.is(test.prune(), null, 'once');
select test.is(count(*), '0', 'nothing is left of them') from proverq.partition where job_seq in (2, 4);
select test.is(count(*), '2', 'the deliveries of the others are there') from proverq_private.webhook_delivery;
update proverq_private.webhook_delivery set state = 'failed', next_attempt_at = null where job_seq = 3;
select test.is(test.prune(), 'deliveries 1, jobs 2', 'when its webhook has failed for good, the job goes');

-- Cancelled and failed jobs as well.
select test.job(2), test.job(2) \g /dev/null
select proverq.cancel(8), test.claim(1) \g /dev/null
update proverq.job set priority = 9 where job_seq = 9;
select test.is(test.state(8), 'cancelled', 'one is cancelled');
update proverq.job set created_at = clock_timestamp() - interval '41 days',
    finished_at = case when job_seq = 8 then clock_timestamp() - interval '40 days' else finished_at end;
select test.is(test.prune(), 'jobs 3', 'and goes');

-- A job larger than a batch.
select test.ended(25, '31 days') as job \gset
select test.is(test.prune(10), 'jobs 10', 'a large job goes in pieces');
select test.is(format('%s %s', present, (select count(*) from proverq.partition p where p.job_seq = j.job_seq)),
    '15 15', 'which the job knows')
from proverq.job j where job_seq = :job;
select test.throws(format('select proverq.proof(%s)', :job),
    '55000', 'is being deleted: it ended at .*proverq.retention', 'and its proof is not given any more');
select test.is(string_agg(i.invariant, ', '), null, 'and no invariant is broken')
from proverq.check_invariants() i where i.job_seq = :job;
select test.is(test.prune(10), 'jobs 10', 'the next');
select test.is(test.prune(10), 'jobs 6', 'the rest, and the job');
select test.is(count(*), '0', 'it is gone') from proverq.job where job_seq = :job;
select test.ended(1, '31 days'), test.ended(1, '31 days'), test.ended(1, '31 days') \g /dev/null
select test.is(test.prune(3), 'jobs 4', 'a batch ends with a job'),
       test.is(test.prune(3), 'jobs 2', 'and goes on with the next');

-- Settings.
select test.ended(1, '90 days', 'hook') as job \gset
update proverq.retention set keep = null where what = 'jobs';
select test.is(test.prune(), 'deliveries 1', 'jobs that are kept for ever stay, their webhooks do not');
select test.is(count(*), '0', 'with the log of their attempts') from proverq_private.webhook_attempt;
update proverq.retention set keep = '91 days' where what = 'jobs';
select test.is(test.prune(), null, 'a longer time');
update proverq.retention set keep = '89 days' where what = 'jobs';
select test.is(test.prune(), 'jobs 2', 'a shorter one');
select test.throws($$update proverq.retention set keep = '-1 day'$$,
    '23514', 'retention_keep_positive', 'less than no time');
select test.throws('select proverq.prune(0)', '22023', 'max_rows must be from 1', 'batches of nothing');
select test.throws('select proverq.prune(null)', '22023', 'not NULL', 'or of NULL');
delete from proverq.retention where what = 'jobs';
select test.is(test.prune(), null, 'a setting that is not there keeps for ever');
insert into proverq.retention values ('jobs', '30 days', 'again');

-- Pings, which have no job.
insert into proverq_private.webhook_delivery (endpoint_id, event, body, state, next_attempt_at, created_at)
select 1, 'proverq.ping', '{}', s.state, case when s.state = 'pending' then clock_timestamp() end,
    clock_timestamp() - s.age
from (values ('delivered', interval '31 days'), ('delivered', '29 days'), ('pending', '31 days'),
    ('failed', '31 days')) s (state, age);
insert into proverq_private.webhook_attempt (delivery_id, attempt)
select delivery_id, 1 from proverq_private.webhook_delivery where state = 'failed' and job_seq is null;
select test.is(test.prune(), 'deliveries 2', 'pings go by their age'), test.is(count(*), '2', 'but for pending ones')
from proverq_private.webhook_delivery where job_seq is null;

-- Failures, provers.
insert into proverq_private.failure (job_seq, partition_idx, attempt, run, code, error, spent, failed_at)
select 1, 0, i, 1, 'test', 'test', true, clock_timestamp() - i * interval '10 days' from generate_series(1, 5) i;
select test.is(test.prune(2), 'failures 2', 'errors of attempts'), test.is(test.prune(2), 'failures 1', 'in batches'),
       test.is(test.prune(2), null, 'the young ones stay');
insert into proverq_private.prover (instance, host, pid, device, state, seen_at)
select gen_random_uuid(), 'old', 1, 'cpu', s, clock_timestamp() - interval '31 days'
from unnest('{running, stopped, lost, lost}'::text[]) s;
update proverq.partition set prover_id = (select max(prover_id) from proverq_private.prover)
where state = 'leased' and partition_idx = 0;
select test.is(test.prune(), 'provers 2', 'provers that ended long ago, but for one that has a lease');
select test.is(string_agg(state, ' ' order by state), 'lost running', 'one that should run stays, too')
from proverq_private.prover where host = 'old';

-- Timings: whole days are dropped, rows of the default tables deleted.
select proverq.make_timing_partitions(1) \g /dev/null
create table proverq_private.timing_20200101 partition of proverq.timing
for values from ('2020-01-01 00:00+00') to ('2020-01-02 00:00+00');
create table proverq_private.device_activity_20200102 partition of proverq_private.device_activity
for values from ('2020-01-02 00:00+00') to ('2020-01-03 00:00+00');
do $$
declare
    day date := (clock_timestamp() at time zone 'UTC')::date - 14;
begin
    execute format('create table proverq_private.timing_%s partition of proverq.timing for values from (%L) to (%L)',
        to_char(day, 'YYYYMMDD'), day || ' 00:00+00', day + 1 || ' 00:00+00');
end
$$;
create table proverq_private.timing_of_mine partition of proverq.timing
for values from ('2019-01-01 00:00+00') to ('2019-01-02 00:00+00');
insert into proverq.timing (recorded_at, prover_id, device, worker, step, started_at, duration)
select t, 1, 'cpu', 0, 10, t, 1
from unnest(array['2020-01-01 12:00+00', '2020-03-01', '2020-03-01', clock_timestamp()]::timestamptz[]) t;
insert into proverq_private.device_activity (recorded_at, prover_id, device, kind, started_at, duration, busy)
values ('2020-03-01', 1, 'cpu', 'cpu_span', '2020-03-01', 1, 1);
select test.is(test.prune(), 'timing tables 1', 'a day''s table'),
       test.is(to_regclass('proverq_private.timing_20200101'), null, 'the oldest first');
select test.is(test.prune(), 'timing tables 1', 'another'),
       test.is(test.prune(2), 'timings 2', 'then rows of the default tables'),
       test.is(test.prune(2), 'timings 1', 'of both');
select test.is(test.prune(), null, 'a day of which a part is to be kept stays');
select test.is(to_regclass('proverq_private.timing_of_mine') is not null, true, 'and tables that somebody else made');
select test.is(count(*),
    (select count(*) from proverq.timing where recorded_at > now() - interval '1 day'), 'the rows of today are there')
from proverq.timing;
update proverq.retention set keep = null where what = 'timings';
insert into proverq.timing (recorded_at, prover_id, device, worker, step, started_at, duration)
values ('2020-03-01', 1, 'cpu', 0, 10, '2020-03-01', 1);
select test.is(test.prune(), null, 'timings that are kept for ever');

-- Every hot table is vacuumed before a tenth of it is dead, but for insert-only ones, which are dropped.
select test.is(string_agg(c.relname, ' ' order by c.relname),
    'job partition prover webhook_delivery webhook_endpoint', 'tables with settings for autovacuum')
from pg_class c where c.relnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace)
  and (select o.option_value::float from pg_options_to_table(c.reloptions) o
      where o.option_name = 'autovacuum_vacuum_scale_factor') <= 0.1;
