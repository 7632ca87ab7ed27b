-- The outcome of the delivery $1 under the token $2: $3 HTTP status or null, $4 error or null, $5 seconds of Retry-After or null.
-- Gives 'stale', 'delivered', 'retry', 'failed' or 'disabled'.
select proverq_private.delivery_done($1::uuid, $2::uuid, $3::int, $4::text, $5::int)
