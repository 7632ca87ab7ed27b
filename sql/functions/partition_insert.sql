-- What a plain INSERT into proverq.partition may say, and how a job notices that it is whole.
create or replace function proverq_private.partition_insert() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    owner proverq.job;
    later bool;
begin
    select j.* into owner from proverq.job j where j.job_seq = new.job_seq;
    if not found or (owner.submitter <> session_user and not proverq_private.may_read(owner.submitter)) then
        raise foreign_key_violation using
            message = format('there is no job %s', coalesce(new.job_seq::text, 'NULL')),
            hint = 'Insert the job first: insert into proverq.job (circuit, partitions) values (...) returning job_seq;';
    elsif owner.submitter <> session_user and not proverq_private.is_member(owner.submitter) then
        raise insufficient_privilege using
            message = format('job %s belongs to %s', owner.job_seq, owner.submitter);
    elsif new.partition_idx not between 0 and owner.partitions - 1 then
        raise check_violation using
            message = format('job %s has no partition %s', owner.job_seq, new.partition_idx),
            detail = format('It was inserted with %s partition(s), numbered from 0 to %s.', owner.partitions, owner.partitions - 1);
    elsif owner.state <> 'incomplete' then
        perform proverq_private.no_more_partitions(owner);
    elsif num_nonnulls(new.witness, new.witness_path, new.inputs) <> 1 then
        raise check_violation using
            message = format('partition %s of job %s needs exactly one of inputs, witness and witness_path', new.partition_idx, owner.job_seq),
            hint = 'inputs are the circuit''s signals; witness is the content of a .wtns file; witness_path names one in the provers'' witness folder.';
    elsif new.inputs is not null then
        perform proverq_private.inputs_check(owner.circuit_id, new.inputs, format('partition %s of job %s', new.partition_idx, owner.job_seq));
    elsif new.witness_path = '' then
        raise check_violation using
            message = format('partition %s of job %s has an empty witness_path', new.partition_idx, owner.job_seq);
    end if;
    new.circuit_id := owner.circuit_id;
    new.priority := owner.priority;
    -- A job of one partition is whole with it: no second version of the row is needed.
    later := coalesce(owner.not_before > clock_timestamp(), false);
    new.state := case when owner.partitions = 1 and not later then 'ready' else 'held' end;
    new.due_at := case when owner.partitions = 1 and later then owner.not_before end;
    new.attempt := 0;
    new.failures := 0;
    new.losses := 0;
    new.lost_by := '{}';
    new.token := null;
    new.lease_until := null;
    new.prover_id := null;
    new.avoid_until := null;
    new.proved_at := null;
    new.proof := null;
    new.publics := null;
    new.proof_compressed := null;
    new.error_code := null;
    new.error := null;
    return new;
end
$$;
comment on function proverq_private.partition_insert() is
    'Trigger: refuses what does not fit the job, copies its circuit and priority, and sets what is not the user''s to say.';

create or replace trigger partition_insert before insert on proverq.partition
    for each row execute function proverq_private.partition_insert();

create or replace function proverq_private.no_more_partitions(owner proverq.job) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    raise object_not_in_prerequisite_state using
        message = case when owner.state = 'cancelled' then format('job %s is cancelled', owner.job_seq)
                       else format('job %s has all of its %s partition(s)', owner.job_seq, owner.partitions) end,
        hint = 'Insert another job for further partitions.';
end
$$;
comment on function proverq_private.no_more_partitions(proverq.job) is 'Raises the error of a partition that comes too late. Part of partition_insert().';

-- Counts under the jobs' locks, so that of several sessions that insert at once the last one finds the job whole, and a job that
-- was cancelled meanwhile gets no partition. More rows than partitions cannot be: each number is below partitions, and the key is
-- unique. The partitions are updated job by job: for all at once the planner may compare each partition with each job.
create or replace function proverq_private.partitions_inserted() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_hashjoin = off set enable_mergejoin = off set enable_seqscan = off
as $$
declare
    owner proverq.job;
    now timestamptz;
begin
    for owner in
        select j.* from proverq.job j
        where j.job_seq in (select i.job_seq from inserted i)
        order by j.job_seq
        for no key update
    loop
        if owner.state <> 'incomplete' then
            perform proverq_private.no_more_partitions(owner);
        end if;
    end loop;
    now := clock_timestamp();

    update proverq.job j
    set present = j.present + a.rows,
        state = case when j.present + a.rows = j.partitions then 'queued' else j.state end,
        ready_at = case when j.present + a.rows = j.partitions then now end
    from (select i.job_seq, count(*)::int as rows from inserted i group by i.job_seq) a
    where j.job_seq = a.job_seq;

    for owner in
        select j.*
        from (select i.job_seq, min(i.priority) as low, max(i.priority) as high from inserted i group by i.job_seq) a
        join proverq.job j on j.job_seq = a.job_seq
        where j.state = 'queued' and (j.partitions > 1 or a.low <> j.priority or a.high <> j.priority)
    loop
        update proverq.partition p
        set state = case when owner.not_before > now then 'held' else 'ready' end::proverq.partition_state,
            due_at = case when owner.not_before > now then owner.not_before end,
            priority = owner.priority
        where p.job_seq = owner.job_seq -- the state as text: no partial index is of use here
          and ((p.state::text = 'held' and p.due_at is null) or p.priority <> owner.priority);
    end loop;

    if exists (select from inserted i join proverq.job j on j.job_seq = i.job_seq and j.state = 'queued') then
        perform proverq_private.notify_work();
    end if;
    return null;
end
$$;
comment on function proverq_private.partitions_inserted() is
    'Trigger: counts a statement''s rows into their jobs; a job that has all its partitions is queued, and idle provers are woken.';

create or replace trigger partitions_inserted after insert on proverq.partition
    referencing new table as inserted
    for each statement execute function proverq_private.partitions_inserted();
