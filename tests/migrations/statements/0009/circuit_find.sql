-- The newest version of the circuit $1 that is not removed.
select circuit_id from proverq.circuit where name = $1::text and removed_at is null order by version desc limit 1
