-- Waiting and running of the jobs that became ready in the last 5 minutes, in seconds: summed over their partitions.
select t.job_seq, j.circuit, round(sum(t.duration) filter (where t.is_wait) / 1e6, 3) as waiting,
       round(sum(t.duration) filter (where not t.is_wait) / 1e6, 3) as running,
       (array_agg(t.step order by t.duration desc) filter (where t.is_wait))[1] as longest_wait,
       round(max(t.duration) filter (where t.is_wait) / 1e6, 3) as longest
from proverq.job_timeline t
join proverq.job j using (job_seq)
where j.ready_at > now() - interval '5 minutes'
group by t.job_seq, j.circuit
order by t.job_seq desc
limit 50;
