-- Locks the endpoint before its deliveries.
create or replace function proverq.delivery_done(delivery_id uuid, token uuid, status int, error text, retry_after_s int) returns text
language plpgsql
set search_path = pg_catalog, proverq, pg_temp
as $$
declare
    -- After attempt n the next one is due in pauses[n] seconds; the first is due at once (Standard Webhooks).
    pauses constant int[] := '{5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400}';
    d webhook_delivery;
    pause double precision;
begin
    perform from webhook_endpoint e
    where e.endpoint_id = (select w.endpoint_id from webhook_delivery w where w.delivery_id = delivery_done.delivery_id)
    for no key update;
    update webhook_delivery w
    set token = null, last_status = status, last_error = left(error, 2000)
    where w.delivery_id = delivery_done.delivery_id and w.token = delivery_done.token
    returning * into d;
    if not found then
        return 'stale';
    elsif status between 200 and 299 then
        update webhook_delivery w
        set state = 'delivered', next_attempt_at = null, delivered_at = clock_timestamp()
        where w.delivery_id = d.delivery_id;
        return 'delivered';
    elsif status = 410 then
        update webhook_endpoint e
        set disabled_at = clock_timestamp(), disabled_reason = 'it answered 410 Gone'
        where e.endpoint_id = d.endpoint_id;
        update webhook_delivery w
        set state = 'failed', next_attempt_at = null, token = null,
            last_error = case when w.delivery_id = d.delivery_id then left(error, 2000) else 'the endpoint was disabled' end
        where w.endpoint_id = d.endpoint_id and w.state = 'pending';
        return 'disabled';
    elsif d.attempts > cardinality(pauses) then
        update webhook_delivery w
        set state = 'failed', next_attempt_at = null
        where w.delivery_id = d.delivery_id;
        return 'failed';
    end if;
    pause := pauses[greatest(d.attempts, 1)];
    if status in (429, 502, 503, 504) then
        pause := greatest(pause, 60); -- it asks to be left alone
    end if;
    pause := greatest(pause, least(coalesce(retry_after_s, 0), 86400)) * (1 + 0.2 * random());
    update webhook_delivery w
    set next_attempt_at = clock_timestamp() + pause * interval '1 second'
    where w.delivery_id = d.delivery_id;
    return 'retry';
end
$$;
comment on function proverq.delivery_done(uuid, uuid, int, text, int) is
    'Records what came of a webhook attempt: ''delivered'' on 2xx, ''disabled'' on 410, ''retry'' by the schedule 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h (or Retry-After), then ''failed''.';
