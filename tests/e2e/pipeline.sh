#!/usr/bin/env bash
# The stages of a prover between a claim and a recorded proof: order, memory, groups, shutdown.
#
#   pipeline.sh            all scenarios
#   pipeline.sh NAME ...   order, memory, groups, shutdown
source "$(dirname "$0")/service_lib.sh"

own=$root/tests/circuits
# Small and large ones, of both curves; the same key under two names is two circuits, with a key on the device each.
names=(factor381 semaphore4-d20 merkle range factor factor381-b semaphore4-d20-b merkle-b range-b factor-b)

# What belongs to a circuit, whichever its name.
files_of() {
    local kind=${1%-b}
    case $kind in
    semaphore*) echo "$root/.cache/circuits/$kind/$kind.zkey" "$(witness_of "$kind")" ;;
    *) echo "$own/$kind/$kind.zkey" "$own/$kind/witness.wtns" ;;
    esac
}

add_ten() {
    local name zkey _
    for name in "${names[@]}"; do
        read -r zkey _ < <(files_of "$name")
        "$proverq" circuit list | grep -q "^$name " || "$proverq" circuit add "$name" "$zkey" >/dev/null || return 1
    done
}

put() { # CIRCUIT PARTITIONS [ARGUMENTS]
    local _ witness
    read -r _ witness < <(files_of "$1")
    enqueue "$1" "$witness" "${@:2}"
}

# A number in the last line that a prover logged when it stopped.
figure() { grep 'prover stopped' "$work/$1.log" | tail -n 1 | grep -oE "$2=[0-9]+" | cut -d= -f2; }

all_finished() { # NAME SECONDS
    eventually "$1" "$2" "select count(*) = count(*) filter (where state = 'finished') from proverq.job" || {
        sql -c "select job_seq, circuit, state, error from proverq.jobs where state <> 'finished' limit 5"
        return 1
    }
}

reset() { sql -c 'set client_min_messages = warning; truncate proverq.job, proverq.partition, proverq.timing cascade'; }

# Of each prover: when its partitions were claimed, ready for the device, and picked up; `place` is the claim order.
steps_view() {
    sql -c "
        create or replace view public.device_order as
        select j.priority, c.job_seq, c.partition_idx, c.prover_id, c.started_at as claimed_at, q.started_at as ready_at,
               q.started_at + q.duration * interval '1 us' as picked_up_at,
               row_number() over (order by j.priority desc, c.job_seq, c.partition_idx) as place
        from proverq.timings c
        join proverq.timings q using (job_seq, partition_idx, attempt)
        join proverq.job j using (job_seq)
        where c.step = 'claim' and q.step = 'queue_wait'"
}

# Pairs of one prover's partitions of which the later one was picked up although the other one was ready (by more than the
# time between taking a partition and reading the clock).
overtaken_on_device() {
    sql -c "
        select count(*)
        from device_order a join device_order b using (prover_id)
        where a.place < b.place and a.ready_at < b.picked_up_at - interval '2 ms' and a.picked_up_at > b.picked_up_at"
}

order() {
    echo "-- order"
    local i
    ok "ten circuits are added" add_ten
    reset
    for ((i = 0; i < 40; i++)); do put "${names[(i * 7) % 10]}" $((i % 5 + 1)) "priority => $((i % 3))"; done >"$work/jobs"
    begin_finalizer --log-level info
    begin_prover prover-1
    begin_prover prover-2
    all_finished "40 jobs of ten circuits, three priorities and two curves are finished" 120
    steps_view
    is "both provers proved" 2 "$(sql -c "select count(distinct prover_id) from device_order")"
    is "all 120 partitions are in the order" 120 "$(sql -c "select count(*) from device_order")"
    is "each prover claimed in order" 0 "$(sql -c "
        select count(*)
        from (select place, lag(place) over (partition by prover_id order by claimed_at, place) as before from device_order) o
        where before > place")"
    is "each device took the lowest key that was ready" 0 "$(overtaken_on_device)"
    ends_well "a prover" prover-1
    ends_well "the other prover" prover-2
    end finalizer
}

# Bytes of a device that holds the largest key, and no second one of its size; from what a prover says that has none.
device_bytes() {
    local key proof
    if [ ! -f "$work/device-bytes" ]; then
        begin tiny "$proverq" prover --device cpu --threads 1 --poll 200ms --device-memory 1k
        reset
        put semaphore4-d20 1 >"$work/job"
        until_true 30 grep -q 'the key needs' "$work/tiny.log"
        until_true 10 sql -c "select count(*) = 1 from proverq.partition where state = 'ready' and attempt = 0" || return 1
        end tiny
        read -r key proof < <(sed -nE 's/.*the key needs ([0-9]+) bytes of the device and a proof ([0-9]+).*/\1 \2/p' "$work/tiny.log")
        echo $((key + proof + key / 2)) >"$work/device-bytes"
    fi
    cat "$work/device-bytes"
}

