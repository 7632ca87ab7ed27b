-- Takes calculators away. Circuits that have one stay, without it; partitions with inputs that are not proved yet must be gone.
set local client_min_messages = warning; -- of functions that are not there yet
drop function if exists proverq.claim(int, bigint[], int, int);
drop function if exists proverq.circuit_add(text, bytea, text, int, int, int, bytea, bytea, jsonb, bool, text, bytea, int, jsonb);
drop function if exists proverq.inputs_check(bigint, jsonb, text);
drop function if exists proverq.inputs_text(jsonb);
drop function if exists proverq.input_text(jsonb);
drop function if exists proverq.input_leaves(jsonb);

delete from proverq.schema_migration where version = 2;
delete from proverq.timing where step in (23, 32);
delete from proverq.step where step in (23, 32);
drop table proverq.calculator;
alter table proverq.circuit
    drop column calculator,
    drop column wasm,
    drop column n_inputs,
    drop column input_signals;
delete from proverq.artefact where kind in ('wasm', 'calculator', 'dat');
alter table proverq.artefact drop constraint artefact_kind_known;
alter table proverq.artefact add constraint artefact_kind_known check (kind in ('zkey', 'r1cs'));
