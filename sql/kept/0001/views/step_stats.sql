create or replace view proverq.step_stats with (security_invoker = true) as
select coalesce(s.name, t.step::text) as step, count(*) as count,
       percentile_disc(0.5) within group (order by t.duration) as p50,
       percentile_disc(0.95) within group (order by t.duration) as p95,
       max(t.duration) as max, sum(t.duration)::bigint as total
from proverq.timing t
left join proverq.step s using (step)
group by t.step, s.name
order by t.step;
comment on view proverq.step_stats is 'How long each step takes, in microseconds, over all timing rows. What a step is: select * from proverq.step;';
