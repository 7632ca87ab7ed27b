-- The prover $1 claims at most $4 ready partitions of the circuits $2 for $3 milliseconds, in claim order.
select job_seq, partition_idx, attempt, token, circuit_id, keep_inputs, witness, witness_path, inputs
from proverq_private.claim($1::int, $2::bigint[], $3::int, $4::int)
