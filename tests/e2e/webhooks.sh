#!/usr/bin/env bash
# Webhooks against receivers of every temper.
#
#   webhooks.sh            all scenarios
#   webhooks.sh NAME ...   consumers, listen, bodies, load
#
# DELIVERIES (10000) and SECONDS_OF_LOAD (30) say how much `load` sends.
source "$(dirname "$0")/service_lib.sh"

circuit() {
    sql -c "insert into proverq_private.artefact (sha256, kind, bytes, path) values (sha256('k'), 'zkey', 1, 'k') on conflict do nothing;
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
    for name in "$@"; do begin "$name" "$proverq" finalizer --log-level warn --webhook-http --webhook-allow 127.0.0.0/8 --webhook-timeout 5s; done
}

# end_jobs FIRST LAST [STATE]: the finalizer is to end these jobs.
end_jobs() { sql -c "update proverq.job set state = '${3-completing}' where job_seq between $1 and $2" -c 'notify proverq_finalize'; }

# The sample consumers, in Python and in Node: signatures, rotation, repetition, and what they refuse.
consumers() {
    echo "-- consumers"
    local name url secret id
    circuit
    begin_finalizers finalizer
    mkdir -p "$work/node"
    ln -sfn "$npm/node_modules" "$work/node/node_modules"
    cp "$root/contrib/consumers/webhook_receiver.mjs" "$work/node"
    for name in python node; do
        : >"$work/secret-$name"
        case $name in
        python) begin "$name" "$root/contrib/consumers/webhook_receiver.py" --secret-file "$work/secret-$name" ;;
        node) begin "$name" node "$work/node/webhook_receiver.mjs" "$work/secret-$name" ;;
        esac
        until_true 10 grep -q listening "$work/$name.log" || { fail "$name starts" "$(cat "$work/$name.log")"; continue; }
        url=$(sed -n 's/^listening on //p' "$work/$name.log")
        sql -c "select proverq.create_webhook_endpoint('$name', '$url')" >"$work/secret-$name"
        id=$(sql -c "select proverq.ping_webhook_endpoint('$name')")
        eventually "$name: a ping is delivered" 10 "select state = 'delivered' and last_status = 204 from proverq.deliveries where webhook_id = '$id'"
        ok "$name: and told" grep -q "proverq.ping: endpoint $name" "$work/$name.log"
        sql -c "select proverq.redeliver('$id')" >/dev/null
        eventually "$name: it comes again" 10 "select attempts = 2 and state = 'delivered' from proverq.deliveries where webhook_id = '$id'"
        ok "$name: which is recognised by its id" grep -q "again: $id" "$work/$name.log"
        is "$name: and acted upon once" 1 "$(grep -c 'proverq.ping: endpoint' "$work/$name.log")"
        secret=$(sql -c "select proverq.rotate_webhook_secret('$name')")
        id=$(sql -c "select proverq.ping_webhook_endpoint('$name')")
        eventually "$name: with the old secret it verifies while the new one is rolled out" 10 "select state = 'delivered' from proverq.deliveries where webhook_id = '$id'"
        echo "$secret" >"$work/secret-$name"
        id=$(sql -c "select proverq.ping_webhook_endpoint('$name')")
        eventually "$name: with the new one too" 10 "select state = 'delivered' from proverq.deliveries where webhook_id = '$id'"
        secret=$(sql -c "select proverq.rotate_webhook_secret('$name', '0 s')")
        id=$(sql -c "select proverq.ping_webhook_endpoint('$name')")
        eventually "$name: with neither it does not" 10 "select last_status = 401 from proverq.deliveries where webhook_id = '$id'"
        ok "$name: and says so" grep -q '^refused: ' "$work/$name.log"
        echo "$secret" >"$work/secret-$name"
        forge "$name" "$url" "$secret"
        end "$name"
    done
    end finalizer
}

