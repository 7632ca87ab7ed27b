-- What provers and supervisors say of circuits and devices, when it is forgotten, and which leases have ended.
select proverq_private.circuit_refused(1, 2, 'device_memory', 'too large') \g /dev/null
select proverq_private.circuit_refused(1, 2, 'absent', 'not here') \g /dev/null
select proverq_private.circuit_refused(2, 2, 'key', 'bad') \g /dev/null
select proverq_private.circuit_refused(1, 99, 'key', 'no such circuit'),
       proverq_private.circuit_refused(99, 2, 'key', 'no such prover') \g /dev/null
select test.is(string_agg(format('%s %s %s %s', r.prover_id, r.circuit, r.code, r.reason), ', ' order by r.prover_id),
    '1 mul absent not here, 2 mul key bad', 'a refusal has its last reason')
from proverq.refusals r;
select test.is(refuses, 1::bigint, 'the prover says how many') from proverq.provers where prover_id = 1;
select proverq_private.circuit_refused(1, 2, 'none', null) \g /dev/null
select test.is(string_agg(prover_id::text, ','), '2', 'one that has been overcome is forgotten') from proverq.refusals;
update proverq_private.prover set state = 'stopped' where prover_id = 2;
select test.is(count(*), 0::bigint, 'a prover that has ended refuses nothing') from proverq.refusals;

select proverq_private.device_quarantined('host3', 'cpu', 3, 'it broke') \g /dev/null
select proverq_private.device_quarantined('host3', 'cpu', 4, 'again') \g /dev/null
insert into proverq_private.prover (instance, host, pid, device) values (gen_random_uuid(), 'host3', 7, 'cpu');
select test.is(string_agg(format('%s %s', p.host, p.quarantine), ', '),
    'host3 again', 'a device in quarantine is seen at its last prover')
from proverq.provers p where p.quarantine is not null;
select test.is(faults, 4, 'with its faults') from proverq_private.device_quarantine;
select proverq_private.device_quarantined('host3', 'cpu', 0, null) \g /dev/null
select test.is(count(*), 0::bigint, 'until it works again') from proverq_private.device_quarantine;

-- why() names both.
select test.job(1) \g /dev/null
update proverq_private.prover set seen_at = clock_timestamp();
update proverq_private.prover set state = 'stopped' where prover_id > 2;
update proverq_private.prover set state = 'running' where prover_id <= 2;
select proverq_private.circuit_refused(1, 2, 'device_memory', 'too large') \g /dev/null
select test.is(proverq.why(1) ~ 'too large', false, 'one that refuses is no reason');
select proverq_private.circuit_refused(2, 2, 'device_memory', 'too large too') \g /dev/null
select test.matches(proverq.why(1),
    'none of the 2 running provers takes this circuit: prover 1 \(cpu on host1\): device_memory, too large; see',
    'all that run are');
update proverq_private.prover set state = 'stopped';
select proverq_private.device_quarantined('host3', 'cpu', 3, 'it broke') \g /dev/null
select test.matches(proverq.why(1),
    'no prover is running .*cpu on host3 is in quarantine since .* after 3 faults, the last: it broke',
    'a device in quarantine is another');
select proverq_private.device_quarantined('host3', 'cpu', 0, null) \g /dev/null
update proverq_private.prover set state = 'running';
update proverq.partition set state = 'cancelled';
update proverq.job set state = 'cancelled';

-- Leases.
create table test.kept (job_seq bigint, partition_idx int, token uuid);
create function test.lost() returns text language sql as $$
    select string_agg(format('%s/%s %s', k.job_seq, k.partition_idx, l.reason), ', ' order by k.job_seq,
        k.partition_idx)
    from test.kept k
    join proverq_private.lost_leases((select array_agg(job_seq order by job_seq, partition_idx) from test.kept),
                             (select array_agg(partition_idx::bigint order by job_seq, partition_idx) from test.kept),
                             (select array_agg(token order by job_seq, partition_idx) from test.kept)) l using (token)
$$;
select test.job(2), test.job(1), test.job(1), test.job(2) \g /dev/null
select test.claim(6) \g /dev/null
insert into test.kept select job_seq, partition_idx, token from proverq.partition where state = 'leased';
select test.is(count(*), 6::bigint, 'six leases') from test.kept;
select test.is(test.lost(), null, 'are held');
select test.is(test.complete(2, 0), true, 'one ends by its proof');
update proverq.partition set lease_until = '2000-01-01' where job_seq = 2 and partition_idx = 1;
select proverq.rescue_expired() \g /dev/null
update proverq.partition set state = 'cancelled', token = null, lease_until = null where job_seq = 3;
update proverq.job set state = 'cancelled' where job_seq = 3;
delete from proverq.partition where job_seq = 4;
select test.is(test.fail(5, 0, false, true), 'failed', 'a partition fails');
select test.is(test.lost(),
    '2/0 taken, 2/1 taken, 3/0 cancelled, 4/0 gone, 5/0 failed, 5/1 failed', 'each is told with its reason');
