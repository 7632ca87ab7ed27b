-- What an operator should look at. Each alert is one of proverq.alert_limit, which has its threshold; the functions below give a row
-- for each thing that is wrong: alert, what, since, advice. Together they are the view proverq.alerts.
--
-- They run with the owner's rights, who need be no superuser: of other users' sessions it sees the snapshots, and not since when.

set local check_function_bodies = off; -- they call functions of files that come later

-- The first ready job of each circuit and priority, by steps along the index partition_ready; a thousand at most.
create or replace function proverq_private.ready_groups() returns table (circuit_id bigint, priority int, job_seq bigint)
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off
as $$
    with recursive head as (
        (select p.circuit_id, p.priority, p.job_seq
         from proverq.partition p where p.state = 'ready'
         order by p.circuit_id, p.priority desc, p.job_seq, p.partition_idx limit 1)
        union all
        select n.circuit_id, n.priority, n.job_seq
        from head h
        cross join lateral (
            select * from (
                (select p.circuit_id, p.priority, p.job_seq
                 from proverq.partition p where p.state = 'ready' and p.circuit_id = h.circuit_id and p.priority < h.priority
                 order by p.circuit_id, p.priority desc, p.job_seq, p.partition_idx limit 1)
                union all
                (select p.circuit_id, p.priority, p.job_seq
                 from proverq.partition p where p.state = 'ready' and p.circuit_id > h.circuit_id
                 order by p.circuit_id, p.priority desc, p.job_seq, p.partition_idx limit 1)
            ) both_ways
            order by both_ways.circuit_id
            limit 1
        ) n
    )
    select h.circuit_id, h.priority, h.job_seq from head h limit 1000
$$;
comment on function proverq_private.ready_groups() is 'The first job with ready partitions of each circuit and priority. Part of the alerts.';

