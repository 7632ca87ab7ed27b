create or replace function proverq.finalize_next() returns table (job_seq bigint, run int, event text)
language plpgsql security definer
set search_path = pg_catalog, proverq, pg_temp
set enable_seqscan = off
as $$
declare
    j job;
begin
    select * into j
    from job
    where job.state in ('completing', 'failing')
    order by job.job_seq
    limit 1
    for no key update skip locked;
    if not found then
        return;
    end if;
    update job
    set state = case when j.state = 'completing' then 'finished' else 'failed' end::job_state, finished_at = clock_timestamp()
    where job.job_seq = j.job_seq
    returning job.job_seq, job.run, 'proverq.job.' || job.state into finalize_next.job_seq, finalize_next.run, finalize_next.event;
    if not j.keep_inputs then
        update partition p
        set witness = null, inputs = null
        where p.job_seq = j.job_seq and (p.witness is not null or p.inputs is not null);
    end if;
    perform webhook_enqueue(j.job_seq);
    perform pg_notify('proverq_job', format('{"job":%s,"run":%s,"state":"%s"}', j.job_seq, j.run,
                                            case when j.state = 'completing' then 'finished' else 'failed' end));
    return next;
end
$$;
comment on function proverq.finalize_next() is
    'Ends one job that is proved or has failed, once per run: final state, inputs deleted, webhook written, NOTIFY proverq_job. No row: there is none.';
