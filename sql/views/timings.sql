create or replace view proverq.timings with (security_invoker = true) as
select t.recorded_at, t.job_seq, t.partition_idx, t.attempt, t.prover_id, p.host, t.device, t.worker,
       coalesce(s.name, t.step::text) as step, t.started_at, t.duration
from proverq.timing t
left join proverq.step s using (step)
left join proverq_private.prover p using (prover_id);
comment on view proverq.timings is 'When each step of each attempt ran, with names. One job: select * from proverq.timings where job_seq = JOB order by started_at;';
comment on column proverq.timings.duration is 'Microseconds.';
