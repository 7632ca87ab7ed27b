-- The process of instance $1 has ended, seen by its supervisor: takes away its leases; gives how many.
select proverq_private.rescue_prover($1::uuid)
