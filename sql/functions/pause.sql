-- Pausing stops claims and nothing else: what is leased goes on to its end. See the table paused for how.
create or replace function proverq.pause(circuit text default '*', reason text default null) returns bool
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform proverq_private.require_operator('pause');
    perform proverq_private.require_circuit(circuit);
    insert into proverq_private.paused (circuit, reason)
    values (pause.circuit, left(pause.reason, 2000))
    on conflict on constraint paused_pkey do nothing;
    if found then
        return true;
    end if;
    update proverq_private.paused p
    set reason = left(pause.reason, 2000), paused_by = session_user, paused_at = clock_timestamp()
    where p.circuit = pause.circuit;
    return false;
end
$$;
comment on function proverq.pause(text, text) is
    'Nothing of a circuit, or of any (*), is claimed any more, until proverq.resume(); what is running goes on to its end. False: it was paused already, and has the new reason now.';

create or replace function proverq.resume(circuit text default '*') returns bool
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    others text;
begin
    perform proverq_private.require_operator('resume');
    perform proverq_private.require_circuit(circuit);
    delete from proverq_private.paused p where p.circuit = resume.circuit;
    if not found then
        return false;
    end if;
    select string_agg(p.circuit, ', ' order by p.circuit) into others
    from proverq_private.paused p
    where resume.circuit = '*' or p.circuit = '*';
    if others is not null then
        raise notice using
            message = format('still paused: %s', others),
            hint = 'Each pause has a resume of its own: select * from proverq_private.paused;';
    end if;
    perform proverq_private.notify_work();
    return true;
end
$$;
comment on function proverq.resume(text) is 'Takes back proverq.pause() of the same circuit, or of * (each on its own). False: it was not paused.';

create or replace function proverq_private.require_operator(action text) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if not (proverq_private.is_owner() or proverq_private.is_member('proverq_operator')) then
        raise insufficient_privilege using
            message = format('only operators may %s', action),
            hint = format('Become one with: grant proverq_operator to %I;', session_user);
    end if;
end
$$;
comment on function proverq_private.require_operator(text) is 'Raises an error unless the session''s user is an operator or owns the schema. Part of pause() and resume().';

create or replace function proverq_private.require_circuit(circuit text) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if circuit is null or (circuit <> '*' and not exists (select from proverq.circuit c where c.name = require_circuit.circuit)) then
        raise undefined_object using
            message = format('there is no circuit %s', coalesce(quote_ident(circuit), 'NULL')),
            hint = 'Give the name of a circuit, or * for all: select distinct name from proverq.circuit;';
    end if;
end
$$;
comment on function proverq_private.require_circuit(text) is 'Raises an error unless there is a circuit of this name; * means all. Part of pause() and resume().';

create or replace function proverq_private.unpaused(circuits bigint[]) returns bigint[]
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select array(
        select c.circuit_id
        from proverq.circuit c
        where c.circuit_id = any (circuits) and not exists (select from proverq_private.paused p where p.circuit in ('*', c.name)))
$$;
comment on function proverq_private.unpaused(bigint[]) is 'Those circuits of which partitions may be claimed. Part of claim().';
