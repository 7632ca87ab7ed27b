-- The prover $1 lives, and works on the leases of jobs $2, partitions $3, with tokens $4: they last $5 milliseconds from now.
select proverq_private.renew_leases($1::int, $2::bigint[], $3::bigint[], $4::uuid[], $5::int)
