create or replace view proverq.provers with (security_invoker = true) as
select p.prover_id, p.host, p.device, p.state, p.idle, l.leased,
       date_trunc('milliseconds', clock_timestamp() - p.seen_at) as silent_for, p.started_at, p.pid, p.version, p.description,
       (select count(*) from proverq_private.circuit_refusal r where r.prover_id = p.prover_id) as refuses, q.reason as quarantine
from proverq_private.prover p
left join proverq_private.device_quarantine q on q.host = p.host and q.device = p.device
    and not exists (select from proverq_private.prover n where n.host = p.host and n.device = p.device and n.prover_id > p.prover_id)
cross join lateral (
    select count(*) as leased from proverq.partition q where q.state = 'leased' and q.prover_id = p.prover_id
) l;
comment on view proverq.provers is 'Every prover process there ever was. Those of now: select * from proverq.provers where state = ''running'';';
comment on column proverq.provers.leased is 'Partitions that it works on.';
comment on column proverq.provers.silent_for is 'Since its last heartbeat.';
comment on column proverq.provers.refuses is 'Circuits that it does not prove; why: select * from proverq.refusals;';
comment on column proverq.provers.quarantine is 'Why no prover is started on its device now, on the row of the last that was; null: one is.';
