create or replace function proverq_private.release(job_seq bigint, partition_idx int, token uuid, reason text, delay_ms int) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    later constant bool := coalesce(delay_ms, 0) > 0;
    due constant timestamptz := clock_timestamp() + coalesce(delay_ms, 0) * interval '1 ms';
    j proverq.job;
begin
    select o.priority into j.priority from proverq.job o where o.job_seq = release.job_seq for no key update;
    update proverq.partition p
    set state = case when later then 'held' else 'ready' end::proverq.partition_state,
        due_at = case when later then due end, avoid_until = case when later then due + proverq_private.avoid_for() end,
        token = null, lease_until = null, priority = j.priority, error_code = 'released', error = left(reason, 2000)
    where p.job_seq = release.job_seq and p.partition_idx = release.partition_idx and p.token = release.token;
    if not found then
        return false;
    end if;
    if later then
        perform proverq_private.record_failure(job_seq, partition_idx, 'released', coalesce(left(reason, 2000), 'no reason was given'), false);
    else
        perform proverq_private.notify_work();
    end if;
    return true;
end
$$;
comment on function proverq_private.release(bigint, int, uuid, text, int) is
    'Gives a lease back, spending no retry: at once when a prover stops; until later, and then for other hosts first, when it lacks a file. False when it was taken away before.';
