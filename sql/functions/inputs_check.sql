-- Input signals: from jsonb, whose numbers are exact, to the text that provers hand to witness calculators, a line for each signal:
-- its name and its values, integers of at most 80 digits. Nested arrays are flattened in the order of their elements.
--
-- What cannot be an input is refused when it is inserted, so that the submitter has the error.

-- The form that both numbers and strings must have: "1.0" is a whole number that jsonb keeps as it was written.
create or replace function proverq_private.input_text(value jsonb) returns text
language sql immutable
return case jsonb_typeof(value)
        when 'number' then substring(value #>> '{}' from '^(-?[0-9]{1,80})(?:\.0*)?$')
        when 'string' then substring(value #>> '{}' from '^-?(?:[0-9]{1,80}|0[xX][0-9a-fA-F]{1,80})$')
        end;
comment on function proverq_private.input_text(jsonb) is 'One input value as text; null: it is no integer of at most 80 digits. Part of inputs_text().';

-- A path in strict mode does not unwrap arrays by itself, which would give elements twice; .** walks in the order of the text.
create or replace function proverq_private.input_leaves(value jsonb) returns table (idx bigint, leaf jsonb)
language sql immutable
begin atomic
    select p.idx - 1, p.leaf
    from jsonb_path_query(value, 'strict $.** ? (@.type() != "array")') with ordinality p (leaf, idx);
end;
comment on function proverq_private.input_leaves(jsonb) is 'The values of a signal, its nested arrays flattened. Part of inputs_text().';

create or replace function proverq_private.inputs_text(inputs jsonb) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    lines text;
    good bool;
    bad record;
begin
    if inputs is null then
        return null;
    elsif jsonb_typeof(inputs) <> 'object' then
        raise invalid_parameter_value using
            message = format('inputs must be a JSON object, not %s', jsonb_typeof(inputs)),
            hint = 'Its keys are the names of the input signals: {"a": "3", "path": [1, 2]}.';
    end if;
    select coalesce(string_agg(k.name || coalesce(v.text, '') || chr(10), ''), ''),
           coalesce(bool_and(v.good and k.name ~ '^[A-Za-z_$][A-Za-z0-9_$.\[\]]*$'), true)
    into lines, good
    from jsonb_each(inputs) k (name, value)
    cross join lateral (
        select string_agg(' ' || proverq_private.input_text(l.leaf), '' order by l.idx), coalesce(bool_and(proverq_private.input_text(l.leaf) is not null), true)
        from proverq_private.input_leaves(k.value) l
    ) v (text, good);
    if good then
        return lines;
    end if;
    select k.name, k.value, l.idx, l.leaf, jsonb_typeof(l.leaf) as kind into bad
    from jsonb_each(inputs) k (name, value)
    left join lateral (select * from proverq_private.input_leaves(k.value) i where proverq_private.input_text(i.leaf) is null order by i.idx limit 1) l on true
    where l.idx is not null or k.name !~ '^[A-Za-z_$][A-Za-z0-9_$.\[\]]*$'
    limit 1;
    if bad.idx is null then
        raise invalid_parameter_value using message = format('%s is no name of a signal', quote_literal(left(bad.name, 100)));
    end if;
    raise invalid_parameter_value using
        message = format('signal "%s"%s: %s is no integer of at most 80 digits', left(bad.name, 100),
                         case when jsonb_typeof(bad.value) = 'array' then format(', value %s', bad.idx) else '' end,
                         case when bad.kind in ('number', 'string') then left(bad.leaf::text, 100)
                              when bad.kind = 'null' then 'null' when bad.kind = 'boolean' then bad.leaf::text
                              else 'an object' end),
        hint = case when bad.kind = 'object' then 'Name the fields of a bus one by one: {"bus.field": 1}.'
                    else 'Give whole numbers, or strings of decimal digits or of 0x and hexadecimal digits.' end;
end
$$;
comment on function proverq_private.inputs_text(jsonb) is
    'Input signals as provers get them: a line for each, its name and its values. Refuses what is no integer, naming the signal.';

create or replace function proverq_private.inputs_check(circuit bigint, inputs jsonb, label text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    c proverq.circuit;
    given bigint;
    wrong record;
begin
    select * into c from proverq.circuit where circuit_id = inputs_check.circuit;
    if c.calculator is null then
        raise feature_not_supported using
            message = format('circuit %s has no witness calculator, so it cannot take inputs', quote_ident(c.name)),
            hint = format('Add it again with its calculator (proverq circuit add %s KEY.zkey --wasm %s.wasm), or compute the witness and call proverq.enqueue_witness.', c.name, c.name);
    end if;
    begin
        perform proverq_private.inputs_text(inputs);
    exception when invalid_parameter_value then
        raise invalid_parameter_value using message = format('%s: %s', label, sqlerrm);
    end;
    if c.input_signals is not null then
        select coalesce(k.name, s.name) as name, k.n as given, s.n::int as wanted into wrong
        from (select e.key, (select count(*) from proverq_private.input_leaves(e.value)) from jsonb_each(inputs) e) k (name, n)
        full join jsonb_each_text(c.input_signals) s (name, n) on s.name = k.name
        where k.n is distinct from s.n::bigint
        order by k.n is null, coalesce(k.name, s.name)
        limit 1;
        if found then
            raise invalid_parameter_value using
                message = format('%s: signal "%s" %s', label, left(wrong.name, 100),
                                 case when wrong.wanted is null then format('is no input of circuit %s', quote_ident(c.name))
                                      when wrong.given is null then 'is missing'
                                      else format('has %s value(s); the circuit takes %s', wrong.given, wrong.wanted) end),
                detail = format('The circuit takes: %s.', (select string_agg(format('%s (%s)', e.key, e.value), ', ') from jsonb_each(c.input_signals) e));
        end if;
    elsif c.n_inputs is not null then
        select count(*) into given from jsonb_each(inputs) k (name, value) cross join lateral proverq_private.input_leaves(k.value);
        if given <> c.n_inputs then
            raise invalid_parameter_value using
                message = format('%s: there are %s input values; circuit %s takes %s', label, given, quote_ident(c.name), c.n_inputs),
                hint = 'With --sym, proverq circuit add learns the names of the signals, and this message tells which one is wrong.';
        end if;
    end if;
end
$$;
comment on function proverq_private.inputs_check(bigint, jsonb, text) is
    'Refuses inputs that the circuit cannot take; names the signal as far as the circuit knows its signals. Part of partition_insert().';
