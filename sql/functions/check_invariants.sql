-- Everything that holds between the rows whatever was killed when, as far as no constraint sees to it. All is read in the caller's
-- snapshot (the function is stable), so work in progress raises no alarm. What depends on time (a lease that nobody rescues, a job
-- that nobody finalizes) is no broken invariant: see why() and the view alerts.
--
-- The details are put together after the condition is found broken: there are a dozen conditions for each row.
create or replace function proverq.check_invariants()
returns table (invariant text, job_seq bigint, partition_idx int, detail text)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
begin
    if not (proverq_private.is_owner() or proverq_private.is_member('proverq_operator') or proverq_private.is_member('proverq_reader')) then
        raise insufficient_privilege using
            message = 'only operators and readers may check the invariants: they are about everybody''s jobs',
            hint = format('Become one with: grant proverq_reader to %I;', session_user);
    end if;
    return query select * from proverq_private.broken_jobs();
    return query select * from proverq_private.broken_partitions();
    return query select * from proverq_private.broken_records();
end
$$;
comment on function proverq.check_invariants() is
    'Looks for rows of jobs, partitions, deliveries, timing, failures and provers that contradict each other. No row: all is well.';

-- Without this, the rest of such a job would seem broken, from one batch of prune() to the next.
create or replace function proverq_private.is_being_deleted(finished_at timestamptz, partitions int, present int) returns bool
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select is_being_deleted.present < is_being_deleted.partitions
           and is_being_deleted.finished_at < clock_timestamp() - (select r.keep from proverq.retention r where r.what = 'jobs')
$$;
comment on function proverq_private.is_being_deleted(timestamptz, int, int) is
    'Whether a job has lost partitions because it is kept no longer. Part of check_invariants().';

