-- Skips what is locked instead of locking jobs first: it never waits, and comes again.
create or replace function proverq.wake_due() returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
    woken int;
begin
    with due as materialized (
        select p.job_seq, p.partition_idx
        from proverq.partition p
        where p.state = 'held' and p.due_at <= clock_timestamp()
        order by p.due_at
        limit 1000
        for no key update skip locked
    )
    update proverq.partition p
    set state = 'ready', due_at = null
    from due
    where p.job_seq = due.job_seq and p.partition_idx = due.partition_idx;
    get diagnostics woken = row_count;
    if woken > 0 then
        perform proverq_private.notify_work();
    end if;
    return woken;
end
$$;
comment on function proverq.wake_due() is 'Makes partitions ready whose backoff is over, at most 1000 at a time; gives how many.';
