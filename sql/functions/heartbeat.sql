-- Locks the prover, then its partitions by key, as rescue_prover does.
create or replace function proverq.heartbeat(prover int, tokens uuid[], lease_ms int) returns table (token uuid)
language plpgsql
set search_path = pg_catalog, proverq, pg_temp
set enable_seqscan = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
    update prover p
    set seen_at = clock_timestamp(), state = case when p.state = 'lost' then 'running' else p.state end
    where p.prover_id = heartbeat.prover;
    return query
        with held as materialized (
            select p.job_seq, p.partition_idx
            from partition p
            where p.prover_id = heartbeat.prover and p.state = 'leased' and p.token = any (tokens)
            order by p.job_seq, p.partition_idx
            for no key update
        )
        update partition p
        set lease_until = clock_timestamp() + lease_ms * interval '1 ms'
        from held h
        where p.job_seq = h.job_seq and p.partition_idx = h.partition_idx
        returning p.token;
end
$$;
comment on function proverq.heartbeat(int, uuid[], int) is
    'Renews a prover''s leases; gives those that it still has. A lease that is missing was taken away: the work on it is lost.';
