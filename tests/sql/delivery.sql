create function test.finished(webhook text) returns bigint language plpgsql as $$
declare
    job bigint := test.job(1, webhook => webhook);
begin
    perform test.claim(1);
    perform test.complete(job, 0), test.finalize_next();
    return job;
end
$$;
\set due 'update proverq_private.webhook_delivery set next_attempt_at = clock_timestamp() where state = ''pending'';'
\set rested 'update proverq_private.webhook_endpoint set rests_until = null, failures = 0, failing_since = null;'
create function test.take(n int, lease_ms int default 60000, per_endpoint int default 100, failing int default 100)
returns setof proverq_private.webhook_delivery language plpgsql as $$
declare
    ids constant uuid[] := array(select c.delivery_id
        from proverq_private.claim_deliveries(n, failing, per_endpoint, lease_ms) c);
begin
    return query select * from proverq_private.webhook_delivery d where d.delivery_id = any (ids);
end
$$;
create function test.record(delivery_id uuid, token uuid, status int, error text default null,
    retry_after int default null)
returns text language sql as $$
    select outcome
    from proverq_private.record_deliveries(jsonb_build_array(jsonb_build_object('delivery', delivery_id, 'token', token,
        'status', status, 'error', error, 'retry_after_s', retry_after)))
$$;
create function test.done(seq bigint, status int, error text default null, retry_after int default null)
returns text language sql as $$
    select test.record(delivery_id, token, status, error, retry_after)
    from proverq_private.webhook_delivery where job_seq = seq
$$;
create function test.pause(seq bigint) returns double precision language sql as $$
    select extract(epoch from next_attempt_at - clock_timestamp())
    from proverq_private.webhook_delivery where job_seq = seq
$$;

