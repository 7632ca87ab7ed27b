-- Plain INSERTs: what a user may say, what happens when, what is refused.
with j as (insert into proverq.job (circuit, partitions) values ('mul', 2) returning job_seq)
insert into proverq.partition (job_seq, partition_idx, witness)
select job_seq, i, '\x01' from j, generate_series(0, 1) i;
select test.is(test.state(1), 'queued', 'a job and its partitions in one statement');
select test.is(test.states(1), 'ready ready', 'its partitions can be claimed');
select test.is(circuit_id, '2', 'the newest version is pinned'),
       test.is(ready_at is not null, true, 'it is known since when it is whole')
from proverq.job where job_seq = 1;
select test.is(min(circuit_id), '2', 'partitions have the circuit'), test.is(max(priority), '0', 'and the priority')
from proverq.partition where job_seq = 1;

insert into proverq.job (circuit, partitions, priority) values ('mul', 3, 5);
select test.is(test.state(2), 'incomplete', 'a job without partitions waits');
insert into proverq.partition (job_seq, partition_idx, witness) values (2, 2, '\x01');
insert into proverq.partition (job_seq, partition_idx, witness_path) values (2, 0, 'a/b.wtns');
select test.is(test.state(2), 'incomplete', 'a job with two of three partitions waits'),
       test.is(test.states(2), 'held held', 'and they are held');
select test.is(test.claim(10), '1/0 1/1', 'held partitions are not claimed');
insert into proverq.partition (job_seq, partition_idx, witness) values (2, 1, '\x01');
select test.is(test.state(2), 'queued', 'the last partition completes it'),
       test.is(test.states(2), 'ready ready ready', 'and all are ready');
select test.is(test.claim(10), '2/0 2/1 2/2', 'in any order of insertion');

-- One statement that completes several jobs and begins another.
insert into proverq.job (circuit, partitions) values ('mul', 1), ('mul', 2), ('mul', 2);
insert into proverq.partition (job_seq, partition_idx, witness)
values (5, 1, '\x01'), (3, 0, '\x01'), (4, 1, '\x01'), (4, 0, '\x01');
select test.is(string_agg(state::text, ' ' order by job_seq),
    'queued queued incomplete', 'one statement for several jobs')
from proverq.job where job_seq in (3, 4, 5);
select test.is(test.claim(10), '3/0 4/0 4/1', 'only whole jobs are claimed');

-- What is not the user's to say.
insert into proverq.job (circuit, partitions, present, remaining, state, run, error, submitter, finished_at, circuit_id)
values ('mul', 1, 1, 0, 'finished', 7, 'x', 'nobody', now(), 1);
select test.is(format('%s %s %s %s %s %s %s', state, present, remaining, run, error, finished_at, circuit_id),
           'incomplete 0 1 1   2', 'a job''s progress cannot be inserted'),
       test.is(submitter, session_user::name, 'nor its submitter')
from proverq.job where job_seq = 6;
insert into proverq.partition (job_seq, partition_idx, witness, state, attempt, token, lease_until, proof, publics,
    proved_at, priority, circuit_id, error, lost_by)
values (6, 0, '\x01', 'proved', 9, gen_random_uuid(), now(), '{}', '[]', now(), 99, 1, 'x', '{1}');
select test.is(format('%s %s %s %s %s %s %s %s', state, attempt, token, proof, priority, circuit_id, error, lost_by),
    'ready 0   0 2  {}', 'a partition''s progress cannot be inserted')
from proverq.partition where job_seq = 6;
select test.throws($$insert into proverq.job (job_seq, circuit, partitions) values (1000, 'mul', 1)$$,
    '428C9', 'job_seq', 'a job''s number cannot be chosen');

-- What is refused.
insert into proverq.job (circuit, partitions) values ('mul', 2);
select test.throws($$insert into proverq.job (circuit, partitions) values ('nil', 1)$$,
    '42704', 'there is no circuit nil .*mul, other.*circuit add', 'an unknown circuit');
select test.throws($$insert into proverq.job (circuit, partitions) values (null, 1)$$,
    '42704', 'there is no circuit NULL', 'no circuit');
select test.throws($$insert into proverq.job (circuit, partitions) values ('mul', 0)$$,
    '23514', 'at least 1 partition, not 0', 'a job of no partitions');
select test.throws($$insert into proverq.job (circuit, partitions) values ('mul', -1)$$,
    '23514', 'at least 1 partition, not -1', 'a job of -1 partitions');
select test.throws($$insert into proverq.job (circuit, partitions) values ('mul', null)$$,
    '23502', 'partitions|remaining', 'a job of NULL partitions');
