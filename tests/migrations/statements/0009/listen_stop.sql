-- Disables the endpoint $1 of `proverq listen`, which has ended.
select proverq.disable_webhook_endpoint($1::text, 'proverq listen has ended')
