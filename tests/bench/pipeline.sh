#!/usr/bin/env bash
# The whole service against a PostgreSQL of its own, with the figures that its views give.
#
#   pipeline.sh [backlog] [small] [synthesis] [experiment]      default: experiment
#
#   backlog      COUNT partitions of a dense circuit of 2^LOG2 rows, a witness file each
#   small        SMALL partitions of the semaphore4-d20 circuit (2^13, real key)
#   synthesis    INPUTS partitions whose witnesses take longer than their proofs (hints.circom), from inputs in jsonb
#   experiment   EACH partitions of the dense circuit, (a) as shipped and (b) to (f) disturbed, each disturbance by a switch of
#                the build with faults (service/common/faults.h)
#
# DEVICE (cpu), LOG2 (12; 20 on CUDA), COUNT (200), SMALL (200; 5000 on CUDA), INPUTS (60; 2000 on CUDA), EACH (40), OUT (a folder for logs, if given).
# The rate is that from the beginning of the first proof on the device to the end of the last. Busy is the time in it in which
# a kernel ran, by the device's own clock (CUPTI); on a CPU, in which it computed. What is left of the time, by cause, is
# proverq.gap_causes_between.
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
POSTGRES_SETTINGS=${POSTGRES_SETTINGS-fsync=on shared_buffers=256MB max_wal_size=4GB}
# shellcheck source=../e2e/service_lib.sh
source "$here/../e2e/service_lib.sh"

device=${DEVICE:-cpu}
if [ "$device" = cpu ]; then
    log2=${LOG2:-12} small=${SMALL:-200} inputs=${INPUTS:-60}
else
    log2=${LOG2:-20} small=${SMALL:-5000} inputs=${INPUTS:-2000}
fi
count=${COUNT:-200} each=${EACH:-40}
faulty=${PROVERQ_FAULTS:-$(dirname "$proverq")/proverq-faults}
make_circuit=${MAKE_CIRCUIT:-$(dirname "$proverq")/tests/bench/make_circuit}
files=$work/files
out=${OUT-}

