# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# That a claim costs the same with hundred thousand ready rows as with a thousand, whatever is
# ahead, and which indexes are used.
fresh
load() {
    sql -c "with j as (insert into proverq.job (circuit, partitions)
            select '$1', 100 from generate_series(1, $2) returning job_seq)
        insert into proverq.partition (job_seq, partition_idx, witness_path)
        select job_seq, i, 'w' from j, generate_series(0, 99) i"
}
# claim_us CIRCUITS [BOUND ...]: the median of 41 claims, in microseconds; the claims are rolled back.
claim_us() {
    local bounds="'{${2-}}', '{${3-}}', '{${4-}}', '{${5-}}'"
    sql -c "create or replace function test.claim_us() returns numeric language plpgsql as \$\$
            declare
                t timestamptz;
                us numeric[] := '{}';
            begin
                for i in 1..41 loop
                    t := clock_timestamp();
                    perform count(*) from proverq_private.claim(1, '{$1}', 60000, 1, $bounds);
                    us := us || extract(epoch from clock_timestamp() - t) * 1e6;
                end loop;
                return (select round(percentile_disc(0.5) within group (order by u)) from unnest(us) u);
            end \$\$" -c begin -c 'select test.claim_us()' -c rollback
}
load mul 10
sql -c 'analyze proverq.partition, proverq.job'
small=$(claim_us 1,2)
it 'a thousand rows' "$(sql -c "select count(*) from proverq.partition where state = 'ready'")" 1000
load mul 1190
large=$(claim_us 1,2)
it 'a claim is as fast with 120,000 rows, not analyzed' \
    "$([ "$large" -lt $((small * 5 + 1000)) ] && echo yes || echo "$small us, then $large us")" yes
sql -c 'analyze proverq.partition, proverq.job'
large=$(claim_us 1,2)
it 'and analyzed' "$([ "$large" -lt $((small * 5 + 1000)) ] && echo yes || echo "$small us, then $large us")" yes
load other 10
other=$(claim_us 3)
it 'with 120,000 rows of another circuit ahead' \
    "$([ "$other" -lt $((small * 5 + 1000)) ] && echo yes || echo "$small us, then $other us")" yes
sql -c "select proverq.pause('mul')" >/dev/null
paused=$(claim_us 1,2,3)
it 'with 120,000 rows that are paused ahead' \
    "$([ "$paused" -lt $((small * 5 + 1000)) ] && echo yes || echo "$small us, then $paused us")" yes
sql -c "select proverq.resume('mul')" >/dev/null

# The invariants of all that can be checked beside the work.
sql -c "insert into proverq.timing
        (job_seq, partition_idx, attempt, prover_id, device, worker, step, started_at, duration)
    select job_seq, partition_idx, 1, 1, 'cpu', 0, s, now(), 1
    from proverq.partition, unnest('{10,80,90}'::int[]) s where job_seq <= 100"
it 'timing of what was never claimed is found, each once' \
    "$(sql -c 'select count(*), count(distinct (job_seq, partition_idx)) from proverq.check_invariants()')" \
    '10000|10000'
sql -c 'delete from proverq.timing'
began=$(date +%s%N)
it 'nothing else is' "$(sql -c 'select count(*) from proverq.check_invariants()')" 0
ms=$((($(date +%s%N) - began) / 1000000))
echo "-- the invariants of 121,000 partitions took $ms ms"
it 'in seconds' "$([ $ms -lt 10000 ] && echo yes || echo "$ms ms")" yes

# An old snapshot keeps the index entries of a hundred thousand rows and leases that are gone.
open old
ask old 'begin isolation level repeatable read; select count(*) from proverq.circuit' >/dev/null
sql -c "update proverq.partition
    set state = 'leased', token = gen_random_uuid(), prover_id = 1, lease_until = now() + '1 h'
    where job_seq <= 1000"
sql -c "update proverq.partition set state = 'cancelled', token = null, lease_until = null where job_seq <= 1000"
full=$(claim_us 1,2)
bounded=$(claim_us 1,2 2 0 1000 99)
it 'a claim from its bound is as fast with 100,000 dead rows ahead' \
    "$([ "$bounded" -lt $((small * 5 + 1000)) ] && echo yes || echo "$small us, then $bounded us")" yes
it 'without it, it is not' "$([ "$full" -gt $((bounded * 3)) ] && echo yes || echo "$bounded us, without $full us")" yes
wanted_ms() {
    sql -c "explain analyze select * from proverq_private.wanted_circuits('{1,2}', 8)" |
        sed -nE 's/^Execution Time: ([0-9]+).*/\1/p'
}
it 'circuits that are known are not looked at' \
    "$([ "$(wanted_ms)" -lt $((full / 2000 + 20)) ] && echo yes || echo "$(wanted_ms) ms")" yes
lease=$(sql -c "select format('%s|%s|%s', job_seq, partition_idx, token)
    from proverq_private.claim(1, '{1,2}', 60000, 1)")
IFS='|' read -r job idx token <<<"$lease"
call_us() {
    sql -c "explain analyze $1" -c "explain analyze $1" | sed -nE 's/^Execution Time: ([0-9]+)\.([0-9]{3}).*/\1\2/p' |
        tail -n 1
}
by_key=$(call_us "select proverq_private.renew_leases(1, '{$job}', '{$idx}', '{$token}', 60000)")
by_token=$(call_us "select test.heartbeat(1, '{$token}', 60000)")
echo "-- a renewal takes $((10#$by_key)) us, as before version 9 $((10#$by_token)) us," \
    "with 100,000 leases that have ended"
it 'leases are renewed by key, past all that have ended' \
    "$([ $((10#$by_key * 5)) -lt $((10#$by_token)) ] && echo yes || echo "$by_key us, by token $by_token us")" yes
ask old rollback >/dev/null
close old

# No statement of the service reads the table from end to end.
used() {
    sql -c "select pg_stat_force_next_flush()" \
        -c "select seq_scan, seq_tup_read from pg_stat_user_tables where relid = 'proverq.partition'::regclass" |
        tail -n 1
}
settle() { sql -c 'select pg_stat_force_next_flush()' >/dev/null && sleep 0.2; }
settle
before=$(used)
sql -c "select count(*) from proverq_private.claim(1, '{1,2,3}', 60000, 4)" \
    -c "select * from proverq_private.wanted_circuits('{}', 8)" \
    -c "select proverq_private.renew_leases(1, '{1}', '{0}', array[gen_random_uuid()], 1000)" \
    -c 'select proverq.rescue_expired(), proverq.wake_due()' \
    -c "select proverq_private.rescue_prover('00000000-0000-0000-0000-000000000002')" \
    -c 'select count(*) from proverq_private.finalizable(10)' \
    -c 'select test.complete(1, 0), test.fail(1, 1, true, true), test.fail(1, 2, false, true)' \
    -c 'select proverq_private.finalize(1)' -c 'select test.job(3)' -c 'select proverq.why(1), proverq.why(2)' \
    -c 'select * from proverq.jobs where job_seq = 1' -c 'select * from proverq.provers' >/dev/null
settle
it 'nothing scans the table of partitions' "$(used)" "$before"

# The key and the token decide a completion; the state has no part in it.
explain() { sql -c "explain (costs off) $1" | tr -s ' \n' ' '; }
it 'completion goes by the primary key' \
    "$(sql -c "explain (costs off) update proverq.partition set state = 'proved'
        where job_seq = 1 and partition_idx = 2 and token = '00000000-0000-0000-0000-000000000001'" |
        grep -o 'Index Scan using [a-z_]*')" 'Index Scan using partition_pkey'
