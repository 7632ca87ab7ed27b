create or replace function proverq.note(job bigint) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select j.note from proverq.job j where j.job_seq = note.job
$$;
comment on function proverq.note(bigint) is 'What somebody noted on a job.';