# The device holds the largest key and little more, the host few witnesses.
memory() {
    echo "-- memory"
    local i device witnesses=900000
    ok "ten circuits are added" add_ten
    ok "a key that never fits is left to others" device_bytes
    ok "and the prover says which option gives it more" grep -q -- '--device-memory' "$work/tiny.log"
    device=$(device_bytes)
    reset
    for ((i = 0; i < 40; i++)); do put "${names[(i * 3) % 10]}" 2; done >"$work/jobs"
    begin_finalizer --log-level info
    begin_prover prover-1 --device-memory "$device" --host-memory $((device + witnesses))
    all_finished "40 jobs of ten circuits whose keys do not fit at once are finished" 120
    is "none was tried twice" 80 "$(sql -c "select count(*) from proverq.partition where state = 'proved' and attempt = 1")"
    ends_well "the prover" prover-1
    at_most "keys made room for each other" 5 "$(figure prover-1 keys_evicted)"
    at_most "the device's bound was never exceeded" "$(figure prover-1 device_bytes_peak)" "$device"
    at_most "nor that of the witnesses" "$(figure prover-1 witness_bytes_peak)" "$witnesses"
    end finalizer
}
at_most() {
    if [ "${2:-1}" -le "${3:-0}" ]; then pass "$1 ($2 <= $3)"; else fail "$1" "$2 is above $3"; fi
}

# Two circuits in turn, of which one fits: with groups, keys change once a group.
groups() {
    echo "-- groups"
    local size device
    ok "ten circuits are added" add_ten
    device=$(device_bytes)
    begin_finalizer --log-level info
    for size in 0 8; do
        reset
        alternate 24
        begin_prover "group-$size" --device-memory "$device" --group-claims "$size"
        all_finished "24 jobs of two circuits in turn are finished (groups of $size)" 120
        ends_well "the prover" "group-$size"
    done
    at_most "in strict order each job needs the other key" 23 "$(figure group-0 keys_evicted)"
    at_most "a group of 8 needs each once" "$(figure group-8 keys_evicted)" 6
    steps_view
    is "no partition is overtaken by more than its group" t "$(sql -c "
        select max(place - by_device) < 8
        from (select place, row_number() over (order by picked_up_at) as by_device from device_order) o")"
    end finalizer
}
alternate() {
    local i
    for ((i = 0; i < $1; i++)); do put "${names[i % 2 * 5 + 1]}" 1; done >"$work/jobs"
}

shutdown() {
    echo "-- shutdown"
    local job status signal
    ok "ten circuits are added" add_ten
    reset
    job=$(put semaphore4-d20 40)
    begin_prover prover-1 --lease 3s
    eventually "a prover is at work" 60 "select count(*) filter (where state = 'proved') > 1 and count(*) filter (where state = 'leased') > 2 from proverq.partition"
    ends_well "a prover with work in hand" prover-1
    is "it proved some, gave the rest back, and holds nothing" t "$(sql -c "
        select count(*) filter (where state = 'ready') > 20 and count(*) filter (where state = 'leased') = 0 and
               count(*) filter (where state in ('ready', 'proved')) = 40 from proverq.partition")"
    is "which spent no retry and lost no process" t "$(sql -c "select max(failures) = 0 and max(losses) = 0 from proverq.partition")"
    begin_prover prover-2 --lease 3s
    eventually "another one goes on" 60 "select count(*) filter (where state = 'leased') > 2 from proverq.partition"
    for signal in STOP TERM INT CONT; do kill -"$signal" "${pids[prover-2]}"; done # it sees both before it can end well
    wait "${pids[prover-2]}" 2>/dev/null
    status=$?
    unset 'pids[prover-2]'
    is "a second signal ends it at once" 1 "$status"
    ok "and it says so" grep -q 'a second signal' "$work/prover-2.log"
    begin_finalizer --log-level info
    begin_prover prover-3 --lease 3s
    eventually "what it held is proved when its leases are over" 120 "select state = 'finished' from proverq.job where job_seq = $job"
    end prover-3
    end finalizer
}

"$npm/fetch.sh" semaphore4-d20
ok "the schema is made" "$proverq" migrate up || finish
[ $# -gt 0 ] || set -- order memory groups shutdown
for scenario in "$@"; do
    "$scenario"
    end_all
done
finish
