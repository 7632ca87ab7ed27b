#!/usr/bin/env bash
# Webhooks against receivers of every temper.
#
#   webhooks.sh            all scenarios
#   webhooks.sh NAME ...   load
#
# DELIVERIES (10000) and SECONDS_OF_LOAD (40) say how much `load` sends.
source "$(dirname "$0")/service_lib.sh"

circuit() {
    sql -c "insert into proverq.artefact (sha256, kind, bytes, path) values (sha256('k'), 'zkey', 1, 'k') on conflict do nothing;
            insert into proverq.circuit (name, version, sha256, curve, n_vars, n_public, log_domain, zkey, vkey)
            values ('c', 1, sha256('c'), 'bn128', 3, 1, 1, sha256('k'), '{}') on conflict do nothing"
}

# jobs COUNT WEBHOOK: so many jobs that are proved, all but their end, with this SQL expression of i as webhook.
jobs() {
    sql -c "begin;
            insert into proverq.job (circuit, partitions, webhook) select 'c', 1, $2 from generate_series(1, $1) i;
            insert into proverq.partition (job_seq, partition_idx, witness)
                select job_seq, 0, 'x' from proverq.job where state = 'incomplete';
            update proverq.partition p set state = 'proved', proof = jsonb_build_object('pi_a', jsonb_build_array(repeat('7', 77), repeat('8', 77), '1'),
                    'pi_b', '[]'::jsonb, 'pi_c', '[]'::jsonb, 'protocol', 'groth16', 'curve', 'bn128'), publics = '[\"33\"]', proved_at = now()
                from proverq.job j where j.job_seq = p.job_seq and j.state = 'queued';
            update proverq.job set remaining = 0 where state = 'queued';
            commit"
}

begin_finalizers() {
    local name
    for name in "$@"; do begin "$name" "$proverq" finalizer --log-level warn --webhook-http --webhook-allow 127.0.0.0/8; done
}

# 50 endpoints: 5 hang, 5 answer 500, 5 close the connection. Jobs end at an even pace, two finalizers are killed at random.
load() {
    local n=${DELIVERIES-10000} seconds=${SECONDS_OF_LOAD-40} port i kind kills=0 pacer name
    echo "-- load: $n deliveries in $seconds s"
    circuit
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    for ((i = 0; i < 50; i++)); do
        case $((i % 10)) in 3) kind=hang ;; 5) kind=500 ;; 7) kind=close ;; *) kind=ok ;; esac
        echo "/$kind-$i $kind $(sql -c "select proverq.create_webhook_endpoint('$kind-$i', 'http://127.0.0.1:$port/$kind-$i')")"
    done >"$work/secrets"
    begin sink python3 "$root/tests/e2e/webhook_sink.py" "$work/secrets" "$work/sink" "$port"
    until_true 10 test -s "$work/sink.log" || return 1
    jobs "$n" "(select name from proverq.webhook_endpoint where endpoint_id = 1 + i % 50)"
    sql -c "analyze proverq.job, proverq.partition, proverq.webhook_endpoint"
    begin_finalizers finalizer-1 finalizer-2
    sql -c "do \$\$
            declare
                start constant timestamptz := clock_timestamp();
                told int := 0;
                upto int;
            begin
                while told < $n loop
                    upto := least($n, ceil(extract(epoch from clock_timestamp() - start) * $n / $seconds));
                    update proverq.job set state = 'completing' where job_seq > told and job_seq <= upto;
                    notify proverq_finalize;
                    commit;
                    told := upto;
                    perform pg_sleep(0.03);
                end loop;
            end \$\$" &
    pacer=$!
    while kill -0 $pacer 2>/dev/null; do
        sleep $((RANDOM % 4 + 2)).$((RANDOM % 10))
        name=finalizer-$((RANDOM % 2 + 1))
        end "$name" KILL
        begin_finalizers "$name"
        kills=$((kills + 1))
    done
    wait $pacer
    eventually "every delivery to a healthy endpoint is recorded as made ($kills finalizers were killed)" 90 "
        select count(*) = $n * 35 / 50 from proverq.deliveries where endpoint ~ '^ok' and state = 'delivered'"
    kill "${pids[finalizer-1]}" "${pids[finalizer-2]}" # what hangs is ended first: 15 s
    end finalizer-1
    end finalizer-2
    end sink
    received "$n"
    explained
    figures "$n" "$seconds" "$kills"
}

