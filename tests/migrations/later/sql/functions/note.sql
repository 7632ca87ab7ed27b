create or replace function proverq.note(job bigint) returns text language sql stable set search_path = pg_catalog, proverq, pg_temp as $$
    select note from job where job_seq = note.job
$$;
comment on function proverq.note(bigint) is 'What somebody noted on a job.';
