-- Takes at most $1 webhook deliveries that are due; each is due again after $2 milliseconds unless delivery_done is called.
with due as materialized (
    select d.delivery_id
    from proverq_private.webhook_delivery d
    where d.state = 'pending' and d.next_attempt_at <= clock_timestamp()
    order by d.next_attempt_at
    limit $1::int
    for no key update skip locked
), taken as (
    update proverq_private.webhook_delivery d
    set attempts = d.attempts + 1, token = gen_random_uuid(),
        next_attempt_at = clock_timestamp() + $2::int * interval '1 ms'
    from due
    where d.delivery_id = due.delivery_id
    returning d.*
)
select t.delivery_id, t.token, t.event, e.url, e.secret, t.body, t.attempts
from taken t
join proverq_private.webhook_endpoint e using (endpoint_id)
order by t.created_at
