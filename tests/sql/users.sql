-- What people call: proof, wait, why, endpoints, views.
select test.throws('select proverq.proof(1)', 'P0002', 'no job 1', 'the proof of no job');
select test.throws('select proverq.proof(null)', 'P0002', 'no job NULL', 'the proof of NULL');
select test.is(proverq.why(1), 'there is no job 1; list them with: select * from proverq.jobs;', 'why, of no job');
select test.throws('select proverq.wait(1)', 'P0002', 'no job 1', 'waiting for no job');

insert into proverq.job (circuit, partitions) values ('mul', 8);
insert into proverq.partition (job_seq, partition_idx, witness) values (1, 3, '\x01');
select test.is(proverq.why(1),
    'job 1: 7 of its 8 partition(s) are missing (0, 1, 2, 4, 5, ...); insert them into proverq.partition and commit',
    'why, of an incomplete job');
insert into proverq.partition (job_seq, partition_idx, witness)
select 1, i, '\x01'
from generate_series(0, 7) i where i not in (3, 5);
select test.matches(proverq.why(1), '1 of its 8 partition\(s\) are missing \(5\);', 'why, of one that lacks one');

select test.job(2) as job \gset
update proverq_private.prover set seen_at = now() - interval '1 hour';
select test.is(proverq.why(:job),
    format('job %s: no prover is running (the last one was seen 60 min ago); run: proverq serve', :job),
    'why, without provers');
update proverq_private.prover
set seen_at = clock_timestamp(), state = case when prover_id = 1 then 'running' else 'stopped' end;
select test.is(proverq.why(:job),
    format('job %s: waiting its turn; 0 partition(s) of the same circuit are ahead and 1 prover(s) run', :job),
    'why, while all provers are busy');
select test.job(3, priority => 5) as hurry \gset
select test.matches(proverq.why(:job), '; 3 partition\(s\) of the same circuit are ahead', 'why, behind others');
update proverq_private.prover set idle = true where prover_id = 1;
select test.matches(proverq.why(:job),
    'all 1 running prover\(s\) are idle: they do not take this circuit; .*proverq circuit show mul',
    'why, when nobody takes it');
select test.throws(format('select proverq.proof(%s)', :job),
    '55000', 'job \d+ has no result: it is queued \| job \d+: ready.*proverq.wait', 'the proof of a queued job');

select test.claim(3), test.claim(1) \g /dev/null
select test.matches(proverq.why(:job),
    'running: 0 of 2 partition\(s\) proved, 1 at work now, the first by prover 1 \(cpu on host1, attempt 1\)',
    'why, while it runs');
select test.is(state, 'running', 'the view says running'), test.is(leased, '1', 'with what is at work')
from proverq.jobs where job_seq = :job;
update proverq.partition set lease_until = clock_timestamp() - interval '90 s'
where job_seq = :job and partition_idx = 0;
select test.matches(proverq.why(:job),
    'the lease of a partition ended 90\.\d s ago .*rescue_expired', 'why, when a prover is silent');
select test.fail(:job, 0, true, true), test.claim(1) \g /dev/null
select test.complete(:job, 1) \g /dev/null
select test.matches(proverq.why(:job), 'partition 0 is tried again in '
    '(\d+ ms|1\.\d s) after 1 failure\(s\) in 1 attempt\(s\), the last: constraint 64 fails', 'why, while backing off');
update proverq.partition set due_at = clock_timestamp() - interval '1 min' where job_seq = :job and partition_idx = 0;
select test.matches(proverq.why(:job),
    'as soon as a finalizer wakes it \(by hand: select proverq.wake_due', 'why, when nobody wakes it');
select proverq.wake_due(), test.claim(1) \g /dev/null
select test.complete(:job, 0) \g /dev/null
select test.matches(proverq.why(:job),
    'last step, which a finalizer takes, and none is connected; run: proverq serve', 'why, without a finalizer');
set application_name = 'proverq finalizer test';
select test.matches(proverq.why(:job), 'it should end within seconds', 'why, with one');
select test.is(proverq.wait(:job, '30 ms'), 'completing', 'wait gives the state when its time is over');
select test.finalize_next() \g /dev/null
select test.matches(proverq.why(:job), 'finished at .*: select proverq.proof', 'why, of a finished job');
select test.is(proverq.wait(:job), 'finished', 'wait gives the final state');
select test.is(proverq.proof(:job),
    '[{"proof": {"pi_a": 0}, "publics": ["0"]}, {"proof": {"pi_a": 1}, "publics": ["1"]}]'::jsonb,
    'proofs are in the order of partitions');
select test.throws(format('select proverq.proof_compressed(%s)', :job),
    '0A000', 'no compressed proofs .*bls12381', 'compressed proofs of bn128');
select test.is(format('%s %s %s %s %s', state, proved, failed, leased, error),
           'finished 2 0 0 ', 'the view shows the end'),
       test.is(duration > interval '0', true, 'with its duration')
from proverq.jobs where job_seq = :job;

select test.fail(:hurry, 1, false, true), test.finalize_next() \g /dev/null
select test.matches(proverq.why(:hurry), 'failed at .*: partition 1: constraint 64 fails; see: select '
    '\* from proverq.failures where job_seq = \d+; to try again: select proverq.retry\(\d+\);', 'why, of a failed job');
select test.is(proverq.wait(:hurry), 'failed', 'wait gives failures too');
select test.throws(format('select proverq.proof(%s)', :hurry),
    '55000', 'it is failed \| .*partition 1', 'the proof of a failed job');
select test.is(format('%s %s %s', state, failed, error),
    'failed 1 partition 1: constraint 64 fails', 'the view shows failures')
