-- The tables of proverq: circuits and their artefacts, jobs and their partitions, provers, timings, webhooks.
--
-- Apply with `proverq migrate up`, which also applies sql/functions/ and sql/views/ (by hand: psql -1 -v ON_ERROR_STOP=1,
-- this file, then those). Needs PostgreSQL 15 and CREATE on the database; no superuser, no extension.
-- Tables that plain INSERTs may fill have their triggers in sql/functions/ (job_insert.sql, partition_insert.sql).
--
-- Locks: the job first, then its partitions. Who does not lock the job (claims, heartbeats, waking) skips what is locked.

create schema if not exists proverq;
comment on schema proverq is 'Queue of zero-knowledge proofs. Start with: select * from proverq.jobs; select proverq.why(JOB); \df+ proverq.*';

create table proverq.schema_migration (
    version int primary key,
    name text not null,
    breaking bool not null,
    applied_at timestamptz not null default clock_timestamp()
);
comment on table proverq.schema_migration is 'The migrations that this schema has had, one row each.';
comment on column proverq.schema_migration.breaking is 'Programs older than a breaking migration refuse to start on this schema.';

-- Artefacts and circuits --------------------------------------------------------------------------------------------

create table proverq.artefact (
    sha256 bytea primary key,
    kind text not null,
    bytes bigint not null,
    path text,
    created_at timestamptz not null default clock_timestamp(),
    constraint artefact_sha256_is_32_bytes check (octet_length(sha256) = 32),
    constraint artefact_kind_known check (kind in ('zkey', 'r1cs')),
    constraint artefact_not_empty check (bytes > 0),
    constraint artefact_path_not_empty check (path <> '')
);
comment on table proverq.artefact is 'Files that provers need, by their SHA-256: in chunks here, or under the artefact folder of each host.';
comment on column proverq.artefact.path is 'Relative to the artefact folder (PROVERQ_ARTEFACTS); null: the file is in artefact_chunk.';

create table proverq.artefact_chunk (
    sha256 bytea not null references proverq.artefact (sha256) on delete cascade,
    idx int not null,
    data bytea not null,
    primary key (sha256, idx),
    constraint artefact_chunk_size check (idx >= 0 and octet_length(data) between 1 and 1048576)
);
comment on table proverq.artefact_chunk is 'The artefacts'' bytes: chunks of 1 MiB (the last one may be shorter), numbered from 0.';
alter table proverq.artefact_chunk alter column data set storage external;

