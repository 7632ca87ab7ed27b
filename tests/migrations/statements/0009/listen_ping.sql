-- Pings the endpoint $1; the webhook-id.
select proverq.ping_webhook_endpoint($1::text)
