select test.is(count(*), '0', 'nothing to finalize') from test.finalize_next();
select test.job(2, webhook => 'hook'), test.job(1, keep_inputs => true), test.job(1) \g /dev/null
select test.is(test.claim(2), '1/0 1/1', 'leases');
select test.complete(1, 0) \g /dev/null
select test.is(count(*), '0', 'an unfinished job is not finalized') from test.finalize_next();
select test.complete(1, 1) \g /dev/null
select test.is(format('%s %s %s', job_seq, run, event), '1 1 proverq.job.finished', 'a proved one is')
from test.finalize_next();
select test.is(count(*), '0', 'once') from test.finalize_next();
select test.is(state, 'finished', 'its state is final'), test.is(finished_at is not null, true, 'with its time')
from proverq.job where job_seq = 1;
select test.is(count(witness), '0', 'its witnesses are deleted') from proverq.partition where job_seq = 1;

-- The webhook.
select test.is(format('%s %s %s %s', endpoint_id, event, state, attempts),
    '1 proverq.job.finished pending 0', 'its webhook is written')
from proverq_private.webhook_delivery;
select body as body from proverq_private.webhook_delivery \gset
select test.is(b ->> 'type', 'proverq.job.finished', 'type'),
       test.matches(b ->> 'timestamp', '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$', 'timestamp'),
       test.is(b -> 'data', '{"job": 1, "run": 1, "circuit": "mul", "version": 2, "partitions": 2, "request_id": null,
           "state": "finished", "error_code": null, "error": null,
           "proofs": [{"proof": {"pi_a": 0}, "publics": ["0"]}, {"proof": {"pi_a": 1}, "publics": ["1"]}]}'::jsonb,
           'data')
from (select :'body'::jsonb) t (b);
select test.is(count(*), '1', 'jobs without a webhook have none') from proverq_private.webhook_delivery;

-- Kept inputs.
select test.is(test.claim(1), '2/0', 'a lease');
select test.complete(2, 0) \g /dev/null
select test.is(job_seq, '2', 'a job that keeps its inputs') from test.finalize_next();
select test.is(count(witness), '1', 'has them still') from proverq.partition where job_seq = 2;

-- Failure, with everything that JSON must escape.
select proverq.enqueue_witness('mul', array['\x01'::bytea], request_id => E'a"b\\c\n\u00e9',
    webhook => 'https://example.com/hook', priority => 9) as job \gset
select test.claim(1) \g /dev/null
select test.is(proverq_private.fail(:job, 0, test.token(:job, 0), 'input', E'bad "thing"\n\\', false, true, '{}', '{}',
        '{}', '{}'),
    'failed', 'a failure');
