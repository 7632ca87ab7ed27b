-- Partitions are looked at only where the job row does not say all.
create or replace view proverq.jobs with (security_invoker = true) as
select j.job_seq, j.circuit, c.version,
       case when j.state = 'queued' and (j.remaining < j.partitions or p.leased > 0) then 'running' else j.state::text end as state,
       j.partitions, j.partitions - j.remaining as proved, p.failed, p.leased, j.priority, j.submitter, j.request_id,
       date_trunc('milliseconds', clock_timestamp() - j.created_at) as age,
       date_trunc('milliseconds', coalesce(j.finished_at, clock_timestamp()) - j.ready_at) as duration,
       j.error, j.run, j.not_before, j.finished_at is null and exists (select from proverq_private.paused x where x.circuit in ('*', j.circuit)) as paused
from proverq.job j
join proverq.circuit c using (circuit_id)
cross join lateral (
    select count(*) filter (where p.state = 'failed') as failed, count(*) filter (where p.state = 'leased') as leased
    from proverq.partition p
    where p.job_seq = j.job_seq and j.state in ('queued', 'failing', 'failed')
) p;
comment on view proverq.jobs is 'Every job and how far it is. For one that does not move: select proverq.why(JOB);';
comment on column proverq.jobs.state is 'incomplete, queued, running, completing, failing, finished, failed, cancelled.';
comment on column proverq.jobs.age is 'Since it was inserted.';
comment on column proverq.jobs.duration is 'Since all its partitions were there, to its end or till now.';
comment on column proverq.jobs.not_before is 'Nothing of it is claimed before.';
comment on column proverq.jobs.paused is 'Nothing of it is claimed, until proverq.resume().';
