# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# The views on a million timing rows: 50,000 partitions in 1,000 s, with a gap of 1 ms before each.
fresh
sql -c "select test.job(1)" >/dev/null
sql <<'SQL'
update proverq.job set ready_at = '2026-01-01', partitions = 50000;
update proverq_private.prover set started_at = '2026-01-01', activity_until = '2026-01-01 00:16:40' where prover_id = 1;
create temp table at as
select i, '2026-01-01'::timestamptz + i * interval '20 ms' as t from generate_series(0, 49999) i;
-- A step: its number, worker, start and length in microseconds after the partition's own 20 ms began.
insert into proverq.timing
    (recorded_at, job_seq, partition_idx, attempt, prover_id, device, worker, step, started_at, duration)
select at.t + interval '30 ms', 1, at.i, 1, 1, 'cuda:0',
       case when s.step between 40 and 58 then 20 + at.i % 2 else s.worker end, s.step,
       at.t + s.start * interval '1 us', s.length
from at, (values (10, 0, -60000, 500), (29, 10, -59500, 100), (30, 10, -59400, 400), (31, 10, -59000, 1000),
                 (40, 0, -58000, 57500), (41, 0, -500, 100), (42, 0, -400, 100), (43, 0, -300, 1500),
                 (45, 0, 1200, 300), (46, 0, 1500, 18600), (50, 0, 1000, 500), (51, 0, 1500, 500), (52, 0, 2000, 3000),
                 (53, 0, 5000, 3000), (54, 0, 5000, 4000), (55, 0, 5000, 5000), (56, 0, 12000, 3000),
                 (57, 0, 15000, 4000), (58, 0, 19000, 1000), (60, 30, 20100, 200)) s (step, worker, start, length);
insert into proverq_private.device_activity (recorded_at, prover_id, device, kind, started_at, duration, busy)
select at.t + interval '1 s', 1, 'cuda:0', k.kind::proverq_private.activity_kind,
       at.t + k.start * interval '1 us', k.length, k.length * 1000
from at, (values ('copy', 1000, 500), ('kernel', 1500, 17500), ('copy', 19000, 1000)) k (kind, start, length);
analyze proverq.timing, proverq_private.device_activity;
SQL
it 'a million rows' "$(sql -c 'select count(*) from proverq.timing')" 1000000
window="'2026-01-01', '2026-01-01 00:16:40'"
took() {
    local start=${EPOCHREALTIME/./}
    sql -c "$1" >"$work/answer" || return
    took_ms=$(((${EPOCHREALTIME/./} - start) / 1000))
}
for view in step_stats device_utilization device_gaps gap_causes; do
    took "select count(*) from proverq.${view}_between($window)"
    echo "-- $view of 1,000,000 rows: $took_ms ms"
    it "$view of a million rows within the statement timeout" \
        "$([ "$took_ms" -lt 60000 ] && [ "$(cat "$work/answer")" -gt 0 ] && echo yes)" yes
    took "select count(*) from proverq.${view}_between('2026-01-01 00:10', '2026-01-01 00:10:10')"
    echo "-- $view of 10 s of them: $took_ms ms"
done
it 'every gap has its cause' "$(sql -F ' ' -c "select cause, total / 1000
    from proverq.gap_causes_between('2026-01-01 00:00:01', '2026-01-01 00:16:39') where cause <> 'no_work'")" \
    'launch 49900'
it 'the device is as busy as it was' "$(sql -F ' ' -c "
    select round(avg(kernel_busy)::numeric, 3), round(avg(copy_busy)::numeric, 3)
    from proverq.device_utilization_between($window)")" '0.875 0.075'
took 'select count(*) from proverq.job_timeline where job_seq = 1 and partition_idx = 777'
it 'a timeline goes by its index' "$([ "$took_ms" -lt 5000 ] && cat "$work/answer")" 21
