# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# Upgrades and downgrades with jobs waiting, leased and finished, made by the version's own functions, while programs of an
# earlier release work on: nothing is lost, nothing fails, and what was leased completes under its token.
ok "npm packages" need_npm

# A circuit and provers; job 1 finished, job 2 failed, job 3 with one partition proved, one leased by prover 1 and one
# waiting, job 4 incomplete. The functions are those of the version that is there.
fixture() {
    sql >/dev/null <<'SQL'
insert into proverq.artefact (sha256, kind, bytes, path) values (sha256('mul'), 'zkey', 100, 'mul.zkey');
select proverq.circuit_add('mul', sha256('mul 1'), 'bn128', 4, 1, 3, sha256('mul'), null, '{"nPublic": 1}', false);
insert into proverq.prover (instance, host, pid, device) select gen_random_uuid(), 'host', i, 'cpu' from generate_series(1, 2) i;
select proverq.enqueue_witness('mul', array['a'::bytea], keep_inputs => true, request_id => 'first');
select proverq.complete(job_seq, partition_idx, token, '{"pi_a": 7}', '["7"]', null, '{10}', '{0}', array[now()], '{5}') from proverq.claim(1, '{1}', 60000, 1);
select * from proverq.finalize_next();
select proverq.enqueue_witness('mul', array['b'::bytea]);
select proverq.fail(job_seq, partition_idx, token, 'witness', 'constraint 64 fails', false, true, '{10}', '{0}', array[now()], '{5}') from proverq.claim(1, '{1}', 60000, 1);
select * from proverq.finalize_next();
select proverq.enqueue_witness('mul', array['c', 'd', 'e']::bytea[]);
select proverq.complete(job_seq, partition_idx, token, '{"pi_a": 8}', '["8"]', null, '{10}', '{0}', array[now()], '{5}') from proverq.claim(1, '{1}', 60000, 1);
select * from proverq.claim(1, '{1}', 600000, 1);
insert into proverq.job (circuit, partitions) values ('mul', 2);
insert into proverq.partition (job_seq, partition_idx, witness) values (4, 1, 'f');
SQL
}
# What no program touches: jobs that have ended, and the incomplete one.
untouched() {
    sql -c "select job_seq, j.state, j.run, partition_idx, p.state, p.attempt, p.proof, p.publics, p.witness, p.token, j.finished_at, p.error
            from proverq.job j join proverq.partition p using (job_seq) where job_seq in (1, 2, 4) order by 1, 4"
}
leased_token() { sql -c 'select token from proverq.partition where job_seq = 3 and partition_idx = 1'; }
complete_leased() { sql -c "select proverq.complete(3, 1, '$1', '{\"pi_a\": 9}', '[\"9\"]', null, '{10}', '{0}', array[now()], '{5}')"; }
all_well() { # no row of the invariants' check, where there is one
    [ "$(sql -c "select count(*) from pg_proc where proname = 'check_invariants'")" = 0 ] || sql -c 'select * from proverq.check_invariants()'
}

# old_program_runs VERSION COMMAND ...: it works before, during and after the command; its report is the last line of old.out
old_program_runs() {
    local version=$1 pid status
    shift
    rm -f "$work/old.in" "$work/old.out"
    mkfifo "$work/old.in"
    node "$here/old_program.mjs" "$here/statements/$(printf %04d "$version")" 5 <"$work/old.in" >"$work/old.out" 2>&1 &
    pid=$!
    exec {old}>"$work/old.in"
    for ((i = 0; i < 100; i++)); do grep -q working "$work/old.out" && break || sleep 0.05; done
    sleep 0.4
    "$@" >"$work/command.out" 2>&1
    status=$?
    sleep 0.4
    exec {old}>&-
    wait $pid
    [ $status -eq 0 ] || cat "$work/command.out"
    return $status
}
of_report() { tail -n 1 "$work/old.out" | jq -er "$1" 2>/dev/null || { [ $? = 4 ] || cat "$work/old.out"; }; }

