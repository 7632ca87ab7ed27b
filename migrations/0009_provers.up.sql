-- What provers do not do, and why: circuits that one refuses, devices that are in quarantine.

create table proverq.circuit_refusal (
    prover_id int not null,
    circuit_id bigint not null,
    code text not null,
    reason text not null,
    refused_at timestamptz not null default clock_timestamp(),
    primary key (prover_id, circuit_id)
);
comment on table proverq.circuit_refusal is 'Circuits that a running prover does not prove, and why; read the view proverq.refusals.';
comment on column proverq.circuit_refusal.code is 'The kind of error: device_memory, absent, key ...';
comment on column proverq.circuit_refusal.refused_at is 'When it was tried last; it is tried again every minute unless the circuit''s artefacts are wrong.';

create table proverq.device_quarantine (
    host text not null,
    device text not null,
    faults int not null,
    reason text not null,
    since timestamptz not null default clock_timestamp(),
    primary key (host, device)
);
comment on table proverq.device_quarantine is 'Devices that failed again and again: their supervisor starts no prover on them before a test proof succeeds.';
comment on column proverq.device_quarantine.faults is 'How often it has failed in a row.';
comment on column proverq.device_quarantine.reason is 'How it failed last.';

insert into proverq.schema_migration (version, name, breaking, checksum) values (9, 'provers', false, '880973b624078e7ebe43cded8ffe16016db173d863eab603ca270455af92f3c8');
