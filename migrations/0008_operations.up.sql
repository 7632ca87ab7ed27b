-- Operations: how long things are kept, when to raise an alert, and that submitters see only what is theirs.

-- Rows that a role sees. The owner is not bound by policies, nor are the functions that run with its rights and ask for themselves.
-- The sub-selects stand alone, so that they are evaluated once in a query, whatever the number of rows; they say what
-- proverq.may_read() does. A policy cannot call that: functions come after migrations.
do $$
declare
    reader constant text := $p$(select bool_or(pg_has_role(session_user, r.oid, 'member')) from pg_roles r
                                where r.rolname in ('proverq_operator', 'proverq_reader'))$p$;
    mine constant text := $p$submitter = any (array(select r.rolname from pg_roles r where pg_has_role(session_user, r.oid, 'member')))$p$;
    of_my_job constant text := 'exists (select from proverq.job j where j.job_seq = %I.job_seq)'; -- those that job_read lets through
    t text;
begin
    foreach t in array '{job, partition, failure, timing, webhook_endpoint, webhook_delivery, webhook_attempt}'::text[] loop
        execute format('alter table proverq.%I enable row level security', t);
    end loop;
    execute format('create policy job_read on proverq.job for select using (%s or %s)', reader, mine);
    foreach t in array '{partition, failure, timing}'::text[] loop
        execute format('create policy %I on proverq.%I for select using (%s or ' || of_my_job || ')', t || '_read', t, reader, t);
    end loop;
    -- What an INSERT may say is for the triggers, which run before.
    execute 'create policy job_insert on proverq.job for insert with check (submitter = session_user)';
    execute 'create policy partition_insert on proverq.partition for insert with check (true)';
    -- Who uses a shared endpoint sees it, and what goes there from its own jobs.
    execute format('create policy webhook_endpoint_read on proverq.webhook_endpoint for select using (shared or %s or %s)', reader, mine);
    execute format('create policy webhook_delivery_read on proverq.webhook_delivery for select using (%s or ' || of_my_job ||
                   ' or exists (select from proverq.webhook_endpoint e where e.endpoint_id = webhook_delivery.endpoint_id and e.%s))',
                   reader, 'webhook_delivery', mine);
    execute format('create policy webhook_attempt_read on proverq.webhook_attempt for select using (%s or '
                   'exists (select from proverq.webhook_delivery d where d.delivery_id = webhook_attempt.delivery_id))', reader);
end
$$;

-- Retention ---------------------------------------------------------------------------------------------------------

create table proverq.retention (
    what text primary key,
    keep interval,
    description text not null,
    constraint retention_keep_positive check (keep > interval '0')
);
comment on table proverq.retention is 'How long things are kept; finalizers delete what is older, with proverq.prune().';
comment on column proverq.retention.keep is 'Null: for ever. update proverq.retention set keep = ''90 days'' where what = ''jobs'';';

insert into proverq.retention (what, keep, description) values
    ('jobs', '30 days', 'jobs that are finished, failed or cancelled, from their end on; with their partitions, proofs and deliveries. A job with a pending delivery stays'),
    ('deliveries', '30 days', 'webhooks that were delivered or given up, with the log of their attempts, from the moment when they were written; at most as long as their job'),
    ('failures', '30 days', 'the errors of attempts at partitions'),
    ('timings', '14 days', 'the steps of proofs, and when each device was busy: whole days'),
    ('provers', '30 days', 'prover processes that stopped or were lost, from their last sign of life');

-- Alerts ------------------------------------------------------------------------------------------------------------

create table proverq.alert_limit (
    alert text primary key,
    severity text not null,
    after interval,
    above double precision,
    muted bool not null default false,
    description text not null,
    constraint alert_limit_severity_known check (severity in ('critical', 'warning', 'info'))
);
comment on table proverq.alert_limit is 'The alerts that the view proverq.alerts knows, and from when on each is raised.';
comment on column proverq.alert_limit.after is 'Raised when it lasts longer.';
comment on column proverq.alert_limit.above is 'Raised when there is more of it.';
comment on column proverq.alert_limit.muted is 'Not raised at all.';

insert into proverq.alert_limit (alert, severity, after, above, description) values
    ('no_prover', 'critical', '2 minutes', null, 'partitions are ready, and no prover has given a sign of life for that long'),
    ('no_finalizer', 'critical', null, null, 'a job is to be finalized or a webhook to be sent, and no finalizer is connected'),
    ('leases_expired', 'critical', '1 minute', null, 'leases ended that long ago and nobody has taken them back'),
    ('job_stuck', 'critical', '1 minute', null, 'all partitions of a job ended that long ago, and it is not finalized'),
    ('autovacuum_off', 'critical', null, null, 'the server, or a table here, is not vacuumed by itself'),
    ('ready_waits', 'warning', '15 minutes', null, 'a partition is ready for that long and nobody has claimed it'),
    ('old_snapshot', 'warning', '30 minutes', 1000000, 'a transaction or replication slot of that age, or that many transactions back, keeps vacuum from removing dead rows'),
    ('dead_rows', 'warning', null, 50000, 'a table has so many dead rows and a fifth of its live ones: claims get slower'),
    ('notify_queue', 'warning', null, 0.1, 'that share of the server''s notification queue is full; at 1, commits that notify fail'),
    ('delivery_overdue', 'warning', '10 minutes', null, 'a webhook should have been sent that long ago'),
    ('endpoint_disabled', 'warning', '7 days', null, 'a webhook endpoint failed so often that it was disabled, less than that ago'),
    ('retention_behind', 'warning', '2 days', null, 'something is older by that than it is to be kept'),
    ('timing_default', 'warning', null, 0, 'the default tables of timings have so many rows: the day''s tables were not made in time'),
    ('circuit_refused', 'warning', null, null, 'partitions of a circuit are ready, and every running prover refuses it'),
    ('device_quarantined', 'warning', null, null, 'a device failed again and again, and its supervisor starts no prover on it'),
    ('paused_waits', 'info', null, null, 'a circuit is paused and partitions of it are ready');

-- Autovacuum: rows of these change all the time, and scans pass the dead ones.
alter table proverq.prover set (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 200);
alter table proverq.webhook_delivery set (autovacuum_vacuum_threshold = 500, autovacuum_analyze_scale_factor = 0.05);
alter table proverq.webhook_endpoint set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 200);

insert into proverq.schema_migration (version, name, breaking, checksum) values (8, 'operations', false, '8c838ce473eca95cb0578805a9f7b94b7a9d895f9f12307b7a0a097e31887917');
