-- Where the time went, on a timeline made by hand: a second of one device with every kind of gap, its causes known
-- beforehand. Times are milliseconds after t0.
create function test.at(ms numeric) returns timestamptz language sql immutable as $$
    select '2026-01-01 00:00:00+00'::timestamptz + ms * interval '1 ms'
$$;
create function test.step(prover int, job bigint, idx int, worker int, step text, from_ms numeric, to_ms numeric,
    attempt int default 1)
returns void language sql as $$
    insert into proverq.timing (recorded_at, job_seq, partition_idx, attempt, prover_id, device, worker, step,
        started_at, duration)
    select test.at(to_ms), job, idx, case when job is not null then attempt end, prover, 'cuda:0', worker, s.step,
        test.at(from_ms), (to_ms - from_ms) * 1000
    from proverq.step s where s.name = step.step
$$;
create function test.busy(prover int, kind proverq_private.activity_kind, from_ms numeric, to_ms numeric,
    busy_ms numeric default null)
returns void language sql as $$
    insert into proverq_private.device_activity (recorded_at, prover_id, device, kind, started_at, duration, busy)
    values (test.at(to_ms), prover, 'cuda:0', kind, test.at(from_ms), (to_ms - from_ms) * 1000,
        coalesce(busy_ms, to_ms - from_ms) * 1000000)
$$;
create function test.gaps(from_ms numeric, to_ms numeric, prover int default 1) returns text language sql as $$
    select string_agg(format('%s-%s %s %s/%s', (extract(epoch from started_at - test.at(0)) * 1000)::int,
            (extract(epoch from started_at - test.at(0)) * 1000 + duration / 1000)::int, cause, job_seq, partition_idx),
        ', ' order by started_at)
    from proverq.device_gaps_between(test.at(from_ms), test.at(to_ms)) where prover_id = prover
$$;

update proverq_private.prover set device = 'cuda:0', started_at = test.at(0), activity_until = test.at(1000)
where prover_id = 1;
select test.job(4), test.job(1) \g /dev/null
update proverq.job set ready_at = test.at(100) where job_seq = 1;
update proverq.job set ready_at = test.at(700) where job_seq = 2;

-- Partition 0: ready at 100, claimed from 110, read and checked, runs 170-300 with a pause of its own at 200-210.
select test.step(1, 1, 0, 0, 'claim', 110, 120), test.step(1, 1, 0, 10, 'synthesis_wait', 120, 125),
       test.step(1, 1, 0, 10, 'read_witness', 125, 140), test.step(1, 1, 0, 10, 'check_witness', 140, 150),
       test.step(1, 1, 0, 20, 'queue_wait', 150, 152), test.step(1, 1, 0, 20, 'pick_up', 152, 155),
       test.step(1, 1, 0, 20, 'slot_wait', 155, 158), test.step(1, 1, 0, 20, 'launch', 158, 180),
       test.step(1, 1, 0, 20, 'inputs_wait', 180, 190), test.step(1, 1, 0, 20, 'device_wait', 190, 302),
       test.step(1, 1, 0, 20, 'hand_over', 302, 350), test.step(1, null, null, 20, 'idle', 0, 152),
       test.step(1, 1, 0, 20, 'copy_in', 170, 175), test.step(1, 1, 0, 20, 'msm_a', 175, 299),
       test.step(1, 1, 0, 20, 'copy_out', 299, 300) \g /dev/null
-- Partition 1 was ready all the time and is taken by the same worker after it handed over
-- (until 350); launched until 360.
select test.step(1, 1, 1, 0, 'claim', 120, 121), test.step(1, 1, 1, 11, 'synthesis_wait', 121, 122),
       test.step(1, 1, 1, 11, 'read_witness', 122, 123), test.step(1, 1, 1, 11, 'check_witness', 123, 124),
       test.step(1, 1, 1, 20, 'queue_wait', 124, 352), test.step(1, null, null, 20, 'idle', 350, 352),
       test.step(1, 1, 1, 20, 'pick_up', 352, 353), test.step(1, 1, 1, 20, 'slot_wait', 353, 354),
       test.step(1, 1, 1, 20, 'launch', 354, 370), test.step(1, 1, 1, 20, 'inputs_wait', 370, 371),
       test.step(1, 1, 1, 20, 'device_wait', 371, 501), test.step(1, 1, 1, 20, 'hand_over', 501, 502),
       test.step(1, 1, 1, 20, 'copy_in', 360, 365), test.step(1, 1, 1, 20, 'msm_a', 365, 499),
       test.step(1, 1, 1, 20, 'copy_out', 499, 500) \g /dev/null
