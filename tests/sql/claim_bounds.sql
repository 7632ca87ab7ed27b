-- A bound hides what is at it or below it, in its circuit and priority, and nothing else.
select test.job(3), test.job(3), test.job(1, 'other') \g /dev/null
begin;
select test.is(test.claim_from(10, 1, 1),
    '1/2 2/0 2/1 2/2 3/0', 'what is at the bound and below it is hidden, other circuits are not');
rollback;
begin;
select test.is(test.claim_from(10, 2, 2), '3/0', 'all of a circuit may be hidden');
select test.is(test.claim(10), '1/0 1/1 1/2 2/0 2/1 2/2', 'a claim without bounds finds it');
rollback;
begin;
select test.is(test.claim_from(2, 1, 1, circuits => '{2}'), '1/2 2/0', 'no more than asked for');
rollback;
begin;
select test.is(test.claim_from(1, 9, 0, circuits => '{2}'), null, 'a bound beyond everything'),
       test.is(test.claim_from(1, 9, 0, circuits => '{3}'), '3/0', 'of a circuit that is not asked for');
rollback;

-- Whatever becomes ready below it: the next claim without bounds has it, in its place.
select test.is(test.claim(4), '1/0 1/1 1/2 2/0', 'four are claimed');
select test.is(proverq_private.release(1, 1, test.token(1, 1), 'gives it back', 0), true, 'one is given back');
select test.is(test.fail(1, 2, true, true), 'retry', 'one is tried again');
update proverq.partition set due_at = clock_timestamp() where due_at is not null;
select test.is(proverq.wake_due(), '1', 'when it is due');
begin;
select test.is(test.claim_from(10, 2, 0), '2/1 2/2 3/0', 'both are hidden');
rollback;
begin;
select test.is(test.claim(10, 2), '1/1 1/2 2/1 2/2 3/0', 'and found');
rollback;
begin;
select proverq.pause('mul') \g /dev/null
select test.is(test.claim_from(10, 1, 0), '3/0', 'a pause holds with bounds, too');
select proverq.resume('mul') \g /dev/null
select test.is(test.claim(10, 2), '1/1 1/2 2/1 2/2', 'what was paused is found');
rollback;

-- Priorities: only the bound's own is cut.
select test.job(1, priority => 5), test.job(1, priority => 7), test.job(1, priority => -3),
       test.job(2, priority => 5) \g /dev/null
begin;
select test.is(test.claim_from(20, 2, 2),
    '5/0 4/0 7/0 7/1 3/0 6/0', 'higher and lower priorities are looked at from their beginning');
rollback;
begin;
select test.is(test.claim_from(20, 4, 0, 5, '{2}'),
    '5/0 7/0 7/1 1/1 1/2 2/1 2/2 6/0', 'those above, between and below');
rollback;
begin;
select test.is(string_agg(job_seq || '/' || partition_idx, ' ' order by ordinality),
    '5/0 7/1 2/2 6/0', 'a bound for each of several priorities')
from proverq_private.claim(2, '{2}', 60000, 20, '{2,2}', '{0,5}', '{2,7}', '{1,0}') with ordinality;
rollback;
begin;
select test.is(string_agg(job_seq || '/' || partition_idx, ' ' order by ordinality),
    '5/0 4/0 7/0 7/1 1/1 1/2 2/1 2/2 3/0 6/0', 'no bounds at all')
from proverq_private.claim(2, '{1,2,3,3}', 60000, 20, '{}', '{}', '{}', '{}') with ordinality;
rollback;
begin;
select test.is(array_agg(priority), '{7,5}', 'the priority is told')
from proverq_private.claim(1, '{2}', 60000, 2, '{}', '{}', '{}', '{}');
rollback;
-- The extremes of a priority.
select test.job(1, priority => 2147483647), test.job(1, priority => -2147483648) \g /dev/null
begin;
select test.is(test.claim_from(20, 7, 1, 5, '{2}'),
    '8/0 5/0 1/1 1/2 2/1 2/2 6/0 9/0', 'the highest and the lowest of all');
rollback;

-- More rows than one reading: all that are first are locked by others, or avoid this prover.
begin;
select test.job(60, priority => 100) \g /dev/null
update proverq.partition set avoid_until = clock_timestamp() + interval '1 minute', prover_id = 2,
    error_code = 'host_memory' where job_seq = 10 and partition_idx < 59;
select test.is(test.claim_from(2, 9, 9, 5, '{2}'), '8/0 10/59', 'it reads on behind them');
rollback;

select test.throws('select proverq_private.claim(1, ''{1}'', 0, 1, ''{}'', ''{}'', ''{}'', ''{}'')',
    '22023', 'lease', 'a lease of 0 ms');
begin;
select count(*) from proverq_private.claim(1, '{1}', 1000, 1, '{}', '{}', '{}', '{}') \g /dev/null
select test.is(current_setting('synchronous_commit'), 'off', 'a claim does not wait for the disk');
rollback;
select test.is(current_setting('synchronous_commit'), 'on', 'what follows does');

-- Circuits that are wanted: known ones are stepped over.
select test.is(array_agg(circuit_id), '{2,3}', 'none is known') from proverq_private.wanted_circuits('{}', 8);
select test.is(array_agg(circuit_id), '{3}', 'the one before is') from proverq_private.wanted_circuits('{2,1}', 8);
select test.is(array_agg(circuit_id), '{2}', 'the one behind is') from proverq_private.wanted_circuits('{3,7}', 8);
select test.is(array_agg(circuit_id), null, 'all are') from proverq_private.wanted_circuits('{1,2,3}', 8);
