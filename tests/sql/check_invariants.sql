-- The invariants: quiet while all is well, and each broken one is reported, broken by hand.
select test.job(3, webhook => 'hook'), test.job(2, keep_inputs => true, webhook => 'hook'),
       test.job(4, webhook => 'hook'), test.job(1, priority => 7), test.job(2) \g /dev/null
insert into proverq.job (circuit, partitions) values ('mul', 2);
insert into proverq.partition (job_seq, partition_idx, witness) values (6, 0, '\x01');
select proverq.enqueue_witness('mul', array['\x01'::bytea], not_before => now() + interval '1 day') \g /dev/null
select test.claim(1), test.claim(3), test.claim(2), test.claim(3, 2) \g /dev/null
select test.is(count(*), '0', 'all is well at the beginning') from proverq.check_invariants();
select test.complete(1, i) from generate_series(0, 2) i \g /dev/null
select test.complete(2, 0), test.fail(2, 1, false, true), test.fail(3, 0, true, true), test.complete(4, 0) \g /dev/null
select proverq_private.release(3, 1, test.token(3, 1), 'absent', 60000) \g /dev/null
select test.is(count(*), '0', 'and while things are under way') from proverq.check_invariants();
select test.finalize_next(), test.finalize_next() \g /dev/null
select test.is(count(*), '0', 'and when jobs have ended') from proverq.check_invariants();
select proverq.retry(2), proverq.set_priority(3, 4), proverq.cancel(4, 'test'),
       proverq_private.rescue_prover('00000000-0000-0000-0000-000000000002') \g /dev/null
select proverq.cancel(6) \g /dev/null
select test.is(string_agg(format('%s %s %s %s', invariant, job_seq, partition_idx, detail), e'\n'),
    null, 'and after retry, cancel and rescue')
from proverq.check_invariants();
select test.claim(1, circuits => '{2}') \g /dev/null
insert into proverq.job (circuit, partitions) values ('mul', 2);
insert into proverq.partition (job_seq, partition_idx, witness) values (8, 0, '\x01');
select test.is(string_agg(format('%s=%s', job_seq, state), ' ' order by job_seq),
    '1=finished 2=queued 3=queued 4=cancelled 5=queued 6=cancelled 7=queued 8=incomplete', 'jobs in all those states')
from proverq.job;

-- Does it, without the constraints that would see to it, and tells which invariants are broken where; undone.
create function test.broken(statement text) returns text language plpgsql as $$
declare
    result text;
begin
    begin
        alter table proverq.partition drop constraint partition_lease_whole, drop constraint partition_proof_whole;
        alter table proverq.job drop constraint job_remaining_in_range;
        execute statement;
        select string_agg(distinct concat_ws(' ', format('%s (%s', invariant, job_seq), partition_idx) || ')', '; ')
        into result
        from proverq.check_invariants();
        raise 'undo';
    exception when raise_exception then
        return result;
    end;
