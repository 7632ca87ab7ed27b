-- The latest partitions that failed.
select job_seq, partition_idx, attempt, error_code, left(error, 100) as error
from proverq.partition
where state = 'failed'
order by job_seq desc, partition_idx
limit 20;
