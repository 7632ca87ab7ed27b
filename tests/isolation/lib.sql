-- What the specs use, beside the fixture of tests/sql/lib.sql: a prover's, a finalizer's and a courier's
-- side of the functions of sql/functions, with answers that are the same in every run (keys and words
-- instead of tokens and times), and the verdict.
--
-- A session remembers what it claimed, tokens included, in a setting. Settings are rolled back with their transaction:
-- a claim that was not committed is forgotten.
create schema iso;

-- What happened, written by the functions below and by triggers, in the transactions in which it happened.
create table iso.log (
    at bigint generated always as identity,
    what text not null,
    job_seq bigint,
    partition_idx int,
    run int,
    token uuid,
    was text,
    became text
);

create function iso.log_partition() returns trigger language plpgsql as $$
begin
    insert into iso.log (what, job_seq, partition_idx, token, was, became)
    values ('partition', new.job_seq, new.partition_idx, old.token, old.state, new.state);
    return null;
end
$$;
create trigger iso_log after update on proverq.partition for each row
    when (old.state is distinct from new.state or old.token is distinct from new.token)
    execute function iso.log_partition();

create function iso.log_job() returns trigger language plpgsql as $$
begin
    insert into iso.log (what, job_seq, run, was, became) values ('job', new.job_seq, new.run, old.state, new.state);
    return null;
end
$$;
create trigger iso_log after update on proverq.job for each row
    when (old.state is distinct from new.state or old.run is distinct from new.run) execute function iso.log_job();

-- Points inside the functions. A session that has set iso.stop to a point's name waits there until
-- nobody holds the advisory lock 1; one that has set iso.crash fails there, as if its process
-- ended: all that the transaction did is gone.
create function iso.point() returns trigger language plpgsql as $$
begin
    if current_setting('iso.stop', true) = tg_argv[0] then
        perform pg_advisory_lock(1), pg_advisory_unlock(1);
    elsif current_setting('iso.crash', true) = tg_argv[0] then
        raise exception 'crash at %', tg_argv[0];
    end if;
    return null;
end
$$;
create trigger iso_point after update on proverq.partition for each row execute function iso.point('partition');
create trigger iso_point after update on proverq.job for each row execute function iso.point('job');
create trigger iso_point after insert on proverq.timing for each row execute function iso.point('timing');
create trigger iso_point after insert on proverq_private.webhook_delivery
    for each row execute function iso.point('delivery');
create constraint trigger iso_point_commit after update on proverq.job deferrable initially deferred
    for each row execute function iso.point('commit');

-- An empty queue, numbered from 1, with the fixture's circuits, endpoint and provers; each permutation begins with it.
-- Rows are deleted, since truncating makes some sixty files anew.
create function iso.fresh() returns void language plpgsql as $$
begin
    delete from proverq_private.webhook_delivery;
    delete from proverq.timing;
    delete from proverq_private.failure;
    delete from proverq_private.paused;
    delete from proverq.partition;
    delete from proverq.job;
    delete from iso.log;
    perform setval(pg_get_serial_sequence('proverq.job', 'job_seq'), 1, false);
    update proverq_private.prover set state = 'running', idle = false, seen_at = clock_timestamp();
    update proverq_private.webhook_endpoint set failures = 0, failing_since = null, rests_until = null,
        last_error = null, disabled_at = null, disabled_reason = null;
end
$$;

-- --- what sessions do ---

-- What the session holds, as rows; '1/0' names partition 0 of job 1.
create function iso.held()
returns table (key text, job_seq bigint, partition_idx int, token uuid) language sql stable as $$
    select h.job_seq || '/' || h.partition_idx, h.job_seq, h.partition_idx, h.token
    from jsonb_to_recordset(coalesce(nullif(current_setting('iso.held', true), ''), '[]')::jsonb)
        as h (job_seq bigint, partition_idx int, token uuid)
$$;

