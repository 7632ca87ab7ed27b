-- Deleting what is older than proverq.retention says, in small transactions: a call removes at most max_rows rows, or one day's
-- table; who wants more calls again. No lock is waited for longer than 0.2 s, least of all one on a table, which would
-- keep inserts waiting meanwhile.
--
-- Old jobs are found without an index of their own, which every end of a job would have to pay: along the primary key from the
-- first job on, until one comes that was inserted too late to have ended too early. What is passed over is old and cannot go.
create or replace function proverq.prune(max_rows int default 1000) returns table (what text, removed bigint)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set lock_timeout = '200ms'
as $$
declare
    remaining bigint := max_rows;
    rule proverq.retention;
begin
    if max_rows is null or max_rows not between 1 and 1000000 then
        raise invalid_parameter_value using message = format('max_rows must be from 1 to 1000000, not %s', coalesce(max_rows::text, 'NULL'));
    elsif not pg_try_advisory_xact_lock(hashtextextended('proverq.prune', 0)) then
        return; -- another one is at it
    end if;
    removed := proverq_private.prune_timing_table();
    if removed > 0 then
        what := 'timing tables';
        return next;
        return; -- at once, since the lock on the parent lasts as long as the transaction
    end if;
    for rule in select * from proverq.retention r where r.keep is not null order by r.what = 'jobs', r.what
    loop
        exit when remaining = 0;
        what := rule.what;
        removed := case rule.what
                   when 'jobs' then proverq_private.prune_jobs(clock_timestamp() - rule.keep, remaining)
                   when 'deliveries' then proverq_private.prune_deliveries(clock_timestamp() - rule.keep, remaining)
                   when 'failures' then proverq_private.prune_failures(clock_timestamp() - rule.keep, remaining)
                   when 'timings' then proverq_private.prune_timing_rows(clock_timestamp() - rule.keep, remaining)
                   when 'provers' then proverq_private.prune_provers(clock_timestamp() - rule.keep, remaining)
                   else 0 end;
        remaining := greatest(0, remaining - removed);
        if removed > 0 then
            return next;
        end if;
    end loop;
end
$$;
comment on function proverq.prune(int) is
    'Deletes what is older than proverq.retention says: at most so many rows, or one day''s table of timings. No row: nothing is left to delete, or another session is deleting. Finalizers call it; by hand: select * from proverq.prune() \watch 0.1';

-- A job in pieces: who asks for its proofs is told by present, which counts the partitions that are still there.
create or replace function proverq_private.prune_jobs(ended_before timestamptz, max_rows bigint) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
as $$
declare
    j record;
    removed bigint := 0;
    n bigint;
begin
    for j in select job_seq, created_at, finished_at from proverq.job order by job_seq
    loop
        exit when j.created_at >= ended_before or removed >= max_rows;
        continue when j.finished_at is null or j.finished_at >= ended_before;
        perform from proverq.job x where x.job_seq = j.job_seq and x.finished_at < ended_before for update skip locked;
        continue when not found;
        delete from proverq_private.webhook_delivery d where d.job_seq = j.job_seq and d.state <> 'pending';
        get diagnostics n = row_count;
        removed := removed + n;
        continue when exists (select from proverq_private.webhook_delivery d where d.job_seq = j.job_seq);
        delete from proverq.partition p
        where p.job_seq = j.job_seq
          and p.partition_idx = any (array(select q.partition_idx from proverq.partition q where q.job_seq = j.job_seq
                                           order by q.partition_idx limit greatest(1, max_rows - removed)));
        get diagnostics n = row_count;
        removed := removed + n;
        if exists (select from proverq.partition p where p.job_seq = j.job_seq) then
            update proverq.job x set present = x.present - n where x.job_seq = j.job_seq;
        else
            delete from proverq.job x where x.job_seq = j.job_seq;
            removed := removed + 1;
        end if;
    end loop;
    return removed;
end
$$;
comment on function proverq_private.prune_jobs(timestamptz, bigint) is
    'Deletes jobs that ended before, with their partitions and deliveries; gives how many rows. Part of prune().';

create or replace function proverq_private.first_to_prune(ended_before timestamptz) returns table (job_seq bigint, finished_at timestamptz)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
as $$
declare
    j record;
begin
    for j in select x.job_seq, x.created_at, x.finished_at from proverq.job x order by x.job_seq
    loop
        exit when j.created_at >= ended_before;
        if j.finished_at < ended_before
           and not exists (select from proverq_private.webhook_delivery d where d.job_seq = j.job_seq and d.state = 'pending') then
            job_seq := j.job_seq;
            finished_at := j.finished_at;
            return next;
            return;
        end if;
    end loop;
end
$$;
comment on function proverq_private.first_to_prune(timestamptz) is 'The first job that ended before and could be deleted. Part of the alerts.';

-- Along the jobs too. A delivery is not older than its job.
create or replace function proverq_private.prune_deliveries(created_before timestamptz, max_rows bigint) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_sort = off
as $$
declare
    d record;
    removed bigint := 0;
    n bigint;
