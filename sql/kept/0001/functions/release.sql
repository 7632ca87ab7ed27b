create or replace function proverq.release(job_seq bigint, partition_idx int, token uuid, reason text, delay_ms int) returns boolean
language plpgsql
set search_path = pg_catalog, proverq, pg_temp
as $$
declare
    later constant bool := coalesce(delay_ms, 0) > 0;
begin
    perform from job j where j.job_seq = release.job_seq for no key update;
    update partition p
    set state = case when later then 'held' else 'ready' end::partition_state,
        due_at = case when later then clock_timestamp() + delay_ms * interval '1 ms' end,
        token = null, lease_until = null, error_code = 'released', error = left(reason, 2000)
    where p.job_seq = release.job_seq and p.partition_idx = release.partition_idx and p.token = release.token;
    if not found then
        return false;
    end if;
    if not later then
        perform notify_work();
    end if;
    return true;
end
$$;
comment on function proverq.release(bigint, int, uuid, text, int) is
    'Gives a lease back without a failure (a prover stops, or lacks a file). False when it was taken away before.';
