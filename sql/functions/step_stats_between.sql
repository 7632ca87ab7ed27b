-- Rows are recorded when their partition is: some after the window's end, which the margin allows for.
create or replace function proverq.step_stats_between(from_time timestamptz, to_time timestamptz)
returns table (step text, circuit text, device text, count bigint, p50 bigint, p95 bigint, p99 bigint, max bigint, total bigint,
               window_start timestamptz, window_end timestamptz)
language sql stable
set search_path = pg_catalog, pg_temp set jit = off
as $$
    select coalesce(s.name, t.step::text), j.circuit, t.device, count(*),
           percentile_disc(0.5) within group (order by t.duration), percentile_disc(0.95) within group (order by t.duration),
           percentile_disc(0.99) within group (order by t.duration), max(t.duration), sum(t.duration)::bigint, from_time, to_time
    from proverq.timing t
    left join proverq.step s on s.step = t.step
    left join proverq.job j on j.job_seq = t.job_seq
    where t.recorded_at >= from_time - interval '1 minute' and t.recorded_at < to_time + interval '10 minutes'
      and t.started_at >= from_time and t.started_at < to_time
    group by t.step, s.name, j.circuit, t.device
    order by t.step, j.circuit, t.device
$$;
comment on function proverq.step_stats_between(timestamptz, timestamptz) is
    'The view step_stats for another window: steps that began in it. select * from proverq.step_stats_between(now() - interval ''5 min'', now());';