say() { printf '%s\n' "$*" | tee -a "${out:-$work}/pipeline.md"; }
stop() {
    echo "pipeline.sh: $*" >&2
    tail -n 20 "$work"/*.log >&2
    exit 1
}

# --- what is proved ---

# The dense circuit with `$1` witnesses, w1.wtns and so on.
make_dense() {
    local start=$SECONDS
    mkdir -p "$files" "$work/artefacts"
    chmod 755 "$files"
    "$make_circuit" bn128 dense "$log2" 1 "$files/dense.r1cs" "$files/w0.wtns" || stop "no circuit"
    seq "$1" | xargs -P "$(nproc)" -I{} "$make_circuit" bn128 dense "$log2" 1 /dev/null "$files/w{}.wtns" {} || stop "no witnesses"
    say "# a circuit of 2^$log2 and $1 witnesses: $((SECONDS - start)) s"
    "$proverq" setup "$files/dense.r1cs" "$files/dense.zkey" >"$work/setup.log" 2>&1 || stop "no key"
    rm "$files/dense.r1cs"
    "$proverq" circuit add dense "$files/dense.zkey" --artefact-root "$work/artefacts" --artefact-limit 1M >"$work/add.log" 2>&1 || stop "not added"
    rm "$files/dense.zkey"
    say "# its key is made and added: $((SECONDS - start)) s"
}

make_small() {
    local zkey=${SMALL_ZKEY:-$root/.cache/circuits/semaphore4-d20/semaphore4-d20.zkey}
    mkdir -p "$files"
    cp "${SMALL_WITNESS:-$(witness_of semaphore4-d20)}" "$files/small.wtns" || stop "no witness"
    "$proverq" circuit add small "$zkey" >"$work/add.log" 2>&1 || stop "not added"
}

# HINTS: a folder with hints.wasm and hints.r1cs, where circom is not.
make_hints() {
    mkdir -p "$files"
    if [ -n "${HINTS-}" ]; then
        cp "$HINTS"/hints.{wasm,r1cs} "$files/"
    else
        (cd "$root/tests" && npm/node_modules/.bin/circom2 --r1cs --wasm --O1 -o "$files" bench/hints.circom) >"$work/circom.log" 2>&1 &&
            mv "$files/hints_js/hints.wasm" "$files/"
    fi || stop "no circuit"
    "$proverq" setup "$files/hints.r1cs" "$files/hints.zkey" >"$work/setup.log" 2>&1 || stop "no key"
    "$proverq" circuit add hints "$files/hints.zkey" --wasm "$files/hints.wasm" >"$work/add.log" 2>&1 || stop "not added"
}

# Time and the cores' idle and whole time so far, in ticks.
watch_cores() {
    while sleep 0.2; do
        awk -v now="$(date +%s.%N)" '/^cpu / { print now, $5 + $6, $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9 }' /proc/stat
    done
}

# --- one run ---

# run SECONDS PROGRAM [OPTION ...]: proves what is queued; `name` names its log.
run() {
    local limit=$1
    shift
    begin "$name" "$1" prover --device "$device" --witness-root "$files" --artefact-root "$work/artefacts" --poll 200ms "${@:2}"
    until_true "$limit" sql -c "select count(*) = 0 from proverq.job where state <> 'finished'" || stop "$name: not done in $limit s"
    end "$name"
    [ -z "$out" ] || cp "$work/$name.log" "$out/"
}

forget() { sql -c 'set client_min_messages = warning; truncate proverq.job, proverq.partition, proverq.timing, proverq_private.device_activity cascade'; }

# One line of what the views say of the last run: proofs, rate, busy, worker-busy, gaps by cause.
figures() {
    sql -F '|' -c "
        with w as (
            select min(started_at) as a, max(started_at + duration * interval '1 us') as b, count(distinct (job_seq, partition_idx)) as n
            from proverq.timing where step between 50 and 58
        ), d as (
            select sum(a.busy / 1e9 * extract(epoch from least(a.started_at + a.duration * interval '1 us', w.b) - greatest(a.started_at, w.a))
                       / nullif(extract(epoch from a.duration * interval '1 us'), 0)) filter (where a.kind <> 'copy') as busy,
                   string_agg(distinct a.kind::text, ', ') filter (where a.kind <> 'copy') as kinds
            from proverq_private.device_activity a, w where a.started_at < w.b and a.started_at + a.duration * interval '1 us' > w.a
        ), c as (
            select string_agg(format('%s %s %%', c.cause, round((100 * c.of_time)::numeric, 2)), ', ' order by c.total desc) as causes,
                   coalesce(sum(c.share) filter (where c.cause = 'other'), 0) as other
            from w, proverq.gap_causes_between(w.a, w.b) c where c.of_time >= 0.0005
        )
        select w.n, round(extract(epoch from w.b - w.a), 3), round(w.n / extract(epoch from w.b - w.a), 2),
               format('%s %% (%s)', round((100 * d.busy / extract(epoch from w.b - w.a))::numeric, 2), d.kinds), c.causes, round((100 * c.other)::numeric, 2) || ' %'
        from w, d, c"
}

steps() {
    sql -F ' | ' -c "
        select s.name, count(*), round(percentile_cont(0.5) within group (order by t.duration)) as p50, round(percentile_cont(0.99) within group (order by t.duration)) as p99
        from proverq.timing t join proverq.step s using (step) where t.job_seq is not null group by s.step, s.name order by s.step"
}

report() { # WHAT
    local n seconds rate busy causes other
    IFS='|' read -r n seconds rate busy causes other < <(figures)
    say "| $1 | $n | $seconds | $rate | $busy | $causes | $other |"
}

header() {
    say ""
    say "| run | proofs | seconds | proofs/s | busy | the rest of the time, by cause | unknown, of the gaps |"
    say "|---|---|---|---|---|---|---|"
}

# --- the scenarios ---

backlog() {
    make_dense "$count"
    forget
    sql -c "select proverq.enqueue_path('dense', array_agg(format('w%s.wtns', i) order by i)) from generate_series(1, $count) i" >/dev/null
    name=backlog run 240 "$proverq"
    header
    report "$count of a dense 2^$log2 on $device"
    say ""
    say "step | rows | p50 us | p99 us"
    say "$(steps)"
}

small() {
    local per_job=$((small < 100 ? small : 100))
    make_small
    forget
    sql -c "select proverq.enqueue_path('small', array_fill('small.wtns'::text, array[$per_job])) from generate_series(1, $((small / per_job)))" >/dev/null
    name=small run 120 "$proverq"
    header
    report "$((small / per_job * per_job)) of semaphore4-d20 (2^13) on $device"
    say ""
    say "verified and recorded: $(sql -c "select count(*) from proverq.partition where state = 'proved'")"
    say "step | rows | p50 us | p99 us"
    say "$(steps)"
}

# While the threads that compute witnesses have work: from the first second on to the beginning of the last witness.
synthesis() {
    local from to cores threads
    make_hints
    forget
    sql -c "select proverq.enqueue('hints', array_agg(jsonb_build_object('seed', i))) from generate_series(1, $inputs) i" >/dev/null
    begin cores watch_cores
    name=synthesis run 240 "$proverq"
    end cores
    header
    report "$inputs of hints from jsonb on $device"
    read -r from to < <(sql -F ' ' -c "
        select extract(epoch from min(started_at)) + 1, extract(epoch from max(started_at)) from proverq.timings where step = 'compute_witness'")
    cores=$(awk -v from="$from" -v to="$to" '$1 >= from && $1 <= to { if (!n++) { i = $2; a = $3 } di = $2 - i; da = $3 - a }
                                             END { printf "%.1f", da ? 100 * (1 - di / da) : 0 }' "$work/cores.log")
    threads=$(sql -c "
        select round((100 * sum(extract(epoch from least(started_at + duration * interval '1 us', to_timestamp($to)) - greatest(started_at, to_timestamp($from))))
                      / ($(nproc) * ($to - $from)))::numeric, 1)
        from proverq.timings where step = 'compute_witness' and started_at < to_timestamp($to) and started_at + duration * interval '1 us' > to_timestamp($from)")
    say ""
    say "The machine's cores were $cores % busy; computing witnesses took $threads % of $(nproc) cores' time."
    say "step | rows | p50 us | p99 us"
    say "$(steps)"
}

# disturbed WHAT [VARIABLE=VALUE ...]
disturbed() {
    local what=$1
    shift
    forget
    sql -c "select proverq.enqueue_path('dense', array_agg(format('w%s.wtns', 1 + i % $witnesses) order by i)) from generate_series(1, $each) i" >/dev/null
    name=$(tr -c 'a-z0-9\n' '-' <<<"$what")
    (for variable in "$@"; do export "${variable?}"; done && run 120 "$faulty") || stop "$what"
    report "$what"
}

# On a CPU keys are in the host's memory too.
scarce_memory() {
    local witnesses=$(((32 << log2) * 7 / 2 + (256 << 10)))
    if [ "$device" = cpu ]; then
        echo "PROVERQ_DEVICE_MEMORY=64M PROVERQ_HOST_MEMORY=$((witnesses + (64 << 20)))"
    else
        echo "PROVERQ_HOST_MEMORY=$witnesses"
    fi
}

# shellcheck disable=SC2086 # $scarce is one or two words
experiment() {
    local scarce boundary boundaries='synthesis_wait read_witness check_witness queue_wait pick_up slot_wait'
    witnesses=$((each < 16 ? each : 16))
    [ -e "$files/w$witnesses.wtns" ] || make_dense $witnesses
    if [ "$device" = cpu ]; then boundaries+=' compute'; else boundaries+=' launch inputs_wait device_wait'; fi
    header
    disturbed "(a) as shipped"
    disturbed "(b) pageable buffers" PROVERQ_PAGEABLE=1
    disturbed "(c) a racing dispatcher" PROVERQ_RACING=1 PROVERQ_DEPTH=32
    scarce=$(scarce_memory)
    disturbed "(a) as shipped, memory for 3 witnesses" $scarce
    disturbed "(c) a racing dispatcher, memory for 3 witnesses" PROVERQ_RACING=1 PROVERQ_DEPTH=32 $scarce
    disturbed "(d) one worker" PROVERQ_WORKERS=1
    disturbed "(e) no pacing: all that memory allows" PROVERQ_DEPTH=64
    disturbed "(e) no pacing: one at a time" PROVERQ_DEPTH=1
    disturbed "(f) 50 ms in claim" PROVERQ_SLEEP=claim:50
    disturbed "(f) 50 ms in claim, one at a time" PROVERQ_SLEEP=claim:50 PROVERQ_DEPTH=1
    for boundary in $boundaries hand_over finish verify record; do
        disturbed "(f) 50 ms in $boundary" "PROVERQ_SLEEP=$boundary:50"
    done
}

[ $# -gt 0 ] || set -- experiment
"$proverq" migrate up >"$work/migrate.log" 2>&1 || stop "no schema"
begin finalizer "$proverq" finalizer --poll 200ms
for scenario in "$@"; do "$scenario"; done
end finalizer
