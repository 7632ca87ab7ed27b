-- Takes back what the endpoints have learned: pings and the log of attempts are deleted, replaced secrets end at once, and
-- endpoints whose name another submitter uses too get their number behind it.
drop view if exists proverq.deliveries, proverq.delivery_attempts, proverq.webhook_endpoints;
drop function if exists proverq.create_webhook_endpoint(text, text, bool), proverq.webhook_endpoint_id(text), proverq.webhook_endpoint_for(text),
    proverq.require_enabled(proverq.webhook_endpoint, text),
    proverq.webhook_url_check(text), proverq.new_webhook_secret(), proverq.rotate_webhook_secret(text, interval), proverq.set_webhook_url(text, text),
    proverq.disable_webhook_endpoint(text, text), proverq.enable_webhook_endpoint(text), proverq.ping_webhook_endpoint(text),
    proverq.disable_endpoint(int, text), proverq.redeliver(text), proverq.redeliver_failed(text, timestamptz), proverq.claim_deliveries(int, int, int, int),
    proverq.record_deliveries(jsonb), proverq.delivery_failed(int, int, int, text, bool), proverq.webhook_id(uuid),
    proverq.webhook_time(timestamptz);

delete from proverq.schema_migration where version = 7;
drop table proverq.webhook_attempt;
delete from proverq.webhook_delivery where job_seq is null;
drop index proverq.webhook_delivery_pending, proverq.webhook_delivery_under_way, proverq.webhook_delivery_failed;
create index webhook_delivery_due on proverq.webhook_delivery (next_attempt_at) where state = 'pending';
create index webhook_delivery_endpoint on proverq.webhook_delivery (endpoint_id) where state = 'pending';
alter table proverq.webhook_delivery reset (autovacuum_vacuum_scale_factor);
alter table proverq.webhook_delivery
    drop constraint webhook_delivery_job_whole,
    drop column url,
    drop column attempts_before,
    alter column job_seq set not null,
    alter column run set not null;
comment on column proverq.webhook_delivery.job_seq is null;
comment on column proverq.webhook_delivery.attempts is null;

update proverq.webhook_endpoint e
set secret = (select s.secret from proverq.webhook_secret s where s.endpoint_id = e.endpoint_id and s.valid_until is null);
update proverq.webhook_endpoint e
set name = left(e.name, 88) || '-' || e.endpoint_id
where exists (select from proverq.webhook_endpoint o where o.name = e.name and o.endpoint_id < e.endpoint_id);
drop table proverq.webhook_secret;
alter table proverq.webhook_endpoint
    drop constraint webhook_endpoint_name_unique,
    add constraint webhook_endpoint_name_key unique (name),
    alter column secret set not null,
    drop column shared,
    drop column failures,
    drop column failing_since,
    drop column rests_until,
    drop column last_error;
comment on table proverq.webhook_endpoint is 'Where the finalizer sends word of jobs; make one with proverq.create_webhook_endpoint(name, url).';
comment on column proverq.webhook_endpoint.name is null;
comment on column proverq.webhook_endpoint.url is null;
comment on column proverq.webhook_endpoint.submitter is null;
comment on column proverq.webhook_endpoint.secret is 'Key of the signatures (Standard Webhooks): whsec_ and 24 to 64 bytes in base64.';
comment on column proverq.webhook_endpoint.disabled_at is 'Nothing is sent any more. To send again: set it to null.';
