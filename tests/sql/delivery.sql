create function test.finished(webhook text) returns bigint language plpgsql as $$
declare
    job bigint := test.job(1, webhook => webhook);
begin
    perform test.claim(1);
    perform test.complete(job, 0), proverq.finalize_next();
    return job;
end
$$;
\set due 'update proverq.webhook_delivery set next_attempt_at = clock_timestamp() where state = ''pending'';'
\set claimed `cat sql/statements/delivery_claim.sql`
prepare delivery_claim as :claimed;
create function test.done(seq bigint, status int, error text default null, retry_after int default null) returns text language sql as $$
    select proverq.delivery_done(delivery_id, token, status, error, retry_after) from proverq.webhook_delivery where job_seq = seq
$$;
create function test.pause(seq bigint) returns double precision language sql as $$
    select extract(epoch from next_attempt_at - clock_timestamp()) from proverq.webhook_delivery where job_seq = seq
$$;

select test.finished('hook') \g /dev/null
create temp table taken as execute delivery_claim(10, 60000);
select test.is(count(*), '1', 'a new delivery is due at once') from taken;
select test.is(format('%s %s %s', event, url, attempts), 'proverq.job.finished https://example.com/hook 1', 'a claim gives what is to be sent'),
       test.is(secret, (select e.secret from proverq.webhook_endpoint e), 'with the secret'), test.is(body::jsonb #>> '{data,job}', '1', 'and the body') from taken;
create temp table again as execute delivery_claim(10, 60000);
select test.is(count(*), '0', 'it is claimed once') from again;
select test.is(proverq.delivery_done(delivery_id, gen_random_uuid(), 200, null, null), 'stale', 'another''s outcome is refused') from taken;
select test.is(proverq.delivery_done(gen_random_uuid(), token, 200, null, null), 'stale', 'that of an unknown delivery too') from taken;
select test.is(test.done(1, 200), 'delivered', 'a 200 delivers');
select test.is(format('%s %s %s %s', state, last_status, token, next_attempt_at), 'delivered 200  ', 'and is recorded'), test.is(delivered_at is not null, true, 'with its time') from proverq.webhook_delivery;
select test.is(proverq.delivery_done(delivery_id, token, 200, null, null), 'stale', 'a second outcome is refused') from taken;

-- A finalizer that dies: the delivery comes back under another token.
select test.finished('hook') \g /dev/null
create temp table lost as execute delivery_claim(10, 1);
select pg_sleep(0.01) \g /dev/null
create temp table found as execute delivery_claim(10, 60000);
select test.is(f.attempts, 2, 'a lost attempt is made again'), test.is(f.token <> l.token, true, 'with another token'), test.is(f.delivery_id = l.delivery_id, true, 'and the same id') from lost l, found f;
select test.is(proverq.delivery_done(delivery_id, token, 200, null, null), 'stale', 'the late outcome is refused') from lost;
select test.is(test.done(2, 302), 'retry', 'a redirect is no success');

-- The schedule.
select test.finished('hook') \g /dev/null
create procedure test.attempt() language plpgsql as $$
begin
    update proverq.webhook_delivery set next_attempt_at = case when job_seq = 3 then clock_timestamp() else 'infinity' end where state = 'pending';
    update proverq.webhook_delivery set attempts = attempts + 1, token = gen_random_uuid() where state = 'pending' and job_seq = 3;
end
$$;
create temp table schedule (n int, outcome text);
create temp table pauses (n int, pause double precision);
do $$
begin
    for n in 1..10 loop
        call test.attempt();
        insert into schedule values (n, test.done(3, 500, 'HTTP 500'));
        insert into pauses values (n, test.pause(3));
    end loop;
end
$$;
select test.is(string_agg(outcome, ' ' order by n), 'retry retry retry retry retry retry retry retry retry failed', 'ten attempts') from schedule;
select test.is(bool_and(pause between seconds - 1 and seconds * 1.2), true, 'after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h, and up to a fifth more')
from pauses join unnest('{5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400}'::int[]) with ordinality t (seconds, n) using (n);
select test.is(format('%s %s %s %s', state, attempts, last_status, last_error), 'failed 10 500 HTTP 500', 'and the last reason is kept') from proverq.webhook_delivery where job_seq = 3;

-- Endpoints that ask for time.
select test.finished('hook') as job \gset
create temp table t1 as execute delivery_claim(1, 60000);
select test.is(test.done(:job, 429), 'retry', '429'), test.is(test.pause(:job) between 59 and 72, true, 'slows down');
:due
create temp table t2 as execute delivery_claim(10, 60000);
select test.is(test.done(:job, 503, null, 1000), 'retry', '503 with Retry-After'), test.is(test.pause(:job) between 999 and 1200, true, 'is honoured');
:due
create temp table t3 as execute delivery_claim(10, 60000);
select test.is(test.done(:job, 503, null, 2000000000), 'retry', 'a Retry-After of years'), test.is(test.pause(:job) between 86399 and 86400 * 1.2, true, 'is cut to a day');
:due
create temp table t4 as execute delivery_claim(10, 60000);
select test.is(test.done(:job, null, 'connection refused'), 'retry', 'no answer'), test.is(last_error, 'connection refused', 'is recorded') from proverq.webhook_delivery where job_seq = :job;

-- 410.
select test.finished('hook') as job \gset
:due
create temp table t5 as execute delivery_claim(10, 60000);
select test.is(test.done(:job, 410, 'HTTP 410'), 'disabled', '410 Gone');
select test.is(disabled_reason, 'it answered 410 Gone', 'disables the endpoint'), test.is(disabled_at is not null, true, 'visibly') from proverq.webhook_endpoint;
select test.is(count(*), '0', 'and ends its deliveries') from proverq.webhook_delivery where state = 'pending';
