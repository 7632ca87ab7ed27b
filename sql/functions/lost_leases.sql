-- By primary key, whatever the table's statistics say: provers ask twice a second.
create or replace function proverq_private.lost_leases(jobs bigint[], partitions bigint[], tokens uuid[]) returns table (token uuid, reason text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
    select l.token,
           case when p.job_seq is null then 'gone' when j.state::text = 'cancelled' then 'cancelled'
                when j.state::text in ('failing', 'failed') then 'failed' else 'taken' end
    from unnest(jobs, partitions, tokens) l (job_seq, partition_idx, token)
    left join proverq.partition p on p.job_seq = l.job_seq and p.partition_idx = l.partition_idx::int
    left join proverq.job j on j.job_seq = p.job_seq
    where p.token is distinct from l.token
$$;
comment on function proverq_private.lost_leases(bigint[], bigint[], uuid[]) is
    'Those of a prover''s leases that it has no more, and why: the job was cancelled, has failed by another partition, is gone, or the lease was taken away.';
