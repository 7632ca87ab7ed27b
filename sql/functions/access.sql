-- Who may do what. Five group roles without login, of the whole server; users get one with: grant proverq_producer to alice;
-- The owner of the schema may do everything. What a role sees of jobs is for the policies in migrations/0001_initial.up.sql.
--
-- Names of functions stand for all their overloads. A function without roles is only called by others, which run with their
-- owner's rights. Columns are named one by one where a table has some that nobody is to read: inputs and witnesses, the hash
-- that would let one guess them, and secrets.
create or replace function proverq.access() returns table (kind text, object text, privileges text, roles text[])
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
    select a.kind, a.object, a.privileges, (select array_agg('proverq_' || r) from unnest(string_to_array(a.roles, ' ')) r)
    from (values
        ('schema', 'proverq', 'usage', 'operator producer prover finalizer reader'),
        ('schema', 'proverq_private', 'usage', 'operator producer prover finalizer reader'),

        -- Jobs.
        ('function', 'proverq.enqueue', 'execute', 'producer'),
        ('function', 'proverq.enqueue_path', 'execute', 'producer'),
        ('function', 'proverq.enqueue_witness', 'execute', 'producer'),
        ('function', 'proverq_private.enqueue_check', 'execute', ''),
        ('function', 'proverq_private.enqueue_job', 'execute', ''),
        ('function', 'proverq_private.inputs_sha256', 'execute', ''),
        ('function', 'proverq_private.witnesses_sha256', 'execute', ''),
        ('function', 'proverq_private.request_sha256', 'execute', ''),
        ('function', 'proverq_private.job_insert', 'execute', ''),
        ('function', 'proverq_private.partition_insert', 'execute', ''),
        ('function', 'proverq_private.partitions_inserted', 'execute', ''),
        ('function', 'proverq_private.no_more_partitions', 'execute', ''),
        ('function', 'proverq_private.input_text', 'execute', ''),
        ('function', 'proverq_private.input_leaves', 'execute', ''),
        ('function', 'proverq_private.inputs_text', 'execute', ''),
        ('function', 'proverq_private.inputs_check', 'execute', ''),
        ('table', 'proverq.job', 'insert (circuit, partitions, priority, request_id, webhook, keep_inputs, not_before)', 'producer'),
        ('table', 'proverq.job', 'select (job_seq, circuit, circuit_id, partitions, present, remaining, priority, run, state, request_id, webhook, '
                         'endpoint_id, keep_inputs, submitter, error_code, error, created_at, ready_at, finished_at, not_before, finalize_failures, '
                         'finalize_error, finalize_after)', 'operator producer reader'),
        ('table', 'proverq.partition', 'insert (job_seq, partition_idx, witness, witness_path, inputs)', 'producer'),
        ('table', 'proverq.partition', 'select (job_seq, partition_idx, circuit_id, priority, state, attempt, failures, losses, lost_by, lease_until, '
                               'prover_id, due_at, avoid_until, proved_at, witness_path, proof, publics, proof_compressed, error_code, error)', 'operator producer reader'),
        ('view', 'proverq.jobs', 'select', 'operator producer reader'),
        ('table', 'proverq_private.failure', 'select', 'operator producer reader'),
        ('view', 'proverq.failures', 'select', 'operator producer reader'),
        ('function', 'proverq.cancel', 'execute', 'operator producer'),
        ('function', 'proverq.set_priority', 'execute', 'operator producer'),
        ('function', 'proverq.retry', 'execute', 'operator producer'),
        ('function', 'proverq.retry_with_inputs', 'execute', 'operator producer'),
        ('function', 'proverq.retry_with_witnesses', 'execute', 'operator producer'),
        ('function', 'proverq_private.require_retryable', 'execute', ''),
        ('function', 'proverq_private.require_one_each', 'execute', ''),
        ('function', 'proverq_private.begin_run', 'execute', ''),
        ('function', 'proverq_private.lock_job', 'execute', ''),
        ('function', 'proverq.proof', 'execute', 'operator producer reader'),
        ('function', 'proverq.proof_compressed', 'execute', 'operator producer reader'),
        ('function', 'proverq_private.require_finished', 'execute', ''),
        ('function', 'proverq.wait', 'execute', 'operator producer reader'),
        ('function', 'proverq_private.is_in_progress', 'execute', ''),
        ('function', 'proverq.why', 'execute', 'operator producer reader'),
        ('function', 'proverq_private.why_queued', 'execute', ''),
        ('function', 'proverq_private.why_waits', 'execute', ''),
        ('function', 'proverq_private.why_paused', 'execute', ''),
        ('function', 'proverq_private.why_quarantined', 'execute', ''),
        ('function', 'proverq_private.why_refused', 'execute', ''),
        ('function', 'proverq_private.why_avoided', 'execute', ''),
        ('function', 'proverq_private.finalizer_connected', 'execute', ''),
        ('function', 'proverq_private.short_interval', 'execute', ''),

        -- Circuits. Everybody may see which there are; their files are for those who add or prove them.
        ('table', 'proverq.circuit', 'select', 'operator producer prover reader'),
        ('table', 'proverq.circuit', 'update (removed_at)', 'operator'),
        ('table', 'proverq_private.artefact', 'select', 'operator producer prover reader'),
        ('table', 'proverq_private.artefact', 'insert', 'operator'),
        ('table', 'proverq_private.artefact_chunk', 'select', 'operator prover'),
        ('table', 'proverq_private.artefact_chunk', 'insert', 'operator'),
        ('table', 'proverq_private.calculator', 'select', 'operator producer prover reader'),
        ('table', 'proverq_private.calculator', 'insert', 'operator'),
        ('table', 'proverq_private.calculator', 'update (sha256, dat)', 'operator'),
        ('function', 'proverq_private.circuit_add', 'execute', 'operator'),
        ('function', 'proverq_private.circuit_update', 'execute', ''),
        ('table', 'proverq_private.paused', 'select', 'operator producer reader'),
        ('function', 'proverq.pause', 'execute', 'operator'),
        ('function', 'proverq.resume', 'execute', 'operator'),
        ('function', 'proverq_private.require_operator', 'execute', ''),
        ('function', 'proverq_private.require_circuit', 'execute', ''),
        ('function', 'proverq_private.unpaused', 'execute', ''),

        -- Provers.
        ('table', 'proverq_private.prover', 'select', 'operator producer prover reader'),
        ('table', 'proverq_private.prover', 'insert (instance, host, pid, device, description, version)', 'prover'),
        ('table', 'proverq_private.prover', 'update (state, idle, seen_at, description)', 'prover'),
        ('view', 'proverq.provers', 'select', 'operator producer reader'),
        ('function', 'proverq_private.claim', 'execute', 'prover'),
        ('function', 'proverq_private.wanted_circuits', 'execute', 'prover'),
        ('function', 'proverq_private.renew_leases', 'execute', 'prover'),
        ('function', 'proverq_private.complete', 'execute', 'prover'),
        ('function', 'proverq_private.lost_leases', 'execute', 'prover'),
        ('function', 'proverq_private.fail', 'execute', 'prover'),
        ('function', 'proverq_private.release', 'execute', 'prover'),
        ('function', 'proverq_private.rescue_prover', 'execute', 'prover'),
        ('table', 'proverq_private.circuit_refusal', 'select', 'operator producer reader'),
        ('view', 'proverq.refusals', 'select', 'operator producer reader'),
        ('function', 'proverq_private.circuit_refused', 'execute', 'prover'),
        ('table', 'proverq_private.device_quarantine', 'select', 'operator producer reader'),
        ('function', 'proverq_private.device_quarantined', 'execute', 'prover'),
        ('function', 'proverq_private.prover_ended', 'execute', ''),
        ('function', 'proverq_private.record_activity', 'execute', 'prover'),
        ('function', 'proverq_private.record_workers', 'execute', 'prover'),
        ('function', 'proverq_private.record_timing', 'execute', ''),
        ('function', 'proverq_private.partition_failed', 'execute', ''),
        ('function', 'proverq_private.partition_lost', 'execute', ''),
        ('function', 'proverq_private.backoff', 'execute', ''),
        ('function', 'proverq_private.due_in', 'execute', ''),
        ('function', 'proverq_private.avoids', 'execute', ''),
        ('function', 'proverq_private.avoid_for', 'execute', ''),
        ('function', 'proverq_private.record_failure', 'execute', ''),
        ('function', 'proverq_private.unspent_failures', 'execute', ''),
        ('function', 'proverq_private.notify_work', 'execute', ''),
        ('function', 'proverq.rescue_expired', 'execute', 'operator finalizer'),
        ('function', 'proverq.wake_due', 'execute', 'operator finalizer'),

        -- Finalizers and webhooks. A secret is shown once, to the one who makes it.
        ('function', 'proverq_private.finalizable', 'execute', 'finalizer'),
        ('function', 'proverq_private.finalize', 'execute', 'finalizer'),
        ('function', 'proverq.make_timing_partitions', 'execute', 'operator finalizer'),
        ('function', 'proverq_private.claim_deliveries', 'execute', 'finalizer'),
        ('function', 'proverq_private.record_deliveries', 'execute', 'finalizer'),
        ('function', 'proverq_private.delivery_failed', 'execute', ''),
        ('function', 'proverq_private.end_job', 'execute', ''),
        ('function', 'proverq_private.webhook_body', 'execute', ''),
        ('function', 'proverq_private.webhook_enqueue', 'execute', ''),
        ('function', 'proverq_private.webhook_time', 'execute', ''),
        ('function', 'proverq_private.webhook_id', 'execute', 'operator producer reader'),
        ('function', 'proverq.create_webhook_endpoint', 'execute', 'operator producer'),
        ('function', 'proverq.set_webhook_url', 'execute', 'operator producer'),
        ('function', 'proverq.rotate_webhook_secret', 'execute', 'operator producer'),
        ('function', 'proverq.disable_webhook_endpoint', 'execute', 'operator producer'),
        ('function', 'proverq.enable_webhook_endpoint', 'execute', 'operator producer'),
        ('function', 'proverq.ping_webhook_endpoint', 'execute', 'operator producer'),
        ('function', 'proverq_private.listen_webhooks', 'execute', 'operator producer'),
        ('function', 'proverq.redeliver', 'execute', 'operator producer'),
        ('function', 'proverq.redeliver_failed', 'execute', 'operator producer'),
        ('function', 'proverq_private.disable_endpoint', 'execute', ''),
        ('function', 'proverq_private.new_webhook_secret', 'execute', ''),
        ('function', 'proverq_private.webhook_endpoint_id', 'execute', ''),
        ('function', 'proverq_private.require_enabled', 'execute', ''),
        ('function', 'proverq_private.webhook_endpoint_for', 'execute', ''),
        ('function', 'proverq_private.webhook_url_check', 'execute', ''),
        ('table', 'proverq_private.webhook_delivery', 'select', 'operator producer reader'),
        ('table', 'proverq_private.webhook_attempt', 'select', 'operator producer reader'),
        ('table', 'proverq_private.webhook_secret', 'select', ''),
        ('table', 'proverq_private.webhook_endpoint', 'select', 'operator producer reader'),
        ('view', 'proverq.deliveries', 'select', 'operator producer reader'),
        ('view', 'proverq.delivery_attempts', 'select', 'operator producer reader'),
        ('view', 'proverq.webhook_endpoints', 'select', 'operator producer reader'),

        -- Where the time went. What a device did is not one submitter's.
        ('table', 'proverq.step', 'select', 'operator producer reader'),
        ('table', 'proverq.timing', 'select', 'operator producer reader'),
        ('table', 'proverq_private.device_activity', 'select', 'operator reader'),
        ('view', 'proverq.timings', 'select', 'operator producer reader'),
        ('view', 'proverq.job_timeline', 'select', 'operator producer reader'),
        ('view', 'proverq.step_stats', 'select', 'operator producer reader'),
        ('function', 'proverq.step_stats_between', 'execute', 'operator producer reader'),
        ('view', 'proverq.device_utilization', 'select', 'operator reader'),
        ('function', 'proverq.device_utilization_between', 'execute', 'operator reader'),
        ('view', 'proverq.device_gaps', 'select', 'operator reader'),
        ('function', 'proverq.device_gaps_between', 'execute', 'operator reader'),
        ('view', 'proverq.gap_causes', 'select', 'operator reader'),
        ('function', 'proverq.gap_causes_between', 'execute', 'operator reader'),

        -- Upkeep. Finalizers delete what is too old; operators say how long things are kept, and what is worth an alert.
        ('function', 'proverq.prune', 'execute', 'operator finalizer'),
        ('function', 'proverq_private.prune_jobs', 'execute', ''),
        ('function', 'proverq_private.prune_deliveries', 'execute', ''),
        ('function', 'proverq_private.prune_failures', 'execute', ''),
        ('function', 'proverq_private.prune_provers', 'execute', ''),
        ('function', 'proverq_private.prune_timing_table', 'execute', ''),
        ('function', 'proverq_private.prune_timing_rows', 'execute', ''),
        ('function', 'proverq_private.old_timing_tables', 'execute', ''),
        ('function', 'proverq_private.first_to_prune', 'execute', ''),
        ('function', 'proverq.check_invariants', 'execute', 'operator reader'),
        ('function', 'proverq_private.broken_jobs', 'execute', ''),
        ('function', 'proverq_private.is_being_deleted', 'execute', ''),
        ('function', 'proverq_private.broken_partitions', 'execute', ''),
        ('function', 'proverq_private.broken_records', 'execute', ''),
        ('view', 'proverq.alerts', 'select', 'operator reader'),
        ('function', 'proverq_private.current_alerts', 'execute', 'operator reader'),
        ('function', 'proverq_private.alerts_of_work', 'execute', ''),
        ('function', 'proverq_private.alerts_of_finalizers', 'execute', ''),
        ('function', 'proverq_private.alerts_of_provers', 'execute', ''),
        ('function', 'proverq_private.alerts_of_upkeep', 'execute', ''),
        ('function', 'proverq_private.alerts_of_vacuum', 'execute', ''),
        ('function', 'proverq_private.ready_groups', 'execute', ''),
        ('function', 'proverq_private.snapshot_holders', 'execute', ''),
        ('table', 'proverq.retention', 'select', 'operator producer finalizer reader'),
        ('table', 'proverq.retention', 'update (keep)', 'operator'),
        ('table', 'proverq.alert_limit', 'select', 'operator reader'),
        ('table', 'proverq.alert_limit', 'update (severity, after, above, muted)', 'operator'),

        -- The schema and its roles.
        ('table', 'proverq.schema_migration', 'select', 'operator producer prover finalizer reader'),
        ('function', 'proverq_private.code_digest', 'execute', 'operator prover finalizer'),
        ('function', 'proverq.access', 'execute', 'operator reader'),
        ('function', 'proverq.apply_grants', 'execute', ''),
        ('function', 'proverq.create_roles', 'execute', ''),
        ('function', 'proverq_private.is_member', 'execute', ''),
        ('function', 'proverq_private.is_owner', 'execute', ''),
        ('function', 'proverq_private.may_read', 'execute', ''),
        ('function', 'proverq_private.may_change', 'execute', '')
    ) a (kind, object, privileges, roles)
