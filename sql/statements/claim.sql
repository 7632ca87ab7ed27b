-- The prover $1 claims at most $4 ready partitions of the circuits $2 for $3 milliseconds, in claim order. Of circuit $5 and
-- priority $6 (arrays) it looks only behind partition ($7, $8).
select job_seq, partition_idx, attempt, token, circuit_id, keep_inputs, witness, witness_path, inputs, priority
from proverq_private.claim($1::int, $2::bigint[], $3::int, $4::int, $5::bigint[], $6::int[], $7::bigint[], $8::int[])
