-- Waiting for memory is a step of its own.
insert into proverq.step (step, name, description) values
    (11, 'memory_wait', 'a witness buffer or room for the key is waited for');

insert into proverq.schema_migration (version, name, breaking) values (4, 'pipeline', false);
