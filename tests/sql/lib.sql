-- Assertions and the fixture of the SQL tests. Each assertion is a row that begins with "ok " or "FAIL ".
create schema test;

create function test.is(got anyelement, want anyelement, name text) returns text language sql as $$
    select case when got is not distinct from want then 'ok ' || name else format('FAIL %s: got %s, wanted %s', name,
        coalesce(quote_literal(got::text), 'NULL'), coalesce(quote_literal(want::text), 'NULL')) end
$$;

create function test.matches(got text, pattern text, name text) returns text language sql as $$
    select case when got ~ pattern then 'ok ' || name else format('FAIL %s: got %s, wanted a match of %s', name,
        coalesce(quote_literal(got), 'NULL'), quote_literal(pattern)) end
$$;

-- The statement must raise this SQLSTATE, with message, detail and hint (joined by " | ") matching the pattern.
create function test.throws(statement text, state text, pattern text, name text) returns text language plpgsql as $$
declare
    message text;
    detail text;
    hint text;
begin
    execute statement;
    return format('FAIL %s: no error', name);
exception when others then
    get stacked diagnostics message = message_text, detail = pg_exception_detail, hint = pg_exception_hint;
    message := concat_ws(' | ', message, nullif(detail, ''), nullif(hint, ''));
    if sqlstate = state and message ~ pattern then
        return 'ok ' || name;
    end if;
    return format('FAIL %s: got %s %s, wanted %s %s', name, sqlstate, quote_literal(message), state,
        quote_literal(pattern));
end
$$;

-- Circuits mul (1, and 2 its newest) and other (3), webhook endpoint hook, provers 1 to 4.
create function test.fixture() returns void language plpgsql as $$
begin
    insert into proverq_private.artefact (sha256, kind, bytes, path) values (sha256('mul'), 'zkey', 100, 'mul.zkey');
    perform proverq_private.circuit_add('mul', sha256('mul 1'), 'bn128', 4, 1, 3, sha256('mul'), null, '{"nPublic": 1}',
        false);
    perform proverq_private.circuit_add('mul', sha256('mul 2'), 'bn128', 4, 1, 3, sha256('mul'), null, '{"nPublic": 1}',
        false);
    perform proverq_private.circuit_add('other', sha256('other'), 'bls12381', 4, 1, 3, sha256('mul'), null,
        '{"nPublic": 1}', true);
    perform proverq.create_webhook_endpoint('hook', 'https://example.com/hook');
    insert into proverq_private.prover (instance, host, pid, device)
    select ('00000000-0000-0000-0000-00000000000' || i)::uuid, 'host' || i, i, 'cpu' from generate_series(1, 4) i;
end
$$;

-- A queued job of n partitions.
create function test.job(n int, circuit text default 'mul', priority int default 0, keep_inputs bool default false,
    webhook text default null)
returns bigint language sql as $$
    select proverq.enqueue_witness(circuit, array_agg(convert_to('witness ' || i, 'UTF8')), priority,
        keep_inputs => keep_inputs, webhook => webhook)
    from generate_series(0, n - 1) i
$$;

-- Claims up to n partitions; gives "job/partition" of each, in the order of the answer.
create function test.claim(n int, prover int default 1, circuits bigint[] default '{1,2,3}', lease_ms int default 60000)
returns text language sql as $$
    select string_agg(job_seq || '/' || partition_idx, ' ' order by ordinality)
    from proverq_private.claim(prover, circuits, lease_ms, n) with ordinality
$$;

-- The same, but of mul (2) behind partition idx of job seq in this priority only.
create function test.claim_from(n int, seq bigint, idx int, priority int default 0, circuits bigint[] default '{1,2,3}')
returns text language sql as $$
    select string_agg(job_seq || '/' || partition_idx, ' ' order by ordinality)
    from proverq_private.claim(2, circuits, 60000, n, '{2}', array[priority], array[seq], array[idx]) with ordinality
$$;

create function test.token(seq bigint, idx int) returns uuid language sql as $$
    select token from proverq.partition where job_seq = seq and partition_idx = idx
$$;

-- Ends one job that waits for its end, as a finalizer does: the first that can be ended.
create function test.finalize_next() returns table (job_seq bigint, run int, event text) language plpgsql as $$
declare
    candidate bigint;
    f record;
begin
    for candidate in select c.job_seq from proverq_private.finalizable(1000) c loop
        select * into f from proverq_private.finalize(candidate);
        if f.event is not null then
            return query select candidate, f.run, f.event;
            return;
        end if;
        exit when f.error like '%(SQLSTATE 57014)';
    end loop;
end
$$;

-- Renews a prover's leases; gives those that it still has.
create function test.heartbeat(prover int, tokens uuid[], lease_ms int)
returns table (token uuid) language plpgsql as $$
begin
    perform proverq_private.renew_leases(heartbeat.prover, array_agg(p.job_seq), array_agg(p.partition_idx::bigint),
        array_agg(p.token), lease_ms)
    from proverq.partition p
    where p.prover_id = heartbeat.prover and p.token = any (tokens);
    return query
        select p.token from proverq.partition p where p.prover_id = heartbeat.prover and p.token = any (tokens);
end
$$;

-- Records one result; false when the lease was taken away.
create function test.record(seq bigint, idx int, token uuid, proof jsonb, publics jsonb, compressed bytea,
                            steps smallint[], workers smallint[], started timestamptz[], durations bigint[])
returns bool language sql as $$
    select exists (select from proverq_private.complete(array[seq], array[idx], array[token], array[proof],
        array[publics], array[compressed], '{1}', steps, workers, started, durations))
$$;

create function test.complete(seq bigint, idx int, token uuid default null) returns bool language sql as $$
    select test.record(seq, idx, coalesce(token, test.token(seq, idx)), jsonb_build_object('pi_a', idx),
        jsonb_build_array(idx::text), null, '{10,80}', '{0,1}', array[now(), now()], '{5,70}')
$$;

create function test.fail(seq bigint, idx int, retry bool, spend bool, token uuid default null)
returns text language sql as $$
    select proverq_private.fail(seq, idx, coalesce(token, test.token(seq, idx)), 'witness', 'constraint 64 fails',
        retry, spend, '{10}', '{0}', array[now()], '{5}')
$$;

create function test.state(seq bigint) returns text language sql as $$
    select state::text from proverq.job where job_seq = seq
$$;

-- The states of a job's partitions, in order.
create function test.states(seq bigint) returns text language sql as $$
    select string_agg(state::text, ' ' order by partition_idx) from proverq.partition where job_seq = seq
$$;
