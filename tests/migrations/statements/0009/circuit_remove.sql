-- Removes the newest version of the circuit $1 that is not removed; gives its version.
update proverq.circuit
set removed_at = clock_timestamp()
where circuit_id = (select c.circuit_id from proverq.circuit c
                    where c.name = $1::text and c.removed_at is null order by c.version desc limit 1)
returning version