-- Partition 2 failed once before (attempt 2), and something of it is not told: 560-565.
select test.step(1, 1, 2, 0, 'claim', 540, 550, 2), test.step(1, 1, 2, 10, 'synthesis_wait', 550, 551, 2),
       test.step(1, 1, 2, 10, 'read_witness', 551, 560, 2), test.step(1, 1, 2, 10, 'check_witness', 565, 570, 2),
       test.step(1, 1, 2, 21, 'queue_wait', 570, 571, 2), test.step(1, null, null, 21, 'idle', 0, 571),
       test.step(1, 1, 2, 21, 'pick_up', 571, 572, 2), test.step(1, 1, 2, 21, 'slot_wait', 572, 573, 2),
       test.step(1, 1, 2, 21, 'launch', 573, 580, 2), test.step(1, 1, 2, 21, 'device_wait', 580, 601, 2),
       test.step(1, 1, 2, 21, 'msm_a', 580, 600, 2) \g /dev/null
-- Job 2: not there until 700; its key is loaded for it.
select test.step(1, 2, 0, 1, 'fetch_key', 701, 720), test.step(1, 2, 0, 1, 'check_key', 720, 750),
       test.step(1, 2, 0, 1, 'load_key', 750, 760), test.step(1, 2, 0, 0, 'claim', 765, 770),
       test.step(1, 2, 0, 10, 'read_witness', 770, 780), test.step(1, 2, 0, 21, 'queue_wait', 780, 781),
       test.step(1, null, null, 21, 'idle', 601, 781), test.step(1, 2, 0, 21, 'pick_up', 781, 782),
       test.step(1, 2, 0, 21, 'launch', 782, 790), test.step(1, 2, 0, 21, 'device_wait', 790, 901),
       test.step(1, 2, 0, 21, 'msm_a', 790, 900) \g /dev/null
select test.busy(1, 'copy', 170, 175), test.busy(1, 'kernel', 174, 200), test.busy(1, 'kernel', 210, 299, 88.5),
       test.busy(1, 'copy', 299, 300), test.busy(1, 'copy', 360, 366), test.busy(1, 'kernel', 365, 499),
       test.busy(1, 'copy', 499, 500), test.busy(1, 'kernel', 580, 600), test.busy(1, 'kernel', 790, 900) \g /dev/null

select test.is(test.gaps(0, 170),
    '0-100 no_work 1/0, 100-110 claim 1/0, 110-120 claim 1/0, 120-125 synthesis_wait 1/0, 125-140 read_witness 1/0, '
    '140-150 check_witness 1/0, 150-152 queue_wait 1/0, 152-155 pick_up 1/0, 155-158 slot_wait 1/0, 158-170 launch 1/0',
    'a gap is cut at the steps of the partition that ran next');
select test.is(test.gaps(170, 300), '200-210 device_wait 1/0', 'a pause within a proof is the proof''s');
select test.is(test.gaps(300, 500), '300-302 device_wait 1/0, 302-350 hand_over 1/0, 350-352 queue_wait 1/1, '
    '352-353 pick_up 1/1, 353-354 slot_wait 1/1, 354-360 launch 1/1', 'who waits for a worker waits for what it does');
select test.is(test.gaps(500, 600), '500-540 retry_wait 1/2, 540-550 claim 1/2, 550-551 synthesis_wait 1/2, '
    '551-560 read_witness 1/2, 560-565 other 1/2, 565-570 check_witness 1/2, 570-571 queue_wait 1/2, '
    '571-572 pick_up 1/2, 572-573 slot_wait 1/2, 573-580 launch 1/2', 'what no step tells is other');
select test.is(test.gaps(600, 900), '600-700 no_work 2/0, 700-701 claim 2/0, 701-720 fetch_key 2/0, '
    '720-750 check_key 2/0, 750-760 load_key 2/0, 760-765 claim 2/0, 765-770 claim 2/0, 770-780 read_witness 2/0, '
    '780-781 queue_wait 2/0, 781-782 pick_up 2/0, 782-790 launch 2/0', 'loading a key is a cause');
select test.is(test.gaps(900, 2000),
    '900-1000 no_work /', 'after the last proof there is no work, as far as it is known');
select test.is(test.gaps(0, 1000, 2), null, 'a prover of which nothing is known has no gaps');
select test.is(test.gaps(120, 130), '120-125 synthesis_wait 1/0, 125-130 read_witness 1/0', 'a window cuts');
select test.is(sum(duration), '610000', 'gaps and busy time are all of the time')
from proverq.device_gaps_between(test.at(0), test.at(1000));
select test.is(string_agg(format('%s %s %s', cause, gaps, total), ', '),
    'no_work 3 300000, hand_over 1 48000, claim 6 41000', 'causes are summed, the worst first')
from (select * from proverq.gap_causes_between(test.at(0), test.at(1000)) limit 3) c;
select test.is(format('%s %s', gaps, total), ' 500', 'pauses inside an interval have their own name')
from proverq.gap_causes_between(test.at(0), test.at(1000)) where cause = 'between_kernels';
select test.is(round(sum(share)::numeric, 6), 1.000000, 'shares add up')
from proverq.gap_causes_between(test.at(0), test.at(1000));
select test.is(round(sum(of_time)::numeric, 6), 0.610500, 'so do parts of the time')
from proverq.gap_causes_between(test.at(0), test.at(1000));

