#!/usr/bin/env bash
# The evidence, on a CPU: a worker's life is tiled, a sleep injected at any boundary is found where it was put, and what is drawn
# of it can be read. Needs build/proverq-faults (make tests).
#
#   evidence.sh            all scenarios
#   evidence.sh NAME ...   tiled, sleeps, lines, drawn
source "$(dirname "$0")/service_lib.sh"

own=$root/tests/circuits
faulty=${PROVERQ_FAULTS:-$(dirname "$proverq")/proverq-faults}

# run_jobs PROGRAM PARTITIONS [OPTION ...]: a job of the circuit small (with $inputs: of computed), proved by a prover of its own;
# sets job, start and stop (of its runs).
run_jobs() {
    local program=$1 partitions=$2
    shift 2
    if [ -n "${inputs-}" ]; then
        job=$(sql -v inputs="$inputs" <<<"select proverq.enqueue('computed', array_fill(:'inputs'::jsonb, array[$partitions]))")
    else
        job=$(enqueue small "$own/factor/witness.wtns" "$partitions")
    fi
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
    run_jobs "$proverq" 300
    is "both workers' rows tile their lives: sum within 0.1 %, no hole, no overlap" \
        "2 workers, compute hand_over idle pick_up slot_wait steps|t|t|t" "$(sql -c "$tiling")"
    is "rows without a job are idle time only" idle "$(sql -c "select string_agg(distinct step, ' ') from proverq.timings where job_seq is null")"
    is "the device was busy as long as the steps of the proofs say" t "$(sql -c "
        select abs(a.busy - t.busy) <= 0.002 * t.busy
        from (select sum(busy) / 1000.0 as busy from proverq_private.device_activity where kind = 'cpu_span') a,
             (select sum(duration) as busy from proverq.timing where step between 50 and 58) t")"
    is "all of it is known when the prover has ended" t "$(sql -c "select activity_until > (select max(started_at) from proverq.timing) from proverq_private.prover order by prover_id desc limit 1")"
    is "gaps and busy time add up to the time" t "$(sql -c "
        select abs(extract(epoch from '$stop'::timestamptz - '$start') * 1e6 - (g.total + a.total)) <= 0.002 * extract(epoch from '$stop'::timestamptz - '$start') * 1e6
        from (select coalesce(sum(duration), 0) as total from proverq.device_gaps_between('$start', '$stop')) g,
             (select sum(extract(epoch from least(started_at + duration * interval '1 us', '$stop') - greatest(started_at, '$start')) * 1e6) as total
              from proverq_private.device_activity where started_at < '$stop' and started_at + duration * interval '1 us' > '$start') a")"
    is "nothing is unknown" t "$(sql -c "select coalesce(sum(share) filter (where cause = 'other'), 0) <= 0.005 from proverq.gap_causes")"
    is "a bucket is 0.2 s, and none is over the top" "1 00:00:00.2 t" "$(sql -F ' ' -c "
        select count(distinct step), min(step), bool_and(span_busy between 0 and 1 and worker_busy between 0 and 1 and kernel_busy is null)
        from (select *, coalesce(lead(bucket) over (order by bucket) - bucket, '0.2 s') as step from proverq.device_utilization) u")"
    is "utilization adds up to the busy time, edges left out" t "$(sql -c "
        select abs(u.busy - (select sum(extract(epoch from least(e, u.hi) - greatest(started_at, u.lo)))
                             from (select *, started_at + duration * interval '1 us' as e from proverq_private.device_activity) a
                             where started_at < u.hi and e > u.lo)) < 0.002
        from (select sum(span_busy) * 0.2 as busy, min(bucket) as lo, max(bucket) + interval '0.2 s' as hi
              from (select *, row_number() over (order by bucket) as i, row_number() over (order by bucket desc) as j from proverq.device_utilization) b
              where i > 1 and j > 1) u")"
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
    add_circuit computed "$own/factor/factor.zkey" --wasm "$own/factor/factor.wasm"
    export PROVERQ_SLEEP=compute_witness:50
    inputs=$(cat "$own/factor/input.json") run_jobs "$faulty" 12 --synthesis-threads 2
    is "50 ms in compute_witness are found there" "compute_witness t t" "$(worst)"
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

# Pictures have as many spans as there are rows, and can be read by others; so can the shortcuts of psql.
drawn() {
    echo "-- drawn"
    local script=$root/contrib/scripts/timeline.py want query
    run_jobs "$proverq" 6
    want=$(sql -c "
        with w as (select to_timestamp(floor(extract(epoch from min(started_at)) * 1e6) / 1e6) as a, to_timestamp(ceil(extract(epoch from max(started_at + duration * interval '1 us')) * 1e6) / 1e6) as b
                   from proverq.job_timeline where job_seq = $job)
        select (select count(*) from proverq.timing where job_seq = $job)
               + (select count(*) from proverq_private.device_activity d, w where d.started_at < w.b and d.started_at + d.duration * interval '1 us' >= w.a)
               + (select count(*) from w, proverq.device_gaps_between(w.a, w.b))")
    ok "a job is drawn" "$script" --job "$job" --svg "$work/job.svg" --trace "$work/job.json"
    is "the picture is XML with a box for each span" "$want" "$(python3 -c "
import sys, xml.etree.ElementTree as e
print(sum(r.get('class') == 'span' for r in e.parse(sys.argv[1]).iter('{http://www.w3.org/2000/svg}rect')))" "$work/job.svg")"
    is "the trace is JSON with an event for each span" "$want" "$(jq '[.traceEvents[] | select(.ph == "X")] | length' "$work/job.json")"
    is "each event has what a viewer needs" true "$(jq '[.traceEvents[] | select(.ph == "X") | (.ts | type == "number") and (.dur >= 0) and (.pid | type == "number") and (.tid | type == "number") and (.name | type == "string")] | all' "$work/job.json")"
    is "events of a thread do not overlap" 0 "$(jq '[.traceEvents[] | select(.ph == "X")] | group_by([.pid, .tid])[] | sort_by(.ts, .dur) | [range(1; length) as $i | select(.[$i].ts < .[$i - 1].ts + .[$i - 1].dur)] | length' "$work/job.json" | sort -un | tail -n 1)"
    is "every thread has its name" true "$(jq '([.traceEvents[] | select(.ph == "X") | [.pid, .tid]] | unique) - ([.traceEvents[] | select(.name == "thread_name") | [.pid, .tid]]) | length == 0' "$work/job.json")"
    ok "a window is drawn" "$script" --from "$start" --to "$stop" --svg "$work/window.svg"
    ok "and the last hour" "$script" --last 1h --trace "$work/hour.json"
    refused "a job that is not there" 'nothing is recorded of job 999' "$script" --job 999 --svg "$work/none.svg"
    refused "nothing to write" 'give --svg FILE' "$script" --job "$job"
    for query in "$root"/contrib/psql/queries/*.sql; do
        query=$(basename "$query" .sql)
        [ "$query" != help ] || query=proverq
        is "psql's shortcut :$query" 0 "$(cd "$root" && printf '\\set j %s\n\\set ON_ERROR_STOP 1\n:%s\n' "$job" "$query" |
            PSQLRC=contrib/psql/.psqlrc psql "$PROVERQ_DATABASE" >"$work/shortcut" 2>&1; status=$?; [ "$status" -eq 0 ] && [ -s "$work/shortcut" ] && ! grep -q ERROR "$work/shortcut" && echo 0 || cat "$work/shortcut")"
    done
    is "and :why" 1 "$(cd "$root" && printf '\\set j %s\n:why\n' "$job" | PSQLRC=contrib/psql/.psqlrc psql "$PROVERQ_DATABASE" 2>&1 | grep -c "job $job: ")"
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
