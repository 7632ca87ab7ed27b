-- The states of a job in the order of its life; for each, what it waits for and what to run.
create or replace function proverq.why(job bigint) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    j proverq.job;
    answer text;
begin
    select * into j from proverq.job where job_seq = why.job;
    if not found or not proverq_private.may_read(j.submitter) then
        return format('there is no job %s; list them with: select * from proverq.jobs;', coalesce(job::text, 'NULL'));
    end if;
    case j.state
    when 'incomplete' then
        select format('%s of its %s partition(s) are missing (%s); insert them into proverq.partition and commit',
                      j.partitions - j.present, j.partitions,
                      string_agg(m.idx::text, ', ' order by m.idx) || case when j.partitions - j.present > 5 then ', ...' else '' end)
        into answer
        from (select g.idx
              from generate_series(0, j.partitions - 1) g (idx)
              where not exists (select from proverq.partition p where p.job_seq = j.job_seq and p.partition_idx = g.idx)
              order by g.idx
              limit 5) m;
    when 'queued' then
        answer := proverq_private.why_queued(j.job_seq, j.circuit_id);
    when 'completing', 'failing' then
        answer := case when j.finalize_failures > 0 then
            format('all is done but the last step, which failed %s time(s), the last: %s; it is tried again %s%s',
                   j.finalize_failures, j.finalize_error, proverq_private.due_in(j.finalize_after),
                   case when not proverq_private.finalizer_connected() then ', when a finalizer runs: proverq serve' end)
        else format('all is done but the last step, which a finalizer takes%s',
            case when proverq_private.finalizer_connected() then '; it should end within seconds'
                 else ', and none is connected; run: proverq serve (or: proverq finalizer)' end) end;
    when 'finished' then
        answer := format('finished at %s; get it with: select proverq.proof(%s);', j.finished_at::timestamptz(0), j.job_seq);
    when 'failed' then
        answer := format('failed at %s: %s; see: select * from proverq.failures where job_seq = %s; to try again: select proverq.retry(%3$s);',
                         j.finished_at::timestamptz(0), j.error, j.job_seq);
    when 'cancelled' then
        answer := format('%s, at %s; to take it up again: select proverq.retry(%s);', j.error, j.finished_at::timestamptz(0), j.job_seq);
    end case;
    return format('job %s: %s', j.job_seq, answer);
end
$$;
comment on function proverq.why(bigint) is 'One line: what the job is waiting for, and what to run.';

create or replace function proverq_private.finalizer_connected() returns bool
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select exists (select from pg_stat_activity a where a.datname = current_database() and a.application_name like 'proverq%finalizer%')
$$;
comment on function proverq_private.finalizer_connected() is 'Whether a finalizer is connected to this database. Part of why().';

create or replace function proverq_private.why_queued(job bigint, circuit bigint) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    n record;
    first_due record;
    provers record;
    at_work text;
    paused text;
begin
    paused := proverq_private.why_paused(circuit);
    select count(*) filter (where p.state = 'ready') as ready, count(*) filter (where p.state = 'leased') as leased,
           count(*) filter (where p.state = 'held') as held, count(*) filter (where p.state = 'proved') as proved, count(*) as total,
           count(*) filter (where p.state = 'ready' and p.avoid_until > clock_timestamp()) as avoiding, min(p.lease_until) as lease_until
    into n
    from proverq.partition p
    where p.job_seq = why_queued.job;
    select count(*) as running, count(*) filter (where p.idle) as idle, max(p.seen_at) as seen_at into provers
    from proverq_private.prover p
    where p.state = 'running' and p.seen_at > clock_timestamp() - interval '2 minutes';

    if n.leased > 0 and n.lease_until < clock_timestamp() then
        return format('the lease of a partition ended %s ago and its prover is silent; a running finalizer takes it back, by hand: select proverq.rescue_expired();',
                      proverq_private.short_interval(clock_timestamp() - n.lease_until));
    elsif n.leased > 0 then
        select format('prover %s (%s on %s, attempt %s)', p.prover_id, r.device, r.host, p.attempt) into at_work
        from proverq.partition p
        join proverq_private.prover r on r.prover_id = p.prover_id
        where p.job_seq = why_queued.job and p.state = 'leased'
        order by p.partition_idx
        limit 1;
        return format('running: %s of %s partition(s) proved, %s at work now, the first by %s', n.proved, n.total, n.leased, at_work)
               || coalesce('; the rest waits: ' || paused, '');
    elsif paused is not null then
        return paused;
    elsif n.ready > 0 and provers.running = 0 then
        return coalesce('no prover is running (the last one was seen '
                        || (select proverq_private.short_interval(clock_timestamp() - max(p.seen_at)) from proverq_private.prover p) || ' ago); '
                        || coalesce(proverq_private.why_quarantined(), 'run: proverq serve'),
                        'no prover has ever connected to this database; run: proverq serve');
    elsif n.ready > 0 and n.avoiding = n.ready then
        return proverq_private.why_avoided(job);
    elsif n.ready > 0 and proverq_private.why_refused(circuit) is not null then
        return proverq_private.why_refused(circuit);
    elsif n.ready > 0 and provers.idle = provers.running then
        return format('ready, and all %s running prover(s) are idle: they do not take this circuit; look in their log for the reason, and at: proverq circuit show %s',
                      provers.running, (select c.name from proverq.circuit c where c.circuit_id = why_queued.circuit));
    elsif n.ready > 0 then
        return proverq_private.why_waits(job, circuit, provers.running);
    end if;
    select p.partition_idx, p.attempt, p.failures, p.due_at, p.error into first_due
    from proverq.partition p
    where p.job_seq = why_queued.job and p.state = 'held'
    order by p.due_at
    limit 1;
    if first_due.error is null then
        return format('it is not to begin before %s, %s', first_due.due_at::timestamptz(0), proverq_private.due_in(first_due.due_at));
    end if;
    return format('partition %s is tried again %s after %s failure(s) in %s attempt(s), the last: %s', first_due.partition_idx,
                  proverq_private.due_in(first_due.due_at), first_due.failures, first_due.attempt, first_due.error);
