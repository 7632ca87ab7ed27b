-- The provers of now.
select prover_id, host, device, idle, leased, silent_for, description
from proverq.provers
where state = 'running'
order by prover_id;
