-- The prover $1 does not prove the circuit $2: error $3, reason $4. Reason null: it does.
select proverq_private.circuit_refused($1::int, $2::bigint, $3::text, $4::text)
