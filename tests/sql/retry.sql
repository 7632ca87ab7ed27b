-- Retry: a new run of what is not proved.
select test.job(4, keep_inputs => true, webhook => 'hook') \g /dev/null
select test.is(test.claim(4), '1/0 1/1 1/2 1/3', 'four leases');
select test.token(1, 2) as late \gset
select test.is(test.complete(1, 0), true, 'one proved'),
       test.is(test.fail(1, 3, true, true), 'retry', 'one failed and to be tried again');
select test.throws('select proverq.retry(1)', '55000',
    'job 1 cannot be retried: it has not ended, it is running .*cancel it first \(select proverq.cancel\(1\);\)',
    'a running job is not retried');
select test.is(test.fail(1, 1, false, true), 'failed', 'one fails for good');
select test.throws('select proverq.retry(1)', '55000', 'it is failing', 'nor one that is failing');
select test.is(event, 'proverq.job.failed', 'the first run ends') from test.finalize_next();
select test.is(proverq.retry(1), 2, 'a retry is the second run');
select test.is(format('%s %s %s %s %s', state, run, remaining, error_code, finished_at),
    'queued 2 3  ', 'the job is queued again')
from proverq.job where job_seq = 1;
select test.is(test.states(1), 'proved ready ready ready', 'what is proved stays');
select test.is(
    string_agg(format('%s %s %s %s %s', attempt, failures, losses, lost_by, error), ', ' order by partition_idx),
    '1 0 0 {} , 1 0 0 {} , 1 0 0 {} , 1 0 0 {} ', 'failures are counted anew, attempts on')
from proverq.partition where job_seq = 1;
select test.is(test.complete(1, 2, :'late'), false, 'a late proof of the first run is refused');
select test.throws('select proverq.retry(1)',
    '55000', 'has not ended, it is running', 'no third run before the second has ended');
