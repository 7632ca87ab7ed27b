-- The tables of proverq: circuits and their artefacts, jobs and their partitions, provers, timings, webhooks, upkeep.
--
-- Apply with `proverq migrate up`, which also applies sql/functions/ and sql/views/ (by hand: psql -1 -v ON_ERROR_STOP=1,
-- this file, then those). Needs PostgreSQL 15 and CREATE on the database; no superuser, no extension.
-- Tables that plain INSERTs may fill have their triggers in sql/functions/ (job_insert.sql, partition_insert.sql).
--
-- Two schemas. proverq is what people use: they insert into its tables, read its views and call its functions.
-- proverq_private is what our programs call and where they keep what those views show. That is for reading, it is no security
-- boundary: who may do what is granted by object (sql/functions/access.sql).
--
-- Locks: the job first, then its partitions. Who does not lock the job (claims, heartbeats, waking) skips what is locked.

-- Not `if not exists`: that needs CREATE on the database even where an administrator has made the schema.
do $$
begin
    if to_regnamespace('proverq') is null then
        create schema proverq;
    end if;
    if to_regnamespace('proverq_private') is null then
        create schema proverq_private;
    end if;
end
$$;
comment on schema proverq is 'Queue of zero-knowledge proofs. Start with: select * from proverq.jobs; select proverq.why(JOB); \df+ proverq.*';
comment on schema proverq_private is 'What the programs of proverq call and keep. People use the schema proverq.';

create table proverq.schema_migration (
    version int primary key,
    name text not null,
    breaking bool not null,
    applied_at timestamptz not null default clock_timestamp(),
    checksum text not null,
    constraint schema_migration_checksum_valid check (checksum ~ '^[0-9a-f]{64}$')
);
comment on table proverq.schema_migration is 'The migrations that this schema has had, one row each.';
comment on column proverq.schema_migration.breaking is 'Programs older than a breaking migration refuse to start on this schema.';
comment on column proverq.schema_migration.checksum is 'SHA-256 of the lines of the file above the one that wrote this row: head -n -1 FILE | sha256sum.';

-- Artefacts and circuits --------------------------------------------------------------------------------------------

create table proverq_private.artefact (
    sha256 bytea primary key,
    kind text not null,
    bytes bigint not null,
    path text,
    created_at timestamptz not null default clock_timestamp(),
    constraint artefact_sha256_is_32_bytes check (octet_length(sha256) = 32),
    constraint artefact_kind_known check (kind in ('zkey', 'r1cs', 'wasm', 'calculator', 'dat')),
    constraint artefact_not_empty check (bytes > 0),
    constraint artefact_path_not_empty check (path <> '')
);
comment on table proverq_private.artefact is 'Files that provers need, by their SHA-256: in chunks here, or under the artefact folder of each host.';
comment on column proverq_private.artefact.path is 'Relative to the artefact folder (PROVERQ_ARTEFACTS); null: the file is in artefact_chunk.';

create table proverq_private.artefact_chunk (
    sha256 bytea not null references proverq_private.artefact (sha256) on delete cascade,
    idx int not null,
    data bytea not null,
    primary key (sha256, idx),
    constraint artefact_chunk_size check (idx >= 0 and octet_length(data) between 1 and 1048576)
);
comment on table proverq_private.artefact_chunk is 'The artefacts'' bytes: chunks of 1 MiB (the last one may be shorter), numbered from 0.';
alter table proverq_private.artefact_chunk alter column data set storage external;

