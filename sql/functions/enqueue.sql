-- Enqueueing from SQL. The functions differ in name, not in type: a literal ARRAY['...'] would fit several overloads.
--
-- A witness file from psql, on the client's machine, without superuser:
--     \set witness `base64 -w0 witness.wtns`
--     select proverq.enqueue_witness('mul', array[decode(:'witness', 'base64')]);
--
-- A request_id means one job for ever, also when that was cancelled or has failed: to repeat a request is always harmless, and to
-- prove it after all is proverq.retry().

-- Without not_before, as they were.
create or replace function proverq.enqueue(
    circuit text, inputs jsonb[], priority int default 0, request_id text default null, webhook text default null,
    keep_inputs bool default false, not_before timestamptz default null)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    digest bytea;
    job_seq bigint;
    is_new bool;
begin
    perform proverq_private.enqueue_check('inputs', cardinality(inputs), array_ndims(inputs),
                          case when array_ndims(inputs) = 1 then array_position(inputs, null) - array_lower(inputs, 1) end);
    if request_id is not null then
        digest := proverq_private.inputs_sha256(inputs);
    end if;
    select e.job_seq, e.is_new into job_seq, is_new
    from proverq_private.enqueue_job(circuit, 'inputs', cardinality(inputs), digest, priority, request_id, webhook, keep_inputs, not_before) e;
    if is_new then
        insert into proverq.partition (job_seq, partition_idx, inputs)
        select job_seq, t.idx - 1, t.i from unnest(inputs) with ordinality t (i, idx);
    end if;
    return job_seq;
end
$$;
comment on function proverq.enqueue(text, jsonb[], int, text, text, bool, timestamptz) is
    'Enqueues a job with one partition for each object of input signals, such as {"a": "3", "path": [1, 2]}, and gives its number. The same request_id with the same circuit and inputs is the same job.';

create or replace function proverq.enqueue_witness(
    circuit text, witnesses bytea[], priority int default 0, request_id text default null, webhook text default null,
    keep_inputs bool default false, not_before timestamptz default null)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    digest bytea;
    job_seq bigint;
    is_new bool;
begin
    perform proverq_private.enqueue_check('witness', cardinality(witnesses), array_ndims(witnesses),
                          case when array_ndims(witnesses) = 1 then array_position(witnesses, null) - array_lower(witnesses, 1) end);
    if request_id is not null then
        digest := proverq_private.witnesses_sha256(witnesses);
    end if;
    select e.job_seq, e.is_new into job_seq, is_new
    from proverq_private.enqueue_job(circuit, 'witness', cardinality(witnesses), digest, priority, request_id, webhook, keep_inputs, not_before) e;
    if is_new then
        insert into proverq.partition (job_seq, partition_idx, witness)
        select job_seq, t.idx - 1, t.w from unnest(witnesses) with ordinality t (w, idx);
    end if;
    return job_seq;
end
$$;
comment on function proverq.enqueue_witness(text, bytea[], int, text, text, bool, timestamptz) is
    'Enqueues a job with one partition for each witness (the content of a .wtns file) and gives its number. The same request_id with the same circuit and witnesses is the same job.';

create or replace function proverq.enqueue_path(
    circuit text, paths text[], priority int default 0, request_id text default null, webhook text default null,
    keep_inputs bool default false, not_before timestamptz default null)
returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    digest bytea;
    job_seq bigint;
    is_new bool;
begin
    perform proverq_private.enqueue_check('path', cardinality(paths), array_ndims(paths),
                          case when array_ndims(paths) = 1 then array_position(paths, null) - array_lower(paths, 1) end);
    if request_id is not null then
        select sha256(string_agg(sha256(convert_to(w, 'UTF8')), '\x' order by idx)) into digest from unnest(paths) with ordinality t (w, idx);
    end if;
    select e.job_seq, e.is_new into job_seq, is_new
    from proverq_private.enqueue_job(circuit, 'path', cardinality(paths), digest, priority, request_id, webhook, keep_inputs, not_before) e;
    if is_new then
        insert into proverq.partition (job_seq, partition_idx, witness_path)
        select job_seq, t.idx - 1, t.w from unnest(paths) with ordinality t (w, idx);
    end if;
    return job_seq;
