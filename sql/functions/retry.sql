-- A new run of a job that failed or was cancelled: what is proved stays, the rest begins anew. Attempts are counted on, so that each
-- has a number of its own in timing and failures; what decides about failure (failures, losses, lost_by) begins at 0.
--
-- With a request_id a job stays the same request over all its runs: inputs that are given anew must be those of the request.
create or replace function proverq.retry(job bigint) returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    j constant proverq.job := proverq_private.lock_job(job);
    lacking bigint;
begin
    perform proverq_private.require_retryable(j);
    select count(*) into lacking
    from proverq.partition p
    where p.job_seq = j.job_seq and p.state::text <> 'proved' and num_nonnulls(p.witness, p.witness_path, p.inputs) = 0;
    if lacking > 0 then
        raise object_not_in_prerequisite_state using
            message = format('the inputs of job %s were deleted when it ended', job),
            detail = format('%s of its %s partition(s) are to be proved.', lacking, j.partitions),
            hint = format('Give them again: select proverq.%s(%s, array[...]); To be able to retry without, enqueue with keep_inputs => true.',
                          case when (select c.calculator is null from proverq.circuit c where c.circuit_id = j.circuit_id)
                               then 'retry_with_witnesses' else 'retry_with_inputs' end, job);
    end if;
    return proverq_private.begin_run(j);
end
$$;
comment on function proverq.retry(bigint) is
    'Starts a new run of a job that failed or was cancelled, with the partitions that are not proved; gives the run''s number. Needs their inputs: see retry_with_inputs() and retry_with_witnesses().';

create or replace function proverq.retry_with_inputs(job bigint, inputs jsonb[]) returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    j constant proverq.job := proverq_private.lock_job(job);
begin
    perform proverq_private.require_retryable(j);
    perform proverq_private.require_one_each(j, 'inputs', proverq_private.inputs_sha256(inputs), cardinality(inputs), array_ndims(inputs),
                             array(select i is null from unnest(inputs) i));
    perform proverq_private.inputs_check(j.circuit_id, t.i, format('partition %s of job %s', p.partition_idx, job))
    from unnest(retry_with_inputs.inputs) with ordinality t (i, idx)
    join proverq.partition p on p.job_seq = j.job_seq and p.partition_idx = t.idx - 1
    where p.state::text <> 'proved';
    update proverq.partition p
    set inputs = t.i, witness = null, witness_path = null
    from unnest(retry_with_inputs.inputs) with ordinality t (i, idx)
    where p.job_seq = j.job_seq and p.partition_idx = t.idx - 1 and p.state::text <> 'proved';
    return proverq_private.begin_run(j);
end
$$;
comment on function proverq.retry_with_inputs(bigint, jsonb[]) is
    'Like retry(), with inputs given again: one object for each partition of the job, in order. Those of proved partitions are not used, and may be NULL when the job has no request_id.';

create or replace function proverq.retry_with_witnesses(job bigint, witnesses bytea[]) returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    j constant proverq.job := proverq_private.lock_job(job);
begin
    perform proverq_private.require_retryable(j);
    perform proverq_private.require_one_each(j, 'witness', proverq_private.witnesses_sha256(witnesses), cardinality(witnesses), array_ndims(witnesses),
                             array(select w is null from unnest(witnesses) w));
    update proverq.partition p
    set witness = t.w, inputs = null, witness_path = null
    from unnest(witnesses) with ordinality t (w, idx)
    where p.job_seq = j.job_seq and p.partition_idx = t.idx - 1 and p.state::text <> 'proved';
    return proverq_private.begin_run(j);
end
$$;
comment on function proverq.retry_with_witnesses(bigint, bytea[]) is
    'Like retry(), with witnesses given again: one .wtns file for each partition of the job, in order. Those of proved partitions are not used, and may be NULL when the job has no request_id.';

