-- The first ready partitions of each circuit are read along the index partition_ready, merged in claim order, and locked in that
-- order; those that another claim has locked are skipped. So the cost depends neither on how many rows are ready nor on how many
-- of other circuits are ahead. Nothing here waits for a lock: claims need not lock the job first. But they must commit before a
-- job is locked: rows that another claim took meanwhile stay locked, although they are not claimed.
--
-- What was claimed stays in the index, dead, while somebody holds an old snapshot open, and each claim would read past all of it.
-- So a claimer may say up to where it has seen everything of a circuit and a priority: that is read only from there on. All other
-- priorities are read from their beginning, so that a bound of the wrong priority hides nothing. What became ready below a bound
-- (after a retry, a pause, or because its transaction committed late) is hidden: who uses bounds must scan without them, too.
--
-- A claim is committed without waiting for the disk: one that a crash undoes leaves the partition ready, and the token of who had
-- claimed it is refused. A commit that waits, as that of the result, makes all claims before it durable, too.
--
-- The settings keep plans off that are right only while the table is small, for sessions that live long; planning takes longer
-- than the claim, so it is done once. The state is compared as text after the lock, where the partial index would invite the
-- planner to walk all of it.
--
-- Paused circuits are left out before anything is read. A partition that failed on this device is passed by for a while when
-- there are other devices; few are, so reading past them costs little.
create or replace function proverq_private.claim(
    prover int, circuits bigint[], lease_ms int, max_rows int,
    bound_circuits bigint[] default '{}', bound_priorities int[] default '{}', bound_jobs bigint[] default '{}',
    bound_partitions int[] default '{}')
returns table (job_seq bigint, partition_idx int, attempt int, token uuid, circuit_id bigint, keep_inputs bool,
               witness bytea, witness_path text, inputs text, priority int)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    depth bigint := max_rows + 16;
    claimed bigint := 0;
    n bigint;
    jobs bigint[]; -- the first partitions in claim order
    partitions int[];
begin
    if lease_ms is null or lease_ms < 1 or max_rows is null or max_rows < 1 then
        raise invalid_parameter_value using message = 'claim needs a lease and a number of rows above 0';
    end if;
    perform set_config('synchronous_commit', 'off', true);
    if exists (select from proverq_private.paused) then
        circuits := proverq_private.unpaused(circuits);
    end if;
    loop
        if cardinality(bound_circuits) = 0 then
            select array_agg(h.job_seq), array_agg(h.partition_idx) into jobs, partitions
            from (
                select p.job_seq, p.partition_idx
                from (select distinct unnest(circuits)) c (id)
                cross join lateral (
                    select p.priority, p.job_seq, p.partition_idx
                    from proverq.partition p
                    where p.state = 'ready' and p.circuit_id = c.id
                    order by p.priority desc, p.job_seq, p.partition_idx
                    limit depth
                ) p
                order by p.priority desc, p.job_seq, p.partition_idx
                limit depth
            ) h;
        else
            with bound as materialized (
                select b.*, lag(b.priority) over (partition by b.circuit_id order by b.priority desc) as above
                from unnest(bound_circuits, bound_priorities, bound_jobs, bound_partitions)
                     b (circuit_id, priority, job_seq, partition_idx)
                where b.circuit_id = any (circuits)
            ), span as ( -- the priorities between those with a bound
                select b.circuit_id, b.priority::bigint as low, coalesce(b.above, 2147483648) as high
                from bound b
                union all
                select c.id, -2147483649, coalesce((select min(b.priority) from bound b where b.circuit_id = c.id), 2147483648)
                from (select distinct unnest(circuits)) c (id)
            ), head as (
                select p.priority, p.job_seq, p.partition_idx
                from span s
                cross join lateral (
                    select p.priority, p.job_seq, p.partition_idx
                    from proverq.partition p
                    where p.state = 'ready' and p.circuit_id = s.circuit_id and p.priority > s.low and p.priority < s.high
                    order by p.priority desc, p.job_seq, p.partition_idx
                    limit depth
                ) p
                union all
                select p.priority, p.job_seq, p.partition_idx
                from bound b
                cross join lateral (
                    select p.priority, p.job_seq, p.partition_idx
                    from proverq.partition p
                    where p.state = 'ready' and p.circuit_id = b.circuit_id and p.priority = b.priority
                      and (p.job_seq, p.partition_idx) > (b.job_seq, b.partition_idx)
                    order by p.priority desc, p.job_seq, p.partition_idx
                    limit depth
                ) p
            )
            select array_agg(h.job_seq), array_agg(h.partition_idx) into jobs, partitions
            from (
                select h.job_seq, h.partition_idx
                from head h
                order by h.priority desc, h.job_seq, h.partition_idx
                limit depth
            ) h;
        end if;
        return query
            with locked as materialized (
                select p.job_seq, p.partition_idx
                from unnest(jobs, partitions) with ordinality h (job_seq, partition_idx, i)
                join proverq.partition p on p.job_seq = h.job_seq and p.partition_idx = h.partition_idx
                where p.state::text = 'ready'
                  and (p.avoid_until is null or p.avoid_until <= clock_timestamp()
                       or not proverq_private.avoids(p.prover_id, p.error_code, prover, p.circuit_id))
                order by h.i
                limit max_rows - claimed
                for no key update of p skip locked
            ), leased as (
                update proverq.partition p
                set state = 'leased', avoid_until = null, attempt = p.attempt + 1, token = gen_random_uuid(), prover_id = prover,
                    lease_until = clock_timestamp() + lease_ms * interval '1 ms'
                from locked l
                where p.job_seq = l.job_seq and p.partition_idx = l.partition_idx
                returning p.*
            )
            select p.job_seq, p.partition_idx, p.attempt, p.token, p.circuit_id, j.keep_inputs, p.witness, p.witness_path,
                   proverq_private.inputs_text(p.inputs), p.priority
            from leased p
            join proverq.job j on j.job_seq = p.job_seq
            order by p.priority desc, p.job_seq, p.partition_idx;
        get diagnostics n = row_count;
        claimed := claimed + n;
        exit when claimed >= max_rows or cardinality(jobs) < depth or jobs is null;
        depth := depth * 4; -- all that were seen are locked by others, or avoid this prover, and there are more
    end loop;
end
$$;
comment on function proverq_private.claim(int, bigint[], int, int, bigint[], int[], bigint[], int[]) is
    'Leases the first ready partitions, at most max_rows, of these circuits to a prover, in the order (priority desc, job_seq, partition_idx). Bounds are hints: of such a circuit and priority only what comes behind is seen.';
