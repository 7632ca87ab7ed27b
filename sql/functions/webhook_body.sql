-- The body is a contract: contrib/docs/webhooks.md and contrib/schemas/webhook.schema.json say the same. Within an `api`
-- number, members are only added.

create or replace function proverq_private.webhook_time(at timestamptz) returns text
language sql immutable
return to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
comment on function proverq_private.webhook_time(timestamptz) is 'A time as webhooks write it: RFC 3339, UTC, milliseconds.';

create or replace function proverq_private.webhook_body(job_seq bigint) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    max_bytes constant int := 16000; -- receivers may refuse more than 20 kB (Standard Webhooks)
    j proverq.job;
    proofs text;
    body text;
begin
    select * into strict j from proverq.job where job.job_seq = webhook_body.job_seq;
    body := format('{"type":"proverq.job.%s","timestamp":%s,"api":1,"data":{"job":%s,"run":%s,"circuit":%s,"version":%s,"partitions":%s,'
                   '"request_id":%s,"submitter":%s,"state":"%s","error_code":%s,"error":%s,"created_at":%s,"finished_at":%s',
        j.state, to_json(proverq_private.webhook_time(clock_timestamp())),
        j.job_seq, j.run, to_json(j.circuit), (select c.version from proverq.circuit c where c.circuit_id = j.circuit_id), j.partitions,
        coalesce(to_json(j.request_id)::text, 'null'), to_json(j.submitter::text), j.state,
        coalesce(to_json(j.error_code)::text, 'null'), coalesce(to_json(left(j.error, 2000))::text, 'null'),
        to_json(proverq_private.webhook_time(j.created_at)), to_json(proverq_private.webhook_time(coalesce(j.finished_at, clock_timestamp()))));
    if j.state = 'finished' then
        if j.partitions <= max_bytes / 400 then -- a proof has more than 400 bytes
            select string_agg(format('{"proof":%s,"publics":%s}', p.proof, p.publics), ',' order by p.partition_idx) into proofs
            from proverq.partition p
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
comment on function proverq_private.webhook_body(bigint) is
    'What a webhook says of a job that has ended: its proofs while that stays below 16 kB, else how to get them.';

-- The finalizer is told, since a delivery is due at once.
create or replace function proverq_private.webhook_enqueue(job_seq bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    insert into proverq_private.webhook_delivery (endpoint_id, job_seq, run, event, url, body, state, next_attempt_at, last_error)
    select e.endpoint_id, j.job_seq, j.run, 'proverq.job.' || j.state,
           case when e.url ~ '/$' and starts_with(j.webhook, e.url) and j.webhook <> e.url then j.webhook end,
           proverq_private.webhook_body(j.job_seq),
           case when e.disabled_at is null then 'pending' else 'failed' end,
           case when e.disabled_at is null then clock_timestamp() end,
           case when e.disabled_at is not null then 'the endpoint is disabled: ' || coalesce(e.disabled_reason, 'no reason was given') end
    from proverq.job j
    join proverq_private.webhook_endpoint e on e.endpoint_id = j.endpoint_id
    where j.job_seq = webhook_enqueue.job_seq
    on conflict do nothing; -- once per job, run and event
    if found then
        perform pg_notify('proverq_finalize', '');
    end if;
end
$$;
comment on function proverq_private.webhook_enqueue(bigint) is
    'Writes the webhook of a job that has just ended, if it wants one, into the outbox; in the transaction that ends the job.';
