#!/usr/bin/env bash
# The unit of contrib/systemd: what systemd's own tools say of it, and the service under the limits that it sets, with calculators
# of both kinds, told to start and to stop as systemd does.
source "$(dirname "$0")/service_lib.sh"

own=$root/tests/circuits
unit=$root/contrib/systemd/proverq.service

# A program that stands for one of circom's C++ calculators, as tests/e2e/synthesis.sh has it.
add_program() {
    gcc -O1 -pthread -DDO=0 -o "$work/program" "$root/tests/e2e/calculators/program.c" -lm
    cp "$own/factor/witness.wtns" "$work/program.dat"
    add_circuit program "$own/factor/factor.zkey" --calculator "$work/program"
}

sed "s|^ExecStart=[^ ]*|ExecStart=$root/build/proverq|; /^EnvironmentFile=/d" "$unit" >"$work/proverq.service"
ok "systemd-analyze finds the unit right" systemd-analyze verify --man=no "$work/proverq.service"
is "and says nothing of it" 0 "$(systemd-analyze verify --man=no "$work/proverq.service" 2>&1 | grep -c 'proverq.service')"
recorded=$(sed -nE 's/.*gives it ([0-9.]+) .*/\1/p' "$unit")
exposure=$(systemd-analyze security --offline=true "$unit" 2>/dev/null | sed -nE 's/.*exposure level for [^:]*: ([0-9.]+).*/\1/p')
if [ -n "$exposure" ] && awk "BEGIN { exit !($exposure <= $recorded) }"; then
    pass "its exposure is $exposure, no worse than recorded"
else
    fail "its exposure is '$exposure'; recorded is $recorded"
fi

ok "the schema is made" "$proverq" migrate up || finish
add_circuit factor "$own/factor/factor.zkey" --wasm "$own/factor/factor.wasm"
add_program
cp "$root/build/proverq" "$work/proverq"
mkdir -p "$work/nobody"
chmod 777 "$work/nobody"
PROVERQ_CACHE_DIR=$work/nobody TMPDIR=$work/nobody begin serve python3 "$root/tests/e2e/as_systemd.py" "$unit" 8 \
    "$work/proverq" serve --device cpu --threads 1 --poll 200ms
ok "it says when it is ready" until_true 30 grep -qx READY=1 "$work/serve.log"
is "and that it works" 'STATUS=cpu at work, finalizer at work' "$(grep ^STATUS= "$work/serve.log" | tail -n 1)"
for circuit in factor program; do
    job=$(sql -c "select proverq.enqueue('$circuit', array['{\"p\": 65521, \"q\": 49999}'::jsonb])")
    eventually "under the unit's limits a witness is computed and proved ($circuit)" 60 "select state = 'finished' from proverq.job where job_seq = $job" ||
        sql -c "select error from proverq.partition where job_seq = $job"
done
ok "the watchdog is fed" until_true 5 eval "[ \$(grep -cx WATCHDOG=1 '$work/serve.log') -ge 2 ]"
ends_well "the service" serve
is "it said that it stops" 1 "$(grep -cx STOPPING=1 "$work/serve.log")"
is "nothing was refused to it" '' "$(grep -iE 'not permitted|level=error' "$work/serve.log")"
finish
