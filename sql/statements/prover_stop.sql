-- The prover $1 ends in order: it holds nothing any more.
update proverq_private.prover set state = 'stopped', idle = false, seen_at = clock_timestamp() where prover_id = $1::int
