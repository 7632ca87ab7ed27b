-- Without JIT: the planner cannot know how few gaps there are, and compiling takes longer than running.
-- Whose fault is a gap? That of the partition which ran next on the device: the gap is cut where the steps of that partition begin
-- and end, and each piece is named after the step. Before its claim, the piece is no_work until the job was ready, then claim.
-- While it waited for a worker, the piece belongs to what that worker did, unless it was idle.
--
-- The next partition is, of those whose run on the device ended after the gap, the one whose run began first. Sorted by their
-- starts, the runs' ends so far only grow (reach), and the first to reach the gap's end is the one: so two sorts do instead of
-- a comparison of every gap with every run.
create or replace function proverq.device_gaps_between(from_time timestamptz, to_time timestamptz)
returns table (prover_id int, device text, started_at timestamptz, duration bigint, cause text,
               job_seq bigint, partition_idx int, attempt int, worker smallint)
language sql stable
set search_path = pg_catalog, pg_temp set jit = off
as $$
    with known as materialized (
        select p.prover_id, p.device, greatest(from_time, p.started_at) as lo, least(to_time, p.activity_until) as hi
        from proverq_private.prover p
        where p.activity_until > from_time and p.started_at < to_time
    ), busy as (
        select a.prover_id, range_agg(tstzrange(a.started_at, a.started_at + a.duration * interval '1 us')) as times
        from proverq_private.device_activity a
        where a.recorded_at >= from_time - interval '1 minute' and a.recorded_at < to_time + interval '10 minutes'
          and a.started_at < to_time and a.duration > 0
        group by a.prover_id
    ), gap as materialized (
        select k.prover_id, k.device, lower(g) as s, upper(g) as e, row_number() over () as id
        from known k
        left join busy b on b.prover_id = k.prover_id
        cross join lateral unnest(tstzmultirange(tstzrange(k.lo, k.hi)) - coalesce(b.times, '{}')) g
        where k.lo < k.hi
    ), step_row as materialized (
        select t.prover_id, t.job_seq, t.partition_idx, t.attempt, t.worker, t.step, t.started_at as s,
               t.started_at + t.duration * interval '1 us' as e
        from proverq.timing t
        where t.recorded_at >= from_time - interval '1 minute' and t.recorded_at < to_time + interval '10 minutes'
          and t.job_seq is not null and t.step between 10 and 58 and t.step <> 47
    ), run as (
        select r.prover_id, r.job_seq, r.partition_idx, r.attempt, min(r.s) filter (where r.step in (43, 44)) as s,
               coalesce(max(r.e) filter (where r.step >= 50), max(r.e)) as e,
               min(r.s) filter (where r.step = 10) as claimed_at, min(r.worker) filter (where r.step = 41) as worker
        from step_row r
        group by r.prover_id, r.job_seq, r.partition_idx, r.attempt
        having count(*) filter (where r.step in (43, 44)) > 0
    ), reaching as (
        select r.*, max(r.e) over (partition by r.prover_id order by r.s, r.job_seq, r.partition_idx) as reach from run r
    ), numbered as materialized (
        select r.*, row_number() over (partition by r.prover_id order by r.reach desc, r.s desc) as number from reaching r where r.reach = r.e
    ), place as (
        select n.prover_id, n.reach as at, true as is_run, n.s, null::bigint as id from numbered n
        union all
        select g.prover_id, g.e, false, null, g.id from gap g
    ), placed as (
        select p.id, count(*) filter (where p.is_run) over (partition by p.prover_id order by p.at desc, p.is_run desc, p.s desc
                                                            rows unbounded preceding) as number
        from place p
    ), owned as materialized (
        select g.id, g.prover_id, g.device, g.s, g.e, n.job_seq, n.partition_idx, n.attempt, n.worker, coalesce(n.claimed_at, '-infinity') as claimed_at,
               coalesce(j.ready_at, '-infinity') as ready_at
        from gap g
        join placed p on p.id = g.id
        left join numbered n on n.prover_id = g.prover_id and n.number = p.number
        left join proverq.job j on j.job_seq = n.job_seq
    ), piece as materialized (
        select o.id, r.step, greatest(o.s, r.s) as s, least(o.e, r.e) as e
        from owned o
        join step_row r on r.prover_id = o.prover_id and r.job_seq = o.job_seq and r.partition_idx = o.partition_idx and r.attempt = o.attempt
        where r.step < 50 and r.s < o.e and r.e > o.s
    ), waited as ( -- for a worker: what did that one do?
        select p.id, x.step, greatest(p.s, x.s) as s, least(p.e, x.e) as e, x.job_seq, x.partition_idx, x.attempt
        from piece p
        join owned o on o.id = p.id
        cross join lateral (
            select w.step, w.started_at as s, w.started_at + w.duration * interval '1 us' as e, w.job_seq, w.partition_idx, w.attempt
            from proverq.timing w
            where w.prover_id = o.prover_id and w.worker = o.worker and w.step between 41 and 47 and w.started_at < p.e
              and w.started_at >= coalesce((select max(v.started_at) from proverq.timing v
                                            where v.prover_id = o.prover_id and v.worker = o.worker and v.step between 41 and 48
                                              and v.started_at <= p.s), p.s)
        ) x
        where p.step = 40 and x.e > p.s
    ), told as (
        select p.id, s.name as cause, p.s, p.e, o.job_seq, o.partition_idx, o.attempt
        from piece p
        join owned o on o.id = p.id
        join proverq.step s on s.step = p.step
        where p.step <> 40
        union all
        select w.id, s.name, w.s, w.e, w.job_seq, w.partition_idx, w.attempt from waited w join proverq.step s on s.step = w.step
        union all
        select p.id, 'queue_wait', lower(m), upper(m), o.job_seq, o.partition_idx, o.attempt
        from piece p
        join owned o on o.id = p.id
        left join lateral (select range_agg(tstzrange(w.s, w.e)) as times from waited w where w.id = p.id) w on true
        cross join lateral unnest(tstzmultirange(tstzrange(p.s, p.e)) - coalesce(w.times, '{}')) m
        where p.step = 40
    ), untold as (
        select o.*, lower(m) as rest_s, upper(m) as rest_e
        from owned o
        left join (select p.id, range_agg(tstzrange(p.s, p.e)) as times from piece p group by p.id) p on p.id = o.id
        cross join lateral unnest(tstzmultirange(tstzrange(o.s, o.e)) - coalesce(p.times, '{}')) m
    ), rest as (
        select u.id, c.cause, c.s, c.e, u.job_seq, u.partition_idx, u.attempt
        from untold u
        cross join lateral (values
            ('no_work', u.rest_s, case when u.job_seq is null then u.rest_e else least(u.rest_e, u.ready_at) end),
            (case when u.attempt > 1 then 'retry_wait' else 'claim' end, greatest(u.rest_s, u.ready_at), least(u.rest_e, u.claimed_at)),
            ('other', case when u.job_seq is not null then greatest(u.rest_s, u.claimed_at) end, u.rest_e)) c (cause, s, e)
        where c.s < c.e
    )
    select g.prover_id, g.device, a.s, (extract(epoch from a.e - a.s) * 1000000)::bigint, a.cause, a.job_seq, a.partition_idx, a.attempt, o.worker
    from (select * from told union all select * from rest) a
    join gap g on g.id = a.id
    join owned o on o.id = a.id
    where a.s < a.e
    order by g.prover_id, a.s
$$;
comment on function proverq.device_gaps_between(timestamptz, timestamptz) is
    'The view device_gaps for another window: select * from proverq.device_gaps_between(now() - interval ''5 min'', now());';