from proverq.jobs where job_seq = :hurry;

select test.job(2, 'other') as job \gset
select test.claim(2) \g /dev/null
select test.record(:job, i, test.token(:job, i), '{}', '[]', decode(repeat('0' || i, 192), 'hex'), '{}', '{}', '{}',
    '{}')
from generate_series(0, 1) i \g /dev/null
select test.finalize_next() \g /dev/null
select test.is(proverq.proof_compressed(:job),
    decode(repeat('00', 192) || repeat('01', 192), 'hex'), 'compressed proofs in order, with nothing between');

-- wait in transactions that would wait for ever.
select test.job(1) as job \gset
begin isolation level repeatable read;
select test.throws(format('select proverq.wait(%s)', :job),
    '55000', 'repeatable read.*wait in a transaction of its own', 'waiting in REPEATABLE READ');
rollback;
begin;
select test.throws(format('select proverq.wait(%s)', test.job(1)), '55000',
    'cannot wait for job \d+ in the transaction that inserted it .*Commit', 'waiting where the job was inserted');
savepoint s;
select test.job(1) as inner \gset
release s;
select test.throws(format('select proverq.wait(%s)', :inner),
    '55000', 'the transaction that inserted it', 'or in a savepoint of it');
select test.is(proverq.wait(:job, '10 ms'), 'queued', 'waiting for another job is right');
rollback;
select test.throws($$select proverq.wait(proverq.enqueue_witness('mul', array['\x01'::bytea]))$$,
    '55000', 'the transaction that inserted it', 'waiting in the statement that inserts');

-- Endpoints.
select test.matches(proverq.create_webhook_endpoint('second', 'http://10.0.0.1:8080/x?y=z'),
    '^whsec_[A-Za-z0-9+/]{43}=$', 'an endpoint''s secret is 32 bytes');
select test.is(count(distinct secret), '2', 'each has its own') from proverq_private.webhook_secret;
select test.throws($$select proverq.create_webhook_endpoint('second', 'https://x')$$,
    '23505', 'endpoint ''second'' already .*10.0.0.1', 'a name twice');
select test.throws($$select proverq.create_webhook_endpoint('a b', 'https://x')$$,
    '22023', 'name of a webhook endpoint', 'a name with a space');
select test.throws($$select proverq.create_webhook_endpoint(null, 'https://x')$$,
    '22023', 'NULL cannot be the name', 'no name');
select test.throws($$select proverq.create_webhook_endpoint('x', 'ftp://x')$$,
    '22023', 'not a URL', 'another protocol');
select test.throws($$select proverq.create_webhook_endpoint('x', E'https://x\r\nEvil: 1')$$,
    '22023', 'not a URL', 'a URL with a line break');
select test.throws($$select proverq.create_webhook_endpoint('x', null)$$, '22023', 'not a URL', 'no URL');

-- Timing.
select test.is(proverq.make_timing_partitions(2), 3, 'tables of three days');
select test.is(proverq.make_timing_partitions(2), 0, 'are made once');
select test.is(count(*), '0', 'rows that were there have moved') from proverq_private.timing_default;
select test.is(count(*) > 0, true, 'and none is lost') from proverq.timing;
select test.throws('select proverq.make_timing_partitions(-1)', '22023', 'days', 'days of -1');
select test.throws('select proverq.make_timing_partitions(null)', '22023', 'NULL', 'days of NULL');
insert into proverq.timing (recorded_at, prover_id, device, worker, step, started_at, duration)
values (now() + interval '10 years', 1, 'cpu', 0, 10, now(), 1);
select test.is(count(*), '1', 'a day without a table has the default table') from proverq_private.timing_default;
select test.is(string_agg(step, ' '), 'claim verify', 'step_stats names the steps in order') from proverq.step_stats;
select test.is(format('%s %s %s %s', count, p50, p95, max), '2 70 70 70', 'step_stats')
from proverq.step_stats where step = 'verify';
select test.is(count(*), (select count(*) from proverq.timing), 'timings has every row') from proverq.timings;
select test.is(format('%s %s %s', host, step, duration), 'host1 verify 70', 'with names')
from proverq.timings where step = 'verify' limit 1;
select test.is(count(*), '4', 'provers') from proverq.provers;
select test.is(count(*), '0', 'deliveries') from proverq.deliveries;

-- Circuits.
select test.throws('update proverq.circuit set curve = ''bls12381'' where circuit_id = 1',
    '55000', 'version 1 of circuit mul cannot be changed', 'a circuit version cannot be changed');
update proverq.circuit set removed_at = now() where circuit_id = 1;
select test.is(format('%s %s %s', circuit_id, version, added), '1 1 f', 'adding a removed version again')
from proverq_private.circuit_add('mul', sha256('mul 1'), 'bn128', 4, 1, 3, sha256('mul'), null, '{"nPublic": 1}',
    false);
select test.is(removed_at, null, 'brings it back') from proverq.circuit where circuit_id = 1;
select test.is(format('%s %s', version, added), '3 t', 'a new version has the next number')
from proverq_private.circuit_add('mul', sha256('mul 3'), 'bn128', 4, 1, 3, sha256('mul'), null, '{}', false);
select test.throws(
    $$select proverq_private.circuit_add('mul', sha256('4'), 'bn128', 4, 1, 3, sha256('nil'), null, '{}', false)$$,
    '23503', 'artefact', 'a version without its key');
select test.throws(
    $$select proverq_private.circuit_add('a/b', sha256('4'), 'bn128', 4, 1, 3, sha256('mul'), null, '{}', false)$$,
    '23514', 'circuit_name_valid', 'a name with a slash');
