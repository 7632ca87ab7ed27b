select test.job(3) \g /dev/null
select test.is(test.claim(1, 1, lease_ms => 1), '1/0', 'a short lease');
select test.is(test.claim(1, 2), '1/1', 'a long one');
select pg_sleep(0.01) \g /dev/null
select test.is(proverq.rescue_expired(), '1', 'the expired one is taken away');
select test.is(proverq.rescue_expired(), '0', 'once');
select test.is(test.states(1), 'ready leased ready', 'the other stays');
select test.is(format('%s %s %s %s', losses, failures, lost_by, token), '1 0 {1} ', 'a loss spends no retry'),
       test.matches(error, 'prover 1 \(cpu on host1, pid 1\) let its lease expire', 'and names the prover')
from proverq.partition where job_seq = 1 and partition_idx = 0;

select test.is(proverq_private.rescue_prover('00000000-0000-0000-0000-000000000002'),
    '1', 'a prover that ended gives back its leases at once');
select test.is(test.states(1), 'ready ready ready', 'all of them');
select test.is(
    string_agg(format('%s %s %s %s %s', partition_idx, attempt, code, spent, prover_id), ', ' order by failed_at),
    '0 1 lost f 1, 1 1 lost f 2', 'each loss is kept among the failures')
from proverq.failures;
select test.is(test.claim(1, 1), '1/1', 'what a prover lost is left to others'),
       test.is(test.claim(1, 3), '1/0', 'that take it');
update proverq.partition set state = 'ready', token = null, lease_until = null where state = 'leased';
select test.matches(error, 'prover 2 .*ended while it worked on it', 'and is named')
from proverq.partition where job_seq = 1 and partition_idx = 1;
select test.is(state, 'lost', 'it is lost') from proverq_private.prover where prover_id = 2;
select test.is(proverq_private.rescue_prover('00000000-0000-0000-0000-000000000002'), '0', 'once');
select test.is(proverq_private.rescue_prover(gen_random_uuid()), '0', 'an instance that never registered has nothing');
update proverq_private.prover set state = 'stopped' where prover_id = 4;
select test.is(proverq_private.rescue_prover('00000000-0000-0000-0000-000000000004'), '0', 'one that stopped in order');
select test.is(state, 'stopped', 'stays stopped') from proverq_private.prover where prover_id = 4;

-- Poison: three different provers, not three losses.
select test.job(2, priority => 1) \g /dev/null
create function test.lose(prover int) returns text language plpgsql as $$
begin
    update proverq.partition set avoid_until = null;
    perform test.claim(1, prover, lease_ms => 1), pg_sleep(0.01);
    perform proverq.rescue_expired();
    return test.states(2);
end
$$;
select test.is(test.lose(1), 'ready ready', 'lost once');
select test.is(test.lose(1), 'ready ready', 'lost twice by the same');
select test.is(test.lose(1), 'ready ready', 'thrice by the same');
select test.is(test.lose(2), 'ready ready', 'by another');
select test.is(test.lose(3), 'failed cancelled', 'by a third: poison');
select test.is(format('%s %s %s', error_code, losses, lost_by), 'poison 5 {1,2,3}', 'the partition says so'),
       test.matches(error, '3 different provers ended while they worked on it, the last was prover 3 \(cpu on host3',
           'and names the last')
from proverq.partition where job_seq = 2 and partition_idx = 0;
select test.is(format('%s %s', state, error_code), 'failing poison', 'and the job') from proverq.job where job_seq = 2;
select test.is(test.states(1), 'ready ready ready', 'other jobs go on');

-- Whom the partition did not end is no witness against it: it was seen again.
select test.job(3, priority => 2) \g /dev/null
create or replace function test.lose(prover int) returns text language plpgsql as $$
begin
    update proverq.partition set avoid_until = null;
    perform test.claim(1, prover, lease_ms => 1), pg_sleep(0.01);
    perform proverq.rescue_expired();
    return test.states(3);
end
$$;
select test.is(test.lose(1), 'ready ready ready', 'lost by one'),
       test.is(test.lose(2), 'ready ready ready', 'by another');
select test.heartbeat(2, '{}', 1000) \g /dev/null
select test.is(test.lose(3), 'ready ready ready', 'by a third, but the second lives');
select test.is(format('%s %s', losses, lost_by), '3 {1,2,3}', 'the losses are counted')
from proverq.partition where job_seq = 3 and partition_idx = 0;
select test.is(test.lose(4), 'failed cancelled cancelled', 'by a fourth: poison'),
       test.matches((select error from proverq.partition where job_seq = 3 and partition_idx = 0),
           '^3 different provers ended', 'by three of them');

-- Silence.
update proverq_private.prover set idle = true, seen_at = now() - interval '6 minutes' where prover_id = 1;
select proverq.rescue_expired() \g /dev/null
select test.is(format('%s %s', state, idle), 'lost f', 'a prover that was silent for minutes is lost, and not notified')
from proverq_private.prover where prover_id = 1;
