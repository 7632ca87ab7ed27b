-- Another index, which comes after tables changed.
-- proverq: no transaction
create index concurrently if not exists job_note on proverq.job (note) where note is not null;

insert into proverq.schema_migration (version, name, breaking) values (9003, 'other_index', true);