# What must hold after old programs have worked beside a migration; PATTERN: errors that may come once.
nothing_was_lost() {
    local name=$1 tolerated=${2:-^$}
    echo "        $(tail -n 1 "$work/old.out")"
    is "$name: no statement of the old programs failed" '' "$(of_report '.errors[]' | grep -vE "$tolerated")"
    is "... no result of theirs was refused" 0 "$(of_report .refused)"
    is "... each of their jobs is finished, once" "$(of_report .jobs) $(of_report .jobs)" \
        "$(sql -c "select count(*) from proverq.job where job_seq > 4 and state = 'finished' and run = 1") $(of_report .finalized)"
    is "... with every proof" "$(of_report .completed)" "$(sql -c "select count(*) from proverq.partition where state = 'proved' and (job_seq > 4 or (job_seq, partition_idx) = (3, 2))")"
    is "... they worked on while it ran, and none of their statements took 3 s" true "$(of_report '.jobs > 10 and .slowest_ms < 3000')"
    is "... the invariants of the queue hold" '' "$(all_well)"
}

breaks_after() { # whether a migration above the version is breaking
    local file
    for file in migrations/*.up.sql; do
        [ "$(number_of "$file")" -le "$1" ] || ! tail -n 1 "$file" | grep -q ', true[,)]' || return 0
    done
    return 1
}

# What must hold in the end, whoever has done the rest.
live_work_completes() {
    is "$1: what had ended, or was incomplete, is as it was" "$before" "$(untouched)"
    is "... what was leased still is, and completes under its token, once" "t f" "$(complete_leased "$token") $(complete_leased "$token")"
    sql -c "select proverq.complete(job_seq, partition_idx, token, '{\"pi_a\": 9}', '[\"9\"]', null, '{10}', '{0}', array[now()], '{5}') from proverq.claim(2, '{1}', 60000, 1)" \
        -c 'select * from proverq.finalize_next()' >/dev/null
    is "... and its job is finished" 'finished|3' "$(sql -c "select state, (select count(*) from proverq.partition p where p.job_seq = 3 and p.state = 'proved') from proverq.job where job_seq = 3")"
    sql -c "insert into proverq.partition (job_seq, partition_idx, witness) values (4, 0, 'g')"
    is "... the incomplete job becomes ready" 'queued|ready|ready' "$(sql -c "select j.state, min(p.state), max(p.state) from proverq.job j join proverq.partition p using (job_seq) where job_seq = 4 group by j.state")"
    is "... a request that was made is not made again" 1 "$(sql -c "select proverq.enqueue_witness('mul', array['a'::bytea], keep_inputs => true, request_id => 'first')")"
    is "... the invariants of the queue hold" '' "$(all_well)"
}

# from_to OLD_PROGRAMS FROM TO [PATTERN]: errors that may come once
from_to() {
    local programs=$1 from=$2 to=$3 tolerated=${4-} name="from $2 to $3"
    empty
    "$proverq" migrate to "$from" >/dev/null
    fixture
    before=$(untouched) token=$(leased_token)
    if [ -n "$programs" ]; then
        ok "$name, with live work, beside programs of version $programs" old_program_runs "$programs" "$proverq" migrate to "$to"
        nothing_was_lost "$name" "$tolerated"
    else
        ok "$name, with live work, across a breaking migration" "$proverq" migrate to "$to"
    fi
    live_work_completes "$name"
}

# A producer's statement that is inside a function of which another takes its place may fail once; those of daemons may not.
for version in "${kept[@]}"; do
    if breaks_after "$version"; then from_to '' "$version" "$newest"; else from_to "$version" "$version" "$newest" '^enqueue: XX000 cache lookup failed for function'; fi
done
# On the way back functions and columns disappear: a statement that runs one at that moment is rolled back, and its program tries again.
from_to 4 "$newest" 4 ': (42883|42P01|42703) .* does not exist|: XX000 cache lookup failed for function'
empty