select test.is(test.claim(9), '1/1 1/2 1/3', 'the second run claims the rest');
select test.complete(1, i) from generate_series(1, 3) i \g /dev/null
select test.is(format('%s %s %s', job_seq, run, event), '1 2 proverq.job.finished', 'and ends once')
from test.finalize_next();
select test.is(count(*), '0', 'only once') from test.finalize_next();
select test.is(string_agg(format('%s %s %s', run, event, body::jsonb #>> '{data,run}'), ', ' order by run),
           '1 proverq.job.failed 1, 2 proverq.job.finished 2', 'each run has its own webhook'),
       test.is(count(distinct delivery_id), '2', 'under its own id')
from proverq_private.webhook_delivery;
select test.is(string_agg(format('%s %s %s', partition_idx, attempt, run), ', ' order by partition_idx),
    '1 1 1, 3 1 1', 'errors of the first run are kept')
from proverq.failures;
select test.throws('select proverq.retry(1)',
    '55000', 'job 1 is finished: there is nothing to retry .*proverq.proof\(1\)', 'a finished job is not retried');
select test.throws('select proverq.retry(99)', 'P0002', 'no job 99', 'a job that is not there');

-- Poison has three new provers, failures five new tries.
select test.job(1, keep_inputs => true) as job \gset
update proverq.partition set failures = 5, losses = 3, lost_by = '{1,2,3}' where job_seq = :job;
select proverq.cancel(:job), proverq.retry(:job) \g /dev/null
select test.is(format('%s %s %s', failures, losses, lost_by), '0 0 {}', 'counters begin at 0')
from proverq.partition where job_seq = :job;
select proverq.cancel(:job) \g /dev/null

-- All was proved when it was cancelled: only the end is missing.
select test.job(1, webhook => 'hook') as job \gset
select test.claim(1) \g /dev/null
select test.complete(:job, 0), proverq.cancel(:job) \g /dev/null
select test.is(proverq.retry(:job), 2, 'a job cancelled with all its proofs needs no inputs');
select test.is(format('%s %s', run, event), '2 proverq.job.finished', 'and only has to be finalized')
from test.finalize_next();
select test.is(jsonb_array_length(proverq.proof(:job)), 1, 'it has its result');

-- Inputs that are gone.
select test.job(3) as job \gset
select test.claim(1) \g /dev/null
select test.complete(:job, 0), proverq.cancel(:job) \g /dev/null
select test.throws(format('select proverq.retry(%s)', :job), '55000',
    'the inputs of job \d+ were deleted when it ended . '
    '2 of its 3 partition.*retry_with_witnesses\(\d+, array.*keep_inputs => true', 'inputs that are gone');
select test.is(format('%s %s', run, state), '1 cancelled', 'and nothing has changed')
from proverq.job where job_seq = :job;
select test.throws(format('select proverq.retry_with_witnesses(%s, array[''\x01''::bytea])', :job),
    '22023', 'has 3 partition\(s\); 1 was given', 'too few witnesses');
select test.throws(format('select proverq.retry_with_witnesses(%s, array[null, null, ''\x01''::bytea])', :job),
    '22004', 'the witness of partition 1 is NULL', 'a witness that is needed is NULL');
select test.throws(format('select proverq.retry_with_witnesses(%s, ''{}'')', :job),
    '22023', 'at least one witness', 'no witnesses');
select test.throws(format('select proverq.retry_with_witnesses(%s, null)', :job),
    '22023', 'at least one witness', 'witnesses of NULL');
select test.throws(format('select proverq.retry_with_inputs(%s, array[''{}''::jsonb, ''{}'', ''{}''])', :job),
    '0A000', 'circuit mul has no witness calculator', 'inputs for a circuit that takes none');
select test.is(proverq.retry_with_witnesses(:job, array[null, '\x0a'::bytea, '\x0b']),
    2, 'witnesses given again; that of the proved partition may be NULL');
select test.is(string_agg(format('%s %s', state, witness), ', ' order by partition_idx),
    'proved , ready \x0a, ready \x0b', 'are where they belong')
from proverq.partition where job_seq = :job;
select test.is(test.claim(9), format('%s/1 %1$s/2', :job), 'and claimed');
select test.complete(:job, i) from generate_series(1, 2) i \g /dev/null
select test.is(run, 2, 'to the end of the second run') from test.finalize_next();
select test.is(count(witness), '0', 'when they go as well') from proverq.partition where job_seq = :job;

-- Of a request only the inputs of that request.
select proverq.enqueue_witness('mul', array['\x01'::bytea, '\x02'], request_id => 'r') as job \gset
select test.claim(1) \g /dev/null
select test.complete(:job, 0), proverq.cancel(:job) \g /dev/null
select test.throws(format('select proverq.retry_with_witnesses(%s, array[null, ''\x02''::bytea])', :job), '22004',
    'partition 0 is NULL . Job \d+ has the request_id ''r'': all of them are needed', 'a request needs all of them');
select test.throws(format('select proverq.retry_with_witnesses(%s, array[''\x01''::bytea, ''\x03''])', :job),
    '23505', 'request_id ''r'' of job \d+ was used with other inputs', 'and none but its own');
select test.is(proverq.retry_with_witnesses(:job, array['\x01'::bytea, '\x02']), 2, 'with its own it is retried');
select test.is(string_agg(format('%s %s', state, witness), ', ' order by partition_idx),
    'proved , ready \x02', 'as far as it is not proved')
from proverq.partition where job_seq = :job;
select proverq.cancel(:job) \g /dev/null

-- Paths stay, inputs of a calculator can be given again.
select proverq.enqueue_path('mul', array['a.wtns']) as job \gset
select proverq.cancel(:job) \g /dev/null
select test.is(proverq.retry(:job), 2, 'paths of files are not deleted'),
       test.is(test.states(:job), 'ready', 'so such a job is retried as it is');
select proverq.cancel(:job) \g /dev/null
insert into proverq_private.artefact (sha256, kind, bytes, path) values (sha256('wasm'), 'wasm', 100, 'w');
select proverq_private.circuit_add('calc', sha256('4'), 'bn128', 9, 1, 3, sha256('mul'), null, '{}', false, 'wasm',
    sha256('wasm'), 1, '{"a": 1}') \g /dev/null
select proverq.enqueue('calc', array['{"a": 1}'::jsonb, '{"a": 2}'], request_id => 'calc') as job \gset
select proverq.cancel(:job) \g /dev/null
select test.throws(format('select proverq.retry(%s)', :job),
    '55000', 'retry_with_inputs\(\d+', 'the hint of a circuit that takes inputs');
select test.throws(format('select proverq.retry_with_inputs(%s, array[''{"b": 1}''::jsonb, ''{"a": 2}''])', :job),
    '23505', 'other inputs', 'other inputs of the request');
select test.is(proverq.retry_with_inputs(:job, array['{"a": 1}'::jsonb, '{"a": 2}']), 2, 'its inputs given again');
select test.is(string_agg(format('%s %s', state, inputs), ', ' order by partition_idx),
    'ready {"a": 1}, ready {"a": 2}', 'are in place')
from proverq.partition where job_seq = :job;
select proverq.cancel(:job) \g /dev/null
select proverq.enqueue('calc', array['{"a": 1}'::jsonb]) as job \gset
select proverq.cancel(:job) \g /dev/null
select test.throws(format('select proverq.retry_with_inputs(%s, array[''{"b": 1}''::jsonb])', :job),
    '22023', 'partition 0 of job \d+: signal "b" is no input', 'inputs that the circuit does not take');
select test.throws(format('select proverq.retry_with_inputs(%s, array[''{"a": 1.5}''::jsonb])', :job),
    '22023', 'partition 0 of job \d+: signal "a"', 'inputs that are none');
select test.is(proverq.retry_with_inputs(:job, array['{"a": "7"}'::jsonb]),
    2, 'without a request_id others may be given');
select proverq.cancel(:job) \g /dev/null

-- A job that was never whole.
insert into proverq.job (circuit, partitions, keep_inputs) values ('mul', 2, true) returning job_seq as job \gset
insert into proverq.partition (job_seq, partition_idx, witness) values (:job, 0, '\x01');
select proverq.cancel(:job) \g /dev/null
select test.throws(format('select proverq.retry(%s)', :job), '55000',
    'was cancelled when 1 of its 2 partition\(s\) were missing .*Insert a new job', 'a job that was never whole');

-- Not before its time.
select proverq.enqueue_witness('mul', array['\x01'::bytea], keep_inputs => true,
    not_before => clock_timestamp() + interval '1 hour') as job \gset
select proverq.cancel(:job), proverq.retry(:job) \g /dev/null
select test.is(test.states(:job), 'held', 'a retry waits for not_before like the job itself'),
       test.is(due_at, not_before, 'till the same time')
from proverq.partition join proverq.job using (job_seq) where job_seq = :job;
