-- Records the proof of partition ($1, $2) under the token $3: $4 proof, $5 publics, $6 compressed or null; timing: $7 steps,
-- $8 workers, $9 starts, $10 microseconds. False: the lease was taken away and nothing is recorded.
select proverq_private.complete($1::bigint, $2::int, $3::uuid, $4::jsonb, $5::jsonb, $6::bytea,
                        $7::smallint[], $8::smallint[], $9::timestamptz[], $10::bigint[])
