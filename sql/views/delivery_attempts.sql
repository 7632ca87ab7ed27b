create or replace view proverq.delivery_attempts with (security_invoker = true) as
select proverq_private.webhook_id(a.delivery_id) as webhook_id, e.name as endpoint, d.job_seq, d.event, a.attempt, a.ended_at, a.status, a.curl_code,
       a.error, a.peer, a.dns_us, a.connect_us, a.tls_us, a.first_byte_us, a.total_us, a.answer
from proverq_private.webhook_attempt a
join proverq_private.webhook_delivery d using (delivery_id)
join proverq_private.webhook_endpoint e using (endpoint_id);
comment on view proverq.delivery_attempts is 'What came of each attempt to deliver a webhook, and how long it took: microseconds from its start, each with what is before it.';
