-- By primary key and token only: a predicate on the state would invite another index, and adds nothing, since only a leased
-- partition has a token.
create or replace function proverq.complete(
    job_seq bigint, partition_idx int, token uuid, proof jsonb, publics jsonb, compressed bytea,
    steps smallint[], workers smallint[], started timestamptz[], durations bigint[])
returns boolean
language plpgsql security definer
set search_path = pg_catalog, proverq, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
    done partition;
    left_over int;
begin
    perform from job j where j.job_seq = complete.job_seq for no key update;
    update partition p
    set state = 'proved', token = null, lease_until = null, proved_at = clock_timestamp(),
        proof = complete.proof, publics = complete.publics, proof_compressed = complete.compressed,
        error_code = null, error = null
    where p.job_seq = complete.job_seq and p.partition_idx = complete.partition_idx and p.token = complete.token
    returning p.prover_id, p.attempt into done.prover_id, done.attempt;
    if not found then
        return false;
    end if;
    update job j
    set remaining = j.remaining - 1, state = case when j.remaining = 1 then 'completing' else j.state end
    where j.job_seq = complete.job_seq
    returning j.remaining into left_over;
    perform record_timing(job_seq, partition_idx, done.attempt, done.prover_id, steps, workers, started, durations);
    if left_over = 0 then
        perform pg_notify('proverq_finalize', '');
    end if;
    return true;
end
$$;
comment on function proverq.complete(bigint, int, uuid, jsonb, jsonb, bytea, smallint[], smallint[], timestamptz[], bigint[]) is
    'Records a proof and the time of its steps. False, and nothing is written, when the lease was taken away.';
