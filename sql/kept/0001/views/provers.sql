create or replace view proverq.provers with (security_invoker = true) as
select p.prover_id, p.host, p.device, p.state, p.idle, l.leased,
       date_trunc('milliseconds', clock_timestamp() - p.seen_at) as silent_for, p.started_at, p.pid, p.version, p.description
from proverq.prover p
cross join lateral (
    select count(*) as leased from proverq.partition q where q.state = 'leased' and q.prover_id = p.prover_id
) l;
comment on view proverq.provers is 'Every prover process there ever was. Those of now: select * from proverq.provers where state = ''running'';';
comment on column proverq.provers.leased is 'Partitions that it works on.';
comment on column proverq.provers.silent_for is 'Since its last heartbeat.';
