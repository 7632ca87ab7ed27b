select test.job(3), test.job(2, priority => 10), test.job(2, 'other'), test.job(1, priority => -1) \g /dev/null
select test.is(test.claim(3), '2/0 2/1 1/0', 'priority first, then job, then partition');
select test.is(test.claim(1), '1/1', 'one at a time');
select test.is(test.claim(10, circuits => '{3}'), '3/0 3/1', 'only circuits that were named');
select test.is(test.claim(10, circuits => '{3}'), null, 'nothing is left of them');
select test.is(test.claim(10, circuits => '{}'), null, 'no circuits, no claim');
select test.is(test.claim(10, circuits => null), null, 'NULL circuits, no claim');
select test.is(test.claim(10, circuits => '{2,2,2}'), '1/2 4/0', 'a circuit named twice is claimed once');
select test.is(test.claim(10), null, 'nothing is claimed twice');

select test.is(count(distinct token), '8', 'each lease has its own token') from proverq.partition;
select test.is(bool_and(attempt = 1 and prover_id = 1 and state = 'leased'), true, 'attempt and prover are recorded')
from proverq.partition;
select test.is(
    bool_and(lease_until between clock_timestamp() + interval '50 s' and clock_timestamp() + interval '60 s'),
    true, 'the lease is as long as asked')
from proverq.partition;
select test.throws('select proverq_private.claim(1, ''{1}'', 0, 1)', '22023', 'lease', 'a lease of 0 ms');
select test.throws('select proverq_private.claim(1, ''{1}'', 1000, 0)', '22023', 'rows', 'a claim of 0 rows');
select test.throws('select proverq_private.claim(1, ''{1}'', null, 1)', '22023', 'lease', 'a lease of NULL');

select test.job(1, keep_inputs => true) \g /dev/null
select test.is(
    format('%s %s %s %s %s %s', job_seq, attempt, circuit_id, keep_inputs, convert_from(witness, 'UTF8'), witness_path),
    '5 1 2 t witness 0 ', 'a claim gives what the prover needs')
from proverq_private.claim(2, '{2}', 1000, 1);
select proverq.enqueue_path('mul', array['a.wtns']) \g /dev/null
select test.is(format('%s %s', witness, witness_path), ' a.wtns', 'a path too')
from proverq_private.claim(2, '{2}', 1000, 1);

-- Circuits that are wanted.
select test.is(array_agg(circuit_id), null, 'none when nothing is ready') from proverq_private.wanted_circuits('{}', 8);
select test.job(1), test.job(1, 'other', 5), test.job(1, 'other', -5) \g /dev/null
select test.is(array_agg(circuit_id), '{3,2}', 'in the order of their first partition')
from proverq_private.wanted_circuits('{}', 8);
select test.is(array_agg(circuit_id), '{2}', 'without those that are known')
from proverq_private.wanted_circuits('{3,1}', 8);
select test.is(array_agg(circuit_id), '{3}', 'as many as asked for') from proverq_private.wanted_circuits('{}', 1);

-- A late job of high priority among more rows than a claim reads.
begin;
select test.job(50), test.job(1, priority => 3) \g /dev/null
select test.is(test.claim(3), '8/0 11/0 7/0', 'a late job overtakes fifty rows');
rollback;

-- Heartbeats.
select test.is(test.claim(10, 3, lease_ms => 1000), '8/0 7/0 9/0', 'three leases');
select test.is(count(*), '2', 'a heartbeat renews the leases that are named')
from test.heartbeat(3, array[test.token(8, 0), test.token(7, 0), gen_random_uuid()], 60000);
select test.is(count(*), '2', 'and only those')
from proverq.partition where prover_id = 3 and lease_until > clock_timestamp() + interval '30 s';
select test.is(count(*), '0', 'another prover cannot renew them')
from test.heartbeat(2, array[test.token(8, 0)], 60000);
update proverq.partition set lease_until = clock_timestamp() where prover_id = 3;
select test.is(proverq_private.renew_leases(3, '{8,7,7}', '{0,0,0}',
        array[test.token(8, 0), test.token(7, 0), test.token(9, 0)], 60000),
    2, 'leases are renewed by key and token');
select test.is(string_agg(format('%s/%s', job_seq, partition_idx), ' ' order by job_seq), '7/0 8/0', 'those')
from proverq.partition where prover_id = 3 and lease_until > clock_timestamp() + interval '30 s';
select test.is(proverq_private.renew_leases(2, '{8}', '{0}', array[test.token(8, 0)], 60000),
    0, 'not by another prover');
select test.is(proverq_private.renew_leases(3, '{8}', '{0}', array[gen_random_uuid()], 60000),
    0, 'not with another token');
select test.is(count(*), '0', 'none named, none renewed') from test.heartbeat(3, '{}', 60000);
update proverq_private.prover set seen_at = now() - interval '1 hour', state = 'lost' where prover_id = 3;
select test.is(proverq_private.renew_leases(3, '{}', '{}', '{}', 60000), 0, 'a heartbeat without leases');
select test.is(state, 'running', 'finds a prover again that was taken for lost'),
       test.is(clock_timestamp() - seen_at < interval '5 s', true, 'and is noted')
from proverq_private.prover where prover_id = 3;
update proverq_private.prover set state = 'stopped' where prover_id = 3;
select proverq_private.renew_leases(3, '{}', '{}', '{}', 60000) \g /dev/null
select test.is(state, 'stopped', 'a late heartbeat does not undo a stop')
from proverq_private.prover where prover_id = 3;