$$;
comment on function proverq.access() is
    'The list of what each role may do, beside the owner, who may do everything: select * from proverq.access();';

-- Takes everything away first, so that the list is all that the roles have; what was granted to others stays.
create or replace function proverq.apply_grants() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    present constant text[] := array(
        select r.rolname from pg_roles r
        where r.rolname in ('proverq_operator', 'proverq_producer', 'proverq_prover', 'proverq_finalizer', 'proverq_reader'));
    everyone constant text := array_to_string(array['public'] || present, ', ');
    granted record;
begin
    perform from pg_namespace n where n.nspname = 'proverq' and pg_has_role(n.nspowner, 'usage');
    if not found then
        raise insufficient_privilege using message = 'only the owner of the schema proverq may grant what is in it';
    end if;
    execute format('revoke all on schema proverq, proverq_private from %s', everyone);
    execute format('revoke all on all tables in schema proverq, proverq_private from %s', everyone);
    execute format('revoke all on all functions in schema proverq, proverq_private from %s', everyone);
    for granted in
        select a.privileges, o.name, (select string_agg(r, ', ') from unnest(a.roles) r where r = any (present)) as roles
        from proverq.access() a
        cross join lateral (
            select 'schema ' || a.object where a.kind = 'schema'
            union all
            select 'function ' || p.oid::regprocedure
            from pg_proc p
            join pg_namespace n on n.oid = p.pronamespace
            where a.kind = 'function' and n.nspname || '.' || p.proname = a.object
            union all
            select 'table ' || a.object where a.kind in ('table', 'view')
        ) o (name)
    loop
        continue when granted.roles is null;
        execute format('grant %s on %s to %s', granted.privileges, granted.name, granted.roles);
    end loop;
