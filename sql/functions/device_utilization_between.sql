-- What is recorded is cut at the borders of the buckets. A bucket at the edge of what is known is judged by its known part.
create or replace function proverq.device_utilization_between(from_time timestamptz, to_time timestamptz)
returns table (prover_id int, device text, bucket timestamptz, kernel_busy double precision, copy_busy double precision,
               span_busy double precision, worker_busy double precision)
language sql stable
set search_path = pg_catalog, pg_temp set jit = off
as $$
    with known as materialized (
        select p.prover_id, p.device, greatest(from_time, p.started_at) as lo, least(to_time, p.activity_until) as hi
        from proverq_private.prover p
        where p.activity_until > from_time and p.started_at < to_time
    ), spans as (
        select a.prover_id, case a.kind when 'kernel' then 1 when 'copy' then 2 else 3 end as what,
               a.started_at as s, a.started_at + a.duration * interval '1 us' as e, a.busy / (1000.0 * nullif(a.duration, 0)) as weight
        from proverq_private.device_activity a
        where a.recorded_at >= from_time - interval '1 minute' and a.recorded_at < to_time + interval '10 minutes' and a.duration > 0
        union all
        select t.prover_id, 4, t.started_at, t.started_at + t.duration * interval '1 us', 1.0
        from proverq.timing t
        where t.recorded_at >= from_time - interval '1 minute' and t.recorded_at < to_time + interval '10 minutes'
          and t.step between 41 and 47 and t.duration > 0
    ), workers as (
        select t.prover_id, count(distinct t.worker) as n
        from proverq.timing t
        where t.recorded_at >= from_time - interval '1 minute' and t.recorded_at < to_time + interval '10 minutes' and t.step between 41 and 48
        group by t.prover_id
    ), pieces as (
        select s.prover_id, b as bucket, s.what,
               extract(epoch from least(s.e, b + interval '200 ms', k.hi) - greatest(s.s, b, k.lo)) * s.weight as busy
        from spans s
        join known k using (prover_id)
        cross join lateral generate_series(date_bin('200 ms', greatest(s.s, k.lo), 'epoch'), least(s.e, k.hi), interval '200 ms') b
        where s.s < k.hi and s.e > k.lo
    ), sums as (
        select p.prover_id, p.bucket, sum(p.busy) filter (where p.what = 1) as kernel, sum(p.busy) filter (where p.what = 2) as copy,
               sum(p.busy) filter (where p.what = 3) as span, sum(p.busy) filter (where p.what = 4) as worker
        from pieces p
        group by p.prover_id, p.bucket
    ), measured as (
        select s.prover_id, bool_or(s.what < 3) as on_device from spans s where s.what < 4 group by s.prover_id
    )
    select k.prover_id, k.device, b,
           case when m.on_device then least(1, coalesce(s.kernel, 0) / l.seconds) end,
           case when m.on_device then least(1, coalesce(s.copy, 0) / l.seconds) end,
           case when not m.on_device then least(1, coalesce(s.span, 0) / l.seconds) end,
           least(1, coalesce(s.worker, 0) / (l.seconds * greatest(1, w.n)))
    from known k
    cross join lateral generate_series(date_bin('200 ms', k.lo, 'epoch'), k.hi, interval '200 ms') b
    cross join lateral (select extract(epoch from least(b + interval '200 ms', k.hi) - greatest(b, k.lo)) as seconds) l
    left join sums s on s.prover_id = k.prover_id and s.bucket = b
    left join workers w on w.prover_id = k.prover_id
    left join measured m on m.prover_id = k.prover_id
    where l.seconds > 0
    order by k.prover_id, b
$$;
comment on function proverq.device_utilization_between(timestamptz, timestamptz) is
    'The view device_utilization for another window. Mean over it: select device, avg(kernel_busy) from proverq.device_utilization_between(now() - interval ''5 min'', now()) group by device;';
