create or replace function proverq.wait(job bigint, timeout interval default '5 min') returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    owner name;
    until constant timestamptz := clock_timestamp() + timeout;
    pause double precision := 0.02;
    now_state text;
    ended bool;
    here constant bigint := txid_current_if_assigned();
    changed_by bigint;
begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        raise object_not_in_prerequisite_state using
            message = format('cannot wait for job %s in a transaction that is %s', job, current_setting('transaction_isolation')),
            detail = 'Such a transaction does not see what happens after its start.',
            hint = 'Commit, and wait in a transaction of its own.';
    end if;
    loop
        select j.state, j.finished_at is not null, j.xmin::text::bigint, j.submitter into now_state, ended, changed_by, owner
        from proverq.job j
        where j.job_seq = wait.job;
        if not found or not proverq_private.may_read(owner) then
            raise no_data_found using message = format('there is no job %s', coalesce(job::text, 'NULL'));
        end if;
        exit when ended or clock_timestamp() >= until;
        if here is not null and proverq_private.is_in_progress(changed_by) then
            raise object_not_in_prerequisite_state using
                message = format('cannot wait for job %s in the transaction that inserted it', job),
                detail = 'No prover sees the job before that transaction commits.',
                hint = format('Commit, then: select proverq.wait(%s);', job);
        end if;
        perform pg_sleep(least(pause, extract(epoch from until - clock_timestamp())));
        pause := least(pause * 1.5, 1);
    end loop;
    return (select v.state from proverq.jobs v where v.job_seq = wait.job);
end
$$;
comment on function proverq.wait(bigint, interval) is
    'Waits until the job has ended, at most so long, and gives its state then. Call it in a transaction of its own: the one that inserts a job keeps it from being proved until it commits.';

-- A row that we see has a transaction in progress only if that is ours, or a savepoint of ours.
create or replace function proverq_private.is_in_progress(xmin bigint) returns bool
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    epoch constant bigint := 4294967296;
    next constant bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
    whole bigint := next - next % epoch + xmin;
begin
    if whole >= next + epoch / 2 then
        whole := whole - epoch;
    end if;
    return whole >= 0 and coalesce(pg_xact_status(whole::text::xid8) = 'in progress', false);
end
$$;
comment on function proverq_private.is_in_progress(bigint) is 'Whether a row''s xmin is a transaction that is not over. Part of wait().';