-- The session is another connection of the prover that claimed last: its heartbeat, or one made
-- after the first was lost.
create function iso.same_prover() returns void language sql as $$
    select set_config('iso.held',
                      coalesce(jsonb_agg(jsonb_build_object('job_seq', job_seq, 'partition_idx', partition_idx,
                                                            'token', token)
                                         order by job_seq, partition_idx), '[]')::text, false)
    from proverq.partition where token is not null
$$;

-- Whether a partition that could be claimed, by its state and by locks (and is not paused), comes before one of those
-- just claimed. The locks that this needs are given up again with the block.
create function iso.overtaken(circuits bigint[]) returns text language plpgsql as $$
declare
    first text;
begin
    select p.job_seq || '/' || p.partition_idx into first
    from proverq.partition p
    where p.state = 'ready' and p.avoid_until is null and p.circuit_id = any (proverq_private.unpaused(circuits))
      and exists (select from iso.held() h join proverq.partition q using (job_seq, partition_idx)
                  where (-p.priority, p.job_seq, p.partition_idx) < (-q.priority, q.job_seq, q.partition_idx))
    limit 1
    for update skip locked;
    raise exception using errcode = 'P0999';
exception when sqlstate 'P0999' then
    return first;
end
$$;

-- Claims up to n partitions as a prover, and names them in order; only behind what it claimed last, if so.
create function iso.claim(n int default 1, prover int default 1, circuits bigint[] default '{1,2,3}',
    behind bool default false)
returns text language plpgsql as $$
declare
    bound constant jsonb := coalesce(nullif(current_setting('iso.bound', true), ''), '[]')::jsonb;
    held jsonb;
    first text;
begin
    with c as (
        select f.job_seq, f.partition_idx, f.token, f.ordinality
        from proverq_private.claim(prover, circuits, 60000, n) with ordinality f
        where not behind
        union all
        select f.job_seq, f.partition_idx, f.token, f.ordinality
        from proverq_private.claim(prover, circuits, 60000, n, array[(bound ->> 0)::bigint], array[(bound ->> 1)::int],
                                   array[(bound ->> 2)::bigint], array[(bound ->> 3)::int]) with ordinality f
        where behind
    ), l as (
        insert into iso.log (what, job_seq, partition_idx, token)
        select 'claimed', c.job_seq, c.partition_idx, c.token from c order by c.ordinality
    )
    select jsonb_agg(jsonb_build_object('job_seq', c.job_seq, 'partition_idx', c.partition_idx, 'token', c.token)
                     order by c.ordinality)
    into held
    from c;
    perform set_config('iso.held', coalesce(held, '[]')::text, false);
    perform set_config('iso.bound',
                       jsonb_build_array(p.circuit_id, p.priority, p.job_seq, p.partition_idx)::text, false)
    from iso.held() h
    join proverq.partition p using (job_seq, partition_idx)
    order by p.priority, p.job_seq desc, p.partition_idx desc
    limit 1;
    -- Not where the session sees, or has waited for, another time than this.
    if not behind and current_setting('transaction_isolation') = 'read committed'
      and coalesce(current_setting('iso.stop', true), '') = '' then
        first := iso.overtaken(circuits);
        if first is not null then
            insert into iso.log (what, became) values ('overtaken', first);
        end if;
    end if;
    return coalesce((select string_agg(key, ' ') from iso.held()), 'nothing');
end
$$;

-- Records a proof, with two timing rows, of each partition that the session holds, or of one of them.
create function iso.complete(idx int default null) returns text language plpgsql as $$
declare
    h record;
    done bool;
    answers text[] := '{}';
begin
    for h in select * from iso.held() where idx is null or partition_idx = idx loop
        done := test.complete(h.job_seq, h.partition_idx, h.token);
        if done then
            insert into iso.log (what, job_seq, partition_idx, token)
            values ('recorded', h.job_seq, h.partition_idx, h.token);
        end if;
        answers := answers || (h.key || case when done then ' recorded' else ' refused' end);
    end loop;
    return coalesce(nullif(array_to_string(answers, ', '), ''), 'nothing');
