-- The latest jobs.
select job_seq, circuit, state, proved || '/' || partitions as proved, priority, age, duration, left(error, 60) as error
from proverq.jobs
order by job_seq desc
limit 20;