# forge NAME URL SECRET: what somebody may send who is not the finalizer, or a recording of what it sent.
forge() {
    is "$1: a replay of an hour ago is refused, one of now taken; a changed body, an odd timestamp and a huge body are refused" \
        "401 204 401 401 413" "$(python3 - "$2" "$3" <<'PYTHON'
import base64, hashlib, hmac, sys, time, urllib.error, urllib.request

def send(timestamp, body, signed=None):
    key = base64.b64decode(sys.argv[2].removeprefix("whsec_"))
    mac = hmac.new(key, f"msg_forged.{timestamp}.".encode() + (signed or body), hashlib.sha256).digest()
    headers = {"webhook-id": "msg_forged", "webhook-timestamp": str(timestamp), "webhook-signature": "v1,AAAA v1," + base64.b64encode(mac).decode()}
    try:
        return urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, headers)).status
    except urllib.error.HTTPError as error:
        return error.code
    except urllib.error.URLError:
        return 413  # it closed the connection while the body was sent

ping = b'{"type":"proverq.ping","data":{"endpoint":"e"}}'
now = int(time.time())
print(send(now - 3600, ping), send(now, ping), send(now, ping + b" ", ping), send("\u00b2", ping), send(now, b"x" * (2 << 20)))
PYTHON
)"
}

# proverq listen: what a developer sees.
listen() {
    echo "-- listen"
    circuit
    begin_finalizers finalizer
    begin listener "$proverq" listen
    eventually "proverq listen makes an endpoint" 10 "select url ~ '^http://127.0.0.1:[0-9]+/$' from proverq.webhook_endpoints where name = 'listen'"
    until_true 10 grep -q 'proverq.ping msg_' "$work/listener.log"
    ok "shows the ping that it begins with" grep -qE '^[0-9:]{8} proverq.ping msg_[0-9a-f]{32}, signature right$' "$work/listener.log"
    jobs 1 "'listen'"
    end_jobs 1 10000000
    until_true 10 grep -q 'proverq.job.finished' "$work/listener.log"
    ok "and a job's end" grep -qE '^[0-9:]{8} proverq.job.finished msg_[0-9a-f]{32}, signature right$' "$work/listener.log"
    ok "with its body" grep -qxE '    "circuit": "c",' "$work/listener.log"
    is "a request that is not signed is refused" 401 "$(curl -s -o "$work/null" -w '%{http_code}' -d '{}' "$(sed -n 's/^listening on \([^ ]*\) .*/\1/p' "$work/listener.log")")"
    ends_well "listen" listener
    is "it leaves the endpoint disabled" 'disabled|proverq listen has ended' "$(sql -c "select state, disabled_reason from proverq.webhook_endpoints where name = 'listen'")"
    begin listener "$proverq" listen
    eventually "the next one takes the endpoint over" 10 "
        select e.state = 'open' and count(*) filter (where d.state = 'delivered') = 3 from proverq.webhook_endpoints e join proverq.deliveries d on d.endpoint = e.name
        where e.name = 'listen' group by e.state"
    end listener
    sql -c "select proverq.create_webhook_endpoint('production', 'https://example.com/')" >/dev/null
    refused "but not that of a service" "production' sends to https://example.com/" "$proverq" listen --endpoint production
    refused "a port that is none" "ports end at 65535" "$proverq" listen --port 70000
    end finalizer
    : >"$work/listener.log"
    begin listener "$proverq" listen
    until_true 10 grep -q serve "$work/listener.log"
    ok "without a finalizer it says what is missing" grep -q 'no finalizer has sent the ping yet: is .proverq serve. running' "$work/listener.log"
    end listener
    begin finalizer "$proverq" finalizer --webhook-http
    : >"$work/listener.log"
    begin listener "$proverq" listen
    until_true 10 grep -q webhook-allow "$work/listener.log"
    ok "and that the finalizer must be allowed to come" grep -q 'the ping does not arrive: 127.0.0.1 is not a public address: .*--webhook-allow' "$work/listener.log"
    end listener
    end finalizer
}