end
$$;

-- The same for all that it holds in one call of complete_many(), the last one first.
create function iso.complete_many() returns text language plpgsql as $$
declare
    h record;
    done int[];
begin
    select array_agg(job_seq order by i) as jobs, array_agg(partition_idx order by i) as idxs,
           array_agg(token order by i) as tokens, array_agg(key order by i) as keys, count(*)::int as n
    into h
    from (select held.*, row_number() over (order by job_seq desc, partition_idx desc) as i from iso.held()) held;
    done := array(
        select proverq_private.complete(h.jobs, h.idxs, h.tokens, array_fill('{"pi_a": 1}'::jsonb, array[h.n]),
            array_fill('["1"]'::jsonb, array[h.n]), array_fill(null::bytea, array[h.n]),
            array(select 2 * i - 1 from generate_series(1, h.n) i), array_fill(10::smallint, array[2 * h.n]),
            array_fill(0::smallint, array[2 * h.n]), array_fill(clock_timestamp(), array[2 * h.n]),
            array_fill(5::bigint, array[2 * h.n])));
    insert into iso.log (what, job_seq, partition_idx, token)
    select 'recorded', h.jobs[i], h.idxs[i], h.tokens[i] from unnest(done) i;
    return (select string_agg(h.keys[i] || case when i = any (done) then ' recorded' else ' refused' end, ', '
                              order by i)
            from generate_series(1, h.n) i);
end
$$;

-- The attempt at each, or at one of them, has failed; with one timing row. A fault is tried again and spends a retry.
create function iso.fail(retry bool, idx int default null) returns text language plpgsql as $$
declare
    h record;
    answer text;
    answers text[] := '{}';
begin
    for h in select * from iso.held() where idx is null or partition_idx = idx loop
        answer := test.fail(h.job_seq, h.partition_idx, retry, true, h.token);
        if answer <> 'stale' then
            insert into iso.log (what, job_seq, partition_idx, token)
            values ('failed', h.job_seq, h.partition_idx, h.token);
        end if;
        answers := answers || (h.key || ' ' || answer);
    end loop;
    return coalesce(nullif(array_to_string(answers, ', '), ''), 'nothing');
end
$$;

-- Gives each, or one of them, back.
create function iso.release(delay_ms int default 0, idx int default null) returns text language sql as $$
    select coalesce(string_agg(
        key || case when proverq_private.release(job_seq, partition_idx, token, 'test', delay_ms)
                    then ' given back' else ' refused' end, ', '), 'nothing')
    from iso.held() where idx is null or partition_idx = idx
$$;

-- Renews the session's leases, and names those that it still has.
create function iso.heartbeat(prover int default 1) returns text language plpgsql as $$
declare
    jobs bigint[];
    partitions bigint[];
    tokens uuid[];
begin
    select array_agg(h.job_seq), array_agg(h.partition_idx), array_agg(h.token) into jobs, partitions, tokens
    from iso.held() h;
    perform proverq_private.renew_leases(prover, jobs, partitions, tokens, 60000);
    return (select coalesce(string_agg(h.key, ' ' order by h.key), 'nothing')
            from iso.held() h
            join proverq.partition p using (job_seq, partition_idx)
            where p.prover_id = prover
              and h.token not in (select l.token from proverq_private.lost_leases(jobs, partitions, tokens) l));
end
$$;

-- Ends a job, the first that can be ended, and says which and how.
create function iso.finalize() returns text language plpgsql as $$
declare
    f record;
begin
    select c.job_seq, e.run, e.event into f
    from proverq_private.finalizable(1000) c cross join lateral proverq_private.finalize(c.job_seq) e
    where e.event is not null
    limit 1;
    if not found then
        return 'nothing';
    end if;
    insert into iso.log (what, job_seq, run, became) values ('finalized', f.job_seq, f.run, f.event);
    return format('%s run %s %s', f.job_seq, f.run, f.event);