create table proverq.circuit (
    circuit_id bigint generated always as identity primary key,
    name text not null,
    version int not null,
    sha256 bytea not null,
    curve text not null,
    n_vars int not null,
    n_public int not null,
    log_domain int not null,
    zkey bytea not null references proverq.artefact (sha256),
    r1cs bytea references proverq.artefact (sha256),
    vkey jsonb not null,
    insecure bool not null default false,
    removed_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    constraint circuit_version_unique unique (name, version),
    constraint circuit_content_unique unique (name, sha256),
    constraint circuit_name_valid check (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'),
    constraint circuit_version_positive check (version > 0),
    constraint circuit_sha256_is_32_bytes check (octet_length(sha256) = 32),
    constraint circuit_curve_known check (curve in ('bn128', 'bls12381')),
    constraint circuit_sizes_valid check (n_vars > 0 and n_public >= 0 and n_public < n_vars and log_domain between 0 and 32)
);
comment on table proverq.circuit is 'Circuit versions. A version never changes, but may be removed; its name means the newest version that is not.';
comment on column proverq.circuit.sha256 is 'What the version is: SHA-256 over its artefacts'' hashes.';
comment on column proverq.circuit.n_vars is 'Signals of the witness, the constant 1 included.';
comment on column proverq.circuit.log_domain is 'The domain has 2^log_domain points.';
comment on column proverq.circuit.vkey is 'snarkjs''s verification_key.json.';
comment on column proverq.circuit.insecure is 'A development key: whoever made it can forge proofs.';
comment on column proverq.circuit.removed_at is 'New jobs do not get it any more; jobs that have it go on.';

-- Provers -----------------------------------------------------------------------------------------------------------

create table proverq.prover (
    prover_id int generated always as identity primary key,
    instance uuid not null unique,
    host text not null,
    pid int not null,
    device text not null,
    description text not null default '',
    version text not null default '',
    state text not null default 'running',
    idle bool not null default false,
    started_at timestamptz not null default clock_timestamp(),
    seen_at timestamptz not null default clock_timestamp(),
    constraint prover_state_known check (state in ('running', 'stopped', 'lost'))
) with (fillfactor = 70);
comment on table proverq.prover is 'Every prover process there ever was, one row each.';
comment on column proverq.prover.device is 'cpu, or cuda:N.';
comment on column proverq.prover.state is 'running; stopped (it said goodbye); lost (its supervisor saw it end without, or it was silent for 5 minutes).';
comment on column proverq.prover.idle is 'It found nothing to claim and waits for NOTIFY proverq_work; inserts notify only when such a prover exists.';
comment on column proverq.prover.seen_at is 'Its last heartbeat.';

-- Webhook endpoints -------------------------------------------------------------------------------------------------

create table proverq.webhook_endpoint (
    endpoint_id int generated always as identity primary key,
    name text not null unique,
    url text not null,
    secret text not null,
    submitter name not null default session_user,
    disabled_at timestamptz,
    disabled_reason text,
    created_at timestamptz not null default clock_timestamp(),
    constraint webhook_endpoint_name_valid check (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'),
    constraint webhook_endpoint_url_valid check (url ~ '^https?://[^[:space:][:cntrl:]]+$' and octet_length(url) <= 2000),
    constraint webhook_endpoint_secret_valid check (secret ~ '^whsec_[A-Za-z0-9+/]{32,88}={0,2}$')
);
comment on table proverq.webhook_endpoint is 'Where the finalizer sends word of jobs; make one with proverq.create_webhook_endpoint(name, url).';
comment on column proverq.webhook_endpoint.secret is 'Key of the signatures (Standard Webhooks): whsec_ and 24 to 64 bytes in base64.';
comment on column proverq.webhook_endpoint.disabled_at is 'Nothing is sent any more. To send again: set it to null.';

-- Jobs --------------------------------------------------------------------------------------------------------------

create type proverq.job_state as enum ('incomplete', 'queued', 'completing', 'failing', 'finished', 'failed', 'cancelled');
comment on type proverq.job_state is 'incomplete (partitions are missing), queued, completing (all proved, to be finalized), failing (to be finalized as failed), finished, failed, cancelled.';

create table proverq.job (
    job_seq bigint generated always as identity primary key,
    circuit text not null,
    circuit_id bigint not null references proverq.circuit (circuit_id),
    partitions int not null,
    present int not null default 0,
    remaining int not null,
    priority int not null default 0,
    run int not null default 1,
    state proverq.job_state not null default 'incomplete',
    request_id text,
    request_sha256 bytea,
    webhook text,
    endpoint_id int references proverq.webhook_endpoint (endpoint_id),
    keep_inputs bool not null default false,
    submitter name not null default session_user,
    error_code text,
    error text,
    created_at timestamptz not null default clock_timestamp(),
    ready_at timestamptz,
    finished_at timestamptz,
    constraint job_partitions_positive check (partitions > 0),
    constraint job_present_in_range check (present between 0 and partitions),
    constraint job_remaining_in_range check (remaining between 0 and partitions),
    constraint job_run_positive check (run > 0),
    constraint job_request_id_valid check (request_id <> '' and octet_length(request_id) <= 200)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
comment on table proverq.job is 'Requests for proofs. INSERT (circuit, partitions[, priority, request_id, webhook, keep_inputs]) and then its partitions, or use proverq.enqueue_witness(). Read the view proverq.jobs.';
comment on column proverq.job.job_seq is 'The job''s number; orders jobs of one priority.';
comment on column proverq.job.circuit is 'The circuit''s name, as given.';
comment on column proverq.job.circuit_id is 'The version that the name meant at insert.';
comment on column proverq.job.partitions is 'How many partitions belong to the job. It is queued when all are there.';
comment on column proverq.job.present is 'Partitions that are there.';
comment on column proverq.job.remaining is 'Partitions that are not proved yet.';
comment on column proverq.job.priority is 'Higher first.';
comment on column proverq.job.run is 'The job''s life: finalized once per run.';
comment on column proverq.job.request_id is 'Makes enqueueing safe to repeat: one job per submitter and request_id.';
comment on column proverq.job.request_sha256 is 'SHA-256 of circuit name and inputs; null when the job came by plain INSERT.';
comment on column proverq.job.webhook is 'Name or URL of a webhook endpoint to tell when the job ends.';
comment on column proverq.job.endpoint_id is 'The endpoint that webhook meant at insert.';
comment on column proverq.job.keep_inputs is 'Keep witnesses and inputs when the job ends; else they are deleted then.';
comment on column proverq.job.error is 'Why the job failed, naming the partition.';
comment on column proverq.job.ready_at is 'When the last of its partitions came.';

create unique index job_request on proverq.job (submitter, request_id) where request_id is not null;
create index job_to_finalize on proverq.job (job_seq) where state in ('completing', 'failing');

-- Partitions --------------------------------------------------------------------------------------------------------

create type proverq.partition_state as enum ('held', 'ready', 'leased', 'proved', 'failed', 'cancelled');
comment on type proverq.partition_state is 'held (the job is incomplete, or backing off until due_at), ready (to be claimed), leased (a prover has it), proved, failed, cancelled.';

create table proverq.partition (
    job_seq bigint not null references proverq.job (job_seq),
    partition_idx int not null,
    circuit_id bigint not null,
    priority int not null,
    state proverq.partition_state not null default 'held',
    attempt int not null default 0,
    failures int not null default 0,
    losses int not null default 0,
    lost_by int[] not null default '{}',
    token uuid,
    lease_until timestamptz,
    prover_id int,
    due_at timestamptz,
    proved_at timestamptz,
    witness bytea,
    witness_path text,
    inputs jsonb,
    proof jsonb,
    publics jsonb,
    proof_compressed bytea,
    error_code text,
    error text,
    primary key (job_seq, partition_idx),
    constraint partition_idx_not_negative check (partition_idx >= 0),
    constraint partition_lease_whole check ((state = 'leased') = (token is not null) and (state = 'leased') = (lease_until is not null)),
    constraint partition_proof_whole check (state <> 'proved' or (proof is not null and publics is not null and proved_at is not null)),
    constraint partition_due_while_held check (due_at is null or state = 'held')
) with (fillfactor = 70,
        autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
comment on table proverq.partition is 'One Groth16 statement each: a witness in, a proof out. INSERT (job_seq, partition_idx, and one of witness, witness_path).';
comment on column proverq.partition.partition_idx is 'From 0 to the job''s partitions - 1; the order of the proofs.';
comment on column proverq.partition.circuit_id is 'The job''s.';
comment on column proverq.partition.priority is 'The job''s.';
comment on column proverq.partition.attempt is 'Claims so far, the present one included.';
comment on column proverq.partition.failures is 'Attempts that spent a retry; the fifth is the last.';
comment on column proverq.partition.losses is 'Leases that expired, or whose process ended.';
comment on column proverq.partition.lost_by is 'The provers that lost it; three different ones end it as poison.';
comment on column proverq.partition.token is 'The lease: who has it may record a result. Cleared when the lease is taken away; never used again.';
comment on column proverq.partition.lease_until is 'By this database''s clock; the prover renews it while it works.';
comment on column proverq.partition.prover_id is 'The prover of the last attempt.';
comment on column proverq.partition.due_at is 'While held: when it becomes ready again.';
comment on column proverq.partition.witness is 'A .wtns file.';
comment on column proverq.partition.witness_path is 'A .wtns file, relative to the provers'' witness folder (for witnesses above some 8 MB).';
comment on column proverq.partition.inputs is 'The circuit''s input signals, for circuits with a witness calculator.';
comment on column proverq.partition.proof is 'snarkjs''s proof.json.';
comment on column proverq.partition.publics is 'snarkjs''s public.json.';
comment on column proverq.partition.proof_compressed is 'BLS12-381: the 192 bytes A | B | C.';
comment on column proverq.partition.error is 'The last attempt''s failure.';
alter table proverq.partition alter column witness set storage external;

-- Exactly the order of claims within a circuit, and only what can be claimed: proverq.claim() and wanted_circuits walk it,
-- so a claim costs the same at any number of ready rows, whatever other circuits wait.
create index partition_ready on proverq.partition (circuit_id, priority desc, job_seq, partition_idx) where state = 'ready';
-- What is in flight: a few rows for each prover. lease_until is no part of it, so that heartbeats touch no index.
create index partition_leased on proverq.partition (prover_id, job_seq, partition_idx) where state = 'leased';
create index partition_due on proverq.partition (due_at) where state = 'held' and due_at is not null;

-- Timing ------------------------------------------------------------------------------------------------------------

create table proverq.step (
    step smallint primary key,
    name text not null unique,
    description text not null
);
comment on table proverq.step is 'What the step numbers in proverq.timing mean.';

insert into proverq.step (step, name, description) values
    (10, 'claim', 'the partition is claimed in the database'),
    (20, 'fetch_key', 'the proving key comes from the database into the cache'),
    (21, 'check_key', 'every point of the proving key is checked'),
    (22, 'load_key', 'the proving key goes to the device'),
    (30, 'read_witness', 'the witness is read from the row or the file'),
    (31, 'check_witness', 'the witness is checked against the circuit'),
    (40, 'queue_wait', 'the witness waits for a slot on the device'),
    (50, 'copy_in', 'the witness goes to the device'),
    (51, 'matvec', 'A*w and B*w, sparse matrix times witness'),
    (52, 'ntt', 'the quotient''s coefficients: transforms on the odd coset'),
    (53, 'msm_a', 'multi-scalar multiplication over A, G1'),
    (54, 'msm_b1', 'multi-scalar multiplication over B, G1'),
    (55, 'msm_b2', 'multi-scalar multiplication over B, G2'),
    (56, 'msm_c', 'multi-scalar multiplication over C, G1'),
    (57, 'msm_h', 'multi-scalar multiplication over H, G1'),
    (58, 'copy_out', 'the sums come back from the device'),
    (70, 'finish', 'host tail: blinding, affine form'),
    (80, 'verify', 'the proof is verified with the pairing'),
    (90, 'record', 'proof and timing wait to be recorded');

create table proverq.timing (
    recorded_at timestamptz not null default clock_timestamp(),
    job_seq bigint,
    partition_idx int,
    attempt int,
    prover_id int not null,
    device text not null,
    worker smallint not null,
    step smallint not null,
    started_at timestamptz not null,
    duration bigint not null
) partition by range (recorded_at);
comment on table proverq.timing is 'When each step of each attempt ran. Read the views proverq.timings and proverq.step_stats. Drop old days with DROP TABLE proverq.timing_YYYYMMDD.';
comment on column proverq.timing.recorded_at is 'This database''s clock; decides the day''s table that the row is in.';
comment on column proverq.timing.job_seq is 'Null for time in which a worker had no job.';
comment on column proverq.timing.worker is 'Which thread of the prover.';
comment on column proverq.timing.step is 'proverq.step names it.';
comment on column proverq.timing.started_at is 'The prover''s clock.';
comment on column proverq.timing.duration is 'Microseconds. Steps of one attempt may overlap.';
create index timing_partition on proverq.timing (job_seq, partition_idx, attempt);

create table proverq.timing_default partition of proverq.timing default;
comment on table proverq.timing_default is 'Timing rows of days without a table; proverq.make_timing_partitions(days) makes those.';

-- Webhook deliveries ------------------------------------------------------------------------------------------------

create table proverq.webhook_delivery (
    delivery_id uuid primary key default gen_random_uuid(),
    endpoint_id int not null references proverq.webhook_endpoint (endpoint_id),
    job_seq bigint not null references proverq.job (job_seq),
    run int not null,
    event text not null,
    body text not null,
    state text not null default 'pending',
    attempts int not null default 0,
    next_attempt_at timestamptz default clock_timestamp(),
    token uuid,
    last_status int,
    last_error text,
    created_at timestamptz not null default clock_timestamp(),
    delivered_at timestamptz,
    constraint webhook_delivery_once unique (job_seq, run, event, endpoint_id),
    constraint webhook_delivery_state_known check (state in ('pending', 'delivered', 'failed')),
    constraint webhook_delivery_due_while_pending check ((state = 'pending') = (next_attempt_at is not null))
) with (fillfactor = 80);
comment on table proverq.webhook_delivery is 'The outbox: written with the job''s final state, sent by the finalizer until a 2xx or the end of the schedule.';
comment on column proverq.webhook_delivery.delivery_id is 'The header webhook-id is msg_ and its 32 hex digits; the same over all attempts.';
comment on column proverq.webhook_delivery.body is 'The exact bytes that are signed and sent.';
comment on column proverq.webhook_delivery.next_attempt_at is 'While an attempt is under way: when it is taken for lost.';
comment on column proverq.webhook_delivery.token is 'The attempt under way; only it may record its outcome.';
comment on column proverq.webhook_delivery.last_status is 'HTTP status of the last attempt; null when there was no answer.';
create index webhook_delivery_due on proverq.webhook_delivery (next_attempt_at) where state = 'pending';
create index webhook_delivery_endpoint on proverq.webhook_delivery (endpoint_id) where state = 'pending';

insert into proverq.schema_migration (version, name, breaking) values (1, 'initial', true);
