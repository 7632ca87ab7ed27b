select test.job(3) \g /dev/null
select test.is(test.claim(2), '1/0 1/1', 'two leases');
select test.token(1, 0) as first, test.token(1, 1) as second \gset
select test.is(test.fail(1, 0, true, true, gen_random_uuid()), 'stale', 'a token that never was');
select test.is(test.fail(1, 0, true, true), 'retry', 'a failure that may be retried');
select test.is(format('%s %s %s %s %s', state, failures, error_code, error, token),
           'held 1 witness constraint 64 fails ', 'holds the partition'),
       test.is(due_at - clock_timestamp() between interval '0.6 s' and interval '1.3 s', true, 'for about a second')
from proverq.partition where job_seq = 1 and partition_idx = 0;
select test.is(count(*), '1', 'its steps are recorded') from proverq.timing;
select test.is(test.fail(1, 0, true, true, :'first'), 'stale', 'its token is gone');
select test.is(test.state(1), 'queued', 'the job goes on');
select test.is(proverq.wake_due(), '0', 'before its time it is not woken');
select test.is(test.claim(5), '1/2', 'nor claimed');
update proverq.partition set due_at = clock_timestamp() where job_seq = 1 and partition_idx = 0;
select test.is(proverq.wake_due(), '1', 'at its time it is woken');
select test.matches(proverq.why(1),
    'running: 0 of 3 partition\(s\) proved, 2 at work now', 'why, while others of the job run');
select test.is(test.claim(5), null, 'and left to other devices'),
       test.is(avoid_until - clock_timestamp() between interval '8 s' and interval '12 s', true, 'for some seconds')
from proverq.partition where job_seq = 1 and partition_idx = 0;
select test.is(test.claim(5, 2), '1/0', 'one of which claims it');

-- Five failures that spend.
create procedure test.fail_again(job bigint, spend bool) language plpgsql as $$
begin
    update proverq.partition set due_at = clock_timestamp(), avoid_until = null where job_seq = job and state = 'held';
    perform proverq.wake_due(), test.claim(1);
end
$$;
select test.is(test.fail(1, 0, true, false), 'retry', 'a device fault spends nothing');
select test.is(failures, 1, 'and is not counted') from proverq.partition where job_seq = 1 and partition_idx = 0;
call test.fail_again(1, true);
select test.is(test.fail(1, 0, true, true), 'retry', 'second');
select test.is(due_at - clock_timestamp() between interval '1.4 s' and interval '2.6 s', true, 'two seconds')
from proverq.partition where job_seq = 1 and partition_idx = 0;
call test.fail_again(1, true);
select test.is(test.fail(1, 0, true, true), 'retry', 'third');
call test.fail_again(1, true);
select test.is(test.fail(1, 0, true, true), 'retry', 'fourth');
call test.fail_again(1, true);
select test.is(test.complete(1, 2), true, 'one partition is proved meanwhile');
select test.is(test.fail(1, 0, true, true), 'failed', 'the fifth is the last');
select test.is(test.states(1),
    'failed cancelled proved', 'the partition has failed, what is proved stays, the rest is cancelled');
select test.is(format('%s | %s | %s', state, error_code, error),
    'failing | witness | partition 0: constraint 64 fails', 'the job says which and why')
from proverq.job where job_seq = 1;
select test.is(test.complete(1, 1, :'second'), false, 'a cancelled partition''s proof is refused');
select test.is(test.fail(1, 1, false, true, :'second'), 'stale', 'and so is its failure');
select test.is(format('%s %s', job_seq, event), '1 proverq.job.failed', 'the job is finalized as failed')
from test.finalize_next();
select test.is(string_agg(format('%s/%s %s %s %s %s', job_seq, partition_idx, attempt, run, device,
                   case when spent then code else '(' || code || ')' end),
               ', ' order by failed_at),
           '1/0 1 1 cpu witness, 1/0 2 1 cpu (witness), 1/0 3 1 cpu witness, '
           '1/0 4 1 cpu witness, 1/0 5 1 cpu witness, 1/0 6 1 cpu witness', 'every attempt''s error is kept'),
       test.is(string_agg(distinct host, ' '), 'host1 host2', 'with where it was')