end
$$;

-- As a courier: takes up to n deliveries that are due, and names their jobs; says what the receiver answered.
create function iso.take_deliveries(n int default 1) returns text language plpgsql as $$
declare
    taken jsonb;
begin
    select jsonb_agg(jsonb_build_object('delivery', c.delivery_id, 'token', c.token) order by c.ordinality) into taken
    from proverq_private.claim_deliveries(n, n, 10, 60000) with ordinality c;
    perform set_config('iso.taken', coalesce(taken, '[]')::text, false);
    insert into iso.log (what, token, became)
    select 'taken', (t ->> 'token')::uuid, t ->> 'delivery' from jsonb_array_elements(taken) t;
    return coalesce((select string_agg('job ' || d.job_seq, ' ' order by t.ordinality)
                     from jsonb_array_elements(taken) with ordinality t (value, ordinality)
                     join proverq_private.webhook_delivery d on d.delivery_id = (t.value ->> 'delivery')::uuid),
                    'nothing');
end
$$;

create function iso.deliver(status int) returns text language sql as $$
    with t as (
        select value || jsonb_build_object('status', status) as v
        from jsonb_array_elements(coalesce(nullif(current_setting('iso.taken', true), ''), '[]')::jsonb)
    ), r as (
        select d.job_seq, r.* from proverq_private.record_deliveries((select jsonb_agg(v) from t)) r
        join proverq_private.webhook_delivery d using (delivery_id)
    ), l as (
        insert into iso.log (what, became) select 'delivered', delivery_id from r where outcome = 'delivered'
    )
    select coalesce(string_agg(format('job %s %s', job_seq, outcome), ', ' order by job_seq), 'nothing') from r
$$;

-- All jobs that have ended did so ten years ago.
create function iso.years_pass() returns void language sql as $$
    update proverq.job
    set created_at = created_at - interval '10 years', finished_at = finished_at - interval '10 years'
    where finished_at is not null;
$$;

-- Time passes: the leases that nobody has locked run out; what backs off, is due.
create function iso.time_passes() returns void language plpgsql as $$
begin
    update proverq.partition p set lease_until = clock_timestamp() - interval '1 s'
    from (select job_seq, partition_idx from proverq.partition where state = 'leased' for update skip locked) l
    where p.job_seq = l.job_seq and p.partition_idx = l.partition_idx;
    update proverq.partition p set due_at = clock_timestamp() - interval '1 s'
    from (select job_seq, partition_idx from proverq.partition where due_at is not null for update skip locked) d
    where p.job_seq = d.job_seq and p.partition_idx = d.partition_idx;
    update proverq.partition p set avoid_until = null where avoid_until is not null;
    update proverq.job set finalize_after = null where finalize_after is not null;
    update proverq_private.webhook_delivery set next_attempt_at = clock_timestamp() - interval '1 s'
    where state = 'pending';
    update proverq_private.webhook_endpoint set rests_until = null where rests_until is not null;
end
$$;

-- --- the verdict ---

-- What a partition and a job may go through.
create function iso.allowed(what text, was text, became text) returns bool language sql immutable as $$
    select case what
        when 'partition' then (was, became) in (('held', 'ready'), ('ready', 'leased'),
            ('leased', 'ready'), ('leased', 'held'), ('leased', 'proved'), ('leased', 'failed'),
            ('held', 'cancelled'), ('ready', 'cancelled'), ('leased', 'cancelled'),
            ('failed', 'ready'), ('failed', 'held'), ('cancelled', 'ready'), ('cancelled', 'held')) -- retry
        when 'job' then (was, became) in (('incomplete', 'queued'), ('queued', 'completing'), ('queued', 'failing'),
            ('completing', 'finished'), ('failing', 'failed'),
            ('incomplete', 'cancelled'), ('queued', 'cancelled'), ('completing', 'cancelled'), ('failing', 'cancelled'),
            ('failed', 'queued'), ('cancelled', 'queued'), ('cancelled', 'completing')) -- retry
        else true end
