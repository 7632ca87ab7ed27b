-- Control of the queue: pause, cancel, retry, not_before; every failed attempt kept, and the next one on another device.

-- A row here stops claims; no partition is touched. Held rows would cost the claim less than paused ones that stay ready, were it
-- not for the index partition_ready, which begins with the circuit: those of a paused circuit are never read. So pausing a million
-- rows is one insert, and what is paused can still be cancelled, reordered and counted like all that waits.
create table proverq.paused (
    circuit text primary key,
    reason text,
    paused_by name not null default session_user,
    paused_at timestamptz not null default clock_timestamp()
);
comment on table proverq.paused is 'Circuits of which nothing is claimed. Use proverq.pause() and proverq.resume().';
comment on column proverq.paused.circuit is 'A circuit''s name, all its versions; * means every circuit.';
comment on column proverq.paused.reason is 'For those who ask proverq.why(JOB).';

alter table proverq.job
    add column not_before timestamptz,
    add column finalize_failures int not null default 0,
    add column finalize_error text,
    add column finalize_after timestamptz;
comment on column proverq.job.not_before is 'Nothing of the job is claimed before; null: as soon as it is whole.';
comment on column proverq.job.finalize_failures is 'How often the last step failed in this run.';
comment on column proverq.job.finalize_error is 'Why the last step failed the last time.';
comment on column proverq.job.finalize_after is 'When the last step is tried again; other jobs do not wait for it.';
comment on column proverq.job.error is 'Why the job failed, naming the partition; or who cancelled it, and why.';
comment on column proverq.job.run is 'The job''s life: 1, and one more with each retry; finalized once per run.';
comment on column proverq.job.ready_at is 'When the last of its partitions came, or its run began.';

alter table proverq.partition add column avoid_until timestamptz;
comment on column proverq.partition.avoid_until is 'Until then the device of the last attempt leaves it to others, if there are any.';
comment on column proverq.partition.failures is 'Attempts of this run that spent a retry; the fifth is the last.';
comment on column proverq.partition.losses is 'Leases of this run that expired, or whose process ended.';
comment on column proverq.partition.lost_by is 'The provers that lost it in this run; three different ones end it as poison.';

-- No foreign key: like timing, the rows are written beside the work and go by their age.
create table proverq.failure (
    job_seq bigint not null,
    partition_idx int not null,
    attempt int not null,
    run int not null,
    prover_id int,
    code text not null,
    error text not null,
    spent bool not null,
    failed_at timestamptz not null default clock_timestamp(),
    primary key (job_seq, partition_idx, attempt)
);
comment on table proverq.failure is 'The attempts that failed or were lost, the last 100 of each partition. Read the view proverq.failures.';
comment on column proverq.failure.attempt is 'The claim; counts on from run to run.';
comment on column proverq.failure.code is 'The error''s name; lost: the lease expired, or its process ended.';
comment on column proverq.failure.spent is 'It spent one of the partition''s retries.';
create index failure_failed on proverq.failure using brin (failed_at) with (pages_per_range = 16, autosummarize = on);

-- Provers that ran once stay in the table; who asks for those of now should not read them.
create index prover_running on proverq.prover (prover_id) where state = 'running';

insert into proverq.schema_migration (version, name, breaking, checksum) values (6, 'control', false, '4ede666cd35f8dfaaa5ec856b484c78451e46f98f6eefb9657ea8fa3ee64cb72');
