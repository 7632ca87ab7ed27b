-- Records that the attempt at partition ($1, $2) under the token $3 failed: $4 code, $5 error, $6 whether to try again, $7 whether
-- that spends a retry; timing: $8 steps, $9 workers, $10 starts, $11 microseconds. Gives 'stale', 'retry' or 'failed'.
select proverq_private.fail($1::bigint, $2::int, $3::uuid, $4::text, $5::text, $6::bool, $7::bool,
                    $8::smallint[], $9::smallint[], $10::timestamptz[], $11::bigint[])
