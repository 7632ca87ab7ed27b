-- The first ready partitions of each circuit are read along the index partition_ready, merged in claim order, and locked in that
-- order; those that another claim has locked are skipped. So the cost depends neither on how many rows are ready nor on how many
-- of other circuits are ahead. Nothing here waits for a lock: claims need not lock the job first. But they must commit before a
-- job is locked: rows that another claim took meanwhile stay locked, although they are not claimed.
--
-- The settings keep plans off that are right only while the table is small, for sessions that live long. The state is compared as
-- text after the lock, where the partial index would invite the planner to walk all of it.
create or replace function proverq.claim(prover int, circuits bigint[], lease_ms int, max_rows int)
returns table (job_seq bigint, partition_idx int, attempt int, token uuid, circuit_id bigint, keep_inputs bool,
               witness bytea, witness_path text)
language plpgsql
set search_path = pg_catalog, proverq, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    depth bigint := max_rows + 8;
    claimed bigint := 0;
    n bigint;
begin
    if lease_ms is null or lease_ms < 1 or max_rows is null or max_rows < 1 then
        raise invalid_parameter_value using message = 'claim needs a lease and a number of rows above 0';
    end if;
    loop
        return query
            with head as materialized (
                select p.priority, p.job_seq, p.partition_idx
                from (select distinct unnest(circuits)) c (id)
                cross join lateral (
                    select p.priority, p.job_seq, p.partition_idx
                    from partition p
                    where p.state = 'ready' and p.circuit_id = c.id
                    order by p.priority desc, p.job_seq, p.partition_idx
                    limit depth
                ) p
            ), locked as materialized (
                select p.job_seq, p.partition_idx
                from head h
                join partition p on p.job_seq = h.job_seq and p.partition_idx = h.partition_idx
                where p.state::text = 'ready'
                order by h.priority desc, h.job_seq, h.partition_idx
                limit max_rows - claimed
                for no key update of p skip locked
            ), leased as (
                update partition p
                set state = 'leased', attempt = p.attempt + 1, token = gen_random_uuid(), prover_id = prover,
                    lease_until = clock_timestamp() + lease_ms * interval '1 ms'
                from locked l
                where p.job_seq = l.job_seq and p.partition_idx = l.partition_idx
                returning p.*
            )
            select p.job_seq, p.partition_idx, p.attempt, p.token, p.circuit_id, j.keep_inputs, p.witness, p.witness_path
            from leased p
            join job j on j.job_seq = p.job_seq
            order by p.priority desc, p.job_seq, p.partition_idx;
        get diagnostics n = row_count;
        claimed := claimed + n;
        exit when claimed >= max_rows or not exists (
            select from unnest(circuits) c (id)
            where exists (
                select from partition p
                where p.state = 'ready' and p.circuit_id = c.id
                order by p.priority desc, p.job_seq, p.partition_idx
                offset depth - 1
                limit 1));
        depth := depth * 4; -- all that were seen are locked by others, and there are more
    end loop;
end
$$;
comment on function proverq.claim(int, bigint[], int, int) is
    'Leases the first ready partitions, at most max_rows, of these circuits to a prover, in the order (priority desc, job_seq, partition_idx).';
