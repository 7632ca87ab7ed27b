-- What people call around webhooks: endpoints, secrets, pings, redelivery, and what a job may name.
create function test.took() returns setof text language sql as $$
    select format('%s %s', url, secrets) from proverq_private.claim_deliveries(100, 100, 100, 60000) order by 1
$$;
create function test.end_job(job bigint) returns void language plpgsql as $$
begin
    perform test.claim(1), test.complete(job, 0), test.finalize_next();
end
$$;
create function test.record(id text, status int) returns text language sql as $$
    select r.outcome
    from proverq_private.webhook_delivery d, proverq_private.record_deliveries(
        jsonb_build_array(jsonb_build_object('delivery', d.delivery_id, 'token', d.token, 'status', status,
            'error', case when status >= 300 then 'HTTP ' || status end))) r
    where proverq_private.webhook_id(d.delivery_id) = id
$$;

-- Secrets.
select secret as first from proverq_private.webhook_secret \gset
select proverq.rotate_webhook_secret('hook') as second \gset
select test.matches(:'second', '^whsec_[A-Za-z0-9+/]{43}=$', 'rotation gives a secret'),
       test.is(:'second' <> :'first', true, 'a new one');
select proverq.ping_webhook_endpoint('hook') as ping \gset
select test.is(test.took(), format('https://example.com/hook %s %s', :'second', :'first'),
    'deliveries are signed with both, the new one first');
select test.is(extract(epoch from valid_until - clock_timestamp()) between 86390 and 86400, true, 'for a day')
from proverq_private.webhook_secret where secret = :'first';
select test.is(test.record(:'ping', 200), 'delivered', 'a ping is delivered');
select proverq.rotate_webhook_secret('hook', '0 s') as third \gset
select proverq.ping_webhook_endpoint('hook') as ping \gset
select test.is(test.took(),
    'https://example.com/hook ' || :'third', 'a rotation without grace ends the old secret at once');
select proverq.rotate_webhook_secret('hook'), proverq.rotate_webhook_secret('hook') \g /dev/null
select test.is(count(*), '2', 'no more than two secrets at a time') from proverq_private.webhook_secret;
select test.throws('select proverq.rotate_webhook_secret(''hook'', null)',
    '22023', 'grace must be', 'a grace that never ends');
select test.throws('select proverq.rotate_webhook_secret(''hook'', ''-1 s'')',
    '22023', 'grace must be', 'one that is over');
select test.throws('select proverq.rotate_webhook_secret(''nil'')',
    '42704', 'no webhook endpoint ''nil'' of yours', 'an unknown endpoint');

-- A ping.
select test.is(format('%s %s %s', event, job_seq, state), 'proverq.ping  pending', 'a ping needs no job')
from proverq.deliveries where webhook_id = :'ping';
select test.is(body::jsonb - 'timestamp',
    format('{"type": "proverq.ping", "api": 1, "data": {"endpoint": "hook", "submitter": "%s"}}', session_user)::jsonb,
    'and says who asked')
from proverq_private.webhook_delivery where proverq_private.webhook_id(delivery_id) = :'ping';
select test.record(:'ping', 200) \g /dev/null

-- Disable and enable.
select test.job(1, webhook => 'hook') as job \gset
select test.end_job(:job) \g /dev/null
select proverq.disable_webhook_endpoint('hook', 'on holiday') \g /dev/null
select test.is(format('%s %s', state, disabled_reason), 'disabled on holiday', 'an endpoint is disabled')
from proverq.webhook_endpoints;
select test.is(format('%s %s', state, last_error),
    'failed the endpoint was disabled: on holiday', 'what waited has failed')
from proverq.deliveries where job_seq = :job;
select test.throws('select proverq.ping_webhook_endpoint(''hook'')',
    '55000', 'hook is disabled.*on holiday.*enable_webhook_endpoint', 'a disabled one is not pinged');
select test.throws(format('select proverq.redeliver(%L)', webhook_id),
    '55000', 'hook is disabled.*enable_webhook_endpoint', 'nothing is redelivered to it')
from proverq.deliveries where job_seq = :job;
select test.throws('select proverq.redeliver_failed(''hook'', now())',
    '55000', 'hook is disabled.*enable_webhook_endpoint', 'not even many');
select proverq.enable_webhook_endpoint('hook') \g /dev/null
select test.is(format('%s %s', state, disabled_reason), 'open ', 'and enabled') from proverq.webhook_endpoints;
select proverq.disable_webhook_endpoint('hook') \g /dev/null
select test.is(disabled_reason, session_user || ' disabled it', 'without a reason there is one')
from proverq.webhook_endpoints;
select proverq.enable_webhook_endpoint('hook') \g /dev/null

