-- Which of the leases of jobs $1, partitions $2, with tokens $3, have ended, and why.
select token, reason from proverq_private.lost_leases($1::bigint[], $2::bigint[], $3::uuid[])
