-- What a plain INSERT into proverq.job may say, and what it may not. A definer function, so that INSERT on the table is all
-- that a user needs.
create or replace function proverq_private.job_insert() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    endpoint proverq_private.webhook_endpoint;
begin
    select c.circuit_id into new.circuit_id
    from proverq.circuit c
    where c.name = new.circuit and c.removed_at is null
    order by c.version desc
    limit 1;
    if not found then
        raise undefined_object using
            message = format('there is no circuit %s', coalesce(quote_ident(new.circuit), 'NULL')),
            detail = coalesce('There are: ' || (select string_agg(n.name, ', ' order by n.name) from (
                         select distinct c.name from proverq.circuit c where c.removed_at is null order by c.name limit 10) n) || '.',
                         'There are no circuits yet.'),
            hint = 'Add one with: proverq circuit add NAME KEY.zkey';
    end if;
    if new.partitions < 1 then
        raise check_violation using
            message = format('a job has at least 1 partition, not %s', new.partitions),
            hint = 'Set partitions to the number of proofs that the job is to have.';
    end if;
    if not isfinite(new.not_before) then
        raise check_violation using
            message = format('%s is no time that a job can wait for', new.not_before),
            hint = 'Give not_before a date and time, or leave it out.';
    end if;
    if new.webhook is not null then
        endpoint := proverq_private.webhook_endpoint_for(new.webhook);
    end if;
    new.endpoint_id := endpoint.endpoint_id;
    new.submitter := session_user;
    new.present := 0;
    new.remaining := new.partitions;
    new.run := 1;
    new.state := 'incomplete';
    new.error_code := null;
    new.error := null;
    new.created_at := clock_timestamp();
    new.ready_at := null;
    new.finished_at := null;
    new.finalize_failures := 0;
    new.finalize_error := null;
    new.finalize_after := null;
    return new;
end
$$;
comment on function proverq_private.job_insert() is
    'Trigger: pins the circuit''s newest version and the webhook endpoint, and sets what is not the user''s to say.';

create or replace trigger job_insert before insert on proverq.job
    for each row execute function proverq_private.job_insert();
