create or replace function proverq_private.require_finished(job bigint) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    j proverq.job;
begin
    select * into j from proverq.job where job_seq = require_finished.job;
    if not found or not proverq_private.may_read(j.submitter) then
        raise no_data_found using message = format('there is no job %s', coalesce(job::text, 'NULL'));
    elsif j.state = 'finished' and j.present < j.partitions then
        raise object_not_in_prerequisite_state using
            message = format('job %s is being deleted: it ended at %s', job, j.finished_at::timestamptz(0)),
            hint = 'How long jobs are kept: select * from proverq.retention;';
    elsif j.state <> 'finished' then
        raise object_not_in_prerequisite_state using
            message = format('job %s has no result: it is %s', job, (select v.state from proverq.jobs v where v.job_seq = j.job_seq)),
            detail = proverq.why(job),
            hint = format(case when j.finished_at is null then 'Wait for it with: select proverq.wait(%s);'
                               else 'Read the errors with: select * from proverq.failures where job_seq = %s;' end, job);
    end if;
end
$$;
comment on function proverq_private.require_finished(bigint) is 'Raises an error that says why, unless the job is finished and the session''s user may read it. Part of proof().';

create or replace function proverq.proof(job bigint) returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform proverq_private.require_finished(job);
    return (select jsonb_agg(jsonb_build_object('proof', p.proof, 'publics', p.publics) order by p.partition_idx)
            from proverq.partition p
            where p.job_seq = proof.job);
end
$$;
comment on function proverq.proof(bigint) is
    'A finished job''s result: in the order of its partitions, snarkjs''s proof.json and public.json as {"proof": ..., "publics": ...}.';

create or replace function proverq.proof_compressed(job bigint) returns bytea
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    result bytea;
begin
    perform proverq_private.require_finished(job);
    select string_agg(p.proof_compressed, '\x' order by p.partition_idx) into result
    from proverq.partition p
    where p.job_seq = proof_compressed.job
    having count(p.proof_compressed) = count(*);
    if result is null then
        raise feature_not_supported using
            message = format('job %s has no compressed proofs', job),
            detail = 'Only proofs on the curve bls12381 have that form.',
            hint = format('select proverq.proof(%s);', job);
    end if;
    return result;
end
$$;
comment on function proverq.proof_compressed(bigint) is
    'A finished job''s result on BLS12-381: 192 bytes A | B | C for each partition, in order, with nothing between.';
