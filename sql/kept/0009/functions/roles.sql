-- Who may do what. Five group roles without login, of the whole server; users get one with: grant proverq_producer to alice;
-- The owner of the schema may do everything. What a role sees of jobs is for the policies in migrations/0008_operations.up.sql.
--
-- Names of functions stand for all their overloads. A function without roles is only called by others, which run with their
-- owner's rights. Columns are named one by one where a table has some that nobody is to read: inputs and witnesses, the hash
-- that would let one guess them, and secrets.
create or replace function proverq.access() returns table (kind text, object text, privileges text, roles text[])
language sql immutable
set search_path = pg_catalog, proverq, pg_temp
as $$
    select a.kind, a.object, a.privileges, (select array_agg('proverq_' || r) from unnest(string_to_array(a.roles, ' ')) r)
    from (values
        ('schema', 'proverq', 'usage', 'operator producer prover finalizer reader'),

        -- Jobs.
        ('function', 'enqueue', 'execute', 'producer'),
        ('function', 'enqueue_path', 'execute', 'producer'),
        ('function', 'enqueue_witness', 'execute', 'producer'),
        ('function', 'enqueue_check', 'execute', ''),
        ('function', 'enqueue_job', 'execute', ''),
        ('function', 'inputs_sha256', 'execute', ''),
        ('function', 'witnesses_sha256', 'execute', ''),
        ('function', 'request_sha256', 'execute', ''),
        ('function', 'job_insert', 'execute', ''),
        ('function', 'partition_insert', 'execute', ''),
        ('function', 'partitions_inserted', 'execute', ''),
        ('function', 'no_more_partitions', 'execute', ''),
        ('function', 'input_text', 'execute', ''),
        ('function', 'input_leaves', 'execute', ''),
        ('function', 'inputs_text', 'execute', ''),
        ('function', 'inputs_check', 'execute', ''),
        ('table', 'job', 'insert (circuit, partitions, priority, request_id, webhook, keep_inputs, not_before)', 'producer'),
        ('table', 'job', 'select (job_seq, circuit, circuit_id, partitions, present, remaining, priority, run, state, request_id, webhook, '
                         'endpoint_id, keep_inputs, submitter, error_code, error, created_at, ready_at, finished_at, not_before, finalize_failures, '
                         'finalize_error, finalize_after)', 'operator producer reader'),
        ('table', 'partition', 'insert (job_seq, partition_idx, witness, witness_path, inputs)', 'producer'),
        ('table', 'partition', 'select (job_seq, partition_idx, circuit_id, priority, state, attempt, failures, losses, lost_by, lease_until, '
                               'prover_id, due_at, avoid_until, proved_at, witness_path, proof, publics, proof_compressed, error_code, error)', 'operator producer reader'),
        ('view', 'jobs', 'select', 'operator producer reader'),
        ('table', 'failure', 'select', 'operator producer reader'),
        ('view', 'failures', 'select', 'operator producer reader'),
        ('function', 'cancel', 'execute', 'operator producer'),
        ('function', 'set_priority', 'execute', 'operator producer'),
        ('function', 'retry', 'execute', 'operator producer'),
        ('function', 'retry_with_inputs', 'execute', 'operator producer'),
        ('function', 'retry_with_witnesses', 'execute', 'operator producer'),
        ('function', 'require_retryable', 'execute', ''),
        ('function', 'require_one_each', 'execute', ''),
        ('function', 'begin_run', 'execute', ''),
        ('function', 'lock_job', 'execute', ''),
        ('function', 'proof', 'execute', 'operator producer reader'),
        ('function', 'proof_compressed', 'execute', 'operator producer reader'),
        ('function', 'require_finished', 'execute', ''),
        ('function', 'wait', 'execute', 'operator producer reader'),
        ('function', 'is_in_progress', 'execute', ''),
        ('function', 'why', 'execute', 'operator producer reader'),
        ('function', 'why_queued', 'execute', ''),
        ('function', 'why_waits', 'execute', ''),
        ('function', 'why_paused', 'execute', ''),
        ('function', 'why_quarantined', 'execute', ''),
        ('function', 'why_refused', 'execute', ''),
        ('function', 'why_avoided', 'execute', ''),
        ('function', 'finalizer_connected', 'execute', ''),
        ('function', 'short_interval', 'execute', ''),

        -- Circuits. Everybody may see which there are; their files are for those who add or prove them.
        ('table', 'circuit', 'select', 'operator producer prover reader'),
        ('table', 'circuit', 'update (removed_at)', 'operator'),
        ('table', 'artefact', 'select', 'operator producer prover reader'),
        ('table', 'artefact', 'insert', 'operator'),
        ('table', 'artefact_chunk', 'select', 'operator prover'),
        ('table', 'artefact_chunk', 'insert', 'operator'),
        ('table', 'calculator', 'select', 'operator producer prover reader'),
        ('table', 'calculator', 'insert', 'operator'),
        ('table', 'calculator', 'update (sha256, dat)', 'operator'),
        ('function', 'circuit_add', 'execute', 'operator'),
        ('function', 'circuit_update', 'execute', ''),
        ('table', 'paused', 'select', 'operator producer reader'),
        ('function', 'pause', 'execute', 'operator'),
        ('function', 'resume', 'execute', 'operator'),
        ('function', 'require_operator', 'execute', ''),
        ('function', 'require_circuit', 'execute', ''),
        ('function', 'unpaused', 'execute', ''),

        -- Provers.
        ('table', 'prover', 'select', 'operator producer prover reader'),
        ('table', 'prover', 'insert (instance, host, pid, device, description, version)', 'prover'),
        ('table', 'prover', 'update (state, idle, seen_at, description)', 'prover'),
        ('view', 'provers', 'select', 'operator producer reader'),
        ('function', 'claim', 'execute', 'prover'),
        ('function', 'claim_from', 'execute', 'prover'),
        ('function', 'wanted_circuits', 'execute', 'prover'),
        ('function', 'heartbeat', 'execute', 'prover'),
        ('function', 'renew_leases', 'execute', 'prover'),
        ('function', 'complete', 'execute', 'prover'),
        ('function', 'complete_many', 'execute', 'prover'),
        ('function', 'lost_leases', 'execute', 'prover'),
        ('function', 'fail', 'execute', 'prover'),
        ('function', 'release', 'execute', 'prover'),
        ('function', 'rescue_prover', 'execute', 'prover'),
        ('table', 'circuit_refusal', 'select', 'operator producer reader'),
        ('view', 'refusals', 'select', 'operator producer reader'),
        ('function', 'circuit_refused', 'execute', 'prover'),
        ('table', 'device_quarantine', 'select', 'operator producer reader'),
        ('function', 'device_quarantined', 'execute', 'prover'),
        ('function', 'prover_ended', 'execute', ''),
        ('function', 'record_activity', 'execute', 'prover'),
        ('function', 'record_workers', 'execute', 'prover'),
        ('function', 'record_timing', 'execute', ''),
        ('function', 'partition_failed', 'execute', ''),
        ('function', 'partition_lost', 'execute', ''),
        ('function', 'backoff', 'execute', ''),
        ('function', 'due_in', 'execute', ''),
        ('function', 'avoids', 'execute', ''),
        ('function', 'avoid_for', 'execute', ''),
        ('function', 'record_failure', 'execute', ''),
        ('function', 'unspent_failures', 'execute', ''),
        ('function', 'notify_work', 'execute', ''),
        ('function', 'rescue_expired', 'execute', 'operator prover finalizer'),
        ('function', 'wake_due', 'execute', 'operator prover finalizer'),

        -- Finalizers and webhooks. A secret is shown once, to the one who makes it.
        ('function', 'finalizable', 'execute', 'finalizer'),
        ('function', 'finalize', 'execute', 'finalizer'),
        ('function', 'finalize_next', 'execute', 'finalizer'),
        ('function', 'make_timing_partitions', 'execute', 'operator finalizer'),
        ('function', 'claim_deliveries', 'execute', 'finalizer'),
        ('function', 'record_deliveries', 'execute', 'finalizer'),
        ('function', 'delivery_done', 'execute', 'finalizer'),
        ('function', 'delivery_failed', 'execute', ''),
        ('function', 'end_job', 'execute', ''),
        ('function', 'webhook_body', 'execute', ''),
        ('function', 'webhook_enqueue', 'execute', ''),
        ('function', 'webhook_time', 'execute', ''),
        ('function', 'webhook_id', 'execute', 'operator producer reader'),
        ('function', 'create_webhook_endpoint', 'execute', 'operator producer'),
        ('function', 'set_webhook_url', 'execute', 'operator producer'),
        ('function', 'rotate_webhook_secret', 'execute', 'operator producer'),
        ('function', 'disable_webhook_endpoint', 'execute', 'operator producer'),
        ('function', 'enable_webhook_endpoint', 'execute', 'operator producer'),
        ('function', 'ping_webhook_endpoint', 'execute', 'operator producer'),
        ('function', 'listen_webhooks', 'execute', 'operator producer'),
        ('function', 'redeliver', 'execute', 'operator producer'),
        ('function', 'redeliver_failed', 'execute', 'operator producer'),
        ('function', 'disable_endpoint', 'execute', ''),
        ('function', 'new_webhook_secret', 'execute', ''),
        ('function', 'webhook_endpoint_id', 'execute', ''),
        ('function', 'require_enabled', 'execute', ''),
        ('function', 'webhook_endpoint_for', 'execute', ''),
        ('function', 'webhook_url_check', 'execute', ''),
        ('table', 'webhook_delivery', 'select', 'operator producer reader'),
        ('table', 'webhook_attempt', 'select', 'operator producer reader'),
        ('table', 'webhook_secret', 'select', ''),
        ('table', 'webhook_endpoint', 'select (endpoint_id, name, url, submitter, shared, disabled_at, disabled_reason, failures, failing_since, rests_until, '
                                      'last_error, created_at)', 'operator producer reader'),
        ('view', 'deliveries', 'select', 'operator producer reader'),
        ('view', 'delivery_attempts', 'select', 'operator producer reader'),
        ('view', 'webhook_endpoints', 'select', 'operator producer reader'),

        -- Where the time went. What a device did is not one submitter's.
        ('table', 'step', 'select', 'operator producer reader'),
        ('table', 'timing', 'select', 'operator producer reader'),
        ('table', 'device_activity', 'select', 'operator reader'),
        ('view', 'timings', 'select', 'operator producer reader'),
        ('view', 'job_timeline', 'select', 'operator producer reader'),
        ('view', 'step_stats', 'select', 'operator producer reader'),
        ('function', 'step_stats_between', 'execute', 'operator producer reader'),
        ('view', 'device_utilization', 'select', 'operator reader'),
        ('function', 'device_utilization_between', 'execute', 'operator reader'),
        ('view', 'device_gaps', 'select', 'operator reader'),
        ('function', 'device_gaps_between', 'execute', 'operator reader'),
        ('view', 'gap_causes', 'select', 'operator reader'),
        ('function', 'gap_causes_between', 'execute', 'operator reader'),

        -- Upkeep. Finalizers delete what is too old; operators say how long things are kept, and what is worth an alert.
        ('function', 'prune', 'execute', 'operator finalizer'),
        ('function', 'prune_jobs', 'execute', ''),
        ('function', 'prune_deliveries', 'execute', ''),
        ('function', 'prune_failures', 'execute', ''),
        ('function', 'prune_provers', 'execute', ''),
        ('function', 'prune_timing_table', 'execute', ''),
        ('function', 'prune_timing_rows', 'execute', ''),
        ('function', 'old_timing_tables', 'execute', ''),
        ('function', 'first_to_prune', 'execute', ''),
        ('function', 'check_invariants', 'execute', 'operator reader'),
        ('function', 'broken_jobs', 'execute', ''),
        ('function', 'is_being_deleted', 'execute', ''),
        ('function', 'broken_partitions', 'execute', ''),
        ('function', 'broken_records', 'execute', ''),
        ('view', 'alerts', 'select', 'operator reader'),
        ('function', 'current_alerts', 'execute', 'operator reader'),
        ('function', 'alerts_of_work', 'execute', ''),
        ('function', 'alerts_of_finalizers', 'execute', ''),
        ('function', 'alerts_of_provers', 'execute', ''),
        ('function', 'alerts_of_upkeep', 'execute', ''),
        ('function', 'alerts_of_vacuum', 'execute', ''),
        ('function', 'ready_groups', 'execute', ''),
        ('function', 'snapshot_holders', 'execute', ''),
        ('table', 'retention', 'select', 'operator producer finalizer reader'),
        ('table', 'retention', 'update (keep)', 'operator'),
        ('table', 'alert_limit', 'select', 'operator reader'),
        ('table', 'alert_limit', 'update (severity, after, above, muted)', 'operator'),

        -- The schema and its roles.
        ('table', 'schema_migration', 'select', 'operator producer prover finalizer reader'),
        ('function', 'code_digest', 'execute', 'operator prover finalizer'),
        ('function', 'access', 'execute', 'operator reader'),
        ('function', 'apply_grants', 'execute', ''),
        ('function', 'create_roles', 'execute', ''),
        ('function', 'is_member', 'execute', ''),
        ('function', 'is_owner', 'execute', ''),
        ('function', 'may_read', 'execute', ''),
        ('function', 'may_change', 'execute', '')
    ) a (kind, object, privileges, roles)