select test.is(count(*), '5', 'a bucket for every 0.2 s that is known')
from proverq.device_utilization_between(test.at(0), test.at(3000));
select test.is(format('%s %s %s', round(kernel_busy::numeric, 4), round(copy_busy::numeric, 4), span_busy),
    '0.1300 0.0250 ', 'kernels and copies in a bucket')
from proverq.device_utilization_between(test.at(0), test.at(1000)) where bucket = test.at(0);
select test.is(round(kernel_busy::numeric, 4), 0.6175, 'pauses inside an interval are not busy')
from proverq.device_utilization_between(test.at(0), test.at(1000)) where bucket = test.at(200);
select test.is(round(worker_busy::numeric, 4), 0.1200, 'workers that are not idle')
from proverq.device_utilization_between(test.at(0), test.at(1000)) where bucket = test.at(0);

update proverq_private.prover set device = 'cpu', started_at = test.at(0), activity_until = test.at(400)
where prover_id = 2;
select test.busy(2, 'device_span', 0, 100) \g /dev/null
select test.is(format('%s|%s|%s', kernel_busy, copy_busy, span_busy),
    '||0.5', 'without records of the device nothing is called kernel time')
from proverq.device_utilization_between(test.at(0), test.at(1000)) where prover_id = 2 and bucket = test.at(0);

select test.is(string_agg(format('%s %s %s %s %s %s', step, circuit, count, p50, p95, p99), ', '),
    'claim mul 4 5000 10000 10000, read_witness mul 4 9000 15000 15000', 'step_stats of a window')
from proverq.step_stats_between(test.at(0), test.at(1000)) where step in ('claim', 'read_witness');
select test.is(count(*), '0', 'and of one without steps') from proverq.step_stats_between(test.at(2000), test.at(3000));
select test.is(string_agg(format('%s %s%s', step, since_ready / 1000, case when is_wait then ' waits' end),
        ', ' order by started_at, duration),
    'unclaimed 0 waits, claim 10, synthesis_wait 20 waits, '
    'read_witness 25, check_witness 40, queue_wait 50 waits, pick_up 52', 'job_timeline tells waiting from running')
from proverq.job_timeline where job_seq = 1 and partition_idx = 0 and since_ready <= 52000;

-- What a prover records.
select proverq_private.record_workers(1, '{-1,1,1}', '{0,0,3}', '{0,1,1}', '{48,47,47}', '{20,20,20}',
    array[test.at(950), test.at(951), test.at(952)], '{10,20,30}') \g /dev/null
select test.is(string_agg(format('%s/%s/%s %s', job_seq, partition_idx, attempt, duration), ', ' order by duration),
    '// 10, 1/0/1 20, 1/3/1 30', 'rows with and without a partition')
from proverq.timing where started_at >= test.at(950);
select proverq_private.record_workers(1, '{1}', '{3}', '{1}', '{47}', '{20}', array[test.at(953)], '{40}') \g /dev/null
select test.is(count(*), '3', 'a step of an attempt is not written twice')
from proverq.timing where started_at >= test.at(950);
select test.throws($$select proverq_private.record_workers(1, '{1}', '{}', '{}', '{}', '{}', '{}', '{}')$$,
    '22023', 'differ in length', 'arrays of different lengths');
select proverq_private.record_activity(3, '{0,1,2,3}', array[test.at(1), test.at(2), test.at(3), test.at(4)],
    '{1,2,3,4}', '{1000,2000,3000,4000}', null) \g /dev/null
select test.is(string_agg(format('%s %s %s', kind, duration, busy), ', ' order by started_at),
    'kernel 1 1000, copy 2 2000, device_span 3 3000, cpu_span 4 4000', 'activity is recorded')
from proverq_private.device_activity where prover_id = 3;
select test.is(activity_until, null, 'more comes') from proverq_private.prover where prover_id = 3;
select proverq_private.record_activity(3, '{}', '{}', '{}', '{}', test.at(9)) \g /dev/null
select test.is(activity_until, test.at(9), 'and then it is known') from proverq_private.prover where prover_id = 3;
select test.throws($$select proverq_private.record_activity(1, '{1}', '{}', '{}', '{}', null)$$,
    '22023', 'differ in length', 'arrays of different lengths');
select test.is(count(*), '0', 'every column of the views has a comment')
from pg_attribute a join pg_class c on c.oid = a.attrelid
where c.relnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace)
  and c.relname in ('step_stats', 'job_timeline', 'device_utilization', 'device_gaps', 'gap_causes') and a.attnum > 0
  and col_description(c.oid, a.attnum) is null
  and a.attname not in ('job_seq', 'partition_idx', 'attempt', 'host', 'device', 'cause', 'description');
