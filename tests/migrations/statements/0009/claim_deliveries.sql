-- Takes at most $1 webhooks that are due, at most $2 of endpoints that keep failing, $3 of one endpoint under way, for $4 milliseconds.
-- The time is for the signature: the finalizer's own clock may be off, and receivers refuse what is off by more than 5 minutes.
select delivery_id, token, is_failing, url, secrets, body, extract(epoch from clock_timestamp())::bigint as signed_at
from proverq_private.claim_deliveries($1::int, $2::int, $3::int, $4::int)
