create or replace function proverq_private.webhook_url_check(url text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    -- No user name, which could pass for the host; no fragment, which is not sent; no dots that would climb out of what an
    -- endpoint covers.
    if url is null or url !~ '^https?://[!-~]+$' or url !~ '^https?://[^/?#@\\]+([/?][^#\\]*)?$' or octet_length(url) > 2000
        or split_part(url, '?', 1) ~* '/(\.|%2e){1,2}(/|$)' then
        raise invalid_parameter_value using
            message = format('%s is not a URL that a webhook can have', coalesce(quote_literal(url), 'NULL')),
            hint = 'It begins with https:// (or http://, which the finalizer must be told to allow) and is ASCII, without user, fragment and dot segments.';
    end if;
end
$$;
comment on function proverq_private.webhook_url_check(text) is 'Refuses what cannot be the URL of a webhook.';

create or replace function proverq_private.new_webhook_secret() returns text
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
    -- 366 random bits in, 256 out: the server's strong source is to be had without an extension only as UUIDs.
    select 'whsec_' || encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'base64')
$$;
comment on function proverq_private.new_webhook_secret() is 'A new key for signatures: whsec_ and 32 random bytes in base64.';

create or replace function proverq.create_webhook_endpoint(name text, url text, shared bool default false) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    made int;
    secret constant text := proverq_private.new_webhook_secret();
begin
    if create_webhook_endpoint.name is null or create_webhook_endpoint.name !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$' then
        raise invalid_parameter_value using
            message = format('%s cannot be the name of a webhook endpoint', coalesce(quote_literal(create_webhook_endpoint.name), 'NULL')),
            hint = 'Use up to 100 letters, digits, dots, dashes and underscores; begin with a letter or digit.';
    end if;
    perform proverq_private.webhook_url_check(create_webhook_endpoint.url);
    if create_webhook_endpoint.shared and not (proverq_private.is_owner() or proverq_private.is_member('proverq_operator')) then
        raise insufficient_privilege using
            message = format('%s may not make a webhook endpoint that all submitters can use', quote_ident(session_user)),
            hint = 'That is for members of proverq_operator. Leave shared out for one of your own.';
    end if;
    insert into proverq_private.webhook_endpoint (name, url, submitter, shared)
    values (create_webhook_endpoint.name, create_webhook_endpoint.url, session_user, coalesce(create_webhook_endpoint.shared, false))
    on conflict (submitter, name) do nothing
    returning endpoint_id into made;
    if made is null then
        raise unique_violation using
            message = format('there is a webhook endpoint %s already', quote_literal(create_webhook_endpoint.name)),
            detail = (select format('Its URL is %s.', e.url) from proverq_private.webhook_endpoint e
                      where e.submitter = session_user and e.name = create_webhook_endpoint.name),
            hint = 'Use another name, or change its URL with proverq.set_webhook_url(name, url), its secret with proverq.rotate_webhook_secret(name).';
    end if;
    insert into proverq_private.webhook_secret (endpoint_id, secret) values (made, secret);
    return secret;
end
$$;
comment on function proverq.create_webhook_endpoint(text, text, bool) is
    'Makes an endpoint that your jobs can name as their webhook, and gives the secret with which what it receives is verified; it is not shown again. shared: for all submitters'' jobs (operators only). A URL that ends in / covers those below it.';

create or replace function proverq_private.webhook_endpoint_id(endpoint text) returns int
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    found_id int;
    found_names text[];
begin
    select min(e.endpoint_id) into found_id from proverq_private.webhook_endpoint e where e.submitter = session_user and e.name = endpoint;
    if found_id is not null then
        return found_id;
    end if;
    select min(e.endpoint_id), array_agg(e.submitter || '/' || e.name order by e.submitter) into found_id, found_names
    from proverq_private.webhook_endpoint e
    where (e.name = endpoint or e.submitter || '/' || e.name = endpoint) and proverq_private.may_change(e.submitter);
    if found_id is null then
        raise undefined_object using
            message = format('there is no webhook endpoint %s of yours', coalesce(quote_literal(endpoint), 'NULL')),
            hint = 'select * from proverq.webhook_endpoints;';
    elsif cardinality(found_names) > 1 then
        raise ambiguous_parameter using
            message = format('several submitters have a webhook endpoint %s', quote_literal(endpoint)),
            hint = format('Say which: %s.', array_to_string(found_names, ', '));
    end if;
    return found_id;
end
$$;
comment on function proverq_private.webhook_endpoint_id(text) is
    'The endpoint of this name that the session''s user may change: an own one, else NAME or SUBMITTER/NAME of another.';

create or replace function proverq_private.require_enabled(e proverq_private.webhook_endpoint, called text) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if e.disabled_at is not null then
        raise object_not_in_prerequisite_state using
            message = format('webhook endpoint %s is disabled', quote_ident(e.name)),
            detail = coalesce(e.disabled_reason, 'No reason was given.'),
            hint = format('select proverq.enable_webhook_endpoint(%s);', quote_literal(called));
    end if;
end
$$;
comment on function proverq_private.require_enabled(proverq_private.webhook_endpoint, text) is
    'Raises an error when the endpoint, named as the caller called it, is disabled. Part of what sends to it on request.';

create or replace function proverq_private.webhook_endpoint_for(webhook text) returns proverq_private.webhook_endpoint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    is_url constant bool := webhook ~ '^https?://';
    endpoint proverq_private.webhook_endpoint;
