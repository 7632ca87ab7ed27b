create or replace view proverq.step_stats with (security_invoker = true) as
select * from proverq.step_stats_between(now() - interval '1 hour', now());
comment on view proverq.step_stats is 'How long each step takes, in microseconds, over the last hour; another window: proverq.step_stats_between(from, to). What a step is: select * from proverq.step;';
comment on column proverq.step_stats.step is 'proverq.step describes it.';
comment on column proverq.step_stats.circuit is 'The name that the job was inserted with; null for time in which a worker had no job.';
comment on column proverq.step_stats.device is 'cpu or cuda:N, of any host.';
comment on column proverq.step_stats.count is 'How often it ran.';
comment on column proverq.step_stats.p50 is 'Half of them took no longer, in microseconds.';
comment on column proverq.step_stats.p95 is '95 of 100 took no longer, in microseconds.';
comment on column proverq.step_stats.p99 is '99 of 100 took no longer, in microseconds.';
comment on column proverq.step_stats.max is 'The longest, in microseconds.';
comment on column proverq.step_stats.total is 'All of them, in microseconds.';
comment on column proverq.step_stats.window_start is 'Steps that began from then on ...';
comment on column proverq.step_stats.window_end is '... and before then.';
