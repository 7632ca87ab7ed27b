-- Records what workers of the prover $1 did that is not recorded with a partition: $2 jobs (-1: none), $3 partitions,
-- $4 attempts, $5 steps, $6 workers, $7 starts, $8 microseconds.
select proverq_private.record_workers($1::int, $2::bigint[], $3::bigint[], $4::bigint[], $5::smallint[], $6::smallint[],
                              $7::timestamptz[], $8::bigint[])
