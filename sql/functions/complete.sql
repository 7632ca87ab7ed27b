-- Several results in one transaction that locks and counts each job once. The jobs' locks cover their partitions: nobody waits for
-- a partition without its job's lock. By primary key and token only: a predicate on the state would invite another index, and adds
-- nothing, since only a leased partition has a token.
--
-- The settings keep plans off that are right only while the table is small, as in claim(). A result's steps are the elements
-- from first_steps[i] up to the next one's: an array is read by subscript, where a join would compare all with all.
create or replace function proverq_private.complete(
    job_seqs bigint[], partition_idxs int[], tokens uuid[], proofs jsonb[], publics jsonb[], compressed bytea[],
    first_steps int[], steps smallint[], workers smallint[], started timestamptz[], durations bigint[])
returns table (result int)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    n constant int := cardinality(job_seqs);
    recorded int[];
    whole bool;
begin
    if array[cardinality(partition_idxs), cardinality(tokens), cardinality(proofs), cardinality(publics), cardinality(compressed),
             cardinality(first_steps)] <> array_fill(n, array[6])
       or array[cardinality(workers), cardinality(started), cardinality(durations)] <> array_fill(cardinality(steps), array[3]) then
        raise invalid_parameter_value using message = 'the arrays of results, or those of timing, differ in length';
    end if;
    perform from proverq.job j
    where j.job_seq = any (job_seqs)
    order by j.job_seq
    for no key update;
    with proved as (
        update proverq.partition p
        set state = 'proved', token = null, lease_until = null, proved_at = clock_timestamp(),
            proof = r.proof, publics = r.publics, proof_compressed = r.compressed, error_code = null, error = null
        from unnest(job_seqs, partition_idxs, tokens, proofs, complete.publics, compressed) with ordinality
             r (job_seq, partition_idx, token, proof, publics, compressed, i)
        where p.job_seq = r.job_seq and p.partition_idx = r.partition_idx and p.token = r.token
        returning p.job_seq, p.partition_idx, p.attempt, p.prover_id, r.i::int
    ), counted as (
        update proverq.job j
        set remaining = j.remaining - d.n,
            state = case when j.remaining = d.n then 'completing' else j.state end
        from (select q.job_seq, count(*)::int as n from proved q group by q.job_seq) d
        where j.job_seq = d.job_seq
        returning j.remaining
    ), timed as (
        insert into proverq.timing (job_seq, partition_idx, attempt, prover_id, device, worker, step, started_at, duration)
        select d.job_seq, d.partition_idx, d.attempt, d.prover_id, p.device, workers[k], steps[k], started[k], durations[k]
        from proved d
        join proverq_private.prover p on p.prover_id = d.prover_id,
        generate_series(first_steps[d.i], coalesce(first_steps[d.i + 1] - 1, cardinality(steps))) k
    )
    select array_agg(d.i), (select bool_or(c.remaining = 0) from counted c)
    into recorded, whole
    from proved d;
    if whole then
        perform pg_notify('proverq_finalize', '');
    end if;
    return query select unnest(recorded);
end
$$;
comment on function proverq_private.complete(bigint[], int[], uuid[], jsonb[], jsonb[], bytea[], int[], smallint[], smallint[], timestamptz[], bigint[]) is
    'Records several proofs and the times of their steps. Gives the numbers, from 1, of those that are recorded; the leases of the others were taken away.';