$$;

-- Everything that is wrong; no row: nothing. (In PL/pgSQL, which plans it once.)
create function iso.violations() returns setof text language plpgsql as $$
begin
    return query
    with p as (
        select p.job_seq, count(*) as rows, count(*) filter (where state <> 'proved') as left_over,
               count(*) filter (where state in ('held', 'ready', 'leased')) as alive,
               count(*) filter (where state = 'failed') as failed,
               count(*) filter (where num_nonnulls(witness, witness_path, inputs) <> 1) as without_inputs
        from proverq.partition p group by p.job_seq
    ), j as (
        select j.*, j.state in ('finished', 'failed', 'cancelled') as ended, coalesce(p.rows, 0) as rows,
               p.left_over, p.alive, p.failed, p.without_inputs
        from proverq.job j left join p using (job_seq)
    )
    select format('job %s counts %s of its %s partition(s)', job_seq, present, rows) from j where present <> rows
    union all select format('job %s waits for %s proof(s), it has %s to come', job_seq, remaining, left_over)
        from j where state <> 'incomplete' and remaining <> coalesce(left_over, 0) + partitions - rows
    union all select format('job %s is %s, with %s of %s partition(s), %s to be proved, %s failed',
                            job_seq, state, rows, partitions, alive, failed)
        from j where not case state
            when 'incomplete' then rows < partitions
            when 'queued' then rows = partitions and alive > 0 and failed = 0
            when 'completing' then left_over = 0 when 'finished' then left_over = 0
            when 'failing' then alive = 0 and failed = 1 when 'failed' then alive = 0 and failed = 1
            else coalesce(alive, 0) = 0 end
    union all select format('job %s is %s and %s partition(s) have lost their inputs', job_seq, state, without_inputs)
        from j where not ended and without_inputs > 0
    union all select format('job %s is %s and its inputs are still there', job_seq, state)
        from j where ended and not keep_inputs and without_inputs < rows
    union all select format('job %s, run %s, is %s and has %s delivery row(s)', job_seq, run, state,
                            (select count(*) from proverq_private.webhook_delivery d
                             where d.job_seq = j.job_seq and d.run = j.run))
        from j where (ended and webhook is not null)::int <> (
            select count(*) from proverq_private.webhook_delivery d where d.job_seq = j.job_seq and d.run = j.run)
    union all select format('%s delivery row(s) where there should be %s', n, wanted)
        from (select count(*) as n from proverq_private.webhook_delivery) d,
             (select count(*) as wanted from iso.log l join proverq.job using (job_seq)
              where l.what = 'job' and l.became in ('finished', 'failed', 'cancelled') and webhook is not null) l
        where n <> wanted
    union all select format('partition %s/%s waits with priority %s, its job has %s',
                            p.job_seq, p.partition_idx, p.priority, j.priority)
        from proverq.partition p join j using (job_seq)
        where p.state in ('held', 'ready') and j.state <> 'incomplete' and p.priority <> j.priority
    union all select format('%s failure(s) kept where there should be %s', n, wanted)
        from (select count(*) as n from proverq_private.failure where code <> 'lost') f,
             (select count(*) as wanted from iso.log where what = 'failed') l
        where n <> wanted
    union all select format('partition %s/%s was claimed %s times, and calls it attempt %s',
                            p.job_seq, p.partition_idx, n, p.attempt)
        from proverq.partition p
        cross join lateral (select count(*) as n from iso.log l
                            where l.what = 'claimed'
                              and (l.job_seq, l.partition_idx) = (p.job_seq, p.partition_idx)) c
        where p.attempt <> n
    union all select format('%s %s went from %s to %s', what, concat_ws('/', job_seq, partition_idx), was, became)
        from iso.log where not iso.allowed(what, was, became)
    union all select format('partition %s/%s was recorded %s times', job_seq, partition_idx, count(*))
        from iso.log where what = 'recorded' group by job_seq, partition_idx having count(*) > 1
    union all select format('partition %s/%s was recorded by a session that had lost it', r.job_seq, r.partition_idx)
        from iso.log r where r.what = 'recorded' and not exists (
            select from iso.log l where l.what = 'partition' and l.became = 'proved'
               and (l.job_seq, l.partition_idx, l.token) = (r.job_seq, r.partition_idx, r.token))
    union all select format('job %s, run %s, was finalized %s times', job_seq, run, count(*))
        from iso.log where what = 'finalized' group by job_seq, run having count(*) > 1
    union all select format('job %s, run %s, ended %s times', job_seq, run, count(*))
        from iso.log where what = 'job' and became in ('finished', 'failed', 'cancelled')
        group by job_seq, run having count(*) > 1
    union all select format('%s was ready and free when a later one was claimed', became)
        from iso.log where what = 'overtaken'
    union all select format('%s timing row(s) where there should be %s', n, wanted)
        from (select count(*) as n from proverq.timing) t,
             (select coalesce(sum(case what when 'recorded' then 2 else 1 end), 0) as wanted
              from iso.log where what in ('recorded', 'failed')) l
        where n <> wanted
    union all select format('delivery of job %s is attempt %s, it was taken %s times', job_seq, attempts, n)
        from proverq_private.webhook_delivery d
        cross join lateral (select count(*) as n from iso.log l
                            where l.what = 'taken' and l.became = d.delivery_id::text) t
        where attempts <> n
    union all select format('delivery of job %s is %s, it was delivered %s times', job_seq, state, n)
        from proverq_private.webhook_delivery d
        cross join lateral (select count(*) as n from iso.log l
                            where l.what = 'delivered' and l.became = d.delivery_id::text) t
        where (state = 'delivered')::int <> n
    union all select format('a lease of %s/%s without its prover', job_seq, partition_idx)
        from proverq.partition where state = 'leased' and prover_id is null;
