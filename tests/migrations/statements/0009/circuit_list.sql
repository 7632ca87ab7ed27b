-- The circuit versions that are not removed, newest first.
select circuit_id, name, version, curve, n_vars, n_public, log_domain, insecure, r1cs is not null as has_r1cs, created_at
from proverq.circuit
where removed_at is null
order by name, version desc
