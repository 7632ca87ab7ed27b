#!/usr/bin/env bash
# The evidence, on a CPU: a worker's life is tiled, a sleep injected at any boundary is found where it was put, and what is drawn
# of it can be read. Needs build/proverq-faults (make tests).
#
#   evidence.sh            all scenarios
#   evidence.sh NAME ...   tiled, sleeps, lines, drawn
source "$(dirname "$0")/service_lib.sh"

own=$root/tests/circuits
faulty=${PROVERQ_FAULTS:-$(dirname "$proverq")/proverq-faults}

# run_jobs PROGRAM PARTITIONS [OPTION ...]: a job of the circuit, proved by a prover of its own; sets job, start and stop (of its runs).
run_jobs() {
    local program=$1 partitions=$2
    shift 2
    job=$(enqueue small "$own/factor/witness.wtns" "$partitions") || return
    begin prover "$program" prover --device cpu --threads 1 --poll 200ms "$@"
    until_true 60 sql -c "select count(*) = $partitions from proverq.partition where job_seq = $job and state = 'proved'" ||
        fail "job $job is proved" "$(tail -n 5 "$work/prover.log")"
    end prover
    start=$(sql -c "select min(started_at) from proverq.timings where job_seq = $job and step = 'compute'")
    stop=$(sql -c "select max(started_at) from proverq.timings where job_seq = $job and step = 'compute'")
}

# Each worker's rows, those of partitions and those without: how far their sum is from the time between the first and the last.
tiling="select format('%s workers, %s steps', count(*), (select string_agg(distinct step, ' ') from proverq.timings where prover_id = max(w.prover_id) and step in
                      ('idle', 'pick_up', 'slot_wait', 'compute', 'hand_over'))),
               max(abs(w.sum - w.life) / w.life) <= 0.001, max(w.hole) <= 1, max(w.overlap) <= 0
        from (select t.prover_id, t.worker, sum(t.duration) as sum, extract(epoch from max(t.e) - min(t.s)) * 1000000 as life, max(t.hole) as hole, max(-t.hole) as overlap
              from (select prover_id, worker, duration, started_at as s, started_at + duration * interval '1 us' as e,
                           extract(epoch from started_at - lag(started_at + duration * interval '1 us') over (partition by prover_id, worker order by started_at, duration)) * 1000000 as hole
                    from proverq.timing where step between 41 and 48) t
              group by 1, 2) w
        group by w.prover_id order by w.prover_id desc limit 1"

tiled() {
    echo "-- tiled"
    run_jobs "$proverq" 40
    is "both workers' rows tile their lives: sum within 0.1 %, no hole, no overlap" \
        "2 workers, compute hand_over idle pick_up slot_wait steps|t|t|t" "$(sql -c "$tiling")"
    is "rows without a job are idle time only" idle "$(sql -c "select string_agg(distinct step, ' ') from proverq.timings where job_seq is null")"
    is "the device was busy as long as the steps of the proofs say" t "$(sql -c "
        select abs(a.busy - t.busy) <= 0.002 * t.busy
        from (select sum(busy) / 1000.0 as busy from proverq.device_activity where kind = 'cpu_span') a,
             (select sum(duration) as busy from proverq.timing where step between 50 and 58) t")"
    is "all of it is known when the prover has ended" t "$(sql -c "select activity_until > (select max(started_at) from proverq.timing) from proverq.prover order by prover_id desc limit 1")"
    is "gaps and busy time add up to the time" t "$(sql -c "
        select abs(extract(epoch from '$stop'::timestamptz - '$start') * 1e6 - (g.total + a.total)) <= 0.002 * extract(epoch from '$stop'::timestamptz - '$start') * 1e6
        from (select coalesce(sum(duration), 0) as total from proverq.device_gaps_between('$start', '$stop')) g,
             (select sum(extract(epoch from least(started_at + duration * interval '1 us', '$stop') - greatest(started_at, '$start')) * 1e6) as total
              from proverq.device_activity where started_at < '$stop' and started_at + duration * interval '1 us' > '$start') a")"
    is "nothing is unknown" t "$(sql -c "select coalesce(sum(share) filter (where cause = 'other'), 0) <= 0.005 from proverq.gap_causes")"
    is "a bucket is 0.2 s, and none is over the top" "1 00:00:00.2 t" "$(sql -F ' ' -c "
        select count(distinct step), min(step), bool_and(span_busy between 0 and 1 and worker_busy between 0 and 1 and kernel_busy is null)
        from (select *, coalesce(lead(bucket) over (order by bucket) - bucket, '0.2 s') as step from proverq.device_utilization) u")"
    is "utilization adds up to the busy time" t "$(sql -c "
        select abs(sum(span_busy) * 0.2 - (select sum(busy) / 1e9 from proverq.device_activity)) < 0.05 from proverq.device_utilization")"
    is "a job's timeline begins unclaimed and ends recorded" "unclaimed record" "$(sql -c "
        select (array_agg(step order by started_at))[1] || ' ' || (array_agg(step order by started_at desc))[1]
        from proverq.job_timeline where job_seq = $job and partition_idx = 0 and step not in ('hand_over')")"
}

