-- The end of a job, the same whoever brings it: final state, inputs gone, webhook in the outbox, NOTIFY, in one transaction. The
-- caller holds the job's lock and has found that it has not ended; so a run ends once.
create or replace function proverq.end_job(job_seq bigint, state proverq.job_state, error_code text, error text) returns proverq.job
language plpgsql
set search_path = pg_catalog, proverq, pg_temp
as $$
declare
    j job;
begin
    update job
    set state = end_job.state, error_code = end_job.error_code, error = end_job.error, finished_at = clock_timestamp()
    where job.job_seq = end_job.job_seq
    returning * into j;
    if not j.keep_inputs then
        update partition p
        set witness = null, inputs = null
        where p.job_seq = j.job_seq and (p.witness is not null or p.inputs is not null);
    end if;
    perform webhook_enqueue(j.job_seq);
    perform pg_notify('proverq_job', format('{"job":%s,"run":%s,"state":"%s"}', j.job_seq, j.run, j.state));
    return j;
end
$$;
comment on function proverq.end_job(bigint, proverq.job_state, text, text) is
    'Ends a job: final state, inputs deleted, webhook written, NOTIFY proverq_job. Part of finalize_next() and cancel().';

-- A job that cannot be ended is put off with its error, in a savepoint, and the next one is taken: it must not stop those behind it.
-- A statement that runs out of time cannot go on, so there the call ends.
create or replace function proverq.finalize_next() returns table (job_seq bigint, run int, event text)
language plpgsql security definer
set search_path = pg_catalog, proverq, pg_temp
set enable_seqscan = off
as $$
declare
    j job;
    canceled bool;
begin
    loop
        select * into j
        from job
        where job.state in ('completing', 'failing') and (job.finalize_after is null or job.finalize_after <= clock_timestamp())
        order by job.job_seq
        limit 1
        for no key update skip locked;
        if not found then
            return;
        end if;
        begin
            j := end_job(j.job_seq, case when j.state = 'completing' then 'finished' else 'failed' end::job_state, j.error_code, j.error);
            return query select j.job_seq, j.run, 'proverq.job.' || j.state;
            return;
        exception when query_canceled or others then
            canceled := sqlstate = '57014';
            update job
            set finalize_failures = job.finalize_failures + 1, finalize_error = left(format('%s (SQLSTATE %s)', sqlerrm, sqlstate), 2000),
                finalize_after = clock_timestamp() + backoff(job.finalize_failures)
            where job.job_seq = j.job_seq;
            if canceled then
                return;
            end if;
        end;
    end loop;
end
$$;
comment on function proverq.finalize_next() is
    'Ends one job that is proved or has failed, once per run: final state, inputs deleted, webhook written, NOTIFY proverq_job. No row: there is none. One that cannot be ended is put off, with its error in the job''s finalize_error.';
