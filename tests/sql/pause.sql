-- Pause and resume: claims stop at once and go on as before; what is leased goes on.
select test.job(3), test.job(1, 'other', 5), test.job(1, priority => 3) \g /dev/null
select test.is(test.claim(1, circuits => '{2}'), '3/0', 'one runs');
select test.is(proverq.pause('mul', 'the key is wrong'), true, 'a circuit is paused');
select test.is(format('%s %s %s', circuit, reason, paused_by),
           format('mul the key is wrong %s', session_user), 'it is known by whom and why'),
       test.is(clock_timestamp() - paused_at < interval '5 s', true, 'and since when')
from proverq_private.paused;
select test.is(test.claim(5), '2/0', 'nothing of it is claimed, all else is');
select test.is(array_agg(circuit_id), null, 'no prover is asked to load it')
from proverq_private.wanted_circuits('{}', 8);
select test.is(test.complete(3, 0), true, 'what runs goes on to its end');
select test.job(1, priority => 9) \g /dev/null
select test.is(test.claim(5), null, 'a job that comes while it is paused waits too');
select test.is(format('%s %s', job_seq, paused), '4 t', 'the view shows what is paused')
from proverq.jobs where job_seq = 4;
select test.matches(proverq.why(4),
    '^job 4: circuit mul is paused by \w+ \d+ ms ago: the key is wrong; to go on: select proverq.resume\(''mul''\);$',
    'why');
select test.is(bool_or(paused), false, 'others are not') from proverq.jobs where circuit = 'other';
select test.is(proverq.pause('mul', 'another reason'), false, 'to pause it again');
select test.is(string_agg(reason, ', '), 'another reason', 'gives another reason') from proverq_private.paused;
select test.is(proverq.resume('other'), false, 'another circuit is not paused');
select test.is(proverq.resume('mul'), true, 'it is resumed');
select test.is(proverq.resume('mul'), false, 'once');
select test.is(array_agg(circuit_id), '{2}', 'provers are asked for it again')
from proverq_private.wanted_circuits('{}', 8);
select test.is(test.claim(2), '4/0 1/0', 'and claims go on in order');

-- Everything.
select test.job(1, 'other') \g /dev/null
select test.is(proverq.pause(), true, 'everything is paused');
select test.is(test.claim(5), null, 'nothing is claimed');
select test.is(count(*), '0', 'nothing is wanted') from proverq_private.wanted_circuits('{}', 8);
select test.is(proverq.pause('other'), true, 'one circuit beside');
select test.matches(proverq.why(5), 'job 5: everything is paused by .*select proverq.resume\(\); '
    'and circuit other is paused by .*select proverq.resume\(''other''\);', 'why, of what is paused twice');
select test.matches(proverq.why(1), 'job 1: running: .*; the rest waits: everything is paused by', 'why, of what runs');
set client_min_messages = error; -- the notice: still paused
select test.is(proverq.resume(), true, 'everything is resumed');
reset client_min_messages;
select test.is(test.claim(5), '1/1 1/2', 'but for what was paused on its own');
select test.is(proverq.resume('other'), true, 'and that');
select test.is(test.claim(5), '5/0', 'later');

select test.throws('select proverq.pause(''nil'')', '42704', 'no circuit nil .*\* for all', 'an unknown circuit');
select test.throws('select proverq.pause(null)', '42704', 'no circuit NULL', 'no circuit');
select test.throws('select proverq.resume(''nil'')', '42704', 'no circuit nil', 'to resume an unknown circuit');

-- An attempt that failed prefers another device.
-- Number 5.
insert into proverq_private.prover (instance, host, pid, device) values (gen_random_uuid(), 'host1', 9, 'cuda:1');
select test.job(2) as job \gset
create function test.avoid(job bigint, by int, code text default 'device_fault', interval default '1 min')
returns void language sql as $$
    update proverq.partition set state = 'ready', token = null, lease_until = null, prover_id = by, error_code = code,
        avoid_until = clock_timestamp() + $4 where job_seq = job and partition_idx = 0
$$;
select test.avoid(:job, 1) \g /dev/null
begin;
update proverq.partition set state = 'ready', prover_id = 1, error_code = 'device_fault', error = 'no proof',
    avoid_until = clock_timestamp() + interval '1 min' where job_seq = :job;
select test.matches(proverq.why(:job),
    'partition 0 failed on cpu of host1 \(device_fault\) and is left to another one for (59|60)\.\d s: no proof',
    'why, of what is left to another device');
rollback;
begin;
select test.is(test.claim(5, 1), format('%s/1', :job), 'the device that failed leaves it to others');
select test.is(test.claim(5, 5), format('%s/0', :job), 'another device of the same host takes it');
select test.is(avoid_until, null, 'and nothing is avoided any more')
from proverq.partition where job_seq = :job and partition_idx = 0;
rollback;
begin;
insert into proverq_private.prover (instance, host, pid, device) values (gen_random_uuid(), 'host1', 10, 'cpu');
select test.is(test.claim(5, (select max(prover_id) from proverq_private.prover)),
    format('%s/1', :job), 'a new process on the same device is no other device');
rollback;
begin;
select test.avoid(:job, 1, 'absent') \g /dev/null
select test.is(test.claim(5, 5), format('%s/1', :job), 'a file that is absent is so on the whole host');
select test.is(test.claim(5, 2), format('%s/0', :job), 'another host takes it');
rollback;
begin;
update proverq_private.prover set state = 'stopped' where prover_id <> 1;
select test.is(test.claim(5, 1), format('%s/0 %1$s/1', :job), 'where no other runs it is not left');
rollback;
begin;
update proverq_private.prover set seen_at = clock_timestamp() - interval '2 min' where prover_id <> 1;
select test.is(test.claim(5, 1), format('%s/0 %1$s/1', :job), 'nor where the others are silent');
rollback;
begin;
select proverq_private.circuit_refused(prover_id, 2, 'device_memory', 'too large')
from proverq_private.prover where prover_id <> 1 \g /dev/null
select test.is(test.claim(5, 1), format('%s/0 %1$s/1', :job), 'nor where the others refuse the circuit');
rollback;
begin;
select test.avoid(:job, 1, 'device_fault', '-1 s') \g /dev/null
select test.is(test.claim(5, 1), format('%s/0 %1$s/1', :job), 'nor for longer than a while');
rollback;
begin;
delete from proverq.partition where job_seq = :job and partition_idx = 1;
select test.job(50) as many \gset
update proverq.partition set prover_id = 1, error_code = 'device_fault',
    avoid_until = clock_timestamp() + interval '1 min' where job_seq = :many and partition_idx < 40;
select test.is(test.claim(1, 1), format('%s/40', :many), 'a claim gets past forty that it avoids');
rollback;