-- Redelivery.
select proverq.redeliver_failed('hook', now() - interval '1 hour') as n \gset
select test.is(:n, 1, 'what has failed is sent again');
select test.is(count(*), '1', 'at once') from test.took();
select webhook_id as id, body as body
from proverq.deliveries join proverq_private.webhook_delivery using (job_seq) where job_seq = :job \gset
select test.is(proverq.redeliver_failed('hook', now() - interval '1 hour'), 0, 'only that');
select proverq.redeliver(:'id') \g /dev/null
select test.is(waits_for, 'the answer to attempt 1', 'an attempt under way is not disturbed')
from proverq.deliveries where webhook_id = :'id';
select test.record(:'id', 200), proverq.redeliver(:'id') \g /dev/null
select test.is(state, 'pending', 'one that was delivered can be sent again'), test.is(webhook_id, :'id', 'under its id')
from proverq.deliveries where job_seq = :job;
select test.is(count(*), '1', 'which is due at once') from test.took();
select test.record(:'id', 500) \g /dev/null
select test.is(format('%s %s %s', d.state, d.attempts,
               extract(epoch from d.next_attempt_at - clock_timestamp()) between 4 and 6),
           'pending 2 t', 'its schedule begins anew'),
       test.is(w.body, :'body', 'with the same bytes')
from proverq.deliveries d join proverq_private.webhook_delivery w using (job_seq) where job_seq = :job;
select test.is(string_agg(attempt || ' ' || status, ', ' order by attempt),
    '1 200, 2 500', 'both attempts are in the log')
from proverq.delivery_attempts where webhook_id = :'id';
select test.throws(format('select proverq.redeliver(%L)', 'msg_' || repeat('0', 32)),
           '42704', 'no webhook ''msg_0+'' of yours', 'an unknown webhook'),
       test.throws('select proverq.redeliver(''x'')', '42704', 'no webhook ''x''', 'no webhook id'),
       test.throws('select proverq.redeliver(null)', '42704', 'no webhook NULL', 'none');
update proverq_private.webhook_delivery
set state = 'failed', next_attempt_at = null, created_at = now() - interval '2 days' where job_seq = :job;
select test.is(proverq.redeliver_failed('hook', now() - interval '1 day'), 0, 'older failures are left'),
       test.is(proverq.redeliver_failed('hook', now() - interval '3 days'), 1, 'unless asked for');

-- What a job may name.
select proverq.create_webhook_endpoint('below', 'https://example.com/jobs/') as secret \gset
select test.job(1, webhook => 'https://example.com/jobs/17?token=a%20b') as job \gset
select test.is(e.name, 'below', 'a URL below an endpoint that ends in / is covered by it')
from proverq.job j join proverq_private.webhook_endpoint e using (endpoint_id) where j.job_seq = :job;
update proverq_private.webhook_delivery set state = 'failed', next_attempt_at = null, token = null
where state = 'pending';
select test.end_job(:job) \g /dev/null
select test.is(test.took(),
    'https://example.com/jobs/17?token=a%20b ' || :'secret', 'it is sent there, with the endpoint''s secret');
select test.is(url, 'https://example.com/jobs/17?token=a%20b', 'and the view says so')
from proverq.deliveries where job_seq = :job;
select test.is(test.record(webhook_id, 410), 'failed', 'if it is gone') from proverq.deliveries where job_seq = :job;
select test.is(state, 'open', 'the endpoint is not') from proverq.webhook_endpoints where name = 'below';
select test.throws(format('select test.job(1, webhook => %L)', url),
    sqlstate, pattern, 'no job names ' || replace(url, E'\r\n', ' '))
from (values
    ('https://example.com/hook/17', '42704', 'no webhook endpoint'),
    ('https://example.com/jobs', '42704', 'no webhook endpoint'),
    ('https://example.com/jobs/../admin', '22023', 'not a URL'),
    ('https://example.com/jobs/%2E./admin', '22023', 'not a URL'),
    ('https://example.com/jobs/..', '22023', 'not a URL'),
    ('https://example.com/jobs/./x', '22023', 'not a URL'),
    ('http://example.com/jobs/17', '42704', 'no webhook endpoint'),
    ('https://example.com.evil.org/jobs/17', '42704', 'no webhook endpoint'),
    ('https://example.com@evil.org/jobs/17', '22023', 'not a URL'),
    ('https://example.com\@evil.org/jobs/17', '22023', 'not a URL'),
    ('https://example.com/jobs/#x', '22023', 'not a URL'),
    (E'https://example.com/jobs/1\r\nHost: evil.org', '22023', 'not a URL'),
    (E'https://example.com/jobs/\u00e9', '22023', 'not a URL'),
    ('https:///jobs/', '22023', 'not a URL')
) t (url, sqlstate, pattern);
select proverq.set_webhook_url('below', 'https://example.org/new') \g /dev/null
select test.job(1, webhook => 'below') as job \gset
select test.end_job(:job) \g /dev/null
select test.matches(test.took(), '^https://example.org/new ', 'an endpoint can move');
select test.throws('select proverq.set_webhook_url(''below'', ''http://user:pw@x/'')',
    '22023', 'not a URL', 'but to no user''s URL');
select test.throws('select proverq.create_webhook_endpoint(''x'', ''https://h/'' || repeat(''x'', 2000))',
    '22023', 'not a URL', 'and a URL has an end');
