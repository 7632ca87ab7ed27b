#!/usr/bin/env bash
# The demo, as a newcomer meets it: it ends with proofs, timings and the webhook, again on a second run, and its stop leaves
# nothing behind.
source "$(dirname "$0")/lib.sh"

export DEMO_DIR=$work/demo
demo=$root/contrib/scripts/demo.sh
chmod 711 "$work"
at_exit=("'$demo' stop" "${at_exit[@]}")

for run in first second; do
    start=$SECONDS
    ok "the demo runs ($run)" bash -c "'$demo' >'$work/out'"
    is "it takes under two minutes" yes "$([ $((SECONDS - start)) -lt 120 ] && echo yes)"
    is "six proofs were verified again" 1 "$(grep -c '6 of 6 valid' "$work/out")"
    is "the timing table has every step of a proof" 9 \
        "$(grep -cE '^ (claim|check_witness|queue_wait|matvec|ntt|msm_h|finish|verify|record) +\| +6 ' "$work/out")"
    is "four witnesses were computed, two read" 2 "$(grep -cE '^ (compute_witness +\| +4|read_witness +\| +2) ' "$work/out")"
    is "the webhook came and its signature is right" 1 "$(grep -c 'job 1, 4 partitions of range, finished, .*signature right' "$work/out")"
    is "it says how to stop it" 1 "$(grep -c 'make demo-stop' "$work/out")"
done
serve=$(cat "$DEMO_DIR/serve.pid")
ok "the demo stops" "$demo" stop
is "no process is left" '' "$(pgrep -g "$serve" -a | grep -v defunct)" # a zombie is for init to reap
is "no file is left" '' "$(ls "$DEMO_DIR" 2>/dev/null)"
finish
