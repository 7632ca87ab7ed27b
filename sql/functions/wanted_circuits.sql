-- Steps from circuit to circuit along the index partition_ready: its cost follows the number of circuits, not of rows. It steps
-- over known circuits without looking at them: an old snapshot may keep very many dead entries of theirs.
create or replace function proverq_private.wanted_circuits(known bigint[], max_rows int) returns table (circuit_id bigint)
language sql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off
as $$
    with recursive gap (low, high) as (
        select lag(k.id, 1, 0::bigint) over (order by k.id), k.id
        from (select distinct unnest(known) union all select 9223372036854775807) k (id)
    ), waiting (circuit_id, high) as (
        select (select p.circuit_id from proverq.partition p
                where p.state = 'ready' and p.circuit_id > g.low and p.circuit_id < g.high order by p.circuit_id limit 1), g.high
        from gap g
        union all
        select (select p.circuit_id from proverq.partition p
                where p.state = 'ready' and p.circuit_id > w.circuit_id and p.circuit_id < w.high order by p.circuit_id limit 1), w.high
        from waiting w
        where w.circuit_id is not null
    )
    select w.circuit_id
    from waiting w
    cross join lateral (
        select p.priority, p.job_seq, p.partition_idx
        from proverq.partition p
        where p.state = 'ready' and p.circuit_id = w.circuit_id
        order by p.priority desc, p.job_seq, p.partition_idx
        limit 1
    ) first
    where not exists (select from proverq_private.paused x join proverq.circuit c on x.circuit in ('*', c.name) where c.circuit_id = w.circuit_id)
    order by first.priority desc, first.job_seq, first.partition_idx
    limit max_rows
$$;
comment on function proverq_private.wanted_circuits(bigint[], int) is
    'Circuits with ready partitions that are neither paused nor among the known ones, in the claim order of their first partition.';
