-- Adds a version to the circuit $1: $2 sha256, $3 curve, $4 n_vars, $5 n_public, $6 log_domain, $7 zkey, $8 r1cs or null, $9 vkey,
-- $10 insecure, $11 the kind of its calculator or null, $12 wasm or null, $13 input values or null, $14 input signals or null. The version that has this sha256 already is not added again.
select circuit_id, version, added
from proverq_private.circuit_add($1::text, $2::bytea, $3::text, $4::int, $5::int, $6::int, $7::bytea, $8::bytea, $9::jsonb, $10::bool,
                         $11::text, $12::bytea, $13::int, $14::jsonb)
