drop index if exists proverq.job_finished;

delete from proverq.schema_migration where version = 9001;
