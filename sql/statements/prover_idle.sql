-- The prover $1 waits for work ($2 true), or does not.
update proverq_private.prover set idle = $2::bool, state = 'running', seen_at = clock_timestamp() where prover_id = $1::int
