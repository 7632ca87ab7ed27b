-- Records the proofs of partitions ($1, $2) under the tokens $3: $4 proofs, $5 publics, $6 compressed or null; timing: $7 where
-- each one's steps begin (from 1), $8 steps, $9 workers, $10 starts, $11 microseconds. Gives the numbers, from 1, of those that
-- are recorded; the leases of the others were taken away.
select result from proverq_private.complete($1::bigint[], $2::int[], $3::uuid[], $4::jsonb[], $5::jsonb[], $6::bytea[],
                                         $7::int[], $8::smallint[], $9::smallint[], $10::timestamptz[], $11::bigint[])
