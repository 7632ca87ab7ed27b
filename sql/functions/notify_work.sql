-- Commits with NOTIFY queue up on one lock of the whole server, so it is sent only when somebody waits; polling is the net.
create or replace function proverq_private.notify_work() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from proverq_private.prover p where p.idle and p.state = 'running') then
        perform pg_notify('proverq_work', '');
    end if;
end
$$;
comment on function proverq_private.notify_work() is 'Wakes the provers that wait for work, if there are any.';
