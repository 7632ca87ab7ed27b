-- Locks endpoints, by number, before deliveries.

create or replace function proverq_private.delivery_failed(endpoint_id int, status int, retry_after_s int, error text, is_gone bool) returns bool
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    e proverq_private.webhook_endpoint;
    rest double precision := 0;
begin
    update proverq_private.webhook_endpoint w
    set failures = w.failures + 1, failing_since = coalesce(w.failing_since, clock_timestamp()), last_error = left(error, 500)
    where w.endpoint_id = delivery_failed.endpoint_id
    returning * into e;
    if e.failures >= 3 then
        rest := least(60, 2 ^ least(e.failures - 2, 10));
    end if;
    if status in (429, 502, 503, 504) then
        rest := greatest(rest, 5, least(coalesce(retry_after_s, 0), 3600));
    end if;
    if rest > 0 then
        update proverq_private.webhook_endpoint w
        set rests_until = greatest(w.rests_until, clock_timestamp() + rest * (1 + 0.2 * random()) * interval '1 second')
        where w.endpoint_id = e.endpoint_id;
    end if;
    if e.disabled_at is null and (is_gone or e.failing_since < clock_timestamp() - interval '5 days') then
        perform proverq_private.disable_endpoint(e.endpoint_id, case when is_gone then 'it answered 410 Gone'
            else format('%s attempts in %s have failed, the last with: %s', e.failures,
                        date_trunc('hour', clock_timestamp() - e.failing_since), left(error, 200)) end);
        return true;
    end if;
    return e.disabled_at is not null;
end
$$;
comment on function proverq_private.delivery_failed(int, int, int, text, bool) is
    'What a failed attempt means for its endpoint: it rests after three in a row or when it asks for that, and is disabled on 410 or after 5 days. Gives whether it is disabled. Part of record_deliveries().';

create or replace function proverq_private.record_deliveries(results jsonb) returns table (delivery_id uuid, outcome text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    -- After attempt n the next one is due in pauses[n] seconds; the first is due at once (Standard Webhooks).
    pauses constant int[] := '{5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400}';
    kept_attempts constant int := 20;
    r record;
    d proverq_private.webhook_delivery;
    pause double precision;
begin
    perform from proverq_private.webhook_endpoint e
    where e.endpoint_id in (select w.endpoint_id from proverq_private.webhook_delivery w
                            where w.delivery_id in (select x.delivery from jsonb_to_recordset(results) x (delivery uuid)))
      and (e.failures > 0 or exists (select from jsonb_to_recordset(results) x (delivery uuid, status int)
                                     join proverq_private.webhook_delivery w on w.delivery_id = x.delivery
                                     where w.endpoint_id = e.endpoint_id and x.status is distinct from 200))
    order by e.endpoint_id
    for no key update;
    for r in
        select x.*
        from jsonb_to_recordset(results) x (delivery uuid, token uuid, status int, curl_code int, error text, retry_after_s int, peer text,
            dns_us bigint, connect_us bigint, tls_us bigint, first_byte_us bigint, total_us bigint, answer text)
        order by x.delivery
    loop
        update proverq_private.webhook_delivery w
        set token = null, last_status = r.status, last_error = left(r.error, 2000)
        where w.delivery_id = r.delivery and w.token = r.token and w.state = 'pending'
        returning * into d;
        delivery_id := r.delivery;
        if not found then
            outcome := 'stale';
            return next;
            continue;
        end if;
        insert into proverq_private.webhook_attempt as a (delivery_id, attempt, status, curl_code, error, peer, dns_us, connect_us, tls_us, first_byte_us, total_us, answer)
        values (d.delivery_id, d.attempts, r.status, r.curl_code, left(r.error, 2000), r.peer, r.dns_us, r.connect_us, r.tls_us,
                r.first_byte_us, r.total_us, left(r.answer, 500))
        on conflict do nothing;
        delete from proverq_private.webhook_attempt a where a.delivery_id = d.delivery_id and a.attempt <= d.attempts - kept_attempts;
        if r.status between 200 and 299 then
            update proverq_private.webhook_delivery w
            set state = 'delivered', next_attempt_at = null, delivered_at = clock_timestamp()
            where w.delivery_id = d.delivery_id;
            update proverq_private.webhook_endpoint e
            set failures = 0, failing_since = null, rests_until = null
            where e.endpoint_id = d.endpoint_id and e.failures > 0;
            outcome := 'delivered';
        -- A URL that a job named says nothing of a shared endpoint, which others use too, and cannot be gone for it.
        elsif (d.url is null or not (select e.shared from proverq_private.webhook_endpoint e where e.endpoint_id = d.endpoint_id))
            and proverq_private.delivery_failed(d.endpoint_id, r.status, r.retry_after_s, r.error, r.status = 410 and d.url is null) then
            outcome := 'disabled';
        elsif d.attempts - d.attempts_before > cardinality(pauses) or r.status = 410 then
            outcome := 'failed';
        else
            outcome := 'retry';
        end if;
        if outcome in ('disabled', 'failed') then
            update proverq_private.webhook_delivery w
            set state = 'failed', next_attempt_at = null, last_error = left(r.error, 2000)
            where w.delivery_id = d.delivery_id;
        elsif outcome = 'retry' then
            pause := greatest(pauses[greatest(d.attempts - d.attempts_before, 1)], least(coalesce(r.retry_after_s, 0), 86400));
            if r.status in (429, 502, 503, 504) then
                pause := greatest(pause, 60); -- it asks to be left alone
            end if;
            update proverq_private.webhook_delivery w
            set next_attempt_at = clock_timestamp() + pause * (1 + 0.2 * random()) * interval '1 second'
            where w.delivery_id = d.delivery_id;
        end if;
        return next;
    end loop;
end
$$;
comment on function proverq_private.record_deliveries(jsonb) is
    'Records what came of webhook attempts, an array of objects: ''delivered'' on 2xx, ''disabled'' on 410 or after 5 days of failures, ''retry'' by the schedule 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h (or Retry-After), then ''failed''; ''stale'': the delivery was taken away.';
