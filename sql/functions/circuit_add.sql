create or replace function proverq_private.circuit_add(
    name text, sha256 bytea, curve text, n_vars int, n_public int, log_domain int, zkey bytea, r1cs bytea, vkey jsonb, insecure bool,
    calculator text default null, wasm bytea default null, n_inputs int default null, input_signals jsonb default null)
returns table (circuit_id bigint, version int, added bool)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    lock table proverq.circuit in share row exclusive mode; -- two that add at once must not count to the same version
    return query
        update proverq.circuit c
        set removed_at = null
        where c.name = circuit_add.name and c.sha256 = circuit_add.sha256
        returning c.circuit_id, c.version, false;
    if found then
        return;
    end if;
    return query
        insert into proverq.circuit as c (name, version, sha256, curve, n_vars, n_public, log_domain, zkey, r1cs, vkey, insecure,
                                  calculator, wasm, n_inputs, input_signals)
        select circuit_add.name, coalesce(max(o.version), 0) + 1, circuit_add.sha256, circuit_add.curve, circuit_add.n_vars,
               circuit_add.n_public, circuit_add.log_domain, circuit_add.zkey, circuit_add.r1cs, circuit_add.vkey,
               circuit_add.insecure, circuit_add.calculator, circuit_add.wasm, circuit_add.n_inputs, circuit_add.input_signals
        from proverq.circuit o
        where o.name = circuit_add.name
        returning c.circuit_id, c.version, true;
end
$$;
comment on function proverq_private.circuit_add(text, bytea, text, int, int, int, bytea, bytea, jsonb, bool, text, bytea, int, jsonb) is
    'Adds the next version of a circuit; a version with the same artefacts is given as it is (not removed any more). For proverq circuit add.';