begin
    for d in
        select w.delivery_id, w.created_at, j.created_at as job_created_at
        from proverq_private.webhook_delivery w
        join proverq.job j on j.job_seq = w.job_seq
        order by w.job_seq
    loop
        exit when d.job_created_at >= created_before or removed >= max_rows;
        continue when d.created_at >= created_before;
        delete from proverq_private.webhook_delivery w
        where w.delivery_id = (select x.delivery_id from proverq_private.webhook_delivery x
                               where x.delivery_id = d.delivery_id and x.state <> 'pending' for update skip locked);
        removed := removed + found::int;
    end loop;
    delete from proverq_private.webhook_delivery w -- pings
    where w.delivery_id = any (array(select x.delivery_id from proverq_private.webhook_delivery x
                                     where x.job_seq is null and x.state <> 'pending' and x.created_at < created_before
                                     limit greatest(0, max_rows - removed) for update skip locked));
    get diagnostics n = row_count;
    return removed + n;
end
$$;
comment on function proverq_private.prune_deliveries(timestamptz, bigint) is
    'Deletes deliveries that were written before and are not pending; gives how many. Part of prune().';

create or replace function proverq_private.prune_failures(failed_before timestamptz, max_rows bigint) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    removed bigint;
begin
    delete from proverq_private.failure f
    where f.ctid = any (array(select x.ctid from proverq_private.failure x where x.failed_at < failed_before limit max_rows));
    get diagnostics removed = row_count;
    return removed;
end
$$;
comment on function proverq_private.prune_failures(timestamptz, bigint) is 'Deletes the errors of attempts that failed before; gives how many. Part of prune().';

-- Partitions keep the number of the prover that proved them; its name is all that is lost.
create or replace function proverq_private.prune_provers(seen_before timestamptz, max_rows bigint) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    removed bigint;
begin
    delete from proverq_private.prover p
    where p.prover_id = any (array(
        select q.prover_id from proverq_private.prover q
        where q.state <> 'running' and q.seen_at < seen_before
          and not exists (select from proverq.partition l where l.state = 'leased' and l.prover_id = q.prover_id)
        limit max_rows
        for update skip locked));
    get diagnostics removed = row_count;
    return removed;
end
$$;
comment on function proverq_private.prune_provers(timestamptz, bigint) is
    'Deletes prover processes that ended and were last seen before; gives how many. Part of prune().';

-- The days' tables that have only what is too old.
create or replace function proverq_private.old_timing_tables(recorded_before timestamptz) returns table (name text, ends timestamptz)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select c.relname, day.ends
    from pg_inherits i
    join pg_class c on c.oid = i.inhrelid
    cross join lateral (select (to_date(right(c.relname, 8), 'YYYYMMDD') + 1)::timestamp at time zone 'UTC') day (ends)
    where i.inhparent in ('proverq.timing'::regclass, 'proverq_private.device_activity'::regclass) and c.relname ~ '^(timing|device_activity)_[0-9]{8}$'
      and day.ends <= recorded_before
    order by day.ends, c.relname
$$;
comment on function proverq_private.old_timing_tables(timestamptz) is 'Days'' tables of which every row was recorded before. Part of prune() and of the alerts.';

-- DROP, not DETACH CONCURRENTLY: that cannot run in a function, nor beside a default partition. It is a short lock.
create or replace function proverq_private.prune_timing_table() returns int
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    day_table text;
begin
    select t.name into day_table
    from proverq.retention r
    cross join lateral proverq_private.old_timing_tables(clock_timestamp() - r.keep) t
    where r.what = 'timings' and r.keep is not null
    limit 1;
    if not found then
        return 0;
    end if;
    execute format('drop table proverq_private.%I', day_table);
    return 1;
exception when lock_not_available then -- somebody reads or writes it; the rows that are due need not wait for that
    return 0;
when insufficient_privilege then -- it was made by another owner; the alert retention_behind tells
    return 0;
end
$$;
comment on function proverq_private.prune_timing_table() is 'Drops one day''s table of timings or activity that is too old, if it can be locked at once; gives how many. Part of prune().';

create or replace function proverq_private.prune_timing_rows(recorded_before timestamptz, max_rows bigint) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    removed bigint;
    n bigint;
begin
    delete from proverq_private.timing_default t
    where t.ctid = any (array(select x.ctid from proverq_private.timing_default x where x.recorded_at < recorded_before limit max_rows));
    get diagnostics removed = row_count;
    delete from proverq_private.device_activity_default t
    where t.ctid = any (array(select x.ctid from proverq_private.device_activity_default x where x.recorded_at < recorded_before limit max_rows - removed));
    get diagnostics n = row_count;
    return removed + n;
end
$$;
comment on function proverq_private.prune_timing_rows(timestamptz, bigint) is
    'Deletes what is too old in the default tables of timings and activity; gives how many rows. Part of prune().';
