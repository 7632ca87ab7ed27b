-- What is leased keeps its place, since it has been claimed; if it comes back to wait, it takes the job's priority then.
create or replace function proverq.set_priority(job bigint, priority int) returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    j constant proverq.job := proverq_private.lock_job(job);
    moved int;
begin
    if priority is null then
        raise null_value_not_allowed using message = 'a priority cannot be NULL', hint = 'Give a number; higher is first, 0 is usual.';
    elsif j.finished_at is not null then
        raise object_not_in_prerequisite_state using
            message = format('job %s has ended: it is %s', job, j.state),
            hint = case when j.state = 'finished' then format('Its proofs: select proverq.proof(%s);', job)
                        else format('Retry it first: select proverq.retry(%s);', job) end;
    end if;
    -- A session in REPEATABLE READ takes for leased what came back to wait since its start; the lock is an error then, and it tries
    -- again, where the update below would pass it by.
    perform from proverq.partition p where p.job_seq = j.job_seq and p.state::text = 'leased' order by p.partition_idx for no key update;
    update proverq.job set priority = set_priority.priority where job.job_seq = j.job_seq;
    update proverq.partition p
    set priority = set_priority.priority
    where p.job_seq = j.job_seq and p.state::text in ('held', 'ready');
    get diagnostics moved = row_count;
    return moved;
end
$$;
comment on function proverq.set_priority(bigint, int) is
    'Moves a job that has not ended to another priority (higher first); gives how many waiting partitions moved. What is running goes on.';
