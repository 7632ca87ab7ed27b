-- The endpoint $1 of `proverq listen` at the URL $2; its secret.
select proverq_private.listen_webhooks($1::text, $2::text)
