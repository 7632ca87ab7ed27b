-- Takes at most $1 webhooks that are due, at most $2 of endpoints that keep failing, $3 of one endpoint under way, for $4 milliseconds.
select delivery_id, token, is_failing, url, secrets, body from proverq.claim_deliveries($1::int, $2::int, $3::int, $4::int)
