create or replace view proverq.job_timeline with (security_invoker = true) as
select t.job_seq, t.partition_idx, t.attempt, coalesce(s.name, t.step::text) as step, coalesce(s.is_wait, false) as is_wait, p.host, t.device, t.worker,
       t.started_at, (extract(epoch from t.started_at - j.ready_at) * 1000000)::bigint as since_ready, t.duration, s.description
from proverq.timing t
left join proverq.step s using (step)
left join proverq.job j using (job_seq)
left join proverq_private.prover p using (prover_id)
union all
select t.job_seq, t.partition_idx, t.attempt, 'unclaimed', true, p.host, t.device, t.worker,
       j.ready_at, 0, greatest(0, (extract(epoch from t.started_at - j.ready_at) * 1000000)::bigint), 'the partition is ready and no prover has claimed it'
from proverq.timing t
join proverq.job j using (job_seq)
left join proverq_private.prover p using (prover_id)
where t.step = 10 and t.attempt = 1;
comment on view proverq.job_timeline is 'All that happened to a job''s partitions, waiting told apart from running: select * from proverq.job_timeline where job_seq = JOB order by partition_idx, started_at;';
comment on column proverq.job_timeline.attempt is 'From 1; each claim counts.';
comment on column proverq.job_timeline.step is 'unclaimed, or one of proverq.step.';
comment on column proverq.job_timeline.is_wait is 'The partition waits; nothing is done for it.';
comment on column proverq.job_timeline.worker is 'Which thread of the prover: 0 dispatcher, 1 loader, from 20 GPU workers, from 30 verify, 40 record, from 100 synthesis.';
comment on column proverq.job_timeline.started_at is 'The prover''s clock.';
comment on column proverq.job_timeline.since_ready is 'Microseconds from the moment at which the job was whole to the start of the step.';
comment on column proverq.job_timeline.duration is 'Microseconds. Steps on a CUDA device overlap, and those of a worker go on beside them.';