end
$$;
comment on function proverq_private.why_queued(bigint, bigint) is 'What a queued job is waiting for. Part of why().';

create or replace function proverq_private.short_interval(i interval) returns text
language sql immutable
begin atomic
    select case when s < 1 then round(s * 1000) || ' ms' when s < 120 then round(s, 1) || ' s'
                when s < 7200 then round(s / 60) || ' min' when s < 172800 then round(s / 3600) || ' h'
                else round(s / 86400) || ' days' end
    from (select extract(epoch from i)) t (s);
end;
comment on function proverq_private.short_interval(interval) is 'An interval for people, in one unit.';

create or replace function proverq_private.due_in(at timestamptz) returns text
language sql volatile
return case when at > clock_timestamp() then 'in ' || proverq_private.short_interval(at - clock_timestamp())
             else 'as soon as a finalizer wakes it (by hand: select proverq.wake_due();)' end;
comment on function proverq_private.due_in(timestamptz) is 'How long it is till then, for people. Part of why().';

create or replace function proverq_private.why_paused(circuit bigint) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select string_agg(format('%s paused by %s %s ago%s; to go on: select proverq.resume(%s);',
                             case when p.circuit = '*' then 'everything is' else format('circuit %s is', p.circuit) end, p.paused_by,
                             proverq_private.short_interval(clock_timestamp() - p.paused_at), coalesce(': ' || p.reason, ''),
                             case when p.circuit <> '*' then quote_literal(p.circuit) end), ' and ' order by p.circuit)
    from proverq_private.paused p
    where p.circuit = '*' or p.circuit = (select c.name from proverq.circuit c where c.circuit_id = why_paused.circuit)
$$;
comment on function proverq_private.why_paused(bigint) is 'Who has paused a circuit, and how to go on; NULL when nobody has. Part of why().';

create or replace function proverq_private.why_avoided(job bigint) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select format('partition %s failed on %s (%s) and is left to another one for %s: %s', p.partition_idx,
                  coalesce(format('%s of %s', r.device, r.host), 'a prover'), p.error_code, proverq_private.short_interval(p.avoid_until - clock_timestamp()), p.error)
    from proverq.partition p
    left join proverq_private.prover r on r.prover_id = p.prover_id
    where p.job_seq = why_avoided.job and p.state = 'ready' and p.avoid_until is not null
    order by p.partition_idx
    limit 1
$$;
comment on function proverq_private.why_avoided(bigint) is 'Which device failed, so that the partition waits for another one. Part of why().';

-- Counts at most a thousand of those that are ahead.
create or replace function proverq_private.why_waits(job bigint, circuit bigint, running bigint) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    me proverq.job;
    ahead bigint;
begin
    select * into me from proverq.job j where j.job_seq = why_waits.job;
    select count(*) into ahead
    from (select from proverq.partition p
          where p.state = 'ready' and p.circuit_id = why_waits.circuit
            and (p.priority > me.priority or (p.priority = me.priority and p.job_seq < me.job_seq))
          limit 1000) a;
    return format('waiting its turn; %s partition(s) of the same circuit are ahead and %s prover(s) run',
                  case when ahead = 1000 then '1000 or more' else ahead::text end, running);
end
$$;
comment on function proverq_private.why_waits(bigint, bigint, bigint) is 'How much is ahead of a job. Part of why().';
