create or replace function proverq.create_webhook_endpoint(name text, url text) returns text
language plpgsql
set search_path = pg_catalog, proverq, pg_temp
as $$
#variable_conflict use_column
declare
    -- 366 random bits in, 256 out: the server's strong source is to be had without an extension only as UUIDs.
    secret constant text := 'whsec_' || encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) ||
                                                      uuid_send(gen_random_uuid())), 'base64');
begin
    if create_webhook_endpoint.name is null or create_webhook_endpoint.name !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$' then
        raise invalid_parameter_value using
            message = format('%s cannot be the name of a webhook endpoint', coalesce(quote_literal(create_webhook_endpoint.name), 'NULL')),
            hint = 'Use up to 100 letters, digits, dots, dashes and underscores; begin with a letter or digit.';
    elsif create_webhook_endpoint.url is null or create_webhook_endpoint.url !~ '^https?://[^[:space:][:cntrl:]]+$' then
        raise invalid_parameter_value using
            message = format('%s is not a URL that a webhook can have', coalesce(quote_literal(create_webhook_endpoint.url), 'NULL')),
            hint = 'It begins with https:// (or http://, which the finalizer must be told to allow).';
    end if;
    insert into webhook_endpoint (name, url, secret, submitter)
    values (create_webhook_endpoint.name, create_webhook_endpoint.url, secret, session_user)
    on conflict (name) do nothing;
    if not found then
        raise unique_violation using
            message = format('there is a webhook endpoint %s already', quote_literal(create_webhook_endpoint.name)),
            detail = (select format('Its URL is %s.', e.url) from webhook_endpoint e where e.name = create_webhook_endpoint.name),
            hint = 'Use another name, or update proverq.webhook_endpoint to change its url.';
    end if;
    return secret;
end
$$;
comment on function proverq.create_webhook_endpoint(text, text) is
    'Makes an endpoint that jobs can name as their webhook, and gives the secret with which what it receives is verified.';