end
$$;
comment on function proverq.apply_grants() is
    'Grants what proverq.access() lists to those of the roles that exist. Part of proverq migrate up; by hand after the roles were made.';

create or replace function proverq.create_roles() returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    missing constant text[] := array(
        select m.role
        from unnest('{proverq_operator, proverq_producer, proverq_prover, proverq_finalizer, proverq_reader}'::text[]) with ordinality m (role, idx)
        where not exists (select from pg_roles r where r.rolname = m.role)
        order by m.idx);
    statements constant text := array_to_string(array(select format('create role %s nologin;', m) from unnest(missing) m), ' ');
begin
    if missing <> '{}' then
        if not (select r.rolcreaterole or r.rolsuper from pg_roles r where r.rolname = current_user) then
            raise insufficient_privilege using
                message = format('%s may not create roles, and these are missing: %s', quote_ident(current_user), array_to_string(missing, ', ')),
                hint = format('An administrator of the server runs once: %s After that: select proverq.apply_grants();', statements);
        end if;
        execute statements;
    end if;
    perform proverq.apply_grants();
    return missing;
end
$$;
comment on function proverq.create_roles() is
    'Makes the roles proverq_operator, proverq_producer, proverq_prover, proverq_finalizer and proverq_reader, if the session may, and grants them what proverq.access() lists; gives those that were missing. Users get one with: grant proverq_producer to alice;';
