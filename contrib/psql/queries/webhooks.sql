-- Endpoints that do not work, and the latest webhooks with what came of them.
select name, submitter, state, failures, pending, failed, left(coalesce(disabled_reason, last_error), 70) as why
from proverq.webhook_endpoints
where state <> 'open' or failures > 0
order by pending desc;
select endpoint, job_seq, event, state, attempts, next_attempt_at, last_status, left(coalesce(waits_for, last_error), 70) as waits_for
from proverq.deliveries
order by created_at desc
limit 20;
