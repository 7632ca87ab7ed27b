-- A proof's circuit must stay what it was.
create or replace function proverq_private.circuit_update() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if (to_jsonb(new) - 'removed_at') is distinct from (to_jsonb(old) - 'removed_at') then
        raise object_not_in_prerequisite_state using
            message = format('version %s of circuit %s cannot be changed', old.version, quote_ident(old.name)),
            hint = 'Add a new version with: proverq circuit add NAME KEY.zkey';
    end if;
    return new;
end
$$;
comment on function proverq_private.circuit_update() is 'Trigger: of a circuit version only removed_at can change.';

create or replace trigger circuit_update before update on proverq.circuit
    for each row execute function proverq_private.circuit_update();
