-- The end of a job, the same whoever brings it: final state, inputs gone, webhook in the outbox, NOTIFY, in one transaction. The
-- caller holds the job's lock and has found that it has not ended; so a run ends once.
create or replace function proverq_private.end_job(job_seq bigint, state proverq.job_state, error_code text, error text) returns proverq.job
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    j proverq.job;
begin
    update proverq.job
    set state = end_job.state, error_code = end_job.error_code, error = end_job.error, finished_at = clock_timestamp()
    where job.job_seq = end_job.job_seq
    returning * into j;
    if not j.keep_inputs then
        update proverq.partition p
        set witness = null, inputs = null
        where p.job_seq = j.job_seq and (p.witness is not null or p.inputs is not null);
    end if;
    perform proverq_private.webhook_enqueue(j.job_seq);
    perform pg_notify('proverq_job', format('{"job":%s,"run":%s,"state":"%s"}', j.job_seq, j.run, j.state));
    return j;
end
$$;
comment on function proverq_private.end_job(bigint, proverq.job_state, text, text) is
    'Ends a job: final state, inputs deleted, webhook written, NOTIFY proverq_job. Part of finalize() and cancel().';

-- What is read here ends soon, and an old snapshot keeps all of it in the index: 0.3 us for each job that has ended since. So many
-- are named at once, and each is then ended by its key.
create or replace function proverq_private.finalizable(max_rows int) returns table (job_seq bigint)
language sql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off
as $$
    select j.job_seq
    from proverq.job j
    where j.state in ('completing', 'failing') and (j.finalize_after is null or j.finalize_after <= clock_timestamp())
    order by j.job_seq
    limit max_rows
$$;
comment on function proverq_private.finalizable(int) is 'Jobs that are proved or have failed and wait for their end, oldest first.';

-- A job that cannot be ended is put off with its error, in a savepoint: it must not stop those behind it.
create or replace function proverq_private.finalize(job_seq bigint) returns table (run int, event text, error text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    j proverq.job;
    why text;
begin
    select * into j
    from proverq.job
    where job.job_seq = finalize.job_seq and job.state in ('completing', 'failing')
      and (job.finalize_after is null or job.finalize_after <= clock_timestamp())
    for no key update skip locked;
    if not found then
        return;
    end if;
    begin
        j := proverq_private.end_job(j.job_seq, case when j.state = 'completing' then 'finished' else 'failed' end::proverq.job_state, j.error_code, j.error);
        return query select j.run, 'proverq.job.' || j.state, null::text;
    exception when query_canceled or others then
        why := left(format('%s (SQLSTATE %s)', sqlerrm, sqlstate), 2000);
        update proverq.job
        set finalize_failures = job.finalize_failures + 1, finalize_error = why, finalize_after = clock_timestamp() + proverq_private.backoff(job.finalize_failures)
        where job.job_seq = j.job_seq;
        return query select j.run, null::text, why;
    end;
end
$$;
comment on function proverq_private.finalize(bigint) is
    'Ends a job that is proved or has failed, once per run: final state, inputs deleted, webhook written, NOTIFY. No row: it has ended, or another ends it. No event: it could not be ended, and is put off with this error.';
