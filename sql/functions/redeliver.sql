create or replace function proverq_private.webhook_id(delivery_id uuid) returns text
language sql immutable
return 'msg_' || replace(delivery_id::text, '-', '');
comment on function proverq_private.webhook_id(uuid) is 'The header webhook-id of a delivery.';

create or replace function proverq.redeliver(webhook_id text) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    id constant uuid := case when webhook_id ~ '^(msg_)?[0-9a-f]{32}$' then replace(webhook_id, 'msg_', '')::uuid end;
    endpoint proverq_private.webhook_endpoint;
begin
    select e.* into endpoint
    from proverq_private.webhook_delivery d
    join proverq_private.webhook_endpoint e using (endpoint_id)
    left join proverq.job j using (job_seq)
    where d.delivery_id = id and proverq_private.may_change(coalesce(j.submitter, e.submitter));
    if not found then
        raise undefined_object using
            message = format('there is no webhook %s of yours', coalesce(quote_literal(webhook_id), 'NULL')),
            hint = 'select webhook_id, event, job_seq, state from proverq.deliveries;';
    end if;
    perform proverq_private.require_enabled(endpoint, endpoint.name);
    -- An attempt under way is left to end; it may be the one that delivers.
    update proverq_private.webhook_delivery d
    set state = 'pending', token = null, next_attempt_at = clock_timestamp(), attempts_before = d.attempts
    where d.delivery_id = id and (d.token is null or d.next_attempt_at <= clock_timestamp());
    perform pg_notify('proverq_finalize', '');
end
$$;
comment on function proverq.redeliver(text) is
    'Sends a webhook once more, at once, whatever came of it, under the same id and with the same bytes; the schedule begins anew.';

create or replace function proverq.redeliver_failed(endpoint text, since timestamptz) returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    e proverq_private.webhook_endpoint;
    n int;
begin
    select w.* into e from proverq_private.webhook_endpoint w where w.endpoint_id = proverq_private.webhook_endpoint_id(endpoint);
    perform proverq_private.require_enabled(e, endpoint);
    update proverq_private.webhook_delivery d
    set state = 'pending', token = null, next_attempt_at = clock_timestamp(), attempts_before = d.attempts
    where d.endpoint_id = e.endpoint_id and d.state = 'failed' and d.created_at >= since;
    get diagnostics n = row_count;
    perform pg_notify('proverq_finalize', '');
    return n;
end
$$;
comment on function proverq.redeliver_failed(text, timestamptz) is
    'Sends again what an endpoint was not told since then: webhooks written after that time that have failed. Gives how many.';
