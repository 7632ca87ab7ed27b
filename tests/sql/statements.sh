# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# Every statement of the service can be prepared, and its parameters have types of their own.
fresh
for file in sql/statements/*.sql; do
    name=$(basename "$file" .sql)
    { echo "prepare \"$name\" as" && cat "$file" && echo ';' &&
        echo "select parameter_types::text !~ 'unknown' from pg_prepared_statements;"; } >"$work/statement.sql"
    it "$name" "$(sql -f "$work/statement.sql" 2>&1)" t
done
it 'each is one statement' "$(grep -v '^--' sql/statements/*.sql | grep ';')" ''

# A life of a partition with nothing but the statements.
run() {
    local name=$1
    shift
    sql -c "prepare s as $(grep -v '^--' "sql/statements/$name.sql")" -c "execute s $*" 2>&1
}
it register "$(run prover_register "('00000000-0000-0000-0000-0000000000aa', 'host', 1, 'cpu', 'a CPU', '0.1')")" 5
it 'register again' \
    "$(run prover_register "('00000000-0000-0000-0000-0000000000aa', 'host', 1, 'cpu', 'a CPU', '0.1')")" 5
run prover_idle '(5, true)'
it idle "$(sql -c 'select idle from proverq_private.prover where prover_id = 5')" t
sql -c 'select test.job(1)' >/dev/null
it wanted "$(run wanted_circuits "('{}')")" 2
it 'the circuit' "$(run circuit_get "(2, 'x86_64')" | cut -d'|' -f1-6,9-10,13-)" \
    'mul|2|bn128|4|1|3|mul.zkey||{"nPublic": 1}|f|||||||||'
claimed=$(run claim "(5, '{2}', 60000, 4, '{}', '{}', '{}', '{}')")
it claim "$(echo "$claimed" | cut -d'|' -f1-3,5-)" '1|0|1|2|f|\x7769746e6573732030|||0'
token=$(echo "$claimed" | cut -d'|' -f4)
it 'renew leases' "$(run renew_leases "(5, '{1}', '{0}', array['$token']::uuid[], 60000)")" 1
it release "$(run release "(1, 0, '$token', 'why', 0)")" t
token=$(run claim "(5, '{2}', 60000, 4, '{}', '{}', '{}', '{}')" | cut -d'|' -f4)
it fail "$(run fail "(1, 0, '$token', 'device_fault', 'text', true, false, '{}', '{}', '{}', '{}')")" retry
it 'wake, too early' "$(run wake_due)" 0
sql -c 'update proverq.partition set due_at = now(), avoid_until = null' # the only other device would be waited for
it wake "$(run wake_due)" 1
token=$(run claim "(5, '{2}', 60000, 4, '{}', '{}', '{}', '{}')" | cut -d'|' -f4)
it complete "$(run complete "('{1}', '{0}', array['$token']::uuid[], '{\"{}\"}', '{\"[]\"}',
    '{NULL}', '{1}', '{10}', '{0}', array[now()], '{7}')")" 1
it finalizable "$(run finalizable '(10)')" 1
it finalize "$(run finalize '(1)')" '1|proverq.job.finished|'
it 'rescue expired' "$(run rescue_expired)" 0
it 'rescue prover' "$(run rescue_prover "('00000000-0000-0000-0000-0000000000aa')")" 0
run prover_stop '(5)'
it stop "$(sql -c 'select state, idle from proverq_private.prover where prover_id = 5')" 'stopped|f'
it 'timing partitions' "$(run make_timing_partitions '(1)')" 2
it 'artefact' "$(run artefact_put "(sha256('a'), 'r1cs', 3, null)")" t
it 'artefact again' "$(run artefact_put "(sha256('a'), 'r1cs', 3, null)")" ''
run artefact_chunk_put "(sha256('a'), 0, 'abc')"
it 'its chunk' "$(run artefact_chunk_get "(sha256('a'), 0)")" '\x616263'
it 'no chunk after it' "$(run artefact_chunk_get "(sha256('a'), 1)")" ''
it 'circuit add' "$(run circuit_add "('third', sha256('t'), 'bn128', 4, 1, 3, sha256('mul'), sha256('a'),
    '{}', true, 'wasm', sha256('a'), 3, null)")" '4|1|t'
it 'circuit add, without a calculator' \
    "$(run circuit_add "('third', sha256('t2'), 'bn128', 4, 1, 3, sha256('mul'), null,
        '{}', true, null, null, null, null)")" '5|2|t'
run calculator_put "(4, 'x86_64', sha256('mul'), null)"
run calculator_put "(4, 'x86_64', sha256('a'), null)"
it 'its compiled calculator' "$(run circuit_get "(4, 'x86_64')" | cut -d'|' -f15,17,22)" 'wasm|3|3'
it 'on another machine' "$(run circuit_get "(4, 'aarch64')" | cut -d'|' -f15-18)" 'wasm|||'
it 'circuit list' "$(run circuit_list | cut -d'|' -f2-3,8-9)" \
    $'mul|2|f|f\nmul|1|f|f\nother|1|t|f\nthird|2|t|f\nthird|1|t|t'
it 'circuit find' "$(run circuit_find "('mul')")" 2
it 'circuit remove' "$(run circuit_remove "('mul')")" 2
it 'circuit find, then' "$(run circuit_find "('mul')")" 1
it 'circuit remove, unknown' "$(run circuit_remove "('nil')")" ''
