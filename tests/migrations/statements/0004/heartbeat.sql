-- The prover $1 lives, and works on the leases $2: they last $3 milliseconds from now. Gives those that it still has.
select token from proverq_private.heartbeat($1::int, $2::uuid[], $3::int)
