-- What finalizers before migration 7 call. They find no secret in the endpoint's row: what they could not sign is given back.
create or replace function proverq.delivery_done(delivery_id uuid, token uuid, status int, error text, retry_after_s int) returns text
language plpgsql security definer
set search_path = pg_catalog, proverq, pg_temp
as $$
begin
    if status is null and error like 'the endpoint''s secret is not %' then
        update webhook_delivery w
        set token = null, attempts = w.attempts - 1, next_attempt_at = clock_timestamp() + interval '5 seconds'
        where w.delivery_id = delivery_done.delivery_id and w.token = delivery_done.token;
        return case when found then 'retry' else 'stale' end;
    end if;
    return (select r.outcome
            from record_deliveries(jsonb_build_array(jsonb_build_object('delivery', delivery_id, 'token', token, 'status', status,
                'error', error, 'retry_after_s', retry_after_s))) r);
end
$$;
comment on function proverq.delivery_done(uuid, uuid, int, text, int) is
    'record_deliveries() for one attempt, as finalizers before migration 7 call it.';
