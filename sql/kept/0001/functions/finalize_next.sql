create or replace function proverq.webhook_body(job_seq bigint) returns text
language plpgsql
set search_path = pg_catalog, proverq, pg_temp
as $$
declare
    max_bytes constant int := 16000;
    j job;
    proofs text;
    body text;
begin
    select * into strict j from job where job.job_seq = webhook_body.job_seq;
    body := format('{"type":"proverq.job.%s","timestamp":%s,"data":{"job":%s,"run":%s,"circuit":%s,"version":%s,"partitions":%s,'
                   '"request_id":%s,"state":"%s","error_code":%s,"error":%s',
        j.state, to_json(to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')),
        j.job_seq, j.run, to_json(j.circuit), (select c.version from circuit c where c.circuit_id = j.circuit_id), j.partitions,
        coalesce(to_json(j.request_id)::text, 'null'), j.state,
        coalesce(to_json(j.error_code)::text, 'null'), coalesce(to_json(j.error)::text, 'null'));
    if j.state = 'finished' then
        if j.partitions <= max_bytes / 400 then -- a proof has more than 400 bytes
            select string_agg(format('{"proof":%s,"publics":%s}', p.proof, p.publics), ',' order by p.partition_idx) into proofs
            from partition p
            where p.job_seq = j.job_seq;
        end if;
        if octet_length(body) + octet_length(proofs) < max_bytes then
            body := body || ',"proofs":[' || proofs || ']';
        else
            body := body || format(',"proofs_ref":"select proverq.proof(%s)"', j.job_seq);
        end if;
    end if;
    return body || '}}';
end
$$;
comment on function proverq.webhook_body(bigint) is
    'What a webhook says of a job that has ended: its proofs while that stays below 16 kB, else how to get them.';

create or replace function proverq.finalize_next() returns table (job_seq bigint, run int, event text)
language plpgsql
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
    if j.endpoint_id is not null then
        insert into webhook_delivery (endpoint_id, job_seq, run, event, body, state, next_attempt_at, last_error)
        select e.endpoint_id, j.job_seq, j.run, finalize_next.event, webhook_body(j.job_seq),
               case when e.disabled_at is null then 'pending' else 'failed' end,
               case when e.disabled_at is null then clock_timestamp() end,
               case when e.disabled_at is not null then 'the endpoint is disabled: ' || coalesce(e.disabled_reason, '') end
        from webhook_endpoint e
        where e.endpoint_id = j.endpoint_id;
        perform pg_notify('proverq_finalize', '');
    end if;
    perform pg_notify('proverq_job', format('{"job":%s,"run":%s,"state":"%s"}', j.job_seq, j.run,
                                            case when j.state = 'completing' then 'finished' else 'failed' end));
    return next;
end
$$;
comment on function proverq.finalize_next() is
    'Ends one job that is proved or has failed, once per run: final state, inputs deleted, webhook written, NOTIFY proverq_job. No row: there is none.';
