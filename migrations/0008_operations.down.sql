-- Without roles, retention and alerts: everybody may call every function again, as before, and the roles have nothing here.
set local client_min_messages = warning; -- of functions that are not there yet
drop function if exists proverq.access(), proverq.apply_grants(), proverq.create_roles();
do $$
declare
    role text;
    t text;
begin
    for role in
        select r.rolname from pg_roles r
        where r.rolname in ('proverq_operator', 'proverq_producer', 'proverq_prover', 'proverq_finalizer', 'proverq_reader')
    loop
        execute format('revoke all on schema proverq from %I', role);
        execute format('revoke all on all tables in schema proverq from %I', role);
        execute format('revoke all on all functions in schema proverq from %I', role);
    end loop;
    grant execute on all functions in schema proverq to public;
    foreach t in array '{job, partition, failure, timing, webhook_endpoint, webhook_delivery, webhook_attempt}'::text[] loop
        execute format('alter table proverq.%I disable row level security', t);
    end loop;
    foreach t in array '{webhook_attempt, webhook_delivery, webhook_endpoint, timing, failure, partition, job}'::text[] loop
        execute format('drop policy %I on proverq.%I', t || '_read', t);
    end loop;
    drop policy job_insert on proverq.job;
    drop policy partition_insert on proverq.partition;
end
$$;

alter table proverq.prover reset (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
alter table proverq.webhook_delivery reset (autovacuum_vacuum_threshold, autovacuum_analyze_scale_factor);
alter table proverq.webhook_endpoint reset (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
drop table proverq.retention, proverq.alert_limit;

delete from proverq.schema_migration where version = 8;
