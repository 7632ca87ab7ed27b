# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# An upgrade to a later release and back with jobs waiting, leased and finished, while programs of today's release work
# on: nothing is lost, and what was leased completes under its token.
ok "npm packages" need_npm

# A circuit and provers; job 1 finished, job 2 failed, job 3 with one partition proved, one leased by prover 1 and one
# waiting, job 4 incomplete.
fixture() {
    sql >/dev/null <<'SQL'
create schema if not exists live;
create or replace function live.claim(prover int) returns table (job bigint, idx int, token uuid) language sql as $$
    select job_seq, partition_idx, token from proverq_private.claim(prover, '{1}', 600000, 1)
$$;
create or replace function live.complete(job bigint, idx int, token uuid, proof jsonb) returns bool language sql as $$
    select exists (select from proverq_private.complete(
        array[job], array[idx], array[token], array[proof], '{"[\"7\"]"}', '{NULL}', '{1}',
                                                        '{10}', '{0}', array[now()], '{5}'))
$$;
create or replace function live.fail(job bigint, idx int, token uuid) returns text language sql as $$
    select proverq_private.fail(job, idx, token, 'witness', 'constraint 64 fails', false, true,
        '{10}', '{0}', array[now()], '{5}')
$$;
create or replace function live.finalize() returns bigint language sql as $$
    select count(f.event)
    from proverq_private.finalizable(10) j cross join lateral proverq_private.finalize(j.job_seq) f
$$;
insert into proverq_private.artefact (sha256, kind, bytes, path) values (sha256('mul'), 'zkey', 100, 'mul.zkey');
select proverq_private.circuit_add(
    'mul', sha256('mul 1'), 'bn128', 4, 1, 3, sha256('mul'), null, '{"nPublic": 1}', false);
insert into proverq_private.prover (instance, host, pid, device)
select gen_random_uuid(), 'host', i, 'cpu' from generate_series(1, 2) i;
select proverq.enqueue_witness('mul', array['a'::bytea], keep_inputs => true, request_id => 'first');
select live.complete(job, idx, token, '{"pi_a": 7}') from live.claim(1);
select live.finalize();
select proverq.enqueue_witness('mul', array['b'::bytea]);
select live.fail(job, idx, token) from live.claim(1);
select live.finalize();
select proverq.enqueue_witness('mul', array['c', 'd', 'e']::bytea[]);
select live.complete(job, idx, token, '{"pi_a": 8}') from live.claim(1);
select * from live.claim(1);
insert into proverq.job (circuit, partitions) values ('mul', 2);
insert into proverq.partition (job_seq, partition_idx, witness) values (4, 1, 'f');
SQL
}
# What no program touches: jobs that have ended, and the incomplete one.
untouched() {
    sql -c "select job_seq, j.state, j.run, partition_idx, p.state, p.attempt, p.proof, p.publics, p.witness, p.token,
            j.finished_at, p.error
        from proverq.job j join proverq.partition p using (job_seq) where job_seq in (1, 2, 4) order by 1, 4"
}
leased_token() { sql -c 'select token from proverq.partition where job_seq = 3 and partition_idx = 1'; }
complete_leased() { sql -c "select live.complete(3, 1, '$1', '{\"pi_a\": 9}')"; }
all_well() { sql -c 'select * from proverq.check_invariants()'; }

# old_program_runs COMMAND ...: it works before, during and after the command; its report is the last line of old.out
old_program_runs() {
    local pid status
    rm -f "$work/old.in" "$work/old.out"
    mkfifo "$work/old.in"
    node "$here/old_program.mjs" sql/statements 5 <"$work/old.in" >"$work/old.out" 2>&1 &
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
        "$(sql -c "select count(*) from proverq.job where job_seq > 4 and state = 'finished' and run = 1"
        ) $(of_report .finalized)"
    is "... with every proof" "$(of_report .completed)" "$(sql -c "select count(*) from proverq.partition
        where state = 'proved' and (job_seq > 4 or (job_seq, partition_idx) = (3, 2))")"
    is "... they worked on while it ran, and none of their statements took 3 s" true \
        "$(of_report '.jobs > 10 and .slowest_ms < 3000')"
    is "... the invariants of the queue hold" '' "$(all_well)"
}

# What must hold in the end, whoever has done the rest.
live_work_completes() {
    is "$1: what had ended, or was incomplete, is as it was" "$before" "$(untouched)"
    is "... what was leased still is, and completes under its token, once" "t f" \
        "$(complete_leased "$token") $(complete_leased "$token")"
    sql -c "select live.complete(job, idx, token, '{\"pi_a\": 9}') from live.claim(2)" \
        -c 'select live.finalize()' >/dev/null
    is "... and its job is finished" 'finished|3' "$(sql -c "select state, (select count(*) from proverq.partition p
        where p.job_seq = 3 and p.state = 'proved') from proverq.job where job_seq = 3")"
    sql -c "insert into proverq.partition (job_seq, partition_idx, witness) values (4, 0, 'g')"
    is "... the incomplete job becomes ready" 'queued|ready|ready' "$(sql -c "select j.state, min(p.state), max(p.state)
        from proverq.job j join proverq.partition p using (job_seq) where job_seq = 4 group by j.state")"
    is "... a request that was made is not made again" 1 "$(sql -c "select proverq.enqueue_witness(
        'mul', array['a'::bytea], keep_inputs => true, request_id => 'first')")"
    is "... the invariants of the queue hold" '' "$(all_well)"
}

up_to_later() { "$later" migrate up; }
back_to_today() { "$later" migrate down "$newest" && "$proverq" migrate up; }

# with_live_work NAME COMMAND ERRORS_THAT_MAY_COME: the command, beside programs at work
with_live_work() {
    ok "$1, with live work, beside programs at work" old_program_runs "$2"
    nothing_was_lost "$1" "$3"
    live_work_completes "$1"
}
prepared() {
    fixture
    before=$(untouched) token=$(leased_token)
}

empty
"$proverq" migrate up >/dev/null
prepared
# A producer's statement that is inside a function of which another takes its place may fail
# once; those of daemons may not.
with_live_work "to a later release" up_to_later '^enqueue: XX000 cache lookup failed for function'
same "... the schema is the later one" later

# On the way back there are no functions until the older program installs its own: statements fail, and are tried again.
empty
"$later" migrate up >/dev/null
prepared
with_live_work "back to today's release" back_to_today \
    ': (42883|42P01|42703|3F000) .* does not exist|: XX000 cache lookup failed for function|insert.*: 23502 '
same "... the schema is today's" newest
empty
sql -c 'drop schema live cascade' 2>/dev/null
