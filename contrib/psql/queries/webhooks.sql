-- The latest webhooks and what came of them.
select endpoint, job_seq, event, state, attempts, next_attempt_at, last_status, left(last_error, 60) as last_error
from proverq.deliveries
order by created_at desc
limit 20;
