-- The caller holds the job's lock.
create or replace function proverq_private.partition_failed(job_seq bigint, partition_idx int, code text, error text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    update proverq.partition p
    set state = case when p.partition_idx = partition_failed.partition_idx then 'failed' else 'cancelled' end::proverq.partition_state,
        error_code = case when p.partition_idx = partition_failed.partition_idx then code else p.error_code end,
        error = case when p.partition_idx = partition_failed.partition_idx then partition_failed.error else p.error end,
        token = null, lease_until = null, due_at = null, avoid_until = null
    where p.job_seq = partition_failed.job_seq and p.state::text in ('held', 'ready', 'leased');
    update proverq.job j
    set state = 'failing', error_code = code,
        error = format('partition %s: %s', partition_failed.partition_idx, partition_failed.error)
    where j.job_seq = partition_failed.job_seq;
    perform pg_notify('proverq_finalize', '');
end
$$;
comment on function proverq_private.partition_failed(bigint, int, text, text) is
    'Ends a partition for good, and with it its job: the partitions that are not proved are cancelled. Part of fail() and of rescue.';

-- Only attempts that failed are written, so what goes well pays nothing. A partition that no device can prove is tried every five
-- minutes for ever: its last hundred attempts say enough.
create or replace function proverq_private.record_failure(job_seq bigint, partition_idx int, code text, error text, spent bool) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    kept constant int := 100;
begin
    insert into proverq_private.failure (job_seq, partition_idx, attempt, run, prover_id, code, error, spent)
    select p.job_seq, p.partition_idx, p.attempt, j.run, p.prover_id, record_failure.code, record_failure.error, record_failure.spent
    from proverq.partition p
    join proverq.job j on j.job_seq = p.job_seq
    where p.job_seq = record_failure.job_seq and p.partition_idx = record_failure.partition_idx;
    delete from proverq_private.failure f
    where f.job_seq = record_failure.job_seq and f.partition_idx = record_failure.partition_idx
      and f.attempt <= (select p.attempt - kept from proverq.partition p
                        where p.job_seq = record_failure.job_seq and p.partition_idx = record_failure.partition_idx);
end
$$;
comment on function proverq_private.record_failure(bigint, int, text, text, bool) is
    'Keeps the error of the attempt in hand in the table failure. Part of fail() and of rescue.';

create or replace function proverq_private.fail(
    job_seq bigint, partition_idx int, token uuid, code text, error text, retry bool, spend bool,
    steps smallint[], workers smallint[], started timestamptz[], durations bigint[])
returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    max_failures constant int := 5;
    j proverq.job;
    p proverq.partition;
    later timestamptz;
begin
    select o.run, o.priority into j.run, j.priority from proverq.job o where o.job_seq = fail.job_seq for no key update;
    select q.attempt, q.failures, q.prover_id into p.attempt, p.failures, p.prover_id
    from proverq.partition q
    where q.job_seq = fail.job_seq and q.partition_idx = fail.partition_idx and q.token = fail.token
    for no key update;
    if not found then
        return 'stale';
    end if;
    error := left(coalesce(error, 'no reason was given'), 2000);
    code := coalesce(code, 'unknown');
    later := clock_timestamp() + proverq_private.backoff(case when spend then p.failures else proverq_private.unspent_failures(job_seq, partition_idx, j.run) end);
    perform proverq_private.record_timing(job_seq, partition_idx, p.attempt, p.prover_id, steps, workers, started, durations);
    perform proverq_private.record_failure(job_seq, partition_idx, code, error, spend);
    if not retry or p.failures + spend::int >= max_failures then
        update proverq.partition q
        set failures = p.failures + spend::int
        where q.job_seq = fail.job_seq and q.partition_idx = fail.partition_idx;
        perform proverq_private.partition_failed(job_seq, partition_idx, code, error);
        return 'failed';
    end if;
    update proverq.partition q
    set state = 'held', token = null, lease_until = null, failures = p.failures + spend::int, error_code = fail.code, error = fail.error,
        priority = j.priority, due_at = later, avoid_until = later + proverq_private.avoid_for()
    where q.job_seq = fail.job_seq and q.partition_idx = fail.partition_idx;
    return 'retry';
end
$$;
comment on function proverq_private.fail(bigint, int, uuid, text, text, bool, bool, smallint[], smallint[], timestamptz[], bigint[]) is
    'Records a failed attempt: ''retry'' (held until due_at), ''failed'' (the job fails), or ''stale'' when the lease was taken away. The fifth failure that spends a retry is the last.';

create or replace function proverq_private.unspent_failures(job_seq bigint, partition_idx int, run int) returns int
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select count(*)::int
    from proverq_private.failure f
    where f.job_seq = unspent_failures.job_seq and f.partition_idx = unspent_failures.partition_idx and f.run = unspent_failures.run
      and not f.spent
$$;
comment on function proverq_private.unspent_failures(bigint, int, int) is 'Attempts of a run that failed or were lost without spending a retry. Part of fail().';

create or replace function proverq_private.backoff(before int) returns interval
language sql volatile
return least(300, 2 ^ least(greatest(before, 0), 20)) * (0.75 + 0.5 * random()) * interval '1 second';
comment on function proverq_private.backoff(int) is
    'How long to wait after a failure that had so many before it: 1 s, 2 s, 4 s, ... 5 min, each 25 % more or less by chance.';

-- Long enough for another prover to end what it is at; short enough when none of the others can take the circuit.
create or replace function proverq_private.avoid_for() returns interval
language sql immutable
return interval '10 seconds';
comment on function proverq_private.avoid_for() is 'How long a partition that can be claimed again is left to other devices than the one on which it failed.';
