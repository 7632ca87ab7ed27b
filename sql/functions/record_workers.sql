create or replace function proverq_private.record_workers(
    prover int, jobs bigint[], partitions bigint[], attempts bigint[],
    steps smallint[], workers smallint[], started timestamptz[], durations bigint[])
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if not (cardinality(jobs) = cardinality(steps) and cardinality(partitions) = cardinality(steps) and cardinality(attempts) = cardinality(steps)
            and cardinality(workers) = cardinality(steps) and cardinality(started) = cardinality(steps) and cardinality(durations) = cardinality(steps)) then
        raise invalid_parameter_value using message = 'the arrays of workers'' rows differ in length';
    end if;
    -- A result whose answer was lost with the connection has its rows already.
    insert into proverq.timing (job_seq, partition_idx, attempt, prover_id, device, worker, step, started_at, duration)
    select nullif(t.job, -1), case when t.job <> -1 then t.partition end, case when t.job <> -1 then t.attempt end,
           p.prover_id, p.device, t.worker, t.step, t.started, t.duration
    from proverq_private.prover p, unnest(jobs, partitions, attempts, steps, workers, started, durations) t (job, partition, attempt, step, worker, started, duration)
    where p.prover_id = record_workers.prover
      and (t.job = -1 or not exists (
          select from proverq.timing x
          where x.job_seq = t.job and x.partition_idx = t.partition and x.attempt = t.attempt and x.step = t.step
            and x.recorded_at > now() - interval '1 day'));
end
$$;
comment on function proverq_private.record_workers(int, bigint[], bigint[], bigint[], smallint[], smallint[], timestamptz[], bigint[]) is
    'Writes what GPU workers did that no partition''s result tells: waiting for work, handing over, attempts that were refused. Job -1 is none.';
