create or replace function proverq.gap_causes_between(from_time timestamptz, to_time timestamptz)
returns table (prover_id int, device text, cause text, gaps bigint, total bigint, max bigint, share double precision, of_time double precision)
language sql stable
set search_path = pg_catalog, pg_temp set jit = off
as $$
    with cause as (
        select g.prover_id, g.device, g.cause, count(*) as gaps, sum(g.duration)::bigint as total, max(g.duration) as max
        from proverq.device_gaps_between(from_time, to_time) g
        group by g.prover_id, g.device, g.cause
        union all
        select a.prover_id, a.device, 'between_kernels', null, (sum(a.duration * 1000 - a.busy) / 1000)::bigint, 5
        from proverq_private.device_activity a
        join proverq_private.prover p using (prover_id)
        where a.recorded_at >= from_time - interval '1 minute' and a.recorded_at < to_time + interval '10 minutes'
          and a.kind in ('kernel', 'device_span', 'cpu_span') and a.started_at >= from_time and a.started_at < least(to_time, p.activity_until)
        group by a.prover_id, a.device
        having sum(a.duration * 1000 - a.busy) >= 1000
    )
    select c.prover_id, c.device, c.cause, c.gaps, c.total, c.max, c.total / sum(c.total) over (partition by c.prover_id)::double precision,
           c.total / (extract(epoch from least(to_time, p.activity_until) - greatest(from_time, p.started_at)) * 1000000)
    from cause c
    join proverq_private.prover p using (prover_id)
    order by c.prover_id, c.total desc
$$;
comment on function proverq.gap_causes_between(timestamptz, timestamptz) is
    'The view gap_causes for another window: select * from proverq.gap_causes_between(now() - interval ''5 min'', now());';
