create or replace view proverq.deliveries with (security_invoker = true) as
select proverq_private.webhook_id(d.delivery_id) as webhook_id, e.name as endpoint, coalesce(d.url, e.url) as url, d.job_seq, d.run, d.event,
       d.state, d.attempts, d.next_attempt_at, d.last_status, d.last_error, d.created_at, d.delivered_at,
       case when d.state <> 'pending' then null
            when d.token is not null and d.next_attempt_at > clock_timestamp() then 'the answer to attempt ' || d.attempts
            when e.disabled_at is not null then 'its endpoint, which is disabled: ' || coalesce(e.disabled_reason, 'no reason was given')
            when d.next_attempt_at > clock_timestamp() then 'attempt ' || d.attempts + 1 || ' at next_attempt_at'
            when e.rests_until > clock_timestamp()
                then format('its endpoint, which rests for %s s after %s failures: %s',
                            ceil(extract(epoch from e.rests_until - clock_timestamp())), e.failures, e.last_error)
            when e.failures >= 3 then format('its endpoint, which is tried with one delivery at a time after %s failures: %s', e.failures, e.last_error)
            when u.n > 0 then format('its endpoint, to which %s are under way', u.n)
            else 'a finalizer' end as waits_for
from proverq_private.webhook_delivery d
join proverq_private.webhook_endpoint e using (endpoint_id)
cross join lateral (
    select count(*) as n
    from proverq_private.webhook_delivery o
    where d.state = 'pending' and o.endpoint_id = d.endpoint_id and o.token is not null and o.next_attempt_at > clock_timestamp()
) u;
comment on view proverq.deliveries is 'Every webhook, what came of it, and what it waits for.';
comment on column proverq.deliveries.webhook_id is 'The header of that name; select proverq.redeliver(''...''); sends it again.';