select test.is(event, 'proverq.job.failed', 'is finalized') from test.finalize_next();
select test.is(b #>> '{data,error}', E'partition 0: bad "thing"\n\\', 'its error arrives whole'),
       test.is(b #>> '{data,request_id}', E'a"b\\c\n\u00e9', 'so does its request_id'),
       test.is(b #>> '{data,error_code}', 'input', 'and the code'),
       test.is(b -> 'data' ? 'proofs', false, 'without proofs')
from (select body::jsonb from proverq_private.webhook_delivery where job_seq = :job) t (b);
select test.is(count(witness), '0', 'a failed job''s witnesses are deleted')
from proverq.partition where job_seq = :job;

-- Large results go by reference.
select test.job(200, webhook => 'hook', priority => 10) as big \gset
select test.claim(200) \g /dev/null
select count(test.record(job_seq, partition_idx, token, jsonb_build_object('pi_a', repeat('x', 100)), '[]', null, '{}',
    '{}', '{}', '{}'))
from proverq.partition where job_seq = :big \g /dev/null
select test.is(job_seq, :'big', 'a large job') from test.finalize_next();
select test.is(octet_length(body) < 1000, true, 'has a small webhook'),
       test.is(body::jsonb #>> '{data,proofs_ref}',
           format('select proverq.proof(%s)', :big), 'that says how to get the proofs')
from proverq_private.webhook_delivery where job_seq = :big;
select test.job(1, webhook => 'hook', priority => 11) as wide \gset
select test.claim(1) \g /dev/null
select test.record(:wide, 0, test.token(:wide, 0), '{}', to_jsonb(array_agg(i::text)), null, '{}', '{}', '{}', '{}')
from generate_series(1, 5000) i \g /dev/null
select test.is(job_seq, :'wide', 'a job with many public values') from test.finalize_next();
select test.is(body::jsonb -> 'data' ? 'proofs_ref', true, 'too')
from proverq_private.webhook_delivery where job_seq = :wide;

-- A disabled endpoint.
select test.job(1, webhook => 'hook', priority => 12) as late \gset
update proverq_private.webhook_endpoint set disabled_at = now(), disabled_reason = 'test';
select test.claim(1) \g /dev/null
select test.complete(:late, 0) \g /dev/null
select test.is(job_seq, :'late', 'a disabled endpoint stops no job') from test.finalize_next();
select test.is(format('%s %s %s', state, next_attempt_at, last_error),
    'failed  the endpoint is disabled: test', 'and is seen in the delivery')
from proverq_private.webhook_delivery where job_seq = :late;

-- A job that cannot be finalized does not stop those behind it.
update proverq_private.webhook_endpoint set disabled_at = null, disabled_reason = null;
create function test.refuse() returns trigger language plpgsql as $$ begin raise 'the outbox is full'; end $$;
create trigger refuse before insert on proverq_private.webhook_delivery for each row execute function test.refuse();
select test.job(1, webhook => 'hook', priority => 20) as stuck,
       test.job(1, webhook => 'hook', priority => 20) as stuck_too, test.job(1, priority => 20) as behind \gset
select test.claim(3) \g /dev/null
select test.complete(:stuck, 0), test.fail(:stuck_too, 0, false, true), test.complete(:behind, 0) \g /dev/null
select test.is(format('%s %s', job_seq, event),
    format('%s proverq.job.finished', :behind), 'the job behind is finalized')
from test.finalize_next();
select test.is(count(*), '0', 'the others are not tried again at once') from test.finalize_next();
select test.is(format('%s %s %s', state, finalize_failures, finalize_error),
           'completing 1 the outbox is full (SQLSTATE P0001)', 'the job says why'),
       test.is(finalize_after - clock_timestamp() between interval '0.5 s' and interval '1.3 s',
           true, 'and waits a second'),
       test.is(finished_at, null, 'nothing of its end is done')
from proverq.job where job_seq = :stuck;
select test.is(count(witness), '1', 'its witness is still there') from proverq.partition where job_seq = :stuck;
select test.matches(proverq.why(:stuck),
    'the last step, which failed 1 time\(s\), the last: the outbox is full \(SQLSTATE P0001\); it is tried again in ',
    'why');
update proverq.job set finalize_after = clock_timestamp() where finalize_after is not null;
select test.is(string_agg(job_seq::text, ' '), format('%s %s', :stuck, :stuck_too), 'they wait for their end')
from proverq_private.finalizable(10);
select test.is(format('%s|%s|%s', run, event, error),
    '1||the outbox is full (SQLSTATE P0001)', 'one is tried again, and it is said why it cannot end')
from proverq_private.finalize(:stuck);
select test.is(count(*), '0', 'not at once again') from proverq_private.finalize(:stuck);
select test.is(finalize_failures, 2, 'and fails again'),
       test.is(finalize_after - clock_timestamp() between interval '1.2 s' and interval '2.6 s',
           true, 'and waits longer')
from proverq.job where job_seq = :stuck;
select test.throws(format('select proverq.cancel(%s)', :stuck),
    'P0001', 'the outbox is full', 'cancel, which does the same, meets the same');
drop trigger refuse on proverq_private.webhook_delivery;
update proverq.job set finalize_after = clock_timestamp() where finalize_after is not null;
select test.is(format('%s %s', job_seq, event), format('%s proverq.job.finished', :stuck), 'when it can be it is')
from test.finalize_next();
select test.is(format('%s %s', job_seq, event), format('%s proverq.job.failed', :stuck_too), 'the failed one too')
from test.finalize_next();
select test.is(error, 'partition 0: constraint 64 fails', 'and its error is that of its partition')
from proverq.job where job_seq = :stuck_too;
select test.is(count(*), '0', 'what has ended does not end again') from proverq_private.finalize(:stuck);
select test.is(count(*), '0', 'a job that is not there does not end') from proverq_private.finalize(999999);

-- One that takes longer than a statement may.
create function test.stall() returns trigger language plpgsql as $$ begin perform pg_sleep(5); return new; end $$;
create trigger stall before insert on proverq_private.webhook_delivery for each row execute function test.stall();
select test.job(1, webhook => 'hook', priority => 20) as slow, test.job(1, priority => 20) as behind \gset
select test.claim(2) \g /dev/null
select test.complete(:slow, 0), test.complete(:behind, 0) \g /dev/null
set statement_timeout = '100 ms';
select test.is(count(*), '0', 'a finalization that runs out of time ends') from test.finalize_next();
reset statement_timeout;
select test.matches(finalize_error, 'canceling statement due to statement timeout', 'with its reason')
from proverq.job where job_seq = :slow;
select test.is(job_seq, :'behind', 'and the next call takes the next job') from test.finalize_next();
