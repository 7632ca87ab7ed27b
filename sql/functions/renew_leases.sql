-- By primary key: an old snapshot keeps each lease that has ended in the index of leases, a million of them for a second of each
-- prover's every renewal. The state, which is `leased` where there is a token, is not asked for, or the planner would take that index.
--
-- Skips what is locked instead of locking jobs first: who waits for a partition without its job's lock can deadlock with a
-- failure that cancels the siblings. A lease that is skipped has most of its time left, and is renewed the next time.
create or replace function proverq_private.renew_leases(prover int, jobs bigint[], partitions bigint[], tokens uuid[], lease_ms int) returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
declare
    renewed int;
begin
    update proverq_private.prover p
    set seen_at = clock_timestamp(), state = case when p.state = 'lost' then 'running' else p.state end
    where p.prover_id = renew_leases.prover;
    with free as materialized (
        select p.job_seq, p.partition_idx
        from unnest(jobs, partitions, tokens) l (job_seq, partition_idx, token)
        join proverq.partition p on p.job_seq = l.job_seq and p.partition_idx = l.partition_idx::int
        where p.token = l.token and p.prover_id = renew_leases.prover
        for no key update of p skip locked
    )
    update proverq.partition p
    set lease_until = clock_timestamp() + lease_ms * interval '1 ms'
    from free f
    where p.job_seq = f.job_seq and p.partition_idx = f.partition_idx;
    get diagnostics renewed = row_count;
    return renewed;
end
$$;
comment on function proverq_private.renew_leases(int, bigint[], bigint[], uuid[], int) is
    'A prover lives, and works on these leases: they last so long from now. Gives how many were renewed; of one that is missing lost_leases() tells why.';
