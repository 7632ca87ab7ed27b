-- Cancel: of jobs in every state; what is late is refused.
insert into proverq.job (circuit, partitions, webhook) values ('mul', 3, 'hook');
insert into proverq.partition (job_seq, partition_idx, witness) values (1, 1, '\x01');
select test.is(proverq.cancel(1, 'not needed'), true, 'an incomplete job is cancelled');
select test.is(format('%s %s %s', state, error_code, error),
           format('cancelled cancelled cancelled by %s: not needed', session_user), 'by whom and why is known'),
       test.is(finished_at is not null, true, 'and when')
from proverq.job where job_seq = 1;
select test.is(format('%s %s', state, witness), 'cancelled ', 'its partitions go with it, and their inputs')
from proverq.partition where job_seq = 1;
select test.throws($$insert into proverq.partition (job_seq, partition_idx, witness) values (1, 0, '\x01')$$,
    '55000', 'job 1 is cancelled .*Insert another job', 'it takes no further partitions');
select test.is(format('%s %s %s', job_seq, run, event), '1 1 proverq.job.cancelled', 'its webhook is written'),
       test.is(body::jsonb #>> '{data,state}', 'cancelled', 'and says so')
from proverq_private.webhook_delivery;
select test.is(proverq.cancel(1, 'again'), false, 'to cancel it again is harmless');
select test.matches(error, 'not needed', 'and changes nothing') from proverq.job where job_seq = 1;
select test.is(count(*), '1', 'nor is it told twice') from proverq_private.webhook_delivery;
select test.matches(proverq.why(1),
    '^job 1: cancelled by \w+: not needed, at .*proverq.retry\(1\)', 'why, of a cancelled job');
select test.is(proverq.wait(1), 'cancelled', 'wait knows it as an end');

-- Queued, with partitions in every state.
select test.job(6) \g /dev/null
select test.is(test.claim(4), '2/0 2/1 2/2 2/3', 'four leases');
select test.is(test.complete(2, 0), true, 'one proved'), test.is(test.fail(2, 1, true, true), 'retry', 'one held');
select test.token(2, 2) as late \gset
select test.is(proverq.cancel(2), true, 'a running job is cancelled');
select test.is(test.states(2), 'proved cancelled cancelled cancelled cancelled cancelled', 'what is proved stays');
select test.is(count(*), '0', 'no lease and no date is left')
from proverq.partition
where token is not null or due_at is not null or lease_until is not null or avoid_until is not null;
select test.is(error, format('cancelled by %s', session_user), 'no reason, none given')
from proverq.job where job_seq = 2;
select test.is(test.complete(2, 2, :'late'), false, 'a late proof is refused');
select test.is(test.fail(2, 2, true, true, :'late'), 'stale', 'a late failure too'),
       test.is(proverq_private.release(2, 2, :'late', 'x', 0), false, 'and a late release');
select test.is(count(*), '0', 'its heartbeat tells the prover') from test.heartbeat(1, array[:'late']::uuid[], 60000);
select test.is(count(*), '0', 'there is nothing to finalize') from test.finalize_next();
select test.is(count(witness), '0', 'its witnesses are deleted') from proverq.partition where job_seq = 2;
select test.is(test.claim(9), null, 'and nothing to claim'), test.is(proverq.wake_due(), '0', 'or to wake');
select test.job(1, keep_inputs => true) as job \gset
select test.is(proverq.cancel(:job), true, 'a job that keeps its inputs');
select test.is(count(witness), '1', 'has them still') from proverq.partition where job_seq = :job;

-- Completing and failing: not told yet, so not ended.
select test.job(1, webhook => 'hook') as job \gset
select test.claim(1) \g /dev/null
select test.complete(:job, 0) \g /dev/null
select test.is(proverq.cancel(:job), true, 'a job that only lacks its last step is cancelled');
select test.is(test.states(:job), 'proved', 'its proof stays'),
       test.is(test.state(:job), 'cancelled', 'though it has no result');
select test.throws(format('select proverq.proof(%s)', :job), '55000', 'no result: it is cancelled', 'to ask for');
select test.is(count(*), '0', 'no finalizer takes it') from test.finalize_next();
select test.is(string_agg(event, ' '), 'proverq.job.cancelled', 'and one end is told')
from proverq_private.webhook_delivery where job_seq = :job;
select test.job(2) as job \gset
select test.claim(1) \g /dev/null
select test.fail(:job, 0, false, true) \g /dev/null
select test.is(proverq.cancel(:job, 'too late'), true, 'a failing job is cancelled');
select test.matches(error,
    'cancelled by \w+: too late \(it was failing: partition 0: constraint 64 fails\)', 'and keeps why it was failing')
from proverq.job where job_seq = :job;
select test.is(test.states(:job), 'failed cancelled', 'its partitions are as they were');

-- Ended jobs, and none.
select test.job(1) as job \gset
select test.claim(1) \g /dev/null
select test.complete(:job, 0), test.finalize_next() \g /dev/null
select test.throws(format('select proverq.cancel(%s)', :job),
    '55000', 'job \d+ cannot be cancelled: it is finished since 2.*Only a job that has not ended', 'a finished job');
select test.job(1) as job \gset
select test.claim(1) \g /dev/null
select test.fail(:job, 0, false, true), test.finalize_next() \g /dev/null
select test.throws(format('select proverq.cancel(%s)', :job), '55000', 'it is failed since 2', 'a failed job');
select test.throws('select proverq.cancel(99)', 'P0002', 'no job 99 .*proverq.jobs', 'a job that is not there');
select test.throws('select proverq.cancel(null)', 'P0002', 'no job NULL', 'no job');
select test.job(1) as job \gset
select test.is(proverq.cancel(:job, repeat('x', 100000)), true, 'a long reason is taken'),
       test.is(proverq.cancel(:job), false, 'once');
select test.is(length(error) < 1100, true, 'and cut') from proverq.job where job_seq = :job;

-- The same request is the same job for ever.
select proverq.enqueue_witness('mul', array['\x01'::bytea], request_id => 'r') as job \gset
select proverq.cancel(:job) \g /dev/null
select test.is(proverq.enqueue_witness('mul', array['\x01'::bytea], request_id => 'r')::text,
    :'job', 'a request repeated after its job was cancelled is that job');
select test.is(test.state(:job), 'cancelled', 'and does not begin anew');
select test.throws($$select proverq.enqueue_witness('mul', array['\x02'::bytea], request_id => 'r')$$,
    '23505', 'was used for job', 'with other inputs it is refused');
