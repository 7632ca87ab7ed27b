select test.job(2), test.job(1) \g /dev/null
select test.is(test.claim(2), '1/0 1/1', 'two leases');
select test.is(test.complete(1, 1), true, 'a proof is recorded under its token');
select test.is(format('%s %s %s %s %s', state, proof, publics, token, lease_until),
           'proved {"pi_a": 1} ["1"]  ', 'it is in the row'),
       test.is(proved_at is not null, true, 'with its time')
from proverq.partition where job_seq = 1 and partition_idx = 1;
select test.is(format('%s %s', remaining, state), '1 queued', 'one remains') from proverq.job where job_seq = 1;
select test.is(count(*), '2', 'each step has a row') from proverq.timing;
select test.is(string_agg(format('%s %s %s %s %s %s %s %s', job_seq, partition_idx, attempt, prover_id, device, worker,
            step, duration), ', ' order by step), '1 1 1 1 cpu 0 10 5, 1 1 1 1 cpu 1 80 70', 'that says everything')
from proverq.timing;

select test.token(1, 0) as token \gset
select test.is(test.complete(1, 1, :'token'), false, 'the token of another partition is refused');
select test.is(test.complete(1, 0, gen_random_uuid()), false, 'a token that never was is refused');
select test.is(test.complete(1, 0, null), true, 'the right one is not');
select test.is(test.complete(1, 0, :'token'), false, 'a second time it is');
select test.is(test.complete(77, 0, :'token'), false, 'an unknown job is refused');
select test.is(count(*), '4', 'a refused result leaves no timing') from proverq.timing;
select test.is(format('%s %s', remaining, state), '0 completing', 'the last proof completes the job')
from proverq.job where job_seq = 1;
select test.is(test.state(2), 'queued', 'and no other');

select test.is(test.claim(1), '2/0', 'another lease');
select test.throws($$select test.record(2, 0, test.token(2, 0), '{}', '[]', null, '{10,20}', '{0}', '{}', '{}')$$,
    '22023', 'timing, differ in length', 'timing arrays of different lengths');
select test.is(test.states(2), 'leased', 'undo the whole result');
select test.throws($$select test.record(2, 0, test.token(2, 0), null, '[]', null, '{}', '{}', '{}', '{}')$$,
    '23514', 'partition_proof_whole', 'a result without a proof');
select test.is(
    test.record(2, 0, test.token(2, 0), '{}', '[]', decode(repeat('ab', 192), 'hex'), '{}', '{}', '{}', '{}'),
    true, 'no timing is no error');
select test.is(octet_length(proof_compressed), 192, 'compressed bytes are kept')
from proverq.partition where job_seq = 2;

-- A partition that was rescued belongs to who claims it next.
select test.job(1) \g /dev/null
select test.is(test.claim(1, lease_ms => 1), '3/0', 'a lease of 1 ms');
select test.token(3, 0) as old \gset
select pg_sleep(0.01) \g /dev/null
select test.is(proverq.rescue_expired(), '1', 'expires');
select test.is(test.complete(3, 0, :'old'), false, 'its late result is refused while nobody has it');
select test.is(test.claim(1, 2), '3/0', 'another prover claims it');
select test.is(test.complete(3, 0, :'old'), false, 'its late result is refused while another has it');
select test.is(test.complete(3, 0), true, 'the new lease''s is taken');
select test.is(format('%s %s %s', attempt, prover_id, losses), '2 2 1', 'attempts and losses are counted')
from proverq.partition where job_seq = 3;
select test.is(error, null, 'and no error is left') from proverq.partition where job_seq = 3;
