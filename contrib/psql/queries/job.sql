-- All that happened to job :j, partition by partition, in milliseconds since it was ready.
select partition_idx as part, attempt, step, case when is_wait then 'waits' end as waits, device, worker,
       round(since_ready / 1000.0, 3) as since_ms, round(duration / 1000.0, 3) as ms
from proverq.job_timeline
where job_seq = :j
order by partition_idx, started_at, duration desc;
