-- On the host $1 no prover is started on the device $2, which failed $3 times in a row: reason $4. Reason null: one is.
select proverq_private.device_quarantined($1::text, $2::text, $3::int, $4::text)
