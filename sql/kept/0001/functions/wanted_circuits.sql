-- Steps from circuit to circuit along the index partition_ready: its cost follows the number of circuits, not of rows.
create or replace function proverq.wanted_circuits(known bigint[], max_rows int) returns table (circuit_id bigint)
language sql stable
set search_path = pg_catalog, proverq, pg_temp
set enable_seqscan = off set enable_bitmapscan = off
as $$
    with recursive waiting (circuit_id) as (
        (select p.circuit_id from partition p where p.state = 'ready' order by p.circuit_id limit 1)
        union all
        select (select p.circuit_id from partition p
                where p.state = 'ready' and p.circuit_id > w.circuit_id order by p.circuit_id limit 1)
        from waiting w
        where w.circuit_id is not null
    )
    select w.circuit_id
    from waiting w
    cross join lateral (
        select p.priority, p.job_seq, p.partition_idx
        from partition p
        where p.state = 'ready' and p.circuit_id = w.circuit_id
        order by p.priority desc, p.job_seq, p.partition_idx
        limit 1
    ) first
    where w.circuit_id <> all (known)
    order by first.priority desc, first.job_seq, first.partition_idx
    limit max_rows
$$;
comment on function proverq.wanted_circuits(bigint[], int) is
    'Circuits with ready partitions that are not among the known ones, in the claim order of their first partition.';
