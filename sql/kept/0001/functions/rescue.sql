-- Takes a lease away unless its token has changed meanwhile or, for an expired one, it was renewed.
create or replace function proverq.partition_lost(job_seq bigint, partition_idx int, token uuid, if_expired bool) returns boolean
language plpgsql
set search_path = pg_catalog, proverq, pg_temp
as $$
declare
    max_provers constant int := 3;
    p partition;
    loser text;
begin
    perform from job j where j.job_seq = partition_lost.job_seq for no key update;
    update partition q
    set losses = q.losses + 1,
        lost_by = case when q.prover_id = any (q.lost_by) then q.lost_by else q.lost_by || q.prover_id end
    where q.job_seq = partition_lost.job_seq and q.partition_idx = partition_lost.partition_idx
      and q.token = partition_lost.token and (not if_expired or q.lease_until < clock_timestamp())
    returning q.prover_id, q.losses, q.lost_by into p.prover_id, p.losses, p.lost_by;
    if not found then
        return false;
    end if;
    select format('prover %s (%s on %s, pid %s)', r.prover_id, r.device, r.host, r.pid) into loser
    from prover r
    where r.prover_id = p.prover_id;
    if cardinality(p.lost_by) >= max_provers then
        perform partition_failed(job_seq, partition_idx, 'poison',
            format('%s different provers ended while they worked on it, the last was %s', cardinality(p.lost_by), loser));
        return true;
    end if;
    update partition q
    set state = 'ready', token = null, lease_until = null, error_code = 'lost',
        error = format('%s %s', loser, case when if_expired then 'let its lease expire' else 'ended while it worked on it' end)
    where q.job_seq = partition_lost.job_seq and q.partition_idx = partition_lost.partition_idx;
    perform notify_work();
    return true;
end
$$;
comment on function proverq.partition_lost(bigint, int, uuid, bool) is
    'Makes a leased partition ready again whose prover is gone; after three different provers it fails as poison. Part of rescue.';

-- A prover whose host is gone would stay idle for ever, and inserts would notify it.
create or replace function proverq.rescue_expired() returns int
language plpgsql
set search_path = pg_catalog, proverq, pg_temp
set enable_seqscan = off
as $$
declare
    lease record;
    rescued int := 0;
begin
    for lease in
        select p.job_seq, p.partition_idx, p.token
        from partition p
        where p.state = 'leased' and p.lease_until < clock_timestamp()
        order by p.job_seq, p.partition_idx
    loop
        rescued := rescued + partition_lost(lease.job_seq, lease.partition_idx, lease.token, true)::int;
    end loop;
    update prover p
    set state = 'lost', idle = false
    where p.prover_id in (select q.prover_id from prover q
                          where q.state = 'running' and q.seen_at < clock_timestamp() - interval '5 minutes'
                          for no key update skip locked);
    return rescued;
end
$$;
comment on function proverq.rescue_expired() is
    'Takes away the leases that have expired by this database''s clock; gives how many. Provers that were silent for 5 minutes are lost.';

-- Locks the prover, then jobs and partitions by key. One that has stopped keeps that state.
create or replace function proverq.rescue_prover(instance uuid) returns int
language plpgsql
set search_path = pg_catalog, proverq, pg_temp
set enable_seqscan = off
as $$
declare
    gone int;
    lease record;
    rescued int := 0;
begin
    update prover p
    set state = case when p.state = 'running' then 'lost' else p.state end, idle = false
    where p.instance = rescue_prover.instance
    returning p.prover_id into gone;
    for lease in
        select p.job_seq, p.partition_idx, p.token
        from partition p
        where p.state = 'leased' and p.prover_id = gone
        order by p.job_seq, p.partition_idx
    loop
        rescued := rescued + partition_lost(lease.job_seq, lease.partition_idx, lease.token, false)::int;
    end loop;
    return rescued;
end
$$;
comment on function proverq.rescue_prover(uuid) is
    'Takes away at once what a prover process held; only for the supervisor that saw the process end. Gives how many.';
