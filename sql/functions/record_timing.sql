create or replace function proverq_private.record_timing(
    job_seq bigint, partition_idx int, attempt int, prover int,
    steps smallint[], workers smallint[], started timestamptz[], durations bigint[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if cardinality(workers) <> cardinality(steps) or cardinality(started) <> cardinality(steps)
       or cardinality(durations) <> cardinality(steps) then
        raise invalid_parameter_value using
            message = format('timing arrays differ in length: %s steps, %s workers, %s starts, %s durations',
                             cardinality(steps), cardinality(workers), cardinality(started), cardinality(durations));
    end if;
    insert into proverq.timing (job_seq, partition_idx, attempt, prover_id, device, worker, step, started_at, duration)
    select record_timing.job_seq, record_timing.partition_idx, record_timing.attempt, p.prover_id, p.device,
           t.worker, t.step, t.started, t.duration
    from proverq_private.prover p, unnest(steps, workers, started, durations) t (step, worker, started, duration)
    where p.prover_id = record_timing.prover;
end
$$;
comment on function proverq_private.record_timing(bigint, int, int, int, smallint[], smallint[], timestamptz[], bigint[]) is
    'Writes the steps of one attempt. Part of complete() and fail().';
