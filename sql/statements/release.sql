-- Gives partition ($1, $2) back under the token $3, spending nothing: $4 why, $5 milliseconds until it may be claimed again.
select proverq_private.release($1::bigint, $2::int, $3::uuid, $4::text, $5::int)
