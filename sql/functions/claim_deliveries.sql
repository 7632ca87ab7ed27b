-- From endpoint to endpoint, by a skip scan of webhook_delivery_pending: an endpoint costs the same whether it has one row
-- waiting or a million, and one that is slow holds per_endpoint slots at most. Two finalizers that count at the same
-- moment may both take so many; locking the endpoints would make each skip what the other looks at.
create or replace function proverq_private.claim_deliveries(slots int, failing_slots int, per_endpoint int, lease_ms int)
returns table (delivery_id uuid, token uuid, is_failing bool, url text, secrets text, body text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    failing_from constant int := 3; -- failures in a row, as in record_deliveries()
    now_at constant timestamptz := clock_timestamp(); -- a constant, so that it can bound an index scan
begin
    return query
    with recursive waiting as (
        (select d.endpoint_id from proverq_private.webhook_delivery d where d.state = 'pending' order by d.endpoint_id limit 1)
        union all
        select (select d.endpoint_id from proverq_private.webhook_delivery d where d.state = 'pending' and d.endpoint_id > w.endpoint_id
                order by d.endpoint_id limit 1)
        from waiting w
        where w.endpoint_id is not null
    ), open as materialized (
        select e.endpoint_id, e.failures >= failing_from as is_failing,
               case when e.failures >= failing_from then 1 else per_endpoint end
                   - (select count(*) from proverq_private.webhook_delivery d
                      where d.endpoint_id = e.endpoint_id and d.token is not null and d.state = 'pending' and d.next_attempt_at > now_at) as free
        from waiting w
        join proverq_private.webhook_endpoint e on e.endpoint_id = w.endpoint_id
        where e.disabled_at is null and (e.rests_until is null or e.rests_until <= now_at)
    ), due as materialized (
        select o.is_failing, d.delivery_id, d.next_attempt_at
        from open o
        cross join lateral (
            select d.delivery_id, d.next_attempt_at
            from proverq_private.webhook_delivery d
            where d.endpoint_id = o.endpoint_id and d.state = 'pending' and d.next_attempt_at <= now_at
            order by d.next_attempt_at
            limit greatest(least(o.free, slots), 0)
            for no key update skip locked
        ) d
    ), chosen as (
        (select * from due where not is_failing order by next_attempt_at limit slots)
        union all
        (select * from due where is_failing order by next_attempt_at limit least(failing_slots, slots))
        order by is_failing, next_attempt_at
        limit slots
    ), given_up as ( -- written by transactions that did not see yet that the endpoint is disabled, or lost by a courier since
        update proverq_private.webhook_delivery d
        set state = 'failed', next_attempt_at = null, token = null, last_error = 'the endpoint is disabled: ' || coalesce(x.disabled_reason, '')
        from (
            select y.delivery_id, e.disabled_reason
            from waiting w
            join proverq_private.webhook_endpoint e on e.endpoint_id = w.endpoint_id
            cross join lateral (
                select d.delivery_id
                from proverq_private.webhook_delivery d
                where d.endpoint_id = w.endpoint_id and d.state = 'pending' and (d.token is null or d.next_attempt_at <= now_at)
                limit 1000
                for no key update skip locked
            ) y
            where e.disabled_at is not null
        ) x
        where d.delivery_id = x.delivery_id
    ), lost as ( -- the attempt that a token of an expired lease stands for was never recorded
        insert into proverq_private.webhook_attempt (delivery_id, attempt, error)
        select d.delivery_id, d.attempts, 'lost: the finalizer that made this attempt ended, or could not record it'
        from chosen c
        join proverq_private.webhook_delivery d on d.delivery_id = c.delivery_id
        where d.token is not null
        on conflict do nothing
    ), taken as (
        update proverq_private.webhook_delivery d
        set attempts = d.attempts + 1, token = gen_random_uuid(), next_attempt_at = clock_timestamp() + lease_ms * interval '1 ms'
        from chosen c
        where d.delivery_id = c.delivery_id
        returning d.delivery_id, d.token, c.is_failing, d.endpoint_id, d.url, d.body, c.next_attempt_at as due_at
    )
    select t.delivery_id, t.token, t.is_failing, coalesce(t.url, e.url),
           (select string_agg(s.secret, ' ' order by s.valid_until is not null) from proverq_private.webhook_secret s
            where s.endpoint_id = t.endpoint_id and (s.valid_until is null or s.valid_until > now_at)),
           t.body
    from taken t
    join proverq_private.webhook_endpoint e using (endpoint_id)
    order by t.due_at;
end
$$;
comment on function proverq_private.claim_deliveries(int, int, int, int) is
    'Takes up to so many webhooks that are due, of endpoints that keep failing only failing_slots, for one endpoint per_endpoint; each is due again after its lease. secrets: blank between them.';
