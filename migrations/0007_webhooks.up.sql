-- Webhooks: endpoints belong to their submitters, secrets have a table of their own, every attempt is logged.

set local client_min_messages = warning; -- of functions that are not there yet
drop function if exists proverq.create_webhook_endpoint(text, text);

create table proverq.webhook_secret (
    endpoint_id int not null references proverq.webhook_endpoint (endpoint_id) on delete cascade,
    secret text not null,
    created_at timestamptz not null default clock_timestamp(),
    valid_until timestamptz,
    primary key (endpoint_id, secret),
    constraint webhook_secret_valid check (secret ~ '^whsec_[A-Za-z0-9+/]{32,88}={0,2}$')
);
comment on table proverq.webhook_secret is 'Keys of the signatures (Standard Webhooks). For the finalizer only: whoever reads one can forge webhooks.';
comment on column proverq.webhook_secret.secret is 'whsec_ and 24 to 64 bytes in base64.';
comment on column proverq.webhook_secret.valid_until is 'Replaced: until then deliveries are signed with it too. Null: the endpoint''s secret.';

insert into proverq.webhook_secret (endpoint_id, secret, created_at)
select endpoint_id, secret, created_at from proverq.webhook_endpoint;

-- Before, every submitter could use every endpoint: those that are there stay so. An older finalizer finds no secret,
-- cannot sign, and gives what it claimed back (delivery_done).
alter table proverq.webhook_endpoint
    alter column secret drop not null,
    drop constraint webhook_endpoint_name_key,
    add constraint webhook_endpoint_name_unique unique (submitter, name),
    add column shared bool not null default false,
    add column failures int not null default 0,
    add column failing_since timestamptz,
    add column rests_until timestamptz,
    add column last_error text;
update proverq.webhook_endpoint set secret = null, shared = true;
comment on table proverq.webhook_endpoint is 'Where the finalizer sends word of jobs; make one with proverq.create_webhook_endpoint(name, url). Read the view proverq.webhook_endpoints.';
comment on column proverq.webhook_endpoint.name is 'Unique among its submitter''s.';
comment on column proverq.webhook_endpoint.url is 'One that ends in / covers the URLs below it: jobs may name those.';
comment on column proverq.webhook_endpoint.secret is 'Always null; programs before migration 7 ask for it. See proverq.webhook_secret.';
comment on column proverq.webhook_endpoint.submitter is 'Whose it is: only this role''s jobs may name it, unless it is shared.';
comment on column proverq.webhook_endpoint.shared is 'Jobs of every submitter may name it: the operator''s list of what is allowed.';
comment on column proverq.webhook_endpoint.disabled_at is 'Nothing is sent any more. To send again: select proverq.enable_webhook_endpoint(NAME);';
comment on column proverq.webhook_endpoint.failures is 'Attempts that have failed since the last that succeeded. From 3 on one delivery at a time is tried.';
comment on column proverq.webhook_endpoint.failing_since is 'The first of them. After 5 days the endpoint is disabled.';
comment on column proverq.webhook_endpoint.rests_until is 'Nothing is sent before: it asked for time (Retry-After, 429, 502, 503, 504), or keeps failing.';
comment on column proverq.webhook_endpoint.last_error is 'Why the last attempt failed; kept after one that succeeded.';

alter table proverq.webhook_delivery
    alter column job_seq drop not null,
    alter column run drop not null,
    add column url text,
    add column attempts_before int not null default 0,
    add constraint webhook_delivery_job_whole check ((job_seq is null) = (run is null)) not valid; -- so are those that are there
alter table proverq.webhook_delivery set (autovacuum_vacuum_scale_factor = 0.05);
comment on column proverq.webhook_delivery.job_seq is 'Null: a ping.';
comment on column proverq.webhook_delivery.url is 'The URL that the job named, below the endpoint''s; null: the endpoint''s own.';
comment on column proverq.webhook_delivery.attempts is 'All that were begun.';
comment on column proverq.webhook_delivery.attempts_before is 'Those before it was last sent anew by redeliver(): the schedule counts from there.';

-- The claim goes from endpoint to endpoint: what one has in its backlog, the others do not pay for. Built here, so that the whole of
-- an upgrade is one transaction; a million deliveries (1.3 GB) make it 2.3 s longer, unless the indexes were built concurrently
-- beforehand, with the same names (contrib/docs/migrations.md).
do $$
declare
    broken regclass;
begin
    for broken in -- a concurrent build that was broken off leaves an index that answers no query
        select i.indexrelid from pg_index i where i.indrelid = 'proverq.webhook_delivery'::regclass and not i.indisvalid
    loop
        execute format('drop index %s', broken);
    end loop;
end
$$;
drop index proverq.webhook_delivery_due, proverq.webhook_delivery_endpoint;
create index if not exists webhook_delivery_pending on proverq.webhook_delivery (endpoint_id, next_attempt_at) where state = 'pending';
create index if not exists webhook_delivery_under_way on proverq.webhook_delivery (endpoint_id) where token is not null;
create index if not exists webhook_delivery_failed on proverq.webhook_delivery (endpoint_id, created_at) where state = 'failed';

create table proverq.webhook_attempt (
    delivery_id uuid not null references proverq.webhook_delivery (delivery_id) on delete cascade,
    attempt int not null,
    ended_at timestamptz not null default clock_timestamp(),
    status int,
    curl_code int,
    error text,
    peer text,
    dns_us bigint,
    connect_us bigint,
    tls_us bigint,
    first_byte_us bigint,
    total_us bigint,
    answer text,
    primary key (delivery_id, attempt)
);
comment on table proverq.webhook_attempt is 'What came of each attempt to deliver a webhook; the last 20 of each delivery. Read the view proverq.delivery_attempts.';
comment on column proverq.webhook_attempt.status is 'HTTP status; null when there was no answer.';
comment on column proverq.webhook_attempt.curl_code is 'libcurl''s result (libcurl-errors(3)); 0: the exchange went well. An answer counts by its status.';
comment on column proverq.webhook_attempt.error is 'Null after a 2xx.';
comment on column proverq.webhook_attempt.peer is 'The address that was connected to.';
comment on column proverq.webhook_attempt.dns_us is 'Microseconds from the start until the name was resolved; this and what follows include what is before.';
comment on column proverq.webhook_attempt.connect_us is 'Until the connection was made; 0: one was used again.';
comment on column proverq.webhook_attempt.tls_us is 'Until TLS was agreed on; 0: not needed.';
comment on column proverq.webhook_attempt.first_byte_us is 'Until the answer began.';
comment on column proverq.webhook_attempt.answer is 'The answer''s first bytes, made printable.';

insert into proverq.schema_migration (version, name, breaking, checksum) values (7, 'webhooks', false, '2bac825edabf88886bf456aabeab18bdb1fd6cf5b05c0b4b18c536e6b6a9b531');
