-- Witness calculators: a circuit that has one takes inputs instead of witnesses.
--
-- The functions whose results or arguments change go first: CREATE OR REPLACE cannot change those.

set local client_min_messages = warning; -- of functions that are not there yet
drop function if exists proverq.claim(int, bigint[], int, int);
drop function if exists proverq.circuit_add(text, bytea, text, int, int, int, bytea, bytea, jsonb, bool);

alter table proverq.artefact drop constraint artefact_kind_known;
alter table proverq.artefact add constraint artefact_kind_known check (kind in ('zkey', 'r1cs', 'wasm', 'calculator', 'dat'));

alter table proverq.circuit
    add column calculator text,
    add column wasm bytea references proverq.artefact (sha256),
    add column n_inputs int,
    add column input_signals jsonb,
    add constraint circuit_calculator_known check (calculator in ('wasm', 'program')),
    add constraint circuit_wasm_whole check ((calculator = 'wasm') = (wasm is not null)),
    add constraint circuit_n_inputs_not_negative check (n_inputs >= 0);
comment on column proverq.circuit.calculator is 'wasm, or program (circom''s C++): the circuit takes inputs; null: only witnesses.';
comment on column proverq.circuit.wasm is 'The calculator as circom made it; what runs is in proverq.calculator.';
comment on column proverq.circuit.n_inputs is 'Input values of all signals together; null: not known.';
comment on column proverq.circuit.input_signals is 'Names of the input signals, and how many values each has; null: not known (add the circuit with --sym).';

create table proverq.calculator (
    circuit_id bigint not null references proverq.circuit (circuit_id),
    machine text not null,
    sha256 bytea not null references proverq.artefact (sha256),
    dat bytea references proverq.artefact (sha256),
    created_at timestamptz not null default clock_timestamp(),
    primary key (circuit_id, machine)
);
comment on table proverq.calculator is 'Compiled calculators: one for each machine architecture on which the circuit was added.';
comment on column proverq.calculator.machine is 'As uname -m says it: x86_64, aarch64.';
comment on column proverq.calculator.dat is 'The .dat file of a program.';

insert into proverq.step (step, name, description) values
    (23, 'fetch_calculator', 'the compiled calculator comes from the database into the cache'),
    (32, 'compute_witness', 'the witness is computed from the inputs');

insert into proverq.schema_migration (version, name, breaking) values (2, 'calculators', true);