end
$$;

-- One prover and one finalizer do all that is left.
create function iso.drain() returns void language plpgsql as $$
begin
    delete from proverq_private.paused;
    for i in 1 .. 10 loop
        exit when not exists (select from proverq.job where state in ('queued', 'completing', 'failing'))
              and not exists (select from proverq_private.webhook_delivery where state = 'pending');
        perform iso.time_passes();
        perform proverq.rescue_expired();
        perform proverq.wake_due();
        if iso.claim(100, 4) <> 'nothing' then
            perform iso.complete();
        end if;
        while iso.finalize() <> 'nothing' loop
        end loop;
        if exists (select from proverq_private.webhook_delivery where state = 'pending')
          and iso.take_deliveries(100) <> 'nothing' then
            perform iso.deliver(200);
        end if;
    end loop;
end
$$;

-- What the permutation left, whether all is well, and whether what is left can be done.
create function iso.verdict() returns setof text language plpgsql as $$
declare
    wrong text[];
begin
    return query
    select format('job %s %s: %s', j.job_seq, j.state,
                  (select string_agg(p.state::text, ' ' order by p.partition_idx)
                   from proverq.partition p where p.job_seq = j.job_seq))
    from proverq.job j order by j.job_seq;
    wrong := array(select iso.violations()
                   union all select 'check_invariants(): ' || invariant from proverq.check_invariants());
    if wrong = '{}' then
        perform iso.drain();
        wrong := array(select 'when the rest was done, ' || v from iso.violations() v
                       union all select format('job %s is never done: it is %s', j.job_seq, j.state)
                           from proverq.job j where j.state not in ('incomplete', 'finished', 'failed', 'cancelled')
                       union all select format('the webhook of job %s is never sent', d.job_seq)
                           from proverq_private.webhook_delivery d where d.state = 'pending');
    end if;
    if wrong = '{}' then
        return next 'all is well';
    end if;
    return query select 'VIOLATION: ' || w from unnest(wrong) w;
end
$$;