$$;
comment on function proverq.access() is
    'The list of what each role may do, beside the owner, who may do everything: select * from proverq.access();';

-- Takes everything away first, so that the list is all that the roles have; what was granted to others stays.
create or replace function proverq.apply_grants() returns void
language plpgsql
set search_path = pg_catalog, proverq, pg_temp
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
    execute format('revoke all on schema proverq from %s', everyone);
    execute format('revoke all on all tables in schema proverq from %s', everyone);
    execute format('revoke all on all functions in schema proverq from %s', everyone);
    for granted in
        select a.privileges, o.name, (select string_agg(r, ', ') from unnest(a.roles) r where r = any (present)) as roles
        from access() a
        cross join lateral (
            select 'schema proverq' where a.kind = 'schema'
            union all
            select 'function ' || p.oid::regprocedure from pg_proc p
            where a.kind = 'function' and p.proname = a.object and p.pronamespace = 'proverq'::regnamespace
            union all
            select 'table ' || c.oid::regclass from pg_class c
            where a.kind in ('table', 'view') and c.relname = a.object and c.relnamespace = 'proverq'::regnamespace
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
set search_path = pg_catalog, proverq, pg_temp
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
    perform apply_grants();
    return missing;
end
$$;
comment on function proverq.create_roles() is
    'Makes the roles proverq_operator, proverq_producer, proverq_prover, proverq_finalizer and proverq_reader, if the session may, and grants them what proverq.access() lists; gives those that were missing. Users get one with: grant proverq_producer to alice;';