create or replace function proverq_private.broken_jobs()
returns table (invariant text, job_seq bigint, partition_idx int, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    with counted as (
        select p.job_seq, count(*) as present, max(p.partition_idx) as last,
               count(*) filter (where p.state = 'proved') as proved, count(*) filter (where p.state = 'failed') as failed,
               count(*) filter (where p.state = 'cancelled') as cancelled, count(*) filter (where p.state in ('ready', 'leased')) as active,
               count(*) filter (where p.state = 'held') as held, count(*) filter (where p.state = 'held' and p.due_at is null) as dateless,
               count(*) filter (where p.witness is not null or p.inputs is not null) as inputs
        from proverq.partition p
        group by p.job_seq
    ), job_and_rows as (
        select j.job_seq, j.state, j.run, j.partitions, j.present, j.remaining, j.finished_at, j.keep_inputs, j.error_code, j.endpoint_id,
               j.finalize_failures, j.finalize_error,
               j.state in ('finished', 'failed', 'cancelled') as ended, coalesce(c.present, 0) as rows, coalesce(c.last, -1) as last,
               coalesce(c.proved, 0) as proved, coalesce(c.failed, 0) as failed, coalesce(c.cancelled, 0) as cancelled,
               coalesce(c.active, 0) as active, coalesce(c.held, 0) as held, coalesce(c.dateless, 0) as dateless, coalesce(c.inputs, 0) as inputs
        from proverq.job j
        left join counted c on c.job_seq = j.job_seq
    )
    select i.name, j.job_seq, null::int,
           format('the job is %s in run %s: %s partition(s), %s present, %s remaining; rows: %s, of them %s proved, %s failed, %s cancelled, '
                  '%s ready or leased, %s held (%s without a date), %s with inputs; finished_at %s, error_code %s',
                  j.state, j.run, j.partitions, j.present, j.remaining, j.rows, j.proved, j.failed, j.cancelled, j.active, j.held, j.dateless,
                  j.inputs, coalesce(j.finished_at::text, 'NULL'), coalesce(j.error_code, 'NULL'))
    from job_and_rows j
    cross join lateral (values
        ('present is the number of partitions', j.present <> j.rows or j.last >= j.partitions),
        ('remaining is the number of partitions that are not proved', j.remaining <> j.partitions - j.proved),
        ('a job that is not incomplete has all its partitions', j.state not in ('incomplete', 'cancelled') and j.rows <> j.partitions),
        ('an incomplete job lacks partitions, and holds those that it has',
         j.state = 'incomplete' and (j.rows >= j.partitions or j.dateless <> j.rows)),
        ('a queued job has something to prove, and nothing of it has failed',
         j.state = 'queued' and (j.remaining = 0 or j.failed + j.cancelled > 0)),
        ('what is held has a date, or its job is incomplete', j.state <> 'incomplete' and j.dateless > 0),
        ('a job that is completing or finished is proved', j.state in ('completing', 'finished') and j.proved <> j.partitions),
        ('a job that is failing or failed has a partition that failed, and an error',
         j.state in ('failing', 'failed') and (j.failed = 0 or j.error_code is null)),
        ('a job that ends or has ended has nothing to claim, under way or held',
         j.state not in ('incomplete', 'queued') and j.active + j.held > 0),
        ('finished_at is set when the job has ended', j.ended <> (j.finished_at is not null)),
        ('inputs are deleted when the job has ended', j.ended and not j.keep_inputs and j.inputs > 0),
        ('a job that is not failing, failed or cancelled has no error', j.state not in ('failing', 'failed', 'cancelled') and j.error_code is not null),
        ('a failed last step has an error', (j.finalize_failures > 0) <> (j.finalize_error is not null))
    ) i (name, is_broken)
    where i.is_broken and (i.name ~ '^present' or proverq_private.is_being_deleted(j.finished_at, j.partitions, j.present) is not true)
$$;
comment on function proverq_private.broken_jobs() is 'Jobs that contradict their partitions. Part of check_invariants().';

create or replace function proverq_private.broken_partitions()
returns table (invariant text, job_seq bigint, partition_idx int, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select i.name, p.job_seq, p.partition_idx,
           format('the partition is %s: attempt %s, %s failure(s), %s lost (by %s), prover %s, token %s, priority %s; its job is %s, priority %s',
                  p.state, p.attempt, p.failures, p.losses, p.lost_by, coalesce(p.prover_id::text, 'NULL'), coalesce(p.token::text, 'NULL'),
                  p.priority, j.state, j.priority)
    from proverq.partition p
    join proverq.job j on j.job_seq = p.job_seq
    cross join lateral (values
        ('only a queued job has something ready or leased', p.state in ('ready', 'leased') and j.state <> 'queued'),
        ('only what is leased has a token', (p.state = 'leased') <> (p.token is not null) or (p.state = 'leased') <> (p.lease_until is not null)),
        ('what is leased or proved has an attempt and a prover', p.state in ('leased', 'proved') and (p.attempt = 0 or p.prover_id is null)),
        ('only what is proved has a proof', (p.state = 'proved') <> (p.proof is not null and p.publics is not null and p.proved_at is not null)),
        ('what is to be proved has inputs',
         p.state in ('held', 'ready', 'leased') and num_nonnulls(p.witness, p.witness_path, p.inputs) <> 1),
        ('a partition has its job''s circuit', p.circuit_id <> j.circuit_id),
        ('what waits has its job''s priority', p.state in ('held', 'ready') and p.priority <> j.priority),
        ('no more attempts end than begin', p.failures + p.losses > p.attempt),
        ('what was lost was lost by a prover', cardinality(p.lost_by) > p.losses or (p.losses > 0) <> (cardinality(p.lost_by) > 0))
    ) i (name, is_broken)
    where i.is_broken
    union all
    select 'a token is given once', l.job_seq, l.partition_idx, format('%s leases have the token %s', l.n, l.token)
    from (select p.job_seq, p.partition_idx, p.token, count(*) over (partition by p.token) as n from proverq.partition p where p.token is not null) l
    where l.n > 1
    union all
    select 'a lease belongs to a prover that is known', p.job_seq, p.partition_idx, format('there is no prover %s', p.prover_id)
    from proverq.partition p
    where p.state = 'leased' and not exists (select from proverq_private.prover r where r.prover_id = p.prover_id)
$$;
comment on function proverq_private.broken_partitions() is 'Partitions that contradict themselves, their job or their prover. Part of check_invariants().';

-- Timing, failures and deliveries are pruned by age, and may outlive their job: what is missing proves little, what is there must
-- fit. A crash of the server may undo a claim (claim()); the next one then has the same number of attempt, and what the workers
-- of the first did stays in timing. Only what was recorded with the outcome (step 90) is surely the attempt's. A delivery is missed only in the first hour after its job's end.
create or replace function proverq_private.broken_records()
returns table (invariant text, job_seq bigint, partition_idx int, detail text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select i.name, t.job_seq, t.partition_idx,
           format('timing has attempt %s, recorded %s time(s), by prover(s) %s to %s; the partition''s last attempt is %s by prover %s, it is %s',
                  t.attempt, t.recorded, coalesce(t.first_prover::text, 'NULL'), coalesce(t.last_prover::text, 'NULL'), coalesce(p.attempt::text, 'NULL'), coalesce(p.prover_id::text, 'NULL'),
                  coalesce(p.state::text, 'not there'))
    from (
        select t.job_seq, t.partition_idx, t.attempt, count(*) filter (where t.step = 90) as recorded,
               min(t.prover_id) filter (where t.step = 90) as first_prover, max(t.prover_id) filter (where t.step = 90) as last_prover
        from proverq.timing t
        where t.job_seq is not null
        group by t.job_seq, t.partition_idx, t.attempt
    ) t
    join proverq.job j on j.job_seq = t.job_seq
    left join proverq.partition p on p.job_seq = t.job_seq and p.partition_idx = t.partition_idx
    cross join lateral (values
        ('timing belongs to an attempt', (p.job_seq is null and proverq_private.is_being_deleted(j.finished_at, j.partitions, j.present) is not true) or t.attempt < 1 or (t.recorded > 0 and t.attempt > p.attempt)),
        ('an attempt is recorded once, by its prover', t.recorded > 1 or (t.attempt = p.attempt and t.first_prover <> p.prover_id))
    ) i (name, is_broken)
    where i.is_broken
    union all
    select 'a failure belongs to an attempt and a run', f.job_seq, f.partition_idx,
           format('attempt %s in run %s failed (%s); the partition''s last attempt is %s, the job''s run %s', f.attempt, f.run, f.code,
                  coalesce(p.attempt::text, 'NULL'), j.run)
    from proverq_private.failure f
    join proverq.job j on j.job_seq = f.job_seq
    left join proverq.partition p on p.job_seq = f.job_seq and p.partition_idx = f.partition_idx
    where (p.job_seq is null and proverq_private.is_being_deleted(j.finished_at, j.partitions, j.present) is not true) or f.attempt not between 1 and p.attempt or f.run > j.run
    union all
    select 'failures and losses are counted', f.job_seq, f.partition_idx,
           format('run %s has %s failure(s) and %s loss(es) on record; counted are %s and %s', f.run, f.spent, f.lost, p.failures, p.losses)
    from (
        select f.job_seq, f.partition_idx, f.run, count(*) filter (where f.spent) as spent, count(*) filter (where f.code = 'lost') as lost
        from proverq_private.failure f
        group by f.job_seq, f.partition_idx, f.run
    ) f
    join proverq.job j on j.job_seq = f.job_seq and j.run = f.run
    join proverq.partition p on p.job_seq = f.job_seq and p.partition_idx = f.partition_idx
    where f.spent > p.failures or f.lost > p.losses
    union all
    select 'a delivery says what has happened', d.job_seq, null,
           format('%s in run %s is %s after %s attempt(s); the job is %s in run %s', d.event, d.run, d.state, d.attempts, j.state, j.run)
    from proverq_private.webhook_delivery d
    join proverq.job j on j.job_seq = d.job_seq
    where d.event like 'proverq.job.%'
      and (d.run > j.run or (d.run = j.run and d.event <> 'proverq.job.' || j.state) or (d.state = 'delivered' and (d.attempts = 0 or d.delivered_at is null)))
    union all
    select 'a run ends once', d.job_seq, null, format('run %s has the events %s', d.run, string_agg(d.event, ', ' order by d.event))
    from proverq_private.webhook_delivery d
    where d.event like 'proverq.job.%'
    group by d.job_seq, d.run
    having count(distinct d.event) > 1
    union all
    select 'a job that has ended told its webhook endpoint', j.job_seq, null, format('there is no delivery of run %s to endpoint %s', j.run, j.endpoint_id)
    from proverq.job j
    where j.endpoint_id is not null and j.finished_at > clock_timestamp() - interval '1 hour'
      and not exists (select from proverq_private.webhook_delivery d where d.job_seq = j.job_seq and d.run = j.run and d.event = 'proverq.job.' || j.state)
    union all
    select 'only a running prover is idle', null, null, format('prover %s is %s', r.prover_id, r.state)
    from proverq_private.prover r
    where r.idle and r.state <> 'running'
$$;
comment on function proverq_private.broken_records() is 'Timing, failures, deliveries and provers that contradict the jobs. Part of check_invariants().';
