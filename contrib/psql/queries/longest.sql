-- The longest times of the last hour in which a device did nothing, with the step and the partition that caused it.
select prover_id, device, started_at, round(duration / 1000.0, 3) as ms, cause, job_seq, partition_idx, attempt, worker
from proverq.device_gaps
order by duration desc
limit 20;