end
$$;
comment on function proverq.enqueue_path(text, text[], int, text, text, bool, timestamptz) is
    'Enqueues a job with one partition for each witness file, named relative to the provers'' witness folder, and gives its number. The same request_id with the same circuit and paths is the same job.';

create or replace function proverq_private.enqueue_check(what text, n int, dimensions int, null_at int) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if coalesce(n, 0) = 0 then
        raise invalid_parameter_value using
            message = format('a job needs at least one %s', what),
            hint = 'Give an array with one element for each proof.';
    elsif dimensions > 1 then
        raise invalid_parameter_value using message = format('a job takes a plain array of %s values, not one of %s dimensions', what, dimensions);
    elsif null_at is not null then
        raise null_value_not_allowed using message = format('the %s of partition %s is NULL', what, null_at);
    end if;
end
$$;
comment on function proverq_private.enqueue_check(text, int, int, int) is 'Refuses arrays that cannot be a job. Part of the enqueue functions.';

create or replace function proverq_private.enqueue_job(
    circuit text, kind text, partitions int, digest bytea, priority int, request_id text, webhook text, keep_inputs bool,
    not_before timestamptz, out job_seq bigint, out is_new bool)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    request constant bytea := proverq_private.request_sha256(circuit, kind, digest);
    known bytea;
begin
    loop
        insert into proverq.job as j (circuit, partitions, priority, request_id, request_sha256, webhook, keep_inputs, not_before)
        values (enqueue_job.circuit, enqueue_job.partitions, coalesce(enqueue_job.priority, 0), enqueue_job.request_id, request,
                enqueue_job.webhook, coalesce(enqueue_job.keep_inputs, false), enqueue_job.not_before)
        on conflict (submitter, request_id) where request_id is not null do nothing
        returning j.job_seq into job_seq;
        is_new := found;
        exit when found;
        select j.job_seq, j.request_sha256 into job_seq, known
        from proverq.job j
        where j.submitter = session_user and j.request_id = enqueue_job.request_id;
        exit when found; -- else it was deleted between the two
    end loop;
    if not is_new and known is distinct from request then
        raise unique_violation using
            message = format('request_id %s was used for job %s with another circuit or other inputs', quote_literal(request_id), job_seq),
            hint = 'Use a new request_id for a new request; repeat one only with exactly the same circuit and inputs.';
    end if;
end
$$;
comment on function proverq_private.enqueue_job(text, text, int, bytea, int, text, text, bool, timestamptz) is
    'Makes a job, or finds the one with this request_id. Part of the enqueue functions.';

create or replace function proverq_private.request_sha256(circuit text, kind text, digest bytea) returns bytea
language sql immutable
return sha256(convert_to(format('%s/%s/%s/', octet_length(circuit), circuit, kind), 'UTF8') || digest);
comment on function proverq_private.request_sha256(text, text, bytea) is 'What a request_id stands for. Part of the enqueue and retry functions.';

create or replace function proverq_private.inputs_sha256(inputs jsonb[]) returns bytea
language sql immutable
begin atomic
    select sha256(string_agg(sha256(convert_to(i::text, 'UTF8')), '\x' order by idx)) from unnest(inputs) with ordinality t (i, idx);
end;
comment on function proverq_private.inputs_sha256(jsonb[]) is 'Part of request_sha256() for inputs.';

create or replace function proverq_private.witnesses_sha256(witnesses bytea[]) returns bytea
language sql immutable
begin atomic
    select sha256(string_agg(sha256(w), '\x' order by idx)) from unnest(witnesses) with ordinality t (w, idx);
end;
comment on function proverq_private.witnesses_sha256(bytea[]) is 'Part of request_sha256() for witnesses.';
