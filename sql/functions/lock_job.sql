-- The rights are checked before the lock: who may not see a job neither waits for it nor learns that it is there. What was deleted
-- while the lock was waited for is not there either.
create or replace function proverq_private.lock_job(job bigint) returns proverq.job
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    j proverq.job;
begin
    select * into j from proverq.job where job_seq = lock_job.job;
    if found and proverq_private.may_read(j.submitter) then
        if not proverq_private.may_change(j.submitter) then
            raise insufficient_privilege using message = format('job %s belongs to %s', job, j.submitter);
        end if;
        select * into j from proverq.job where job_seq = lock_job.job for no key update;
        if found then
            return j;
        end if;
    end if;
    raise no_data_found using
        message = format('there is no job %s', coalesce(job::text, 'NULL')),
        hint = 'List them with: select * from proverq.jobs;';
end
$$;
comment on function proverq_private.lock_job(bigint) is
    'Locks a job that the session''s user may change, and gives it as it is then. Part of cancel(), retry() and set_priority().';
