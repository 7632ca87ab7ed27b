-- Whatever has not ended can be cancelled, even when only the last step is missing (completing, failing): until that commits nobody
-- was told of another end, and a job whose last step cannot be made must be possible to end. Proofs that are there stay, for a
-- retry. A prover that works on a partition learns it from its next heartbeat; what it still sends in is refused by the token.
create or replace function proverq.cancel(job bigint, reason text default null) returns bool
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    j constant proverq.job := proverq_private.lock_job(job);
begin
    if j.state = 'cancelled' then
        return false;
    elsif j.finished_at is not null then
        raise object_not_in_prerequisite_state using
            message = format('job %s cannot be cancelled: it is %s since %s', job, j.state, j.finished_at::timestamptz(0)),
            hint = 'Only a job that has not ended can be cancelled.';
    end if;
    update proverq.partition p
    set state = 'cancelled', token = null, lease_until = null, due_at = null, avoid_until = null
    where p.job_seq = j.job_seq and p.state::text in ('held', 'ready', 'leased');
    perform proverq_private.end_job(j.job_seq, 'cancelled', 'cancelled',
                    format('cancelled by %s', session_user) || coalesce(': ' || left(nullif(reason, ''), 1000), '')
                    || case when j.error is not null then format(' (it was failing: %s)', j.error) else '' end);
    return true;
end
$$;
comment on function proverq.cancel(bigint, text) is
    'Ends a job that has not ended: what waits is not proved, what runs is stopped and its result refused. Proofs that are there stay. False: it was cancelled already.';