begin
    if is_url then
        perform proverq_private.webhook_url_check(webhook);
    end if;
    select e.* into endpoint
    from proverq_private.webhook_endpoint e
    where (e.submitter = session_user or e.shared)
      and (e.name = webhook or e.url = webhook or is_url and e.url ~ '/$' and starts_with(webhook, e.url))
    order by e.name = webhook desc, e.submitter = session_user desc, e.disabled_at is not null, length(e.url) desc, e.endpoint_id
    limit 1;
    if not found then
        raise undefined_object using
            message = format('there is no webhook endpoint with the name or URL %s', quote_literal(webhook)),
            detail = 'A job can name its submitter''s endpoints and shared ones, or a URL below one that ends in /.',
            hint = format('Make it, and note the secret that it prints: select proverq.create_webhook_endpoint(%s);',
                          case when is_url then '''my-service'', ' || quote_literal(webhook) else quote_literal(webhook) || ', ''https://...''' end);
    elsif endpoint.disabled_at is not null then
        raise warning using
            message = format('webhook endpoint %s is disabled: nothing will be sent', quote_ident(endpoint.name)),
            detail = coalesce(endpoint.disabled_reason, 'No reason was given.');
    end if;
    return endpoint;
end
$$;
comment on function proverq_private.webhook_endpoint_for(text) is
    'The endpoint that a job of the session''s user means by a name or URL: its own or a shared one. Part of job_insert().';

create or replace function proverq.set_webhook_url(endpoint text, url text) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform proverq_private.webhook_url_check(set_webhook_url.url);
    update proverq_private.webhook_endpoint e
    set url = set_webhook_url.url, failures = 0, failing_since = null, rests_until = null
    where e.endpoint_id = proverq_private.webhook_endpoint_id(endpoint);
    perform pg_notify('proverq_finalize', '');
end
$$;
comment on function proverq.set_webhook_url(text, text) is 'Moves an endpoint to another URL; what waits for it goes there.';

create or replace function proverq.rotate_webhook_secret(endpoint text, grace interval default '24 h') returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    id constant int := proverq_private.webhook_endpoint_id(endpoint);
    made constant text := proverq_private.new_webhook_secret();
begin
    if grace is null or grace not between interval '0' and interval '30 days' then
        raise invalid_parameter_value using message = format('grace must be from 0 to 30 days, not %s', coalesce(grace::text, 'NULL'));
    end if;
    perform from proverq_private.webhook_endpoint e where e.endpoint_id = id for no key update;
    -- One old secret at most, so that a header holds two signatures.
    delete from proverq_private.webhook_secret s where s.endpoint_id = id and s.valid_until is not null;
    update proverq_private.webhook_secret s set valid_until = clock_timestamp() + grace where s.endpoint_id = id;
    insert into proverq_private.webhook_secret (endpoint_id, secret) values (id, made);
    return made;
end
$$;
comment on function proverq.rotate_webhook_secret(text, interval) is
    'Gives an endpoint a new secret, and returns it. During the grace period (30 days at most) deliveries carry two signatures, of the new and the old secret, so that consumers can change over.';

create or replace function proverq_private.disable_endpoint(endpoint_id int, reason text) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
    update proverq_private.webhook_endpoint e
    set disabled_at = clock_timestamp(), disabled_reason = reason
    where e.endpoint_id = disable_endpoint.endpoint_id;
    -- What an attempt is under way for stays: it is recorded by who makes it.
    update proverq_private.webhook_delivery w
    set state = 'failed', next_attempt_at = null, token = null, last_error = 'the endpoint was disabled: ' || reason
    where w.delivery_id in (select d.delivery_id from proverq_private.webhook_delivery d
                            where d.endpoint_id = disable_endpoint.endpoint_id and d.state = 'pending'
                              and (d.token is null or d.next_attempt_at <= clock_timestamp())
                            for no key update skip locked);
$$;
comment on function proverq_private.disable_endpoint(int, text) is 'Sends nothing more to an endpoint, and ends what waits for it. Part of disable_webhook_endpoint() and record_deliveries().';

create or replace function proverq.disable_webhook_endpoint(endpoint text, reason text default null) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    select proverq_private.disable_endpoint(proverq_private.webhook_endpoint_id(endpoint), coalesce(reason, session_user || ' disabled it'))
$$;
comment on function proverq.disable_webhook_endpoint(text, text) is
    'Sends nothing more to an endpoint. What waits for it, and what comes later, fails with that reason; redeliver_failed() sends it after enable_webhook_endpoint().';

create or replace function proverq.enable_webhook_endpoint(endpoint text) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update proverq_private.webhook_endpoint e
    set disabled_at = null, disabled_reason = null, failures = 0, failing_since = null, rests_until = null
    where e.endpoint_id = proverq_private.webhook_endpoint_id(endpoint);
    perform pg_notify('proverq_finalize', '');
end
$$;
comment on function proverq.enable_webhook_endpoint(text) is
    'Sends to an endpoint again. What failed meanwhile: select proverq.redeliver_failed(NAME, SINCE);';

create or replace function proverq.ping_webhook_endpoint(endpoint text) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    e proverq_private.webhook_endpoint;
    ping uuid;
begin
    select w.* into e from proverq_private.webhook_endpoint w where w.endpoint_id = proverq_private.webhook_endpoint_id(endpoint);
    perform proverq_private.require_enabled(e, endpoint);
    insert into proverq_private.webhook_delivery (endpoint_id, event, body)
    values (e.endpoint_id, 'proverq.ping',
            format('{"type":"proverq.ping","timestamp":%s,"api":1,"data":{"endpoint":%s,"submitter":%s}}',
                   to_json(proverq_private.webhook_time(clock_timestamp())), to_json(e.name), to_json(e.submitter::text)))
    returning delivery_id into ping;
    perform pg_notify('proverq_finalize', '');
    return proverq_private.webhook_id(ping);
end
$$;
comment on function proverq.ping_webhook_endpoint(text) is
    'Sends a proverq.ping to an endpoint and gives its webhook-id; proverq.deliveries says what came of it.';
