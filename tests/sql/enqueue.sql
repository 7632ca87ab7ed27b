select test.is(proverq.enqueue_witness('mul', array['\x01'::bytea, '\x02'], 7),
    '1', 'enqueue_witness gives the job''s number');
select test.is(string_agg(encode(witness, 'hex'), ' ' order by partition_idx),
    '01 02', 'partitions are in the array''s order')
from proverq.partition where job_seq = 1;
select test.is(format('%s %s', state, priority), 'queued 7', 'the job is queued at once')
from proverq.job where job_seq = 1;
select test.is(proverq.enqueue_path('mul', array['a.wtns', 'b/c.wtns'], webhook => 'hook', keep_inputs => true),
    '2', 'enqueue_path gives the job''s number');
select test.is(string_agg(witness_path, ' ' order by partition_idx), 'a.wtns b/c.wtns', 'paths are kept')
from proverq.partition where job_seq = 2;
select test.is(format('%s %s %s', keep_inputs, endpoint_id, webhook), 't 1 hook', 'so are the options')
from proverq.job where job_seq = 2;
select test.is(proverq.enqueue_witness('mul', array['\x01'::bytea], null, null, null, null),
    '3', 'options of NULL are the defaults');
select test.is(proverq.enqueue_witness('mul', '[5:6]={"\\x01","\\x02"}'::bytea[]), '4', 'an array that begins at 5');
select test.is(string_agg(partition_idx::text, ' ' order by partition_idx), '0 1', 'is numbered from 0')
from proverq.partition where job_seq = 4;
\set witness `printf wtns | base64 -w0`
select test.is(proverq.enqueue_witness('mul', array[decode(:'witness', 'base64')]),
    '5', 'a file of the client''s machine');
select test.is(convert_from(witness, 'UTF8'), 'wtns', 'arrives whole') from proverq.partition where job_seq = 5;

-- request_id.
select test.is(proverq.enqueue_witness('mul', array['\x01'::bytea, '\x02'], request_id => 'r')
        - proverq.enqueue_witness('mul', array['\x01'::bytea, '\x02'], request_id => 'r', priority => 3),
    '0', 'the same request is the same job');
select test.is(count(*), '1', 'and one job') from proverq.job where request_id = 'r';
select test.is(count(*), '2', 'with its partitions once')
from proverq.partition p join proverq.job using (job_seq) where request_id = 'r';
select test.throws($$select proverq.enqueue_witness('mul', array['\x01'::bytea, '\x03'], request_id => 'r')$$,
    '23505', 'request_id ''r'' was used for job \d+ .*Use a new request_id', 'another witness under it is refused');
select test.throws($$select proverq.enqueue_witness('mul', array['\x0102'::bytea], request_id => 'r')$$,
    '23505', 'was used', 'the same bytes in other partitions too');
select test.throws($$select proverq.enqueue_witness('other', array['\x01'::bytea, '\x02'], request_id => 'r')$$,
    '23505', 'was used', 'another circuit too');
select test.throws($$select proverq.enqueue_path('mul', array['a'], request_id => 'r')$$,
    '23505', 'was used', 'paths too');
select test.is(proverq.enqueue_path('mul', array['a'], request_id => 'p')
        - proverq.enqueue_path('mul', array['a'], request_id => 'p'),
    '0', 'enqueue_path knows requests too');
select test.throws($$select proverq.enqueue_path('mul', array['b'], request_id => 'p')$$,
    '23505', 'was used', 'and tells other paths');
select test.is(proverq.enqueue_witness('mul', array['\x01'::bytea])
        < proverq.enqueue_witness('mul', array['\x01'::bytea]),
    true, 'without request_id each call is a job');
insert into proverq.job (circuit, partitions, request_id) values ('mul', 1, 'plain');
select test.throws($$insert into proverq.job (circuit, partitions, request_id) values ('mul', 1, 'plain')$$,
    '23505', 'job_request', 'a plain INSERT with a used request_id');
select test.throws($$select proverq.enqueue_witness('mul', array['\x01'::bytea], request_id => 'plain')$$,
    '23505', 'was used', 'the request_id of a plain INSERT');

-- What is refused.
select test.throws($$select proverq.enqueue_witness('nil', array['\x01'::bytea])$$,
    '42704', 'no circuit nil', 'an unknown circuit');
select test.throws($$select proverq.enqueue_witness(null, array['\x01'::bytea])$$,
    '42704', 'no circuit NULL', 'no circuit');
select test.throws($$select proverq.enqueue_witness('mul', '{}')$$, '22023', 'at least one witness', 'no witnesses');
select test.throws($$select proverq.enqueue_witness('mul', null)$$,
    '22023', 'at least one witness', 'witnesses of NULL');
select test.throws($$select proverq.enqueue_witness('mul', array['\x01'::bytea, null])$$,
    '22004', 'witness of partition 1 is NULL', 'a witness of NULL');
select test.throws($$select proverq.enqueue_witness('mul', array[['\x01'::bytea], ['\x02'::bytea]])$$,
    '22023', 'not one of 2 dimensions', 'a matrix of witnesses');
select test.throws($$select proverq.enqueue_path('mul', '{}')$$, '22023', 'at least one path', 'no paths');
select test.throws($$select proverq.enqueue_path('mul', array[''])$$, '23514', 'empty witness_path', 'an empty path');
select test.throws($$select proverq.enqueue_path('mul', array[null]::text[])$$,
    '22004', 'path of partition 0 is NULL', 'a path of NULL');
select test.throws($$select proverq.enqueue_witness('mul', array['\x01'::bytea], webhook => 'nil')$$,
    '42704', 'no webhook endpoint', 'an unknown endpoint');
select test.throws($$select proverq.enqueue('mul', array['{}'::jsonb])$$,
    '0A000', 'circuit mul has no witness calculator.*enqueue_witness', 'inputs of a circuit without a calculator');
select test.is((select max(job_seq) from proverq.partition) is not null
    and not exists (select from proverq.job j where state = 'incomplete' and request_id is null),
    true, 'what was refused left no job');