from proverq.failures;

-- At once, with partitions in every state.
select test.job(6) \g /dev/null
select test.is(test.claim(5), '2/0 2/1 2/2 2/3 2/4', 'five leases');
select test.is(test.complete(2, 0), true, 'one proved');
select test.is(test.fail(2, 1, true, true), 'retry', 'one held');
select test.is(test.fail(2, 3, false, true), 'failed', 'a bad witness fails at once');
select test.is(test.states(2), 'proved cancelled cancelled failed cancelled cancelled', 'whatever the others did');
select test.is(count(*), '0', 'no lease is left')
from proverq.partition where token is not null or due_at is not null or lease_until is not null;
select test.job(1) \g /dev/null
select test.is(test.claim(1), '3/0', 'other jobs go on');
select test.is(proverq_private.fail(3, 0, test.token(3, 0), null, null, false, true, '{}', '{}', '{}', '{}'),
    'failed', 'without a reason');
select test.is(error, 'partition 0: no reason was given', 'it says so') from proverq.job where job_seq = 3;
select test.job(1) \g /dev/null
select test.is(test.claim(1), '4/0', 'a long reason');
select test.is(
    proverq_private.fail(4, 0, test.token(4, 0), 'x', repeat('x', 100000), false, true, '{}', '{}', '{}', '{}'),
    'failed', 'is taken');
select test.is(length(error) < 2100, true, 'and cut') from proverq.job where job_seq = 4;

-- The backoff.
select test.is(bool_and(proverq_private.backoff(b) between s * interval '0.75 s' and s * interval '1.25 s'),
    true, 'the backoff doubles up to five minutes')
from (values (0, 1), (1, 2), (2, 4), (8, 256), (9, 300), (1000000, 300), (-3, 1)) v (b, s), generate_series(1, 20);

-- Faults that spend nothing back off by their own number; of a partition that fails for ever the last hundred are kept.
select test.job(1, priority => 1) as job \gset
do $$
begin
    for i in 1..130 loop
        update proverq.partition set due_at = clock_timestamp(), avoid_until = null where state = 'held';
        perform proverq.wake_due(), test.claim(1);
        perform test.fail(job_seq, 0, true, false) from proverq.partition where state = 'leased' and priority = 1;
    end loop;
end
$$;
select test.is(format('%s %s %s', state, attempt, failures), 'held 130 0', 'a device fault can be met for ever'),
       test.is(due_at - clock_timestamp() between interval '220 s' and interval '380 s',
           true, 'at longer and longer intervals')
from proverq.partition where job_seq = :job;
select test.is(format('%s %s %s', count(*), min(attempt), max(attempt)),
    '100 31 130', 'its last hundred errors are kept')
from proverq_private.failure where job_seq = :job;
select proverq.cancel(:job) \g /dev/null

-- Release.
select test.job(2) \g /dev/null
select test.is(test.claim(2), '6/0 6/1', 'two leases');
select test.token(6, 0) as first \gset
select test.is(proverq_private.release(6, 0, :'first', 'the prover stops', 0), true, 'a lease is given back');
select test.is(proverq_private.release(6, 0, :'first', 'the prover stops', 0), false, 'once');
select test.is(proverq_private.release(6, 1, test.token(6, 1), 'no such file', 60000), true, 'another for later');
select test.is(test.states(6), 'ready held', 'ready at once, or held');
select test.is(string_agg(format('%s %s %s', failures, losses, error), ', ' order by partition_idx),
    '0 0 the prover stops, 0 0 no such file', 'nothing is spent')
from proverq.partition where job_seq = 6;
select test.is(test.claim(2), '6/0', 'what is ready is claimed again');
