create or replace view proverq.refusals with (security_invoker = true) as
select r.prover_id, p.host, p.device, c.name as circuit, c.version, r.code, r.reason, r.refused_at
from proverq_private.circuit_refusal r
join proverq_private.prover p using (prover_id)
join proverq.circuit c using (circuit_id);
comment on view proverq.refusals is 'Circuits that a running prover does not prove, and why.';
comment on column proverq.refusals.code is 'The kind of error: device_memory, absent, key ...';
comment on column proverq.refusals.refused_at is 'When it was tried last.';