create or replace function proverq_private.alerts_of_work() returns table (alert text, what text, since timestamptz, advice text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    with waiting as materialized (
        select distinct on (g.circuit_id) g.circuit_id, c.name as circuit, c.version, g.job_seq, greatest(j.ready_at, j.not_before) as ready_at,
               (select p from proverq_private.paused p where p.circuit in ('*', c.name) order by p.circuit limit 1) as pause
        from proverq_private.ready_groups() g
        join proverq.job j on j.job_seq = g.job_seq
        join proverq.circuit c on c.circuit_id = g.circuit_id
        order by g.circuit_id, greatest(j.ready_at, j.not_before)
    ), limits as (
        select l.alert, clock_timestamp() - l.after as before from proverq.alert_limit l
    )
    select 'ready_waits', format('a partition of circuit %s, of job %s, is ready for %s', w.circuit, w.job_seq, proverq_private.short_interval(clock_timestamp() - w.ready_at)),
           w.ready_at, format('select proverq.why(%s);', w.job_seq)
    from waiting w
    join limits l on l.alert = 'ready_waits' and w.ready_at < l.before
    where w.pause is null
    union all
    select 'no_prover', format('jobs of %s circuit(s) wait, the first is %s, and no prover runs', count(*), min(w.job_seq)),
           (select max(p.seen_at) from proverq_private.prover p), 'run: proverq serve'
    from waiting w
    join limits l on l.alert = 'no_prover'
    where w.pause is null and not exists (select from proverq_private.prover p where p.state = 'running' and p.seen_at >= l.before)
    having count(*) > 0
    union all
    select 'circuit_refused', format('job %s waits, and all %s running prover(s) refuse version %s of circuit %s: %s', w.job_seq, count(*), w.version, w.circuit, min(r.reason)),
           min(r.refused_at), format('select * from proverq.refusals where circuit = %L;', w.circuit)
    from waiting w
    join proverq_private.prover p on p.state = 'running'
    left join proverq_private.circuit_refusal r on r.prover_id = p.prover_id and r.circuit_id = w.circuit_id
    where w.pause is null
    group by w.circuit_id, w.circuit, w.version, w.job_seq
    having count(*) = count(r.prover_id)
    union all
    select 'paused_waits', format('job %s waits: circuit %s is paused by %s%s', w.job_seq, w.circuit, (w.pause).paused_by, ': ' || (w.pause).reason),
           (w.pause).paused_at, format('select proverq.resume(%L);', (w.pause).circuit)
    from waiting w
    where w.pause is not null
$$;
comment on function proverq_private.alerts_of_work() is 'Alerts about ready partitions that nobody takes. Part of the view alerts.';

create or replace function proverq_private.alerts_of_provers() returns table (alert text, what text, since timestamptz, advice text)
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
    select 'leases_expired', format('%s lease(s) ended, the first %s ago, and nobody has taken them back', count(*), proverq_private.short_interval(clock_timestamp() - min(p.lease_until))),
           min(p.lease_until), 'a running finalizer takes them back; by hand: select proverq.rescue_expired();'
    from proverq.partition p
    join proverq.alert_limit l on l.alert = 'leases_expired'
    where p.state = 'leased' and p.lease_until < clock_timestamp() - l.after
    having count(*) > 0
    union all
    select 'device_quarantined', format('%s on %s has failed %s times: %s', q.device, q.host, q.faults, q.reason), q.since,
           'look at the device; its supervisor tries it again by itself'
    from proverq_private.device_quarantine q
$$;
comment on function proverq_private.alerts_of_provers() is 'Alerts about provers and what they hold. Part of the view alerts.';

-- When the last partition ended is asked for only of jobs that should have been finalized: there is hardly ever one.
create or replace function proverq_private.alerts_of_finalizers() returns table (alert text, what text, since timestamptz, advice text)
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
    select 'no_finalizer', 'a job waits for its last step, a webhook to be sent, or partitions that are due again wait, and no finalizer is connected',
           null::timestamptz,
           'run: proverq serve (or: proverq finalizer)'
    where not proverq_private.finalizer_connected()
      and (exists (select from proverq.job j where j.state in ('completing', 'failing'))
           or exists (select from proverq.partition p where p.state = 'held' and p.due_at < clock_timestamp() - interval '1 minute')
           or exists (select from proverq_private.webhook_delivery d join proverq_private.webhook_endpoint e using (endpoint_id)
                      where d.state = 'pending' and d.next_attempt_at <= clock_timestamp() and e.disabled_at is null))
    union all
    select 'job_stuck', format('job %s is %s%s', j.job_seq, j.state, case when j.finalize_failures > 0
                               then format(', and its last step has failed %s time(s): %s', j.finalize_failures, j.finalize_error) end),
           e.ended_at, format('select proverq.why(%s); the finalizer''s log', j.job_seq)
    from (select * from proverq.job where job.state in ('completing', 'failing') order by job.job_seq limit 20) j
    join proverq.alert_limit l on l.alert = 'job_stuck'
    cross join lateral (
        select coalesce(case when j.state = 'completing' then (select max(p.proved_at) from proverq.partition p where p.job_seq = j.job_seq)
                             else (select max(f.failed_at) from proverq_private.failure f where f.job_seq = j.job_seq) end, j.ready_at)
    ) e (ended_at)
    where e.ended_at < clock_timestamp() - l.after
    union all
    select 'delivery_overdue', format('webhooks to endpoint %s should have been sent %s ago%s', quote_ident(e.name), proverq_private.short_interval(clock_timestamp() - d.due_at),
                                      case when e.failures > 0 then format('; its last %s attempt(s) failed: %s', e.failures, e.last_error) end),
           d.due_at, format('select * from proverq.deliveries where endpoint = %L and state = ''pending'';', e.name)
    from proverq_private.webhook_endpoint e
    join proverq.alert_limit l on l.alert = 'delivery_overdue'
    cross join lateral (select min(w.next_attempt_at) from proverq_private.webhook_delivery w where w.endpoint_id = e.endpoint_id and w.state = 'pending') d (due_at)
    where e.disabled_at is null and d.due_at < clock_timestamp() - l.after
    union all
    select 'endpoint_disabled', format('endpoint %s of %s was disabled: %s', quote_ident(e.name), e.submitter, e.disabled_reason), e.disabled_at,
           format('select proverq.enable_webhook_endpoint(%L), proverq.redeliver_failed(%1$L, %L);', e.submitter || '/' || e.name, f.since)
    from proverq_private.webhook_endpoint e
    join proverq.alert_limit l on l.alert = 'endpoint_disabled'
    cross join lateral (
        select date_trunc('second', coalesce(min(d.created_at), e.disabled_at))
        from proverq_private.webhook_delivery d
        where d.endpoint_id = e.endpoint_id and d.state = 'failed' and d.created_at > e.disabled_at - interval '8 days' -- a schedule's length, after 5 days of failures
    ) f (since)
    where e.failures > 0 and e.disabled_at > clock_timestamp() - l.after -- who disabled it on purpose knows
$$;
comment on function proverq_private.alerts_of_finalizers() is 'Alerts about the ends of jobs and webhooks. Part of the view alerts.';

create or replace function proverq_private.alerts_of_upkeep() returns table (alert text, what text, since timestamptz, advice text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select 'timing_default', format('%s has rows: the tables of their days were not made in time', d.name), d.since,
           'run a finalizer, which makes them; by hand: select proverq.make_timing_partitions(7);'
    from proverq.alert_limit l
    cross join lateral (
        select 'timing_default', (select min(t.recorded_at) from proverq_private.timing_default t), (select count(*) from (select from proverq_private.timing_default limit (l.above + 1)::bigint) n)
        union all
        select 'device_activity_default', (select min(t.recorded_at) from proverq_private.device_activity_default t), (select count(*) from (select from proverq_private.device_activity_default limit (l.above + 1)::bigint) n)
    ) d (name, since, rows)
    where l.alert = 'timing_default' and d.rows > l.above
    union all
    select 'retention_behind', format('%s is to be kept for %s, and is older by %s', o.what, r.keep, proverq_private.short_interval(clock_timestamp() - r.keep - o.since)), o.since,
           'run a finalizer, which deletes it; by hand: select * from proverq.prune() \watch 0.1'
    from proverq.alert_limit l
    join proverq.retention r on true
    cross join lateral (
        select 'job ' || j.job_seq, j.finished_at from proverq_private.first_to_prune(clock_timestamp() - r.keep - l.after) j where r.what = 'jobs'
        union all
        (select 'table ' || t.name, t.ends from proverq_private.old_timing_tables(clock_timestamp() - r.keep - l.after) t where r.what = 'timings' limit 1)
    ) o (what, since)
    where l.alert = 'retention_behind'
$$;
comment on function proverq_private.alerts_of_upkeep() is 'Alerts about what is deleted and made in the background. Part of the view alerts.';

-- Whatever keeps vacuum from removing rows here that are dead since. In other databases a snapshot does no harm. What kind of
-- process another user's session is, is hidden as well.
create or replace function proverq_private.snapshot_holders() returns table (holder text, age bigint, since timestamptz, advice text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select format('session %s of %s (%s%s)', a.pid, coalesce(a.usename, a.backend_type), a.application_name, ', ' || a.state),
           greatest(age(a.backend_xmin), age(a.backend_xid)), a.xact_start, format('select pg_terminate_backend(%s);', a.pid)
    from pg_stat_activity a
    where (a.backend_xmin is not null or a.backend_xid is not null) and a.pid <> pg_backend_pid()
      and (a.datname = current_database() or a.datname is null) -- walsenders have no database
      and (a.datname is null or a.usesysid is not null) -- autovacuum's workers have no user, and hold nothing back
    union all
    select 'replication slot ' || s.slot_name, age(s.xmin), null, format('if its standby is gone: select pg_drop_replication_slot(%L);', s.slot_name)
    from pg_replication_slots s
    where s.xmin is not null
    union all
    select format('prepared transaction %s of %s', quote_literal(p.gid), p.owner), age(p.transaction), p.prepared, format('rollback prepared %L; (or commit prepared)', p.gid)
    from pg_prepared_xacts p
    where p.database = current_database()
$$;
comment on function proverq_private.snapshot_holders() is 'Sessions, replication slots and prepared transactions that keep dead rows of this database from being removed. Part of the alerts.';

create or replace function proverq_private.alerts_of_vacuum() returns table (alert text, what text, since timestamptz, advice text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select 'old_snapshot', format('%s keeps the rows of %s transactions from being removed%s', h.holder, h.age,
                                  case when h.since is null then format('; since when, %s cannot see: grant pg_read_all_stats to %1$s;', quote_ident(current_user)) end),
           h.since, h.advice
    from proverq_private.snapshot_holders() h
    join proverq.alert_limit l on l.alert = 'old_snapshot' and (h.since < clock_timestamp() - l.after or h.age > l.above)
    union all
    select 'dead_rows', format('table %s has %s dead rows beside %s live ones, and was %s', t.relname, t.n_dead_tup, t.n_live_tup,
                               coalesce('vacuumed at ' || greatest(t.last_vacuum, t.last_autovacuum)::timestamptz(0), 'never vacuumed')),
           greatest(t.last_vacuum, t.last_autovacuum), format('vacuum (verbose) %I.%I; it tells what holds it back', t.schemaname, t.relname)
    from pg_stat_user_tables t
    join proverq.alert_limit l on l.alert = 'dead_rows' and t.n_dead_tup > l.above + t.n_live_tup / 5
    where t.schemaname in ('proverq', 'proverq_private')
    union all
    select 'autovacuum_off', case when not s.is_on then 'autovacuum or track_counts is off on this server' else 'autovacuum is off for table ' || c.relname end, null,
           case when not s.is_on then 'set both to on in postgresql.conf, and reload' else format('alter table %s reset (autovacuum_enabled);', c.oid::regclass) end
    from (select current_setting('autovacuum')::bool and current_setting('track_counts')::bool) s (is_on)
    left join pg_class c on s.is_on and c.relnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace)
                        and exists (select from pg_options_to_table(c.reloptions) o where o.option_name = 'autovacuum_enabled' and not o.option_value::bool)
    where not s.is_on or c.oid is not null
    union all
    select 'notify_queue', format('%s %% of the notification queue is full', round((q.usage * 100)::numeric, 1)), null,
           'end the session that listens and stays in a transaction: select pid, xact_start from pg_stat_activity where state ~ ''in transaction'' order by 2;'
    from pg_notification_queue_usage() q (usage)
    join proverq.alert_limit l on l.alert = 'notify_queue' and q.usage > l.above
$$;
comment on function proverq_private.alerts_of_vacuum() is 'Alerts about dead rows and what keeps them, and about the notification queue. Part of the view alerts.';

create or replace function proverq_private.current_alerts() returns table (severity text, alert text, what text, since timestamptz, advice text)
language sql stable security definer
set search_path = pg_catalog, pg_temp set jit = off
as $$
    select l.severity, a.alert, a.what, a.since, a.advice
    from (select * from proverq_private.alerts_of_work() union all select * from proverq_private.alerts_of_provers() union all select * from proverq_private.alerts_of_finalizers()
          union all select * from proverq_private.alerts_of_upkeep() union all select * from proverq_private.alerts_of_vacuum()) a
    join proverq.alert_limit l on l.alert = a.alert and not l.muted
    order by array_position('{critical, warning, info}', l.severity), a.since nulls last, a.alert
$$;
comment on function proverq_private.current_alerts() is 'What the view proverq.alerts shows.';

set local check_function_bodies = on;