select test.finished('hook') \g /dev/null
create temp table sent as select * from proverq_private.claim_deliveries(10, 10, 10, 60000);
create temp table taken as select d.* from proverq_private.webhook_delivery d;
select test.is(count(*), '1', 'a new delivery is due at once') from sent;
select test.is(format('%s %s', url, is_failing), 'https://example.com/hook f', 'a claim gives what is to be sent'),
       test.is(secrets, (select e.secret from proverq_private.webhook_secret e), 'with the secret'),
       test.is(body::jsonb #>> '{data,job}', '1', 'and the body')
from sent;
select test.is(attempts, 1, 'it counts') from taken;
create temp table again as select * from test.take(10);
select test.is(count(*), '0', 'it is claimed once') from again;
select test.is(test.record(delivery_id, gen_random_uuid(), 200), 'stale', 'another''s outcome is refused') from taken;
select test.is(test.record(gen_random_uuid(), token, 200), 'stale', 'that of an unknown delivery too') from taken;
select test.is(test.done(1, 200), 'delivered', 'a 200 delivers');
select test.is(format('%s %s %s %s', state, last_status, token, next_attempt_at), 'delivered 200  ', 'and is recorded'),
       test.is(delivered_at is not null, true, 'with its time')
from proverq_private.webhook_delivery;
select test.is(test.record(delivery_id, token, 200), 'stale', 'a second outcome is refused') from taken;

-- A finalizer that dies: the delivery comes back under another token.
select test.finished('hook') \g /dev/null
create temp table lost as select * from test.take(10, 1);
select pg_sleep(0.01) \g /dev/null
create temp table found as select * from test.take(10);
select test.matches(error, '^lost: ', 'the lost attempt is in the log')
from proverq_private.webhook_attempt a join lost l on l.delivery_id = a.delivery_id and a.attempt = 1;
select test.is(f.attempts, 2, 'a lost attempt is made again'), test.is(f.token <> l.token, true, 'with another token'),
       test.is(f.delivery_id = l.delivery_id, true, 'and the same id')
from lost l, found f;
select test.is(test.record(delivery_id, token, 200), 'stale', 'the late outcome is refused') from lost;
select test.is(test.done(2, 302), 'retry', 'a redirect is no success');

-- The schedule.
select test.finished('hook') \g /dev/null
create procedure test.attempt() language plpgsql as $$
begin
    update proverq_private.webhook_delivery
    set next_attempt_at = case when job_seq = 3 then clock_timestamp() else 'infinity' end where state = 'pending';
    update proverq_private.webhook_delivery set attempts = attempts + 1, token = gen_random_uuid()
    where state = 'pending' and job_seq = 3;
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
select test.is(string_agg(outcome, ' ' order by n),
    'retry retry retry retry retry retry retry retry retry failed', 'ten attempts')
from schedule;
select test.is(bool_and(pause between seconds - 1 and seconds * 1.2),
    true, 'after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h, and up to a fifth more')
from pauses
join unnest('{5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400}'::int[]) with ordinality t (seconds, n) using (n);
select test.is(format('%s %s %s %s', state, attempts, last_status, last_error),
    'failed 10 500 HTTP 500', 'and the last reason is kept')
from proverq_private.webhook_delivery where job_seq = 3;


-- Endpoints that ask for time.
:rested
select test.finished('hook') as job \gset
create temp table t1 as select * from test.take(1);
select test.is(test.done(:job, 429), 'retry', '429'),
       test.is(test.pause(:job) between 59 and 72, true, 'slows the delivery down');
select test.is(extract(epoch from rests_until - clock_timestamp()) between 4 and 6, true, 'and the endpoint')
from proverq_private.webhook_endpoint;
:due
create temp table t2 as select * from test.take(10);
select test.is(count(*), '0', 'which gets nothing meanwhile') from t2;
select test.matches(waits_for, '^its endpoint, which rests for [456] s after 1 failures', 'and the view says so')
from proverq.deliveries where job_seq = :job;
:rested
create temp table t3 as select * from test.take(10);
select test.is(test.done(:job, 503, null, 1000), 'retry', '503 with Retry-After'),
       test.is(test.pause(:job) between 999 and 1200, true, 'is honoured');
select test.is(extract(epoch from rests_until - clock_timestamp()) between 990 and 1200, true, 'by the whole endpoint')
from proverq_private.webhook_endpoint;
:rested
:due
create temp table t4 as select * from test.take(10);
select test.is(test.done(:job, 503, null, 2000000000), 'retry', 'a Retry-After of years'),
       test.is(test.pause(:job) between 86399 and 86400 * 1.2, true, 'is cut to a day');
:rested
:due
create temp table t5 as select * from test.take(10);
select test.is(test.done(:job, null, 'connection refused'), 'retry', 'no answer'),
       test.is(last_error, 'connection refused', 'is recorded')
from proverq_private.webhook_delivery where job_seq = :job;

-- One that keeps failing: from the third failure on one at a time, with pauses; a success ends that.
update proverq_private.webhook_delivery set state = 'failed', next_attempt_at = null where state = 'pending';
:rested
select test.finished('hook') from generate_series(1, 8) \g /dev/null
create temp table f1 as select * from test.take(10, per_endpoint => 5);
select test.is(count(*), '5', 'an endpoint gets so many at once') from f1;
create temp table f2 as select * from test.take(10, per_endpoint => 5);
select test.is(count(*), '0', 'and no more while they are under way') from f2;
select test.record(delivery_id, token, 500, 'HTTP 500') from f1 \g /dev/null
select test.is(failures, 5, 'failures are counted'),
       test.is(extract(epoch from rests_until - clock_timestamp()) between 6 and 10, true, 'it rests'),
       test.is(failing_since is not null, true, 'since when is known')
from proverq_private.webhook_endpoint;
create temp table f3 as select * from test.take(10);
select test.is(count(*), '0', 'nothing is sent') from f3;
update proverq_private.webhook_endpoint set rests_until = clock_timestamp();
create temp table f4 as select * from test.take(10, failing => 0);
select test.is(count(*), '0', 'endpoints that fail have slots of their own') from f4;
create temp table f5 as select * from test.take(10);
select test.is(count(*), '1', 'then one is tried') from f5;
select test.matches((select waits_for from proverq.deliveries where state = 'pending' and attempts = 0 limit 1),
    'one delivery at a time after 5 failures: HTTP 500', 'the others wait, and say for what');
select test.record(delivery_id, token, 204) from f5 \g /dev/null
select test.is(format('%s %s %s', failures, failing_since, rests_until), '0  ', 'a success forgets it')
from proverq_private.webhook_endpoint;
create temp table f6 as select * from test.take(10);
select test.is(count(*), '2', 'and the rest is sent') from f6;
select test.record(delivery_id, token, 500, 'HTTP 500') from f6 \g /dev/null

-- The log.
select proverq_private.record_deliveries(jsonb_agg(jsonb_build_object('delivery', delivery_id, 'token', token, 'status',
    500, 'curl_code', 23, 'error', 'HTTP 500', 'peer', '192.0.2.1', 'dns_us', 1, 'connect_us', 2, 'tls_us', 3,
    'first_byte_us', 4, 'total_us', 5, 'answer', 'x')))
from proverq_private.webhook_delivery where token is not null \g /dev/null
select test.finished('hook') as job \gset
:rested
create temp table l1 as select * from test.take(1);
select outcome
from l1,
    proverq_private.record_deliveries(jsonb_build_array(jsonb_build_object('delivery', delivery_id, 'token', token,
        'status', 500, 'curl_code', 23, 'error', 'HTTP 500', 'peer', '192.0.2.1', 'dns_us', 1, 'connect_us', 2,
        'tls_us', 3, 'first_byte_us', 4, 'total_us', 5, 'answer', 'x'))) \g /dev/null
select test.is(format('%s %s %s %s %s %s %s %s %s %s %s', attempt, status, curl_code, error, peer, dns_us, connect_us,
        tls_us, first_byte_us, total_us, answer),
    '1 500 23 HTTP 500 192.0.2.1 1 2 3 4 5 x', 'an attempt is logged whole')
from proverq.delivery_attempts where job_seq = :job;
do $$
declare
    w constant uuid := (select delivery_id from l1);
begin
    for n in 1..30 loop
        update proverq_private.webhook_endpoint set rests_until = null, failures = 0;
        update proverq_private.webhook_delivery
        set state = 'pending', next_attempt_at = now(), attempts_before = attempts where delivery_id = w;
        perform test.record(delivery_id, token, 500, 'HTTP 500') from test.take(100) where delivery_id = w;
    end loop;
end
$$;
select test.is(format('%s %s %s', count(*), min(attempt), max(attempt)),
    '20 12 31', 'and the log of a delivery is bounded')
from proverq.delivery_attempts where job_seq = :job;

-- Several at once, some of them not ours any more.
update proverq_private.webhook_delivery set state = 'failed', next_attempt_at = null, token = null
where state = 'pending';
:rested
select test.finished('hook') from generate_series(1, 3) \g /dev/null
create temp table m1 as select *, row_number() over (order by job_seq) as n from test.take(10);
update proverq_private.webhook_delivery set token = gen_random_uuid()
where delivery_id = (select delivery_id from m1 where n = 3);
create temp table m2 as select r.*
from proverq_private.record_deliveries((select jsonb_agg(jsonb_build_object('delivery', delivery_id, 'token', token,
    'status', case n when 1 then 200 else 500 end, 'error', case n when 1 then null else 'HTTP 500' end)) from m1)) r;
select test.is(string_agg(outcome, ' ' order by n), 'delivered retry stale', 'outcomes come together')
from m1 join m2 using (delivery_id);

-- 410, and an endpoint that has failed for 5 days.
:rested
update proverq_private.webhook_delivery set next_attempt_at = clock_timestamp(), token = null where state = 'pending';
select test.finished('hook') as job, test.finished('hook') as other \gset
create temp table g1 as select * from test.take(10) order by job_seq;
select test.is(test.done(:job, 410, 'HTTP 410'), 'disabled', '410 Gone');
select test.is(disabled_reason, 'it answered 410 Gone', 'disables the endpoint'),
       test.is(disabled_at is not null, true, 'visibly')
from proverq_private.webhook_endpoint;
select test.is(test.done(:other, 200), 'delivered', 'what was under way is recorded');
update proverq_private.webhook_delivery set next_attempt_at = clock_timestamp() where state = 'pending';
create temp table g2 as select * from test.take(10);
select test.is(count(*), '0', 'nothing more is sent') from g2;
select proverq.enable_webhook_endpoint('hook') \g /dev/null
select test.finished('hook') as job, test.finished('hook') as other \gset
create temp table h1 as select * from test.take(1000, per_endpoint => 1000);
update proverq_private.webhook_endpoint set failures = 100, failing_since = now() - interval '4 days 23 hours';
select test.is(test.done(:job, 500, 'HTTP 500'), 'retry', 'almost 5 days of failures');
update proverq_private.webhook_endpoint set failing_since = now() - interval '5 days 1 hour';
select test.is(test.done(:other, 500, 'HTTP 500 from x'), 'disabled', '5 days of failures');
select test.matches(disabled_reason,
    '^102 attempts in 5 days 01:00:00 have failed, the last with: HTTP 500 from x$', 'disable it, with the reason')
from proverq_private.webhook_endpoint;
select test.is(format('%s %s', d.state, d.last_error), 'failed HTTP 500 from x', 'the delivery keeps its own'),
       test.is(w.state, 'disabled', 'and the view shows it')
from proverq.deliveries d, proverq.webhook_endpoints w where job_seq = :other;
select test.matches(last_error, '^the endpoint was disabled: 102 attempts', 'what waited has failed with it')
from proverq.deliveries where job_seq = :job;
