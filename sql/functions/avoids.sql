-- Of a device, not of a process: the process that failed is often a new one by now. What the host lacks (a file, for which a lease
-- is given back until later; memory) its other devices lack, too.
create or replace function proverq_private.avoids(failed_by int, code text, prover int, circuit bigint) returns bool
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select exists (
        select
        from proverq_private.prover f
        join proverq_private.prover me on me.host = f.host and (me.device = f.device or avoids.code in ('released', 'absent', 'host_memory'))
        where f.prover_id = avoids.failed_by and me.prover_id = avoids.prover
          and exists (
            select
            from proverq_private.prover o
            where o.state = 'running' and o.seen_at > clock_timestamp() - interval '1 minute'
              and (o.host <> f.host or (o.device <> f.device and avoids.code not in ('released', 'absent', 'host_memory')))
              and not exists (select from proverq_private.circuit_refusal r where r.prover_id = o.prover_id and r.circuit_id = avoids.circuit)))
$$;
comment on function proverq_private.avoids(int, text, int, bigint) is
    'Whether a prover should leave to others what failed with this error on another prover, being the same device while there is another that does not refuse the circuit. Part of claim().';
