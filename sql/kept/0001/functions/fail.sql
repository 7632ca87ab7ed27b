-- The caller holds the job's lock.
create or replace function proverq.partition_failed(job_seq bigint, partition_idx int, code text, error text) returns void
language plpgsql
set search_path = pg_catalog, proverq, pg_temp
as $$
begin
    update partition p
    set state = case when p.partition_idx = partition_failed.partition_idx then 'failed' else 'cancelled' end::partition_state,
        error_code = case when p.partition_idx = partition_failed.partition_idx then code else p.error_code end,
        error = case when p.partition_idx = partition_failed.partition_idx then partition_failed.error else p.error end,
        token = null, lease_until = null, due_at = null
    where p.job_seq = partition_failed.job_seq and p.state::text in ('held', 'ready', 'leased');
    update job j
    set state = 'failing', error_code = code,
        error = format('partition %s: %s', partition_failed.partition_idx, partition_failed.error)
    where j.job_seq = partition_failed.job_seq;
    perform pg_notify('proverq_finalize', '');
end
$$;
comment on function proverq.partition_failed(bigint, int, text, text) is
    'Ends a partition for good, and with it its job: the partitions that are not proved are cancelled. Part of fail() and of rescue.';

create or replace function proverq.fail(
    job_seq bigint, partition_idx int, token uuid, code text, error text, retry bool, spend bool,
    steps smallint[], workers smallint[], started timestamptz[], durations bigint[])
returns text
language plpgsql
set search_path = pg_catalog, proverq, pg_temp
as $$
declare
    max_failures constant int := 5;
    p partition;
    spent int;
begin
    perform from job j where j.job_seq = fail.job_seq for no key update;
    select q.attempt, q.failures, q.prover_id into p.attempt, p.failures, p.prover_id
    from partition q
    where q.job_seq = fail.job_seq and q.partition_idx = fail.partition_idx and q.token = fail.token
    for no key update;
    if not found then
        return 'stale';
    end if;
    error := left(coalesce(error, 'no reason was given'), 2000);
    code := coalesce(code, 'unknown');
    spent := p.failures + spend::int;
    perform record_timing(job_seq, partition_idx, p.attempt, p.prover_id, steps, workers, started, durations);
    update partition q
    set failures = spent
    where q.job_seq = fail.job_seq and q.partition_idx = fail.partition_idx;
    if not retry or spent >= max_failures then
        perform partition_failed(job_seq, partition_idx, code, error);
        return 'failed';
    end if;
    update partition q
    set state = 'held', token = null, lease_until = null, error_code = fail.code, error = fail.error,
        due_at = clock_timestamp() + backoff(case when spend then p.failures else p.attempt - 1 end)
    where q.job_seq = fail.job_seq and q.partition_idx = fail.partition_idx;
    return 'retry';
end
$$;
comment on function proverq.fail(bigint, int, uuid, text, text, bool, bool, smallint[], smallint[], timestamptz[], bigint[]) is
    'Records a failed attempt: ''retry'' (held until due_at), ''failed'' (the job fails), or ''stale'' when the lease was taken away. The fifth failure that spends a retry is the last.';

create or replace function proverq.backoff(before int) returns interval
language sql volatile
set search_path = pg_catalog, proverq, pg_temp
as $$
    select least(300, 2 ^ least(greatest(before, 0), 20)) * (0.75 + 0.5 * random()) * interval '1 second'
$$;
comment on function proverq.backoff(int) is
    'How long to wait after a failure that had so many before it: 1 s, 2 s, 4 s, ... 5 min, each 25 % more or less by chance.';
