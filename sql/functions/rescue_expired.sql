-- Takes a lease away unless its token has changed meanwhile or, for an expired one, it was renewed.
--
-- A prover that was seen after it lost the partition was not ended by it: it was stopped or cut off, or the database was away.
-- Such a loss is counted, but is no sign of poison, or three outages of the database would fail whatever was under way.
create or replace function proverq_private.partition_lost(job_seq bigint, partition_idx int, token uuid, if_expired bool) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    max_provers constant int := 3;
    j proverq.job;
    p proverq.partition;
    loser text;
    reason text;
    ended bigint;
begin
    select o.priority, o.run into j.priority, j.run from proverq.job o where o.job_seq = partition_lost.job_seq for no key update;
    update proverq.partition q
    set losses = q.losses + 1,
        lost_by = case when q.prover_id = any (q.lost_by) then q.lost_by else q.lost_by || q.prover_id end
    where q.job_seq = partition_lost.job_seq and q.partition_idx = partition_lost.partition_idx
      and q.token = partition_lost.token and (not if_expired or q.lease_until < clock_timestamp())
    returning q.prover_id, q.losses, q.lost_by into p.prover_id, p.losses, p.lost_by;
    if not found then
        return false;
    end if;
    loser := coalesce((select format('prover %s (%s on %s, pid %s)', r.prover_id, r.device, r.host, r.pid)
                       from proverq_private.prover r
                       where r.prover_id = p.prover_id), format('prover %s', p.prover_id));
    reason := format('%s %s', loser, case when if_expired then 'let its lease expire' else 'ended while it worked on it' end);
    perform proverq_private.record_failure(job_seq, partition_idx, 'lost', reason, false);
    if cardinality(p.lost_by) >= max_provers then
        select count(distinct f.prover_id) into ended
        from proverq_private.failure f
        join proverq_private.prover r on r.prover_id = f.prover_id
        where f.job_seq = partition_lost.job_seq and f.partition_idx = partition_lost.partition_idx and f.run = j.run
          and f.code = 'lost' and r.seen_at <= f.failed_at;
    end if;
    if ended >= max_provers then
        perform proverq_private.partition_failed(job_seq, partition_idx, 'poison',
            format('%s different provers ended while they worked on it, the last was %s', ended, loser));
        return true;
    end if;
    update proverq.partition q
    set state = 'ready', token = null, lease_until = null, priority = j.priority, error_code = 'lost', error = reason,
        avoid_until = clock_timestamp() + proverq_private.avoid_for()
    where q.job_seq = partition_lost.job_seq and q.partition_idx = partition_lost.partition_idx;
    perform proverq_private.notify_work();
    return true;
end
$$;
comment on function proverq_private.partition_lost(bigint, int, uuid, bool) is
    'Makes a leased partition ready again whose prover is gone; after three different provers it fails as poison. Part of rescue.';

-- A prover whose host is gone would stay idle for ever, and inserts would notify it.
create or replace function proverq.rescue_expired() returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    lease record;
    rescued int := 0;
begin
    for lease in
        select p.job_seq, p.partition_idx, p.token
        from proverq.partition p
        where p.state = 'leased' and p.lease_until < clock_timestamp()
        order by p.job_seq, p.partition_idx
    loop
        rescued := rescued + proverq_private.partition_lost(lease.job_seq, lease.partition_idx, lease.token, true)::int;
    end loop;
    update proverq_private.prover p
    set state = 'lost', idle = false
    where p.prover_id in (select q.prover_id from proverq_private.prover q
                          where q.state = 'running' and q.seen_at < clock_timestamp() - interval '5 minutes'
                          for no key update skip locked);
    return rescued;
end
$$;
comment on function proverq.rescue_expired() is
    'Takes away the leases that have expired by this database''s clock; gives how many. Provers that were silent for 5 minutes are lost.';

-- Locks the prover, then jobs and partitions by key. One that has stopped keeps that state.
create or replace function proverq_private.rescue_prover(instance uuid) returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    gone int;
    lease record;
    rescued int := 0;
begin
    update proverq_private.prover p
    set state = case when p.state = 'running' then 'lost' else p.state end, idle = false
    where p.instance = rescue_prover.instance
    returning p.prover_id into gone;
    for lease in
        select p.job_seq, p.partition_idx, p.token
        from proverq.partition p
        where p.state = 'leased' and p.prover_id = gone
        order by p.job_seq, p.partition_idx
    loop
        rescued := rescued + proverq_private.partition_lost(lease.job_seq, lease.partition_idx, lease.token, false)::int;
    end loop;
    return rescued;
end
$$;
comment on function proverq_private.rescue_prover(uuid) is
    'Takes away at once what a prover process held; only for the supervisor that saw the process end. Gives how many.';