# The worst cause of the gaps between the first run and the last, with its share in the total.
worst() { sql -F ' ' -c "select cause, share > 0.5, max >= 20000 from proverq.gap_causes_between('$start', '$stop') order by total desc limit 1"; }

# Before the device, each sleep makes it wait for the next partition; after it, the step itself is longer and the device goes on.
sleeps() {
    echo "-- sleeps"
    local boundary
    for boundary in claim synthesis_wait read_witness check_witness queue_wait pick_up slot_wait compute hand_over; do
        export PROVERQ_SLEEP=$boundary:50
        [ "$boundary" != claim ] || export PROVERQ_DEPTH=1 # pacing would claim so far ahead that the device never notices
        run_jobs "$faulty" 12
        unset PROVERQ_DEPTH
        is "50 ms in $boundary are found there" "$boundary t t" "$(worst)"
        is "and nothing is unknown" t "$(sql -c "select coalesce(sum(share) filter (where cause = 'other'), 0) <= 0.005 from proverq.gap_causes_between('$start', '$stop')")"
    done
    for boundary in finish verify record; do
        export PROVERQ_SLEEP=$boundary:50
        run_jobs "$faulty" 12
        is "50 ms in $boundary are found in its time" t "$(sql -c "
            select min(duration) >= 50000 from proverq.timings where job_seq = $job and step = '$boundary'")"
        is "and in no other step's" t "$(sql -c "
            select coalesce(percentile_disc(0.5) within group (order by duration), 0) < 40000 from proverq.timings where job_seq = $job and step in
                ('claim', 'read_witness', 'check_witness', 'pick_up', 'compute', 'hand_over', 'finish', 'verify') and step <> '$boundary'")"
    done
    unset PROVERQ_SLEEP
    is "the product has no such sleeps" 0 "$(grep -c PROVERQ_SLEEP "$proverq")"
}

lines() {
    echo "-- lines"
    : >"$work/prover.log"
    run_jobs "$proverq" 4 --log-timing
    # Every row of the attempts has its line, with the same microseconds.
    sql -F ' ' -c "select job_seq, partition_idx, attempt, step, worker, duration from proverq.timings where job_seq = $job" | sort >"$work/rows"
    sed -nE 's/.* msg=(SYNTH|GPU|FIN)_TIMING job=([0-9]+) partition=([0-9]+) attempt=([0-9]+) step=([a-z_0-9]+) worker=([0-9]+) start_us=[0-9]{16} us=([0-9]+)$/\2 \3 \4 \5 \6 \7/p' \
        "$work/prover.log" | sort >"$work/lines"
    is "each step has its line in logfmt" "$(cut -d' ' -f1-5 "$work/rows")" "$(cut -d' ' -f1-5 "$work/lines")"
    is "with its microseconds" 0 "$(paste -d' ' "$work/rows" "$work/lines" | awk '$6 - $12 > 1 || $12 - $6 > 1' | wc -l)"
    is "so has idle time" t "$(grep -qE 'msg=GPU_TIMING step=idle worker=2[0-9] start_us=[0-9]{16} us=[0-9]+$' "$work/prover.log" && echo t)"
    is "each kind has the steps of its stage" "FIN:finish,finish_wait,record,verify SYNTH:check_witness,claim,queue_wait,read_witness,synthesis_wait" \
        "$(sed -nE 's/.* msg=(SYNTH|FIN)_TIMING job.* step=([a-z_]+) .*/\1 \2/p' "$work/prover.log" | grep -vE 'fetch_key|check_key|load_key' | sort -u |
            awk '{ l[$1] = l[$1] (l[$1] ? "," : "") $2 } END { print "FIN:" l["FIN"] " SYNTH:" l["SYNTH"] }')"
}

add_circuit() { ok "circuit $1 is added" "$proverq" circuit add "$@"; }
ok "the schema is made" "$proverq" migrate up || finish
add_circuit small "$own/factor/factor.zkey"
[ $# -gt 0 ] || set -- tiled sleeps lines drawn
for scenario in "$@"; do
    "$scenario"
    end_all
done
finish