# What the receiver says.
received() {
    sql -c "create table public.sink (received bigint, path text, id text, signed int, job bigint)" -c "\\copy public.sink from '$work/sink' with (delimiter '|')"
    is "each healthy endpoint got each of its events" 0 "$(sql -c "
        select count(*) from proverq.deliveries d where d.endpoint ~ '^ok'
        and not exists (select from public.sink s where s.path = '/' || d.endpoint and s.id = d.webhook_id and s.job = d.job_seq)")"
    is "one id for each event" "$(($1 * 35 / 50))" "$(sql -c "select count(distinct (path, job, id)) from public.sink where path ~ '^/ok'")"
    is "and each job" "$(($1 * 35 / 50))" "$(sql -c "select count(distinct job) from public.sink where path ~ '^/ok'")"
    is "every request was signed right" 0 "$(sql -c "select count(*) from public.sink where signed = 0")"
    sql -c "create table public.delay as
            select extract(epoch from to_timestamp(0) + min(s.received) * interval '1 us' - d.created_at) * 1000 as ms
            from public.sink s join proverq.deliveries d on d.webhook_id = s.id where s.path ~ '^/ok' group by s.id, d.created_at"
    local p99
    p99=$(sql -c "select round(percentile_disc(0.99) within group (order by ms)) from public.delay")
    if [ "$p99" -lt 1000 ]; then pass "99 of 100 came within 1 s ($p99 ms)"; else fail "99 of 100 came within $p99 ms"; fi
}

# What the tables say of the rest.
explained() {
    is "nothing else was delivered" 0 "$(sql -c "select count(*) from proverq.deliveries where endpoint !~ '^ok' and state = 'delivered'")"
    is "every attempt is in the log, or under way" 0 "$(sql -c "
        select count(*) from proverq.webhook_delivery d
        where d.attempts <> (select count(*) from proverq.webhook_attempt a where a.delivery_id = d.delivery_id) + (d.token is not null)::int")"
    is "with what went wrong" "close: Empty reply from server;hang: timed out;500: HTTP 500 from 127.0.0.1: oops" "$(sql -c "
        select string_agg(distinct regexp_replace(endpoint, '-.*', '') || ': ' ||
                          coalesce(substring(regexp_replace(error, '^Connection died.*', 'Empty reply from server') from 'Empty reply from server|timed out|HTTP 500 from 127.0.0.1: oops'), error), ';'
                          order by regexp_replace(endpoint, '-.*', '') || ': ' ||
                          coalesce(substring(regexp_replace(error, '^Connection died.*', 'Empty reply from server') from 'Empty reply from server|timed out|HTTP 500 from 127.0.0.1: oops'), error) desc)
        from proverq.delivery_attempts where endpoint !~ '^ok' and error !~ '^lost: '")"
    is "what waits says for what" 0 "$(sql -c "
        select count(*) from proverq.deliveries where endpoint !~ '^ok'
        and waits_for !~ '^its endpoint, which (rests|is tried)|^attempt [0-9]+ at|^the answer to attempt'")"
    is "the endpoints say that they fail" 15 "$(sql -c "
        select count(*) from proverq.webhook_endpoints where state in ('failing', 'resting') and failures >= 3 and last_error is not null and name !~ '^ok'")"
}

figures() {
    echo "   $1 deliveries in $2 s, $3 kills; delay of healthy ones in ms: $(sql -c "
        select format('p50 %s, p95 %s, p99 %s, max %s', round(percentile_disc(0.5) within group (order by ms)), round(percentile_disc(0.95) within group (order by ms)),
                      round(percentile_disc(0.99) within group (order by ms)), round(max(ms))) from public.delay")"
    echo "   requests: $(sql -c "select string_agg(format('%s %s', kind, n), ', ' order by kind) from (select substring(path from '/([a-z0-9]+)') as kind, count(*) as n from public.sink group by 1) t"), \
repeated to healthy ones: $(sql -c "select count(*) - count(distinct id) from public.sink where path ~ '^/ok'")"
}

ok "the schema is made" "$proverq" migrate up || finish
[ $# -gt 0 ] || set -- load
for scenario in "$@"; do
    "$scenario"
    end_all
done
finish
