-- Skips what is locked instead of locking jobs first: who waits for a partition without its job's lock can deadlock with a
-- failure that cancels the siblings. A lease that is skipped has most of its time left, and is renewed by the next heartbeat.
create or replace function proverq.heartbeat(prover int, tokens uuid[], lease_ms int) returns table (token uuid)
language plpgsql security definer
set search_path = pg_catalog, proverq, pg_temp
set enable_seqscan = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
    update prover p
    set seen_at = clock_timestamp(), state = case when p.state = 'lost' then 'running' else p.state end
    where p.prover_id = heartbeat.prover;
    with free as materialized (
        select p.job_seq, p.partition_idx
        from partition p
        where p.prover_id = heartbeat.prover and p.state = 'leased' and p.token = any (tokens)
        for no key update skip locked
    )
    update partition p
    set lease_until = clock_timestamp() + lease_ms * interval '1 ms'
    from free f
    where p.job_seq = f.job_seq and p.partition_idx = f.partition_idx;
    return query
        select p.token
        from partition p
        where p.prover_id = heartbeat.prover and p.state = 'leased' and p.token = any (tokens);
end
$$;
comment on function proverq.heartbeat(int, uuid[], int) is
    'Renews a prover''s leases; gives those that it still has. A lease that is missing was taken away: the work on it is lost.';
