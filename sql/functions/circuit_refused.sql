create or replace function proverq_private.circuit_refused(prover int, circuit bigint, code text, reason text) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    delete from proverq_private.circuit_refusal r where r.prover_id = prover and r.circuit_id = circuit and circuit_refused.reason is null;
    insert into proverq_private.circuit_refusal as r (prover_id, circuit_id, code, reason)
    select p.prover_id, c.circuit_id, coalesce(circuit_refused.code, 'unknown'), left(circuit_refused.reason, 2000)
    from proverq_private.prover p, proverq.circuit c
    where p.prover_id = prover and c.circuit_id = circuit and circuit_refused.reason is not null
    on conflict (prover_id, circuit_id) do update
    set code = excluded.code, reason = excluded.reason, refused_at = clock_timestamp();
$$;
comment on function proverq_private.circuit_refused(int, bigint, text, text) is
    'A prover says why it does not prove a circuit; without a reason: it does now.';

create or replace function proverq_private.device_quarantined(host text, device text, faults int, reason text) returns void
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
    delete from proverq_private.device_quarantine q where q.host = device_quarantined.host and q.device = device_quarantined.device and device_quarantined.reason is null;
    insert into proverq_private.device_quarantine as q (host, device, faults, reason)
    select device_quarantined.host, device_quarantined.device, coalesce(device_quarantined.faults, 0), left(device_quarantined.reason, 2000)
    where device_quarantined.reason is not null
    on conflict on constraint device_quarantine_pkey do update
    set faults = excluded.faults, reason = excluded.reason;
$$;
comment on function proverq_private.device_quarantined(text, text, int, text) is
    'A supervisor says why it starts no prover on a device; without a reason: it does again.';

-- Whatever ended it, and whoever saw that.
create or replace function proverq_private.prover_ended() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    delete from proverq_private.circuit_refusal r where r.prover_id = new.prover_id;
    return null;
end
$$;
comment on function proverq_private.prover_ended() is 'Trigger: a prover that does not run refuses nothing.';

create or replace trigger prover_ended after update of state on proverq_private.prover
    for each row when (old.state = 'running' and new.state <> 'running') execute function proverq_private.prover_ended();

create or replace function proverq_private.why_refused(circuit bigint) returns text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select format('ready, but %s: %s; see: select * from proverq.refusals;',
                  case when r.n = 1 then 'the one running prover does not take this circuit' else format('none of the %s running provers takes this circuit', r.n) end, r.first)
    from (select count(*) as n, min(format('prover %s (%s on %s): %s, %s', p.prover_id, p.device, p.host, f.code, f.reason)) filter (where f.prover_id is not null) as first,
                 count(f.prover_id) as refusing
          from proverq_private.prover p
          left join proverq_private.circuit_refusal f on f.prover_id = p.prover_id and f.circuit_id = why_refused.circuit
          where p.state = 'running') r
    where r.n > 0 and r.refusing = r.n
$$;
comment on function proverq_private.why_refused(bigint) is 'Why no running prover takes a circuit; null: one does. Part of why().';

create or replace function proverq_private.why_quarantined() returns text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
    select format('%s on %s is in quarantine since %s after %s faults, the last: %s; its supervisor tries it again and again', q.device, q.host,
                  q.since::timestamptz(0), q.faults, q.reason)
    from proverq_private.device_quarantine q
    order by q.since desc
    limit 1
$$;
comment on function proverq_private.why_quarantined() is 'The device that was put in quarantine last, if any is. Part of why().';