# Real bodies of every event against the published schema.
bodies() {
    echo "-- bodies"
    local first
    circuit
    sql -c "select proverq.create_webhook_endpoint('bodies', 'https://127.0.0.1:1/')" >/dev/null
    first=$(($(sql -c 'select coalesce(max(job_seq), 0) from proverq.job') + 1))
    jobs 4 "'bodies'"
    sql -c "update proverq.job set request_id = E'a\"b\\\\c\u00e9\n' where job_seq = $first" \
        -c "update proverq.partition set publics = (select jsonb_agg(i::text) from generate_series(1, 5000) i) where job_seq = $first + 1" \
        -c "update proverq.job set state = 'failing', error_code = 'witness', error = repeat('\u00e9', 5000) where job_seq = $first + 2" \
        -c "update proverq.job set state = 'cancelled', error = 'by alice', finished_at = now() where job_seq = $first + 3"
    end_jobs "$first" $((first + 1))
    sql -c 'select f.event from proverq_private.finalizable(10) j cross join lateral proverq_private.finalize(j.job_seq) f' \
        -c "select proverq_private.webhook_enqueue($first + 3), proverq.ping_webhook_endpoint('bodies')" >/dev/null
    sql -c "select body from proverq_private.webhook_delivery join proverq_private.webhook_endpoint using (endpoint_id) where name = 'bodies'" >"$work/bodies"
    is "the events are there" "cancelled failed finished finished ping" "$(jq -r .type "$work/bodies" | sed 's/.*\.//' | sort | xargs)"
    is "proofs are in the body, or where they are" "1 1" "$(jq -s -r '[map(select(.data.proofs)), map(select(.data.proofs_ref))] | map(length) | join(" ")' "$work/bodies")"
    is "all are valid, and not when a member is missing or wrong" 5 "$(node "$root/tests/e2e/validate_webhooks.mjs" "$work/bodies" 2>&1)"
    is "none has 20 kB" 0 "$(awk '{ if (length($0) >= 20000) n++ } END { print n + 0 }' <(LC_ALL=C cat "$work/bodies"))"
}

# 50 endpoints: 5 hang, 5 answer 500, 5 close the connection. Jobs end at an even pace, two finalizers are killed at random.
load() {
    local n=${DELIVERIES-10000} seconds=${SECONDS_OF_LOAD-30} port kills=0 pacer name first
    echo "-- load: $n deliveries in $seconds s"
    circuit
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    sql -c "select '/' || name, case kind when 'ok' then '204' else kind end, proverq.create_webhook_endpoint(name, format('http://127.0.0.1:%s/%s', $port, name))
            from (select kind || '-' || i as name, kind
                  from (select i, case i % 10 when 3 then 'hang' when 5 then '500' when 7 then 'close' else 'ok' end as kind from generate_series(0, 49) i) k) e" |
        tr '|' ' ' >"$work/endpoints"
    begin receiver "$root/tests/receiver.py" "$work/endpoints" "$work/requests" --port "$port"
    until_true 10 test -s "$work/receiver.log" || return 1
    first=$(($(sql -c 'select coalesce(max(job_seq), 0) from proverq.job') + 1))
    jobs "$n" "(select name from proverq_private.webhook_endpoint where name ~ '^(ok|hang|500|close)-' order by endpoint_id offset i % 50 limit 1)"
    sql -c "analyze proverq.job, proverq.partition, proverq_private.webhook_endpoint"
    begin_finalizers finalizer-1 finalizer-2
    sql -c "do \$\$
            declare
                start constant timestamptz := clock_timestamp();
                told int := 0;
                upto int;
            begin
                while told < $n loop
                    upto := least($n, ceil(extract(epoch from clock_timestamp() - start) * $n / $seconds));
                    update proverq.job set state = 'completing' where job_seq - $first >= told and job_seq - $first < upto;
                    notify proverq_finalize;
                    commit;
                    told := upto;
                    perform pg_sleep(0.03);
                end loop;
            end \$\$" &
    pacer=$!
    while kill -0 "$pacer" 2>/dev/null; do
        sleep $((RANDOM % 4 + 2)).$((RANDOM % 10))
        name=finalizer-$((RANDOM % 2 + 1))
        end "$name" KILL
        begin_finalizers "$name"
        kills=$((kills + 1))
    done
    wait "$pacer"
    eventually "every delivery to a healthy endpoint is recorded as made ($kills finalizers were killed)" 90 "
        select count(*) = $n * 35 / 50 from proverq.deliveries where endpoint ~ '^ok' and state = 'delivered'"
    # A finalizer that is killed takes along what it had learned of an attempt; the next one counts.
    eventually "the endpoints say that they fail" 60 "
        select count(*) = 15 from proverq.webhook_endpoints
        where state in ('failing', 'resting') and failures >= 3 and last_error is not null and name ~ '^(hang|500|close)-'"
    for name in finalizer-1 finalizer-2; do kill "${pids[$name]}"; done # once: a second time they would not end what hangs
    for name in finalizer-1 finalizer-2; do wait "${pids[$name]}"; done
    unset "pids[finalizer-1]" "pids[finalizer-2]"
    end receiver
    received "$n"
    explained
    figures "$n" "$seconds" "$kills"
}

