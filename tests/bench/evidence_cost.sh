#!/usr/bin/env bash
# What recording the evidence costs, in shares that do not depend on how busy the machine is:
#
#   1. instructions: of all that a prover executes for 40 proofs (callgrind), those in the functions that time and record;
#   2. the database: what a partition's rows add to the statement that records its proof, as a part of the time of a proof.
#
# Needs valgrind and the CPU build. Prints the figures of tests/bench/RESULTS.md, section Evidence.
source "$(dirname "$0")/../e2e/service_lib.sh"
circuit=$root/tests/circuits/merkle
out=$work/callgrind.out

"$proverq" migrate up >/dev/null && "$proverq" circuit add merkle "$circuit/merkle.zkey" >/dev/null || exit
job=$(enqueue merkle "$circuit/witness.wtns" 40)
begin prover valgrind -q --tool=callgrind --callgrind-out-file="$out" "$proverq" prover --device cpu --threads 1 --lease 10m
until_true 500 sql -c "select count(*) = 40 from proverq.partition where job_seq = $job and state = 'proved'" || exit
end prover
# Inclusive, and none of them is called by another of them.
callgrind_annotate --inclusive=yes --threshold=100 "$out" 2>/dev/null | awk '
    /PROGRAM TOTALS/ { gsub(",", "", $1); total = $1 }
    / [^ ]*:(monotonic_ns|timing_add|timing_to_columns|timeline_log_add|evidence_record|activity_add)( |$)/ {
        gsub(",", "", $1); name = $0; sub(/.*:/, "", name); sub(/ .*/, "", name); if (!(name in n)) { n[name] = $1; sum += $1 } }
    END { for (f in n) printf "  %-20s %12.0f instructions, %.4f %%\n", f, n[f], 100 * n[f] / total
          printf "instructions: %.0f of %.0f for 40 proofs of 2^10, %.4f %%\n", sum, total, 100 * sum / total }'

# A statement of the record stage with the rows of the partition and without any, 400 times each, in turn.
sql <<'SQL'
create temp table shape as
select array_agg(step) as steps, array_agg(worker) as workers, array_agg(started_at) as started, array_agg(duration) as durations, count(*) as n
from proverq.timing where job_seq = 1 and partition_idx = 0;
create temp table took (has_rows bool, us float8);
do $$
declare
    s shape;
    t timestamptz;
begin
    select * into s from shape;
    for i in 1..400 loop
        t := clock_timestamp();
        perform proverq_private.record_timing(1, 0, 1, 1, s.steps, s.workers, s.started, s.durations);
        insert into took values (true, extract(epoch from clock_timestamp() - t) * 1e6);
        t := clock_timestamp();
        perform proverq_private.record_timing(1, 0, 1, 1, '{}', '{}', '{}', '{}');
        insert into took values (false, extract(epoch from clock_timestamp() - t) * 1e6);
    end loop;
end
$$;
select format('database: %s rows of a partition take %s us, in the statement that records its proof; that is %s %% of one core at 300 proofs/s',
              (select n from shape), round(a.us), round((a.us * 300 / 1e4)::numeric, 2))
from (select percentile_disc(0.5) within group (order by us) filter (where has_rows) - percentile_disc(0.5) within group (order by us) filter (where not has_rows) as us from took) a;
SQL