create or replace function proverq_private.require_retryable(j proverq.job) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if j.state = 'finished' then
        raise object_not_in_prerequisite_state using
            message = format('job %s is finished: there is nothing to retry', j.job_seq),
            hint = format('Its proofs: select proverq.proof(%s);', j.job_seq);
    elsif j.state not in ('failed', 'cancelled') then
        raise object_not_in_prerequisite_state using
            message = format('job %s cannot be retried: it has not ended, it is %s', j.job_seq, (select v.state from proverq.jobs v where v.job_seq = j.job_seq)),
            hint = format('Wait for its end (select proverq.wait(%s);), or cancel it first (select proverq.cancel(%1$s);).', j.job_seq);
    elsif j.present < j.partitions then
        raise object_not_in_prerequisite_state using
            message = format('job %s was cancelled when %s of its %s partition(s) were missing', j.job_seq, j.partitions - j.present, j.partitions),
            hint = 'Insert a new job with all of them.';
    end if;
end
$$;
comment on function proverq_private.require_retryable(proverq.job) is 'Raises an error unless the job has failed or was cancelled. Part of the retry functions.';

create or replace function proverq_private.require_one_each(j proverq.job, kind text, digest bytea, n int, dimensions int, missing bool[]) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    missing_idx int;
begin
    perform proverq_private.enqueue_check(kind, n, dimensions, null);
    if n <> j.partitions then
        raise invalid_parameter_value using
            message = format('job %s has %s partition(s); %s %s given', j.job_seq, j.partitions, n, case when n = 1 then 'was' else 'were' end),
            hint = 'Give an array with one element for each partition, in order.';
    end if;
    select p.partition_idx into missing_idx
    from proverq.partition p
    where p.job_seq = j.job_seq and missing[p.partition_idx + 1] and (j.request_sha256 is not null or p.state::text <> 'proved')
    order by p.partition_idx
    limit 1;
    if found then
        raise null_value_not_allowed using
            message = format('the %s of partition %s is NULL', kind, missing_idx),
            hint = case when j.request_sha256 is null then 'Only those of proved partitions may be.'
                        else format('Job %s has the request_id %s: all of them are needed, to see that they are those of that request.',
                                    j.job_seq, quote_literal(j.request_id)) end;
    elsif j.request_sha256 <> proverq_private.request_sha256(j.circuit, kind, digest) then
        raise unique_violation using
            message = format('request_id %s of job %s was used with other inputs', quote_literal(j.request_id), j.job_seq),
            hint = 'Retry with exactly the inputs of the request, or enqueue a new job with a new request_id.';
    end if;
end
$$;
comment on function proverq_private.require_one_each(proverq.job, text, bytea, int, int, bool[]) is
    'Raises an error unless there is a value for each partition that is not proved, and those of the job''s request. Part of the retry functions.';

create or replace function proverq_private.begin_run(j proverq.job) returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    now constant timestamptz := clock_timestamp();
begin
    update proverq.partition p
    set state = case when j.not_before > now then 'held' else 'ready' end::proverq.partition_state,
        due_at = case when j.not_before > now then j.not_before end,
        failures = 0, losses = 0, lost_by = '{}', avoid_until = null, priority = j.priority, error_code = null, error = null
    where p.job_seq = j.job_seq and p.state::text <> 'proved';
    update proverq.job
    set run = job.run + 1, state = case when job.remaining = 0 then 'completing' else 'queued' end::proverq.job_state, error_code = null, error = null,
        ready_at = now, finished_at = null, finalize_failures = 0, finalize_error = null, finalize_after = null
    where job.job_seq = j.job_seq;
    if j.remaining = 0 then
        perform pg_notify('proverq_finalize', '');
    else
        perform proverq_private.notify_work();
    end if;
    return j.run + 1;
end
$$;
comment on function proverq_private.begin_run(proverq.job) is 'Starts the next run of a job that is locked and has ended. Part of the retry functions.';
