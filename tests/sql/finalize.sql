select test.is(count(*), '0', 'nothing to finalize') from proverq.finalize_next();
select test.job(2, webhook => 'hook'), test.job(1, keep_inputs => true), test.job(1) \g /dev/null
select test.is(test.claim(2), '1/0 1/1', 'leases');
select test.complete(1, 0) \g /dev/null
select test.is(count(*), '0', 'an unfinished job is not finalized') from proverq.finalize_next();
select test.complete(1, 1) \g /dev/null
select test.is(format('%s %s %s', job_seq, run, event), '1 1 proverq.job.finished', 'a proved one is') from proverq.finalize_next();
select test.is(count(*), '0', 'once') from proverq.finalize_next();
select test.is(state, 'finished', 'its state is final'), test.is(finished_at is not null, true, 'with its time') from proverq.job where job_seq = 1;
select test.is(count(witness), '0', 'its witnesses are deleted') from proverq.partition where job_seq = 1;

-- The webhook.
select test.is(format('%s %s %s %s', endpoint_id, event, state, attempts), '1 proverq.job.finished pending 0', 'its webhook is written') from proverq.webhook_delivery;
select body as body from proverq.webhook_delivery \gset
select test.is(b ->> 'type', 'proverq.job.finished', 'type'), test.matches(b ->> 'timestamp', '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$', 'timestamp'),
       test.is(b -> 'data', '{"job": 1, "run": 1, "circuit": "mul", "version": 2, "partitions": 2, "request_id": null, "state": "finished", "error_code": null, "error": null,
                              "proofs": [{"proof": {"pi_a": 0}, "publics": ["0"]}, {"proof": {"pi_a": 1}, "publics": ["1"]}]}'::jsonb, 'data')
from (select :'body'::jsonb) t (b);
select test.is(count(*), '1', 'jobs without a webhook have none') from proverq.webhook_delivery;

-- Kept inputs.
select test.is(test.claim(1), '2/0', 'a lease');
select test.complete(2, 0) \g /dev/null
select test.is(job_seq, '2', 'a job that keeps its inputs') from proverq.finalize_next();
select test.is(count(witness), '1', 'has them still') from proverq.partition where job_seq = 2;

-- Failure, with everything that JSON must escape.
select proverq.enqueue_witness('mul', array['\x01'::bytea], request_id => E'a"b\\c\n\u00e9', webhook => 'https://example.com/hook', priority => 9) as job \gset
select test.claim(1) \g /dev/null
select test.is(proverq.fail(:job, 0, test.token(:job, 0), 'input', E'bad "thing"\n\\', false, true, '{}', '{}', '{}', '{}'), 'failed', 'a failure');
select test.is(event, 'proverq.job.failed', 'is finalized') from proverq.finalize_next();
select test.is(b #>> '{data,error}', E'partition 0: bad "thing"\n\\', 'its error arrives whole'), test.is(b #>> '{data,request_id}', E'a"b\\c\n\u00e9', 'so does its request_id'),
       test.is(b #>> '{data,error_code}', 'input', 'and the code'), test.is(b -> 'data' ? 'proofs', false, 'without proofs')
from (select body::jsonb from proverq.webhook_delivery where job_seq = :job) t (b);
select test.is(count(witness), '0', 'a failed job''s witnesses are deleted') from proverq.partition where job_seq = :job;

-- Large results go by reference.
select test.job(200, webhook => 'hook', priority => 10) as big \gset
select test.claim(200) \g /dev/null
select count(proverq.complete(job_seq, partition_idx, token, jsonb_build_object('pi_a', repeat('x', 100)), '[]', null, '{}', '{}', '{}', '{}')) from proverq.partition where job_seq = :big \g /dev/null
select test.is(job_seq, :'big', 'a large job') from proverq.finalize_next();
select test.is(octet_length(body) < 1000, true, 'has a small webhook'), test.is(body::jsonb #>> '{data,proofs_ref}', format('select proverq.proof(%s)', :big), 'that says how to get the proofs') from proverq.webhook_delivery where job_seq = :big;
select test.job(1, webhook => 'hook', priority => 11) as wide \gset
select test.claim(1) \g /dev/null
select proverq.complete(:wide, 0, test.token(:wide, 0), '{}', to_jsonb(array_agg(i::text)), null, '{}', '{}', '{}', '{}') from generate_series(1, 5000) i \g /dev/null
select test.is(job_seq, :'wide', 'a job with many public values') from proverq.finalize_next();
select test.is(body::jsonb -> 'data' ? 'proofs_ref', true, 'too') from proverq.webhook_delivery where job_seq = :wide;

-- A disabled endpoint.
select test.job(1, webhook => 'hook', priority => 12) as late \gset
update proverq.webhook_endpoint set disabled_at = now(), disabled_reason = 'test';
select test.claim(1) \g /dev/null
select test.complete(:late, 0) \g /dev/null
select test.is(job_seq, :'late', 'a disabled endpoint stops no job') from proverq.finalize_next();
select test.is(format('%s %s %s', state, next_attempt_at, last_error), 'failed  the endpoint is disabled: test', 'and is seen in the delivery') from proverq.webhook_delivery where job_seq = :late;
