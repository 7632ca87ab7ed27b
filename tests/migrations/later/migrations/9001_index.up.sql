-- Jobs by the time they ended. Built beside the work: writes go on meanwhile.
-- proverq: no transaction
create index concurrently if not exists job_finished on proverq.job (finished_at);

insert into proverq.schema_migration (version, name, breaking) values (9001, 'index', false);