select test.throws($$insert into proverq.job (circuit, partitions, webhook) values ('mul', 1, 'nil')$$,
    '42704', 'no webhook endpoint .*nil.*create_webhook_endpoint\(''nil'', ''https', 'an unknown endpoint');
select test.throws($$insert into proverq.job (circuit, partitions, webhook) values ('mul', 1, 'https://x.org/')$$,
    '42704', 'create_webhook_endpoint\(''my-service'', ''https://x.org/''\)', 'an unknown URL');
select test.throws($$insert into proverq.job (circuit, partitions, request_id) values ('mul', 1, '')$$,
    '23514', 'job_request_id_valid', 'an empty request_id');
select test.throws($$insert into proverq.partition (job_seq, partition_idx, witness) values (99, 0, '\x01')$$,
    '23503', 'no job 99 ', 'a partition without a job');
select test.throws($$insert into proverq.partition (job_seq, partition_idx, witness) values (null, 0, '\x01')$$,
    '23503', 'no job NULL ', 'a partition of job NULL');
select test.throws($$insert into proverq.partition (job_seq, partition_idx, witness) values (7, 2, '\x01')$$,
    '23514', 'job 7 has no partition 2 .*0 to 1', 'a partition too many');
select test.throws($$insert into proverq.partition (job_seq, partition_idx, witness) values (7, -1, '\x01')$$,
    '23514', 'job 7 has no partition -1', 'a negative partition');
select test.throws($$insert into proverq.partition (job_seq, partition_idx, witness) values (7, null, '\x01')$$,
    '23502', 'partition_idx', 'a partition without a number');
select test.throws($$insert into proverq.partition (job_seq, partition_idx, witness) values (1, 0, '\x01')$$,
    '55000', 'job 1 has all of its 2 partition', 'a partition of a whole job');
select test.throws(
    $$insert into proverq.partition (job_seq, partition_idx, witness) values (7, 0, '\x01'), (7, 0, '\x01')$$,
    '23505', 'partition_pkey', 'a partition twice');
select test.throws($$insert into proverq.partition (job_seq, partition_idx) values (7, 0)$$,
    '23514', 'exactly one of inputs, witness', 'a partition without a witness');
select test.throws(
    $$insert into proverq.partition (job_seq, partition_idx, witness, witness_path) values (7, 0, '\x01', 'a')$$,
    '23514', 'exactly one of inputs, witness', 'a partition with two witnesses');
select test.throws($$insert into proverq.partition (job_seq, partition_idx, witness_path) values (7, 0, '')$$,
    '23514', 'empty witness_path', 'an empty path');
select test.throws($$insert into proverq.partition (job_seq, partition_idx, inputs) values (7, 0, '{}')$$,
    '0A000', 'no witness calculator.*--wasm mul.wasm.*enqueue_witness', 'inputs without a calculator');
select test.is(test.state(7), 'incomplete', 'what was refused was not counted'), test.is(present, '0', 'not at all')
from proverq.job where job_seq = 7;

begin;
insert into proverq.partition (job_seq, partition_idx, witness) values (7, 0, '\x01');
savepoint s;
insert into proverq.partition (job_seq, partition_idx, witness) values (7, 1, '\x01');
rollback to s;
commit;
select test.is(present, '1', 'a statement rolled back was not counted') from proverq.job where job_seq = 7;
insert into proverq.partition (job_seq, partition_idx, witness) values (7, 1, '\x01');
select test.is(test.state(7), 'queued', 'and can be repeated');

-- Endpoints by name and by URL; a disabled one warns.
insert into proverq.job (circuit, partitions, webhook)
values ('mul', 1, 'hook'), ('mul', 1, 'https://example.com/hook');
select test.is(count(*), '2', 'an endpoint goes by its name or its URL') from proverq.job where endpoint_id = 1;
update proverq_private.webhook_endpoint set disabled_at = now(), disabled_reason = 'it answered 410 Gone';
set client_min_messages = error;
insert into proverq.job (circuit, partitions, webhook) values ('mul', 1, 'hook');
select test.is(endpoint_id, 1, 'a disabled endpoint does not stop a job')
from proverq.job order by job_seq desc limit 1;

-- Removed versions.
update proverq.circuit set removed_at = now() where circuit_id = 2;
insert into proverq.job (circuit, partitions) values ('mul', 1);
select test.is(circuit_id, '1', 'a removed version is not pinned any more')
from proverq.job order by job_seq desc limit 1;
update proverq.circuit set removed_at = now() where circuit_id = 1;
select test.throws($$insert into proverq.job (circuit, partitions) values ('mul', 1)$$,
    '42704', 'no circuit mul | There are: other.', 'a circuit of which all is removed');