end
$$;
select test.is(test.broken(statement), wanted, 'broken: ' || regexp_replace(statement, '\s+', ' ', 'g'))
from (values
    ($$update proverq.job set present = 1 where job_seq = 5$$, 'present is the number of partitions (5)'),
    ($$update proverq.partition set partition_idx = 2 where job_seq = 5 and partition_idx = 1$$,
        'present is the number of partitions (5)'),
    ($$update proverq.job set remaining = remaining - 1 where job_seq = 3$$,
        'remaining is the number of partitions that are not proved (3)'),
    ($$update proverq.job set partitions = 3, remaining = 3 where job_seq = 5$$,
        'a job that is not incomplete has all its partitions (5)'),
    ($$update proverq.job set state = 'incomplete' where job_seq = 7$$,
        'an incomplete job lacks partitions, and holds those that it has (7)'),
    ($$update proverq.partition set state = 'ready' where job_seq = 8$$,
        'an incomplete job lacks partitions, and holds those that it has (8); '
        'only a queued job has something ready or leased (8 0)'),
    ($$update proverq.job set state = 'queued', error_code = null, finished_at = null where job_seq = 1$$,
        'a delivery says what has happened (1); a queued job has something to prove, and nothing of it has failed (1)'),
    ($$update proverq.partition set state = 'failed' where job_seq = 5 and partition_idx = 1$$,
        'a queued job has something to prove, and nothing of it has failed (5)'),
    ($$update proverq.partition set due_at = null where job_seq = 7$$,
        'what is held has a date, or its job is incomplete (7)'),
    ($$update proverq.job set state = 'completing' where job_seq = 2$$,
        'a job that ends or has ended has nothing to claim, under way or held (2); '
        'a job that is completing or finished is proved (2); only a queued job has something ready or leased (2 1)'),
    ($$update proverq.job set state = 'finished', finished_at = now() where job_seq = 8$$,
        'a job that ends or has ended has nothing to claim, under way or held (8); '
        'a job that is completing or finished is proved (8); a job that is not incomplete has all its partitions (8); '
        'inputs are deleted when the job has ended (8); what is held has a date, or its job is incomplete (8)'),
    ($$update proverq.job set state = 'failed', error_code = null where job_seq = 1$$,
        'a delivery says what has happened (1); a job that has ended told its webhook endpoint (1); '
        'a job that is failing or failed has a partition that failed, and an error (1)'),
    ($$update proverq.partition set state = 'held', due_at = now(), witness = '\x01', proof = null where job_seq = 4$$,
        'a job that ends or has ended has nothing to claim, under way or held (4); '
        'inputs are deleted when the job has ended (4); remaining is the number of partitions that are not proved (4)'),
    ($$update proverq.job set finished_at = null where job_seq = 1$$, 'finished_at is set when the job has ended (1)'),
    ($$update proverq.job set finished_at = now() where job_seq = 5$$, 'finished_at is set when the job has ended (5)'),
    ($$update proverq.partition set witness = '\x01' where job_seq = 1 and partition_idx = 1$$,
        'inputs are deleted when the job has ended (1)'),
    ($$update proverq.job set error_code = 'witness' where job_seq = 5$$,
        'a job that is not failing, failed or cancelled has no error (5)'),
    ($$update proverq.job set finalize_failures = 1 where job_seq = 5$$, 'a failed last step has an error (5)'),
    ($$update proverq.partition set token = null, lease_until = null where job_seq = 3 and partition_idx = 2$$,
        'only what is leased has a token (3 2)'),
    ($$update proverq.partition set token = gen_random_uuid() where job_seq = 5 and partition_idx = 1$$,
        'only what is leased has a token (5 1)'),
    ($$update proverq.partition set prover_id = null where job_seq = 1 and partition_idx = 1$$,
        'what is leased or proved has an attempt and a prover (1 1)'),
    ($$update proverq.partition set publics = null where job_seq = 1 and partition_idx = 1$$,
        'only what is proved has a proof (1 1)'),
    ($$update proverq.partition set proof = '{}', publics = '[]', proved_at = now()
        where job_seq = 5 and partition_idx = 1$$, 'only what is proved has a proof (5 1)'),
    ($$update proverq.partition set witness = null where job_seq = 5 and partition_idx = 1$$,
        'what is to be proved has inputs (5 1)'),
    ($$update proverq.partition set witness_path = 'x' where job_seq = 5 and partition_idx = 1$$,
        'what is to be proved has inputs (5 1)'),
    ($$update proverq.partition set circuit_id = 1 where job_seq = 5 and partition_idx = 1$$,
        'a partition has its job''s circuit (5 1)'),
    ($$update proverq.partition set priority = 8 where job_seq = 5 and partition_idx = 1$$,
        'what waits has its job''s priority (5 1)'),
    ($$update proverq.partition set failures = 9 where job_seq = 5 and partition_idx = 1$$,
        'no more attempts end than begin (5 1)'),
    ($$update proverq.partition set losses = 1, attempt = 1 where job_seq = 7$$,
        'what was lost was lost by a prover (7 0)'),
    ($$update proverq.partition set token = (select token from proverq.partition where state = 'leased' limit 1),
        state = 'leased', lease_until = now(), attempt = 1, prover_id = 1 where job_seq = 5 and partition_idx = 1$$,
        'a token is given once (3 2); a token is given once (5 1)'),
    ($$delete from proverq_private.prover where prover_id = 1$$, 'a lease belongs to a prover that is known (3 2)'),
    ($$update proverq.timing set attempt = 2, step = 90 where job_seq = 1 and partition_idx = 1 and step = 10$$,
        'timing belongs to an attempt (1 1)'),
    ($$delete from proverq.partition where job_seq = 1 and partition_idx = 1$$,
        'a job that is completing or finished is proved (1); a job that is not incomplete has all its partitions (1); '
        'present is the number of partitions (1); remaining is the number of partitions that are not proved (1); '
        'timing belongs to an attempt (1 1)'),
    ($$update proverq.timing set prover_id = 2, step = 90 where job_seq = 1 and partition_idx = 1 and step = 10$$,
        'an attempt is recorded once, by its prover (1 1)'),
    ($$update proverq.timing set step = 90 where job_seq = 1 and partition_idx = 1$$,
        'an attempt is recorded once, by its prover (1 1)'),
    ($$update proverq_private.failure set attempt = 9 where job_seq = 2$$,
        'a failure belongs to an attempt and a run (2 1)'),
    ($$update proverq_private.failure set run = 9 where job_seq = 2$$,
        'a failure belongs to an attempt and a run (2 1)'),
    ($$update proverq.partition set failures = 0 where job_seq = 3 and partition_idx = 0$$,
        'failures and losses are counted (3 0)'),
    ($$update proverq_private.webhook_delivery set run = 2 where job_seq = 1$$,
        'a delivery says what has happened (1); a job that has ended told its webhook endpoint (1)'),
    ($$update proverq_private.webhook_delivery set event = 'proverq.job.failed' where job_seq = 1$$,
        'a delivery says what has happened (1); a job that has ended told its webhook endpoint (1)'),
    ($$update proverq_private.webhook_delivery set state = 'delivered', next_attempt_at = null, delivered_at = now()
        where job_seq = 1$$,
        'a delivery says what has happened (1)'),
    ($$insert into proverq_private.webhook_delivery (endpoint_id, job_seq, run, event, body)
        values (1, 2, 1, 'proverq.job.cancelled', '')$$,
        'a run ends once (2)'),
    ($$insert into proverq_private.webhook_delivery (endpoint_id, job_seq, run, event, body)
        values (1, 2, 2, 'proverq.job.finished', '')$$,
        'a delivery says what has happened (2)'),
    ($$delete from proverq_private.webhook_delivery where job_seq = 1$$,
        'a job that has ended told its webhook endpoint (1)'),
    ($$update proverq_private.prover set idle = true, state = 'lost' where prover_id = 3$$,
        'only a running prover is idle ()'),
    -- What a pruner does is no broken invariant.
    ($$delete from proverq.timing; delete from proverq_private.failure;
        delete from proverq_private.prover where prover_id in (2, 3)$$,
        null),
    ($$delete from proverq_private.webhook_delivery;
        update proverq.job set finished_at = now() - interval '2 hours' where finished_at is not null$$,
        null)
) t (statement, wanted);
select test.is(count(*), '0', 'all of it is undone') from proverq.check_invariants();
