create or replace view proverq.failures with (security_invoker = true) as
select f.failed_at, f.job_seq, f.run, f.partition_idx, f.attempt, f.code, f.error, f.spent, f.prover_id, p.host, p.device
from proverq_private.failure f
left join proverq_private.prover p using (prover_id);
comment on view proverq.failures is 'Every attempt that failed or was lost, with its error and where: select * from proverq.failures where job_seq = 7 order by failed_at;';
comment on column proverq.failures.spent is 'It spent one of the five tries of its partition; faults of devices, absent files and lost processes do not.';
