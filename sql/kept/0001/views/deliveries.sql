create or replace view proverq.deliveries with (security_invoker = true) as
select 'msg_' || replace(d.delivery_id::text, '-', '') as webhook_id, e.name as endpoint, e.url, d.job_seq, d.run, d.event,
       d.state, d.attempts, d.next_attempt_at, d.last_status, d.last_error, d.created_at, d.delivered_at
from proverq.webhook_delivery d
join proverq.webhook_endpoint e using (endpoint_id);
comment on view proverq.deliveries is 'Every webhook and what came of it.';
