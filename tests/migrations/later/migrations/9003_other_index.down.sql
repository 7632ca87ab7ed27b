drop index if exists proverq.job_note;

delete from proverq.schema_migration where version = 9003;
