create or replace function proverq_private.listen_webhooks(name text, url text) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    e proverq_private.webhook_endpoint;
begin
    select w.* into e from proverq_private.webhook_endpoint w where w.submitter = session_user and w.name = listen_webhooks.name;
    if not found then
        return proverq.create_webhook_endpoint(listen_webhooks.name, listen_webhooks.url);
    elsif e.url !~ '^http://127\.0\.0\.1:' then
        raise object_in_use using
            message = format('webhook endpoint %s sends to %s', quote_literal(e.name), e.url),
            hint = 'Give proverq listen another name: --endpoint NAME.';
    end if;
    perform proverq.set_webhook_url(e.name, listen_webhooks.url), proverq.enable_webhook_endpoint(e.name);
    return proverq.rotate_webhook_secret(e.name, '0 s');
end
$$;
comment on function proverq_private.listen_webhooks(text, text) is
    'Makes an endpoint of one''s own for `proverq listen`, or moves the one of before, and gives its secret. Part of that command.';