create table proverq.circuit (
    circuit_id bigint generated always as identity primary key,
    name text not null,
    version int not null,
    sha256 bytea not null,
    curve text not null,
    n_vars int not null,
    n_public int not null,
    log_domain int not null,
    zkey bytea not null references proverq_private.artefact (sha256),
    r1cs bytea references proverq_private.artefact (sha256),
    vkey jsonb not null,
    insecure bool not null default false,
    calculator text,
    wasm bytea references proverq_private.artefact (sha256),
    n_inputs int,
    input_signals jsonb,
    removed_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    constraint circuit_version_unique unique (name, version),
    constraint circuit_content_unique unique (name, sha256),
    constraint circuit_name_valid check (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'),
    constraint circuit_version_positive check (version > 0),
    constraint circuit_sha256_is_32_bytes check (octet_length(sha256) = 32),
    constraint circuit_curve_known check (curve in ('bn128', 'bls12381')),
    constraint circuit_sizes_valid check (n_vars > 0 and n_public >= 0 and n_public < n_vars and log_domain between 0 and 32),
    constraint circuit_calculator_known check (calculator in ('wasm', 'program')),
    constraint circuit_wasm_whole check ((calculator = 'wasm') = (wasm is not null)),
    constraint circuit_n_inputs_not_negative check (n_inputs >= 0)
);
comment on table proverq.circuit is 'Circuit versions. A version never changes, but may be removed; its name means the newest version that is not.';
comment on column proverq.circuit.sha256 is 'What the version is: SHA-256 over its artefacts'' hashes.';
comment on column proverq.circuit.n_vars is 'Signals of the witness, the constant 1 included.';
comment on column proverq.circuit.log_domain is 'The domain has 2^log_domain points.';
comment on column proverq.circuit.vkey is 'snarkjs''s verification_key.json.';
comment on column proverq.circuit.insecure is 'A development key: whoever made it can forge proofs.';
comment on column proverq.circuit.calculator is 'wasm, or program (circom''s C++): the circuit takes inputs; null: only witnesses.';
comment on column proverq.circuit.wasm is 'The calculator as circom made it; what runs is in proverq_private.calculator.';
comment on column proverq.circuit.n_inputs is 'Input values of all signals together; null: not known.';
comment on column proverq.circuit.input_signals is 'Names of the input signals, and how many values each has; null: not known (add the circuit with --sym).';
comment on column proverq.circuit.removed_at is 'New jobs do not get it any more; jobs that have it go on.';

create table proverq_private.calculator (
    circuit_id bigint not null references proverq.circuit (circuit_id),
    machine text not null,
    sha256 bytea not null references proverq_private.artefact (sha256),
    dat bytea references proverq_private.artefact (sha256),
    created_at timestamptz not null default clock_timestamp(),
    primary key (circuit_id, machine)
);
comment on table proverq_private.calculator is 'Compiled calculators: one for each machine architecture on which the circuit was added.';
comment on column proverq_private.calculator.machine is 'As uname -m says it: x86_64, aarch64.';
comment on column proverq_private.calculator.dat is 'The .dat file of a program.';

-- A row here stops claims; no partition is touched. Held rows would cost the claim less than paused ones that stay ready, were it
-- not for the index partition_ready, which begins with the circuit: those of a paused circuit are never read. So pausing a million
-- rows is one insert, and what is paused can still be cancelled, reordered and counted like all that waits.
create table proverq_private.paused (
    circuit text primary key,
    reason text,
    paused_by name not null default session_user,
    paused_at timestamptz not null default clock_timestamp()
);
comment on table proverq_private.paused is 'Circuits of which nothing is claimed. Use proverq.pause() and proverq.resume().';
comment on column proverq_private.paused.circuit is 'A circuit''s name, all its versions; * means every circuit.';
comment on column proverq_private.paused.reason is 'For those who ask proverq.why(JOB).';

-- Provers -----------------------------------------------------------------------------------------------------------

create table proverq_private.prover (
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
    activity_until timestamptz,
    constraint prover_state_known check (state in ('running', 'stopped', 'lost'))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 200);
comment on table proverq_private.prover is 'Every prover process there ever was, one row each. Read the view proverq.provers.';
comment on column proverq_private.prover.device is 'cpu, or cuda:N.';
comment on column proverq_private.prover.state is 'running; stopped (it said goodbye); lost (its supervisor saw it end without, or it was silent for 5 minutes).';
comment on column proverq_private.prover.idle is 'It found nothing to claim and waits for NOTIFY proverq_work; inserts notify only when such a prover exists.';
comment on column proverq_private.prover.seen_at is 'Its last heartbeat.';
comment on column proverq_private.prover.activity_until is 'Up to when (the prover''s clock) it is recorded when its device was busy; null: nothing yet.';
-- Provers that ran once stay in the table; who asks for those of now should not read them.
create index prover_running on proverq_private.prover (prover_id) where state = 'running';

create table proverq_private.circuit_refusal (
    prover_id int not null,
    circuit_id bigint not null,
    code text not null,
    reason text not null,
    refused_at timestamptz not null default clock_timestamp(),
    primary key (prover_id, circuit_id)
);
comment on table proverq_private.circuit_refusal is 'Circuits that a running prover does not prove, and why; read the view proverq.refusals.';
comment on column proverq_private.circuit_refusal.code is 'The kind of error: device_memory, absent, key ...';
comment on column proverq_private.circuit_refusal.refused_at is 'When it was tried last; it is tried again every minute unless the circuit''s artefacts are wrong.';

create table proverq_private.device_quarantine (
    host text not null,
    device text not null,
    faults int not null,
    reason text not null,
    since timestamptz not null default clock_timestamp(),
    primary key (host, device)
);
comment on table proverq_private.device_quarantine is 'Devices that failed again and again: their supervisor starts no prover on them before a test proof succeeds.';
comment on column proverq_private.device_quarantine.faults is 'How often it has failed in a row.';
comment on column proverq_private.device_quarantine.reason is 'How it failed last.';

-- Webhook endpoints -------------------------------------------------------------------------------------------------

create table proverq_private.webhook_endpoint (
    endpoint_id int generated always as identity primary key,
    name text not null,
    url text not null,
    submitter name not null default session_user,
    shared bool not null default false,
    disabled_at timestamptz,
    disabled_reason text,
    failures int not null default 0,
    failing_since timestamptz,
    rests_until timestamptz,
    last_error text,
    created_at timestamptz not null default clock_timestamp(),
    constraint webhook_endpoint_name_unique unique (submitter, name),
    constraint webhook_endpoint_name_valid check (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'),
    constraint webhook_endpoint_url_valid check (url ~ '^https?://[^[:space:][:cntrl:]]+$' and octet_length(url) <= 2000)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 200);
comment on table proverq_private.webhook_endpoint is 'Where the finalizer sends word of jobs; make one with proverq.create_webhook_endpoint(name, url). Read the view proverq.webhook_endpoints.';
comment on column proverq_private.webhook_endpoint.name is 'Unique among its submitter''s.';
comment on column proverq_private.webhook_endpoint.url is 'One that ends in / covers the URLs below it: jobs may name those.';
comment on column proverq_private.webhook_endpoint.submitter is 'Whose it is: only this role''s jobs may name it, unless it is shared.';
comment on column proverq_private.webhook_endpoint.shared is 'Jobs of every submitter may name it: the operator''s list of what is allowed.';
comment on column proverq_private.webhook_endpoint.disabled_at is 'Nothing is sent any more. To send again: select proverq.enable_webhook_endpoint(NAME);';
comment on column proverq_private.webhook_endpoint.failures is 'Attempts that have failed since the last that succeeded. From 3 on one delivery at a time is tried.';
comment on column proverq_private.webhook_endpoint.failing_since is 'The first of them. After 5 days the endpoint is disabled.';
comment on column proverq_private.webhook_endpoint.rests_until is 'Nothing is sent before: it asked for time (Retry-After, 429, 502, 503, 504), or keeps failing.';
comment on column proverq_private.webhook_endpoint.last_error is 'Why the last attempt failed; kept after one that succeeded.';

create table proverq_private.webhook_secret (
    endpoint_id int not null references proverq_private.webhook_endpoint (endpoint_id) on delete cascade,
    secret text not null,
    created_at timestamptz not null default clock_timestamp(),
    valid_until timestamptz,
    primary key (endpoint_id, secret),
    constraint webhook_secret_valid check (secret ~ '^whsec_[A-Za-z0-9+/]{32,88}={0,2}$')
);
comment on table proverq_private.webhook_secret is 'Keys of the signatures (Standard Webhooks). For the finalizer only: whoever reads one can forge webhooks.';
comment on column proverq_private.webhook_secret.secret is 'whsec_ and 24 to 64 bytes in base64.';
comment on column proverq_private.webhook_secret.valid_until is 'Replaced: until then deliveries are signed with it too. Null: the endpoint''s secret.';

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
    endpoint_id int references proverq_private.webhook_endpoint (endpoint_id),
    keep_inputs bool not null default false,
    submitter name not null default session_user,
    error_code text,
    error text,
    created_at timestamptz not null default clock_timestamp(),
    not_before timestamptz,
    ready_at timestamptz,
    finished_at timestamptz,
    finalize_failures int not null default 0,
    finalize_error text,
    finalize_after timestamptz,
    constraint job_partitions_positive check (partitions > 0),
    constraint job_present_in_range check (present between 0 and partitions),
    constraint job_remaining_in_range check (remaining between 0 and partitions),
    constraint job_run_positive check (run > 0),
    constraint job_request_id_valid check (request_id <> '' and octet_length(request_id) <= 200)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
comment on table proverq.job is 'Requests for proofs. INSERT (circuit, partitions[, priority, request_id, webhook, keep_inputs, not_before]) and then its partitions, or use proverq.enqueue(). Read the view proverq.jobs.';
comment on column proverq.job.job_seq is 'The job''s number; orders jobs of one priority.';
comment on column proverq.job.circuit is 'The circuit''s name, as given.';
comment on column proverq.job.circuit_id is 'The version that the name meant at insert.';
comment on column proverq.job.partitions is 'How many partitions belong to the job. It is queued when all are there.';
comment on column proverq.job.present is 'Partitions that are there.';
comment on column proverq.job.remaining is 'Partitions that are not proved yet.';
comment on column proverq.job.priority is 'Higher first.';
comment on column proverq.job.run is 'The job''s life: 1, and one more with each retry; finalized once per run.';
comment on column proverq.job.request_id is 'Makes enqueueing safe to repeat: one job per submitter and request_id.';
comment on column proverq.job.request_sha256 is 'SHA-256 of circuit name and inputs; null when the job came by plain INSERT.';
comment on column proverq.job.webhook is 'Name or URL of a webhook endpoint to tell when the job ends.';
comment on column proverq.job.endpoint_id is 'The endpoint that webhook meant at insert.';
comment on column proverq.job.keep_inputs is 'Keep witnesses and inputs when the job ends; else they are deleted then.';
comment on column proverq.job.error is 'Why the job failed, naming the partition; or who cancelled it, and why.';
comment on column proverq.job.not_before is 'Nothing of the job is claimed before; null: as soon as it is whole.';
comment on column proverq.job.ready_at is 'When the last of its partitions came, or its run began.';
comment on column proverq.job.finalize_failures is 'How often the last step failed in this run.';
comment on column proverq.job.finalize_error is 'Why the last step failed the last time.';
comment on column proverq.job.finalize_after is 'When the last step is tried again; other jobs do not wait for it.';

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
    avoid_until timestamptz,
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
comment on table proverq.partition is 'One Groth16 statement each: inputs or a witness in, a proof out. INSERT (job_seq, partition_idx, and one of inputs, witness, witness_path).';
comment on column proverq.partition.partition_idx is 'From 0 to the job''s partitions - 1; the order of the proofs.';
comment on column proverq.partition.circuit_id is 'The job''s.';
comment on column proverq.partition.priority is 'The job''s.';
comment on column proverq.partition.attempt is 'Claims so far, the present one included.';
comment on column proverq.partition.failures is 'Attempts of this run that spent a retry; the fifth is the last.';
comment on column proverq.partition.losses is 'Leases of this run that expired, or whose process ended.';
comment on column proverq.partition.lost_by is 'The provers that lost it in this run; three different ones end it as poison.';
comment on column proverq.partition.token is 'The lease: who has it may record a result. Cleared when the lease is taken away; never used again.';
comment on column proverq.partition.lease_until is 'By this database''s clock; the prover renews it while it works.';
comment on column proverq.partition.prover_id is 'The prover of the last attempt.';
comment on column proverq.partition.due_at is 'While held: when it becomes ready again.';
comment on column proverq.partition.avoid_until is 'Until then the device of the last attempt leaves it to others, if there are any.';
comment on column proverq.partition.witness is 'A .wtns file.';
comment on column proverq.partition.witness_path is 'A .wtns file, relative to the provers'' witness folder (for witnesses above some 8 MB).';
comment on column proverq.partition.inputs is 'The circuit''s input signals, for circuits with a witness calculator.';
comment on column proverq.partition.proof is 'snarkjs''s proof.json.';
comment on column proverq.partition.publics is 'snarkjs''s public.json.';
comment on column proverq.partition.proof_compressed is 'BLS12-381: the 192 bytes A | B | C.';
comment on column proverq.partition.error is 'The last attempt''s failure.';
alter table proverq.partition alter column witness set storage external;

-- Exactly the order of claims within a circuit, and only what can be claimed: claim() and wanted_circuits() walk it,
-- so a claim costs the same at any number of ready rows, whatever other circuits wait.
create index partition_ready on proverq.partition (circuit_id, priority desc, job_seq, partition_idx) where state = 'ready';
-- What is in flight: a few rows for each prover. lease_until is no part of it, so that heartbeats touch no index.
create index partition_leased on proverq.partition (prover_id, job_seq, partition_idx) where state = 'leased';
create index partition_due on proverq.partition (due_at) where state = 'held' and due_at is not null;

-- No foreign key: like timing, the rows are written beside the work and go by their age.
create table proverq_private.failure (
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
comment on table proverq_private.failure is 'The attempts that failed or were lost, the last 100 of each partition. Read the view proverq.failures.';
comment on column proverq_private.failure.attempt is 'The claim; counts on from run to run.';
comment on column proverq_private.failure.code is 'The error''s name; lost: the lease expired, or its process ended.';
comment on column proverq_private.failure.spent is 'It spent one of the partition''s retries.';
create index failure_failed on proverq_private.failure using brin (failed_at) with (pages_per_range = 16, autosummarize = on);

-- Timing ------------------------------------------------------------------------------------------------------------

create table proverq.step (
    step smallint primary key,
    name text not null unique,
    description text not null,
    is_wait bool not null default false
);
comment on table proverq.step is 'What the step numbers in proverq.timing mean.';
comment on column proverq.step.is_wait is 'Somebody waits, nothing is done: such time is not running time.';

insert into proverq.step (step, name, description, is_wait) values
    (10, 'claim', 'the partition is claimed in the database', false),
    (11, 'memory_wait', 'a witness buffer or room for the key is waited for', true),
    (20, 'fetch_key', 'the proving key comes from the database into the cache', false),
    (21, 'check_key', 'every point of the proving key is checked', false),
    (22, 'load_key', 'the proving key goes to the device', false),
    (23, 'fetch_calculator', 'the compiled calculator comes from the database into the cache', false),
    (29, 'synthesis_wait', 'the partition waits for a synthesis thread', true),
    (30, 'read_witness', 'the witness is read from the row or the file', false),
    (31, 'check_witness', 'the witness is checked against the circuit', false),
    (32, 'compute_witness', 'the witness is computed from the inputs', false),
    (40, 'queue_wait', 'the witness waits for a GPU worker', true),
    (41, 'pick_up', 'a GPU worker has taken the partition', false),
    (42, 'slot_wait', 'the worker waits for a slot on the device', true),
    (43, 'launch', 'copies and kernels are enqueued', false),
    (44, 'compute', 'the CPU, being the device, computes the proof''s sums', false),
    (45, 'inputs_wait', 'the worker waits until the witness is copied', true),
    (46, 'device_wait', 'the worker waits until the device has done its part', true),
    (47, 'hand_over', 'the partition goes to the verify stage, or is given up', false),
    (48, 'idle', 'the worker waits for a witness', true),
    (50, 'copy_in', 'the witness goes to the device', false),
    (51, 'matvec', 'A*w and B*w, sparse matrix times witness', false),
    (52, 'ntt', 'the quotient''s coefficients: transforms on the odd coset', false),
    (53, 'msm_a', 'multi-scalar multiplication over A, G1', false),
    (54, 'msm_b1', 'multi-scalar multiplication over B, G1', false),
    (55, 'msm_b2', 'multi-scalar multiplication over B, G2', false),
    (56, 'msm_c', 'multi-scalar multiplication over C, G1', false),
    (57, 'msm_h', 'multi-scalar multiplication over H, G1', false),
    (58, 'copy_out', 'the sums come back from the device', false),
    (60, 'finish_wait', 'the sums wait for a verify thread', true),
    (70, 'finish', 'host tail: blinding, affine form', false),
    (80, 'verify', 'the proof is verified with the pairing', false),
    (90, 'record', 'proof and timing wait to be recorded', true);

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
comment on table proverq.timing is 'When each step of each attempt ran. Read the views proverq.timings and proverq.step_stats. Days are tables of their own, proverq_private.timing_YYYYMMDD, and can be dropped.';
comment on column proverq.timing.recorded_at is 'This database''s clock; decides the day''s table that the row is in.';
comment on column proverq.timing.job_seq is 'Null for time in which a worker had no job.';
comment on column proverq.timing.worker is 'Which thread of the prover: 0 dispatcher, 1 loader, from 20 GPU workers, from 30 verify, 40 record, from 100 synthesis.';
comment on column proverq.timing.step is 'proverq.step names it.';
comment on column proverq.timing.started_at is 'The prover''s clock.';
comment on column proverq.timing.duration is 'Microseconds. Steps of one attempt may overlap.';
create index timing_partition on proverq.timing (job_seq, partition_idx, attempt);
-- The windows of the views go by recording time, the look at a worker's neighbours by its own.
create index timing_recorded on proverq.timing using brin (recorded_at) with (pages_per_range = 16, autosummarize = on);
create index timing_worker on proverq.timing (prover_id, worker, started_at) where step between 41 and 48;

create table proverq_private.timing_default partition of proverq.timing default;
comment on table proverq_private.timing_default is 'Timing rows of days without a table; proverq.make_timing_partitions(days) makes those.';

create type proverq_private.activity_kind as enum ('kernel', 'copy', 'device_span', 'cpu_span');
comment on type proverq_private.activity_kind is 'What kept a device busy. kernel and copy: by the device''s own clock (CUPTI). device_span: between CUDA events, where CUPTI is missing; includes waiting on the device, so it is no kernel time. cpu_span: steps of proofs on a CPU.';

create table proverq_private.device_activity (
    recorded_at timestamptz not null default clock_timestamp(),
    prover_id int not null,
    device text not null,
    kind proverq_private.activity_kind not null,
    started_at timestamptz not null,
    duration bigint not null,
    busy bigint not null
) partition by range (recorded_at);
comment on table proverq_private.device_activity is 'When each device was busy: intervals, merged over all streams. Read the views proverq.device_utilization and proverq.device_gaps. Days are tables of their own, device_activity_YYYYMMDD, and can be dropped.';
comment on column proverq_private.device_activity.recorded_at is 'This database''s clock; decides the day''s table that the row is in.';
comment on column proverq_private.device_activity.prover_id is 'A prover process owns one device.';
comment on column proverq_private.device_activity.started_at is 'The prover''s clock.';
comment on column proverq_private.device_activity.duration is 'Microseconds; pauses shorter than 5 us do not end an interval.';
comment on column proverq_private.device_activity.busy is 'Nanoseconds of it without those pauses, exact.';
create index device_activity_recorded on proverq_private.device_activity using brin (recorded_at) with (pages_per_range = 16, autosummarize = on);

create table proverq_private.device_activity_default partition of proverq_private.device_activity default;
comment on table proverq_private.device_activity_default is 'Activity of days without a table; proverq.make_timing_partitions(days) makes those.';

-- Webhook deliveries ------------------------------------------------------------------------------------------------

create table proverq_private.webhook_delivery (
    delivery_id uuid primary key default gen_random_uuid(),
    endpoint_id int not null references proverq_private.webhook_endpoint (endpoint_id),
    job_seq bigint references proverq.job (job_seq),
    run int,
    event text not null,
    url text,
    body text not null,
    state text not null default 'pending',
    attempts int not null default 0,
    attempts_before int not null default 0,
    next_attempt_at timestamptz default clock_timestamp(),
    token uuid,
    last_status int,
    last_error text,
    created_at timestamptz not null default clock_timestamp(),
    delivered_at timestamptz,
    constraint webhook_delivery_once unique (job_seq, run, event, endpoint_id),
    constraint webhook_delivery_job_whole check ((job_seq is null) = (run is null)),
    constraint webhook_delivery_state_known check (state in ('pending', 'delivered', 'failed')),
    constraint webhook_delivery_due_while_pending check ((state = 'pending') = (next_attempt_at is not null))
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500, autovacuum_analyze_scale_factor = 0.05);
comment on table proverq_private.webhook_delivery is 'The outbox: written with the job''s final state, sent by the finalizer until a 2xx or the end of the schedule.';
comment on column proverq_private.webhook_delivery.delivery_id is 'The header webhook-id is msg_ and its 32 hex digits; the same over all attempts.';
comment on column proverq_private.webhook_delivery.job_seq is 'Null: a ping.';
comment on column proverq_private.webhook_delivery.url is 'The URL that the job named, below the endpoint''s; null: the endpoint''s own.';
comment on column proverq_private.webhook_delivery.body is 'The exact bytes that are signed and sent.';
comment on column proverq_private.webhook_delivery.attempts is 'All that were begun.';
comment on column proverq_private.webhook_delivery.attempts_before is 'Those before it was last sent anew by redeliver(): the schedule counts from there.';
comment on column proverq_private.webhook_delivery.next_attempt_at is 'While an attempt is under way: when it is taken for lost.';
comment on column proverq_private.webhook_delivery.token is 'The attempt under way; only it may record its outcome.';
comment on column proverq_private.webhook_delivery.last_status is 'HTTP status of the last attempt; null when there was no answer.';
-- The claim goes from endpoint to endpoint: what one has in its backlog, the others do not pay for.
create index webhook_delivery_pending on proverq_private.webhook_delivery (endpoint_id, next_attempt_at) where state = 'pending';
create index webhook_delivery_under_way on proverq_private.webhook_delivery (endpoint_id) where token is not null;
create index webhook_delivery_failed on proverq_private.webhook_delivery (endpoint_id, created_at) where state = 'failed';

create table proverq_private.webhook_attempt (
    delivery_id uuid not null references proverq_private.webhook_delivery (delivery_id) on delete cascade,
    attempt int not null,
    ended_at timestamptz not null default clock_timestamp(),
    status int,
    curl_code int,
    error text,
    peer text,
    dns_us bigint,
    connect_us bigint,
    tls_us bigint,
    first_byte_us bigint,
    total_us bigint,
    answer text,
    primary key (delivery_id, attempt)
);
comment on table proverq_private.webhook_attempt is 'What came of each attempt to deliver a webhook; the last 20 of each delivery. Read the view proverq.delivery_attempts.';
comment on column proverq_private.webhook_attempt.status is 'HTTP status; null when there was no answer.';
comment on column proverq_private.webhook_attempt.curl_code is 'libcurl''s result (libcurl-errors(3)); 0: the exchange went well. An answer counts by its status.';
comment on column proverq_private.webhook_attempt.error is 'Null after a 2xx.';
comment on column proverq_private.webhook_attempt.peer is 'The address that was connected to.';
comment on column proverq_private.webhook_attempt.dns_us is 'Microseconds from the start until the name was resolved; this and what follows include what is before.';
comment on column proverq_private.webhook_attempt.connect_us is 'Until the connection was made; 0: one was used again.';
comment on column proverq_private.webhook_attempt.tls_us is 'Until TLS was agreed on; 0: not needed.';
comment on column proverq_private.webhook_attempt.first_byte_us is 'Until the answer began.';
comment on column proverq_private.webhook_attempt.answer is 'The answer''s first bytes, made printable.';

-- Upkeep ------------------------------------------------------------------------------------------------------------

create table proverq.retention (
    what text primary key,
    keep interval,
    description text not null,
    constraint retention_keep_positive check (keep > interval '0')
);
comment on table proverq.retention is 'How long things are kept; finalizers delete what is older, with proverq.prune().';
comment on column proverq.retention.keep is 'Null: for ever. update proverq.retention set keep = ''90 days'' where what = ''jobs'';';

insert into proverq.retention (what, keep, description) values
    ('jobs', '30 days', 'jobs that are finished, failed or cancelled, from their end on; with their partitions, proofs and deliveries. A job with a pending delivery stays'),
    ('deliveries', '30 days', 'webhooks that were delivered or given up, with the log of their attempts, from the moment when they were written; at most as long as their job'),
    ('failures', '30 days', 'the errors of attempts at partitions'),
    ('timings', '14 days', 'the steps of proofs, and when each device was busy: whole days'),
    ('provers', '30 days', 'prover processes that stopped or were lost, from their last sign of life');

create table proverq.alert_limit (
    alert text primary key,
    severity text not null,
    after interval,
    above double precision,
    muted bool not null default false,
    description text not null,
    constraint alert_limit_severity_known check (severity in ('critical', 'warning', 'info'))
);
comment on table proverq.alert_limit is 'The alerts that the view proverq.alerts knows, and from when on each is raised.';
comment on column proverq.alert_limit.after is 'Raised when it lasts longer.';
comment on column proverq.alert_limit.above is 'Raised when there is more of it.';
comment on column proverq.alert_limit.muted is 'Not raised at all.';

insert into proverq.alert_limit (alert, severity, after, above, description) values
    ('no_prover', 'critical', '2 minutes', null, 'partitions are ready, and no prover has given a sign of life for that long'),
    ('no_finalizer', 'critical', null, null, 'a job is to be finalized, a webhook to be sent, or a partition to be made ready again, and no finalizer is connected'),
    ('leases_expired', 'critical', '1 minute', null, 'leases ended that long ago and nobody has taken them back'),
    ('job_stuck', 'critical', '1 minute', null, 'all partitions of a job ended that long ago, and it is not finalized'),
    ('autovacuum_off', 'critical', null, null, 'the server, or a table here, is not vacuumed by itself'),
    ('ready_waits', 'warning', '15 minutes', null, 'a partition is ready for that long and nobody has claimed it'),
    ('old_snapshot', 'warning', '30 minutes', 1000000, 'a transaction or replication slot of that age, or that many transactions back, keeps vacuum from removing dead rows'),
    ('dead_rows', 'warning', null, 50000, 'a table has so many dead rows and a fifth of its live ones: claims get slower'),
    ('notify_queue', 'warning', null, 0.1, 'that share of the server''s notification queue is full; at 1, commits that notify fail'),
    ('delivery_overdue', 'warning', '10 minutes', null, 'a webhook should have been sent that long ago'),
    ('endpoint_disabled', 'warning', '7 days', null, 'a webhook endpoint failed so often that it was disabled, less than that ago'),
    ('retention_behind', 'warning', '2 days', null, 'something is older by that than it is to be kept'),
    ('timing_default', 'warning', null, 0, 'the default tables of timings have so many rows: the day''s tables were not made in time'),
    ('circuit_refused', 'warning', null, null, 'partitions of a circuit are ready, and every running prover refuses it'),
    ('device_quarantined', 'warning', null, null, 'a device failed again and again, and its supervisor starts no prover on it'),
    ('paused_waits', 'info', null, null, 'a circuit is paused and partitions of it are ready');

-- Rows that a role sees ---------------------------------------------------------------------------------------------

-- The owner is not bound by policies, nor are the functions that run with its rights and ask for themselves. A policy runs as the
-- caller. The sub-selects stand alone, so that they are evaluated once in a query, whatever the number of rows; they say what
-- proverq_private.may_read() does. A policy cannot call that: functions come after migrations.
do $$
declare
    reader constant text := $p$(select bool_or(pg_has_role(session_user, r.oid, 'member')) from pg_roles r
                                where r.rolname in ('proverq_operator', 'proverq_reader'))$p$;
    mine constant text := $p$submitter = any (array(select r.rolname from pg_roles r where pg_has_role(session_user, r.oid, 'member')))$p$;
    of_my_job constant text := 'exists (select from proverq.job j where j.job_seq = %I.job_seq)'; -- those that job_read lets through
    t text;
begin
    foreach t in array '{proverq.job, proverq.partition, proverq.timing, proverq_private.failure, proverq_private.webhook_endpoint,
                         proverq_private.webhook_delivery, proverq_private.webhook_attempt}'::text[] loop
        execute format('alter table %s enable row level security', t);
    end loop;
    execute format('create policy job_read on proverq.job for select using (%s or %s)', reader, mine);
    foreach t in array '{proverq.partition, proverq.timing, proverq_private.failure}'::text[] loop
        execute format('create policy %I on %s for select using (%s or ' || of_my_job || ')', split_part(t, '.', 2) || '_read', t, reader,
                       split_part(t, '.', 2));
    end loop;
    -- What an INSERT may say is for the triggers, which run before.
    execute 'create policy job_insert on proverq.job for insert with check (submitter = session_user)';
    execute 'create policy partition_insert on proverq.partition for insert with check (true)';
    -- Who uses a shared endpoint sees it, and what goes there from its own jobs.
    execute format('create policy webhook_endpoint_read on proverq_private.webhook_endpoint for select using (shared or %s or %s)', reader, mine);
    execute format('create policy webhook_delivery_read on proverq_private.webhook_delivery for select using (%s or ' || of_my_job ||
                   ' or exists (select from proverq_private.webhook_endpoint e where e.endpoint_id = webhook_delivery.endpoint_id and e.%s))',
                   reader, 'webhook_delivery', mine);
    execute format('create policy webhook_attempt_read on proverq_private.webhook_attempt for select using (%s or '
                   'exists (select from proverq_private.webhook_delivery d where d.delivery_id = webhook_attempt.delivery_id))', reader);
end
$$;

insert into proverq.schema_migration (version, name, breaking, checksum) values (1, 'initial', true, '767d483175a31a6f8dea26aafaf7e6165becfc40c5179a71cf53f38c382ddbd1');
