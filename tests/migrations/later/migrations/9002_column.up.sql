-- A column more: nothing that programs before it would notice.
alter table proverq.job add column note text;
comment on column proverq.job.note is 'For whoever reads it.';

insert into proverq.schema_migration (version, name, breaking) values (9002, 'column', false);