# What the receiver says.
received() {
    jq -r '[.received, .path, .id, .signed, (.body | fromjson | .data.job)] | @csv' "$work/requests" >"$work/requests.csv"
    sql -c "create table public.request (received bigint, path text, id text, signed bool, job bigint)" -c "\\copy public.request from '$work/requests.csv' csv"
    is "each healthy endpoint got each of its events" 0 "$(sql -c "
        select count(*) from proverq.deliveries d where d.endpoint ~ '^ok'
        and not exists (select from public.request s where s.path = '/' || d.endpoint and s.id = d.webhook_id and s.job = d.job_seq)")"
    is "one id for each event" "$(($1 * 35 / 50))" "$(sql -c "select count(distinct (path, job, id)) from public.request where path ~ '^/ok'")"
    is "and each job" "$(($1 * 35 / 50))" "$(sql -c "select count(distinct job) from public.request where path ~ '^/ok'")"
    is "every request was signed right" 0 "$(sql -c "select count(*) from public.request where not signed")"
    sql -c "create table public.delay as
            select extract(epoch from to_timestamp(0) + min(s.received) * interval '1 us' - d.created_at) * 1000 as ms
            from public.request s join proverq.deliveries d on d.webhook_id = s.id where s.path ~ '^/ok' group by s.id, d.created_at"
    local p99
    p99=$(sql -c "select round(percentile_disc(0.99) within group (order by ms)) from public.delay")
    if [ "$p99" -lt 1000 ]; then pass "99 of 100 came within 1 s ($p99 ms)"; else fail "99 of 100 came within $p99 ms"; fi
}

# What the tables say of the rest.
explained() {
    is "nothing else was delivered" 0 "$(sql -c "select count(*) from proverq.deliveries where endpoint ~ '^(hang|500|close)-' and state = 'delivered'")"
    is "every attempt is in the log, or under way" 0 "$(sql -c "
        select count(*) from proverq_private.webhook_delivery d
        where d.attempts <> (select count(*) from proverq_private.webhook_attempt a where a.delivery_id = d.delivery_id) + (d.token is not null)::int")"
    is "with what went wrong" $'500: HTTP 500 from 127.0.0.1: oops\nclose: Empty reply from server\nhang: timed out' "$(sql -c "
        select distinct split_part(endpoint, '-', 1) || ': ' ||
               coalesce(substring(regexp_replace(error, '^Connection died.*', 'Empty reply from server') from 'Empty reply from server|timed out|HTTP 500 from 127.0.0.1: oops'), error)
        from proverq.delivery_attempts where endpoint ~ '^(hang|500|close)-' and error !~ '^lost: '" | LC_ALL=C sort)"
    is "what waits says for what" 0 "$(sql -c "
        select count(*) from proverq.deliveries where endpoint ~ '^(hang|500|close)-'
        and waits_for !~ '^its endpoint, which (rests|is tried)|^attempt [0-9]+ at|^the answer to attempt|^its endpoint, to which [0-9]+ are under way'")"
}

figures() {
    echo "   $1 deliveries in $2 s, $3 kills; delay of healthy ones in ms: $(sql -c "
        select format('p50 %s, p95 %s, p99 %s, max %s', round(percentile_disc(0.5) within group (order by ms)), round(percentile_disc(0.95) within group (order by ms)),
                      round(percentile_disc(0.99) within group (order by ms)), round(max(ms))) from public.delay")"
    echo "   requests: $(sql -c "select string_agg(format('%s %s', kind, n), ', ' order by kind) from (select substring(path from '/([a-z0-9]+)') as kind, count(*) as n from public.request group by 1) t"), \
repeated to healthy ones: $(sql -c "select count(*) - count(distinct id) from public.request where path ~ '^/ok'")"
}

need_npm || exit
ok "the schema is made" "$proverq" migrate up || finish
[ $# -gt 0 ] || set -- consumers listen bodies load
for scenario in "$@"; do
    "$scenario"
    end_all
done
finish
