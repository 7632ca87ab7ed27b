-- Takes the control of the queue away. What is paused can be claimed again; waiting for not_before ends by itself; the errors of
-- attempts are lost, but for the last one of each partition.
set local client_min_messages = warning; -- of functions that are not there yet
drop function if exists proverq.pause(text, text), proverq.resume(text), proverq.require_operator(text),
    proverq.require_circuit(text), proverq.unpaused(bigint[]), proverq.avoids(int, text, int);

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
