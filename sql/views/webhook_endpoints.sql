create or replace view proverq.webhook_endpoints with (security_invoker = true) as
select e.name, e.submitter, e.url, e.shared,
       case when e.disabled_at is not null then 'disabled'
            when e.rests_until > clock_timestamp() then 'resting'
            when e.failures >= 3 then 'failing' else 'open' end as state,
       e.disabled_at, e.disabled_reason, e.failures, e.failing_since, e.rests_until, e.last_error,
       (select count(*) from proverq_private.webhook_delivery d where d.endpoint_id = e.endpoint_id and d.state = 'pending') as pending,
       (select count(*) from proverq_private.webhook_delivery d where d.endpoint_id = e.endpoint_id and d.state = 'failed') as failed,
       e.created_at
from proverq_private.webhook_endpoint e;
comment on view proverq.webhook_endpoints is 'Where webhooks go, and how that goes. Secrets are shown only by the functions that make them.';
comment on column proverq.webhook_endpoints.state is 'open, failing (one delivery at a time), resting (until rests_until), disabled.';
