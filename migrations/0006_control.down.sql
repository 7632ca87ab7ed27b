-- Takes the control of the queue away. What is paused can be claimed again; waiting for not_before ends by itself; the errors of
-- attempts are lost, but for the last one of each partition.
set local client_min_messages = warning; -- of functions that are not there yet
drop function if exists proverq.pause(text, text), proverq.resume(text), proverq.require_operator(text), proverq.require_circuit(text),
    proverq.unpaused(bigint[]), proverq.avoids(int, text, int, bigint), proverq.lock_job(bigint), proverq.cancel(bigint, text),
    proverq.end_job(bigint, proverq.job_state, text, text), proverq.retry(bigint), proverq.retry_with_inputs(bigint, jsonb[]),
    proverq.retry_with_witnesses(bigint, bytea[]), proverq.require_retryable(proverq.job),
    proverq.require_one_each(proverq.job, text, bytea, int, int, bool[]), proverq.begin_run(proverq.job), proverq.set_priority(bigint, int),
    proverq.record_failure(bigint, int, text, text, bool), proverq.unspent_failures(bigint, int, int), proverq.avoid_for(),
    proverq.enqueue(text, jsonb[], int, text, text, bool, timestamptz), proverq.enqueue_witness(text, bytea[], int, text, text, bool, timestamptz),
    proverq.enqueue_path(text, text[], int, text, text, bool, timestamptz),
    proverq.enqueue_job(text, text, int, bytea, int, text, text, bool, timestamptz), proverq.request_sha256(text, text, bytea),
    proverq.inputs_sha256(jsonb[]), proverq.witnesses_sha256(bytea[]), proverq.no_more_partitions(proverq.job), proverq.due_in(timestamptz),
    proverq.why_paused(bigint), proverq.why_avoided(bigint), proverq.check_invariants(), proverq.broken_jobs(), proverq.broken_partitions(), proverq.broken_records();

drop index proverq.prover_running;
drop table proverq.failure;
alter table proverq.partition drop column avoid_until;
comment on column proverq.partition.failures is 'Attempts that spent a retry; the fifth is the last.';
comment on column proverq.partition.losses is 'Leases that expired, or whose process ended.';
comment on column proverq.partition.lost_by is 'The provers that lost it; three different ones end it as poison.';
alter table proverq.job
    drop column not_before,
    drop column finalize_failures,
    drop column finalize_error,
    drop column finalize_after;
comment on column proverq.job.error is 'Why the job failed, naming the partition.';
comment on column proverq.job.run is 'The job''s life: finalized once per run.';
comment on column proverq.job.ready_at is 'When the last of its partitions came.';
drop table proverq.paused;

delete from proverq.schema_migration where version = 6;
