-- Another priority for what waits; not_before.
select test.job(4), test.job(2) \g /dev/null
select test.is(test.claim(2), '1/0 1/1', 'two run');
select test.is(proverq.set_priority(2, 5), 2, 'both partitions of a waiting job move');
select test.is(proverq.set_priority(1, 9), 2, 'of a running one those that wait');
select test.is(string_agg(format('%s %s', state, priority), ', ' order by partition_idx),
    'leased 0, leased 0, ready 9, ready 9', 'what runs keeps its place')
from proverq.partition where job_seq = 1;
select test.is(priority, 9, 'the job has the new priority') from proverq.job where job_seq = 1;
select test.is(test.claim(3), '1/2 1/3 2/0', 'and the claim the new order');
select test.is(proverq.set_priority(1, -1), 0, 'nothing of it waits');
select proverq_private.release(1, 2, test.token(1, 2), 'test', 0), test.fail(1, 3, true, true),
       test.fail(1, 0, true, true) \g /dev/null
update proverq.partition set lease_until = clock_timestamp() - interval '1 s' where job_seq = 1 and partition_idx = 1;
select proverq.rescue_expired() \g /dev/null
select test.is(string_agg(format('%s %s', state, priority), ', ' order by partition_idx),
    'held -1, ready -1, ready -1, held -1', 'what comes back takes the new priority')
from proverq.partition where job_seq = 1;
select test.is(proverq.set_priority(1, 3), 4, 'what is held moves too');
select test.complete(2, 0) \g /dev/null
select test.is(proverq.set_priority(2, 7), 1, 'what is proved does not');

insert into proverq.job (circuit, partitions) values ('mul', 2), ('mul', 1);
insert into proverq.partition (job_seq, partition_idx, witness) values (3, 0, '\x01');
select test.is(proverq.set_priority(3, 20), 1, 'an incomplete job'),
       test.is(proverq.set_priority(4, 19), 0, 'or one without partitions');
insert into proverq.partition (job_seq, partition_idx, witness) values (3, 1, '\x01'), (4, 0, '\x01');
select test.is(test.claim(3), '3/0 3/1 4/0', 'has its place when it is whole');

select test.throws('select proverq.set_priority(1, null)', '22004', 'cannot be NULL', 'no priority');
select test.throws('select proverq.set_priority(99, 1)', 'P0002', 'no job 99', 'no job');
select proverq.cancel(1) \g /dev/null
select test.throws('select proverq.set_priority(1, 1)',
    '55000', 'job 1 has ended: it is cancelled .*retry\(1\)', 'a job that has ended');
select proverq.cancel(2), proverq.cancel(3), proverq.cancel(4) \g /dev/null

-- not_before: held with a date, woken by it.
select proverq.enqueue_witness('mul', array['\x01'::bytea], not_before => clock_timestamp() + interval '1 hour') as one,
       proverq.enqueue_path('mul', array['a', 'b'], not_before => clock_timestamp() + interval '2 hours') as two \gset
select test.is(test.states(:one), 'held', 'a job of one partition is held'),
       test.is(test.states(:two), 'held held', 'one of two is, too');
select test.is(bool_and(p.due_at = j.not_before), true, 'till its time')
from proverq.partition p join proverq.job j using (job_seq) where job_seq in (:one, :two);
select test.is(test.state(:two), 'queued', 'it is queued'), test.is(test.claim(9), null, 'but not claimed'),
       test.is(proverq.wake_due(), '0', 'nor woken');
select test.matches(proverq.why(:two), 'it is not to begin before 2.*, in 120 min', 'why');
select test.is(format('%s %s', state, not_before > now()), 'queued t', 'the view shows it')
from proverq.jobs where job_seq = :two;
select test.is(proverq.set_priority(:two, 1), 2, 'its priority can be changed');
update proverq.partition set due_at = clock_timestamp() where job_seq in (:one, :two);
select test.is(proverq.wake_due(), '3', 'at its time it is woken');
select test.is(test.claim(9), format('%s/0 %1$s/1 %s/0', :two, :one), 'and claimed in order');
insert into proverq.job (circuit, partitions, not_before) values ('mul', 2, now() + interval '1 hour')
returning job_seq as plain \gset
insert into proverq.partition (job_seq, partition_idx, witness) values (:plain, 0, '\x01');
select test.is(due_at, null, 'a plain INSERT may say it; while the job is incomplete no date counts')
from proverq.partition where job_seq = :plain;
insert into proverq.partition (job_seq, partition_idx, witness) values (:plain, 1, '\x01');
select test.is(string_agg(format('%s %s', state, due_at > now() + interval '50 min'), ', '),
    'held t, held t', 'when it is whole the date does')
from proverq.partition where job_seq = :plain;
select test.is(
    test.states(proverq.enqueue_witness('mul', array['\x01'::bytea], not_before => now() - interval '1 hour')),
    'ready', 'a time that is over');
select test.throws($$select proverq.enqueue_witness('mul', array['\x01'::bytea], not_before => 'infinity')$$,
    '23514', 'infinity is no time', 'a time that never comes');
select test.is(proverq.enqueue_witness('mul', array['\x01'::bytea], 0, 'r', null, false, null),
    proverq.enqueue_witness('mul', array['\x01'::bytea], request_id => 'r', not_before => now() + interval '1 hour'),
    'a request is the same at another time');
