-- Records when the device of the prover $1 was busy: $2 kinds, $3 starts, $4 microseconds, $5 nanoseconds busy; all is known up
-- to $6 (null: more comes).
select proverq_private.record_activity($1::int, $2::smallint[], $3::timestamptz[], $4::bigint[], $5::bigint[], $6::timestamptz)
