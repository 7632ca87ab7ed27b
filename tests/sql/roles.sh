# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# Who may do what: people of every role log in and try what they may not do, and what they must be able to do.
# Needs the superuser of a private PostgreSQL.
if [ -n "${PROVERQ_TEST_DSN-}" ]; then
    echo '-- left out: the roles that it makes need a superuser; unset PROVERQ_TEST_DSN'
    return 0
fi
fresh
home=$work/postgres
[ ! -L "$home/home" ] || home=$home/home
# as USER "SQL" ...: a login of that user; errors as "ERROR:  ...".
as() {
    local user=$1 query args=()
    shift
    for query in "$@"; do args+=(-c "$query"); done
    psql -X -q -A -t -v ON_ERROR_STOP=1 -h "$(cat "$home/socket-folder" 2>/dev/null || echo "$home/socket")" \
        -p "$(cat "$home/port")" -U "$user" -d proverq "${args[@]}" 2>&1 | sed 's/^psql:[^ ]* //'
}
# may NAME USER "SQL" WANT: the last line that it says.
may() { it "$1" "$(as "$2" "$3" | tail -n 1)" "$4"; }
# may_not NAME PATTERN USER "SQL" ...: each statement is an error that says PATTERN (grep -E).
may_not() {
    local name=$1 pattern=$2 user=$3 query said
    shift 3
    for query in "$@"; do
        said=$(as "$user" "$query" | grep -m 1 ERROR)
        if grep -qE "^ERROR:  .*($pattern)" <<<"$said"; then
            echo "ok $name: $query"
        else
            echo "FAIL $user must not, $name: $query: said '$said'"
        fi
    done
}
denied='permission denied for (table|function|view|schema|type)'

# --- the roles themselves ---
made=$(printf ' create role proverq_%s nologin;' operator producer prover finalizer reader)
it 'without CREATEROLE the error has the statements for the administrator' \
    "$(sql -c 'select proverq.create_roles()' 2>&1 |
        grep -oE 'may not create roles|create role proverq_[a-z]* nologin;|select proverq.apply_grants\(\);' |
        paste -sd' ')" \
    "may not create roles$made select proverq.apply_grants();"
may 'an administrator makes them' postgres 'select proverq.create_roles()' \
    '{proverq_operator,proverq_producer,proverq_prover,proverq_finalizer,proverq_reader}'
may 'once' postgres 'select proverq.create_roles()' '{}'
it 'the owner may call it then' "$(sql -c 'select proverq.create_roles()')" '{}'
it 'they cannot log in' "$(sql -c "select count(*) from pg_roles where rolname ~ '^proverq_' and not rolcanlogin
    and not rolsuper and not rolcreaterole and not rolbypassrls")" 5
for user in alice:producer bob:producer oscar:operator rita:reader paula:prover fred:finalizer; do
    as postgres "create role ${user%:*} login in role proverq_${user#*:}"
done
as postgres 'create role nobody_here login'

# --- the list is whole ---
it 'every function has an entry' "$(sql -c "select string_agg(distinct p.proname, ' ') from pg_proc p
    where p.pronamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace)
    and not exists (select from proverq.access() a where a.kind = 'function'
        and a.object = p.pronamespace::regnamespace || '.' || p.proname)")" ''
it 'every view and table has one' "$(sql -c "select string_agg(c.relname, ' ') from pg_class c
    where c.relnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace) and c.relkind in ('r', 'p', 'v')
    and not c.relispartition
    and not exists (select from proverq.access() a where a.kind = case c.relkind when 'v' then 'view' else 'table' end
        and a.object = c.relnamespace::regnamespace || '.' || c.relname)")" ''
it 'no entry is without its object' "$(sql -c "select string_agg(a.object, ' ') from proverq.access() a
    where a.object not in ('proverq', 'proverq_private', 'proverq_private.code_digest')
    and not exists (select from pg_proc p where a.kind = 'function'
        and p.pronamespace::regnamespace || '.' || p.proname = a.object)
    and not exists (select from pg_class c where a.kind = case c.relkind when 'v' then 'view' else 'table' end
        and c.relnamespace::regnamespace || '.' || c.relname = a.object)")" ''
it 'columns that a reader does not see' \
    "$(sql -c "select string_agg(c.relname || '.' || a.attname, ' ' order by c.relname, a.attnum) from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where c.relnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace)
        and c.relkind in ('r', 'p', 'v') and not c.relispartition
        and not has_column_privilege('proverq_reader', c.oid, a.attname, 'select')")" \
    "$(echo artefact_chunk.{sha256,idx,data} job.request_sha256 partition.{token,witness,inputs} \
        webhook_secret.{endpoint_id,secret,created_at,valid_until})"
it 'what everybody may do' "$(sql -c "select string_agg(p.proname, ' ') from pg_proc p
    where p.pronamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace)
    and has_function_privilege('public', p.oid, 'execute')")" ''
it 'functions that a role may call run with the rights of the owner, or only read' \
    "$(sql -c "select string_agg(distinct p.proname, ' ' order by p.proname) from pg_proc p
        join proverq.access() a on a.kind = 'function' and a.object = p.pronamespace::regnamespace || '.' || p.proname
        and a.roles <> '{}'
        where p.pronamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace)
        and not p.prosecdef and p.provolatile = 'v'")" ''
it 'views ask for the rights of who reads them' "$(sql -c "select string_agg(c.relname, ' ') from pg_class c
    where c.relnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace) and c.relkind = 'v'
    and not coalesce('security_invoker=true' = any (c.reloptions), false)")" ''

# --- strangers ---
may_not 'a stranger' "$denied" nobody_here 'select * from proverq.jobs' "select proverq.enqueue_path('mul', '{a}')" \
    'select proverq.why(1)' 'select proverq.access()' \
    "insert into proverq.job (circuit, partitions) values ('mul', 1)" 'table proverq.step'

# --- producers ---
may 'a producer enqueues witnesses' alice \
    "select proverq.enqueue_witness('mul', array['\\x01'::bytea, '\\x02'], request_id => 'r')" 1
may 'and paths' alice "select proverq.enqueue_path('mul', '{a,b}')" 2
may 'plain INSERTs do' alice "insert into proverq.job (circuit, partitions, priority, request_id, webhook, keep_inputs)
    values ('mul', 2, 1, 'x', null, true) returning job_seq" 3
may 'with their partitions' alice "insert into proverq.partition (job_seq, partition_idx, witness)
    values (3, 0, '\\x01'), (3, 1, '\\x01') returning state" held
it 'the jobs are queued' "$(sql -c 'select test.state(1), test.states(1), test.state(2), test.state(3),
    string_agg(distinct submitter, chr(32)) from proverq.job')" 'queued|ready ready|queued|queued|alice'
sql -c 'update proverq_private.webhook_endpoint set shared = true' # the fixture's hook
may 'another has jobs of its own' bob \
    "select proverq.enqueue_witness('mul', array['\\x02'::bytea], request_id => 'r', webhook => 'hook')" 4
may 'the same request_id of two submitters is two jobs' bob "select count(*) from proverq.jobs" 1
may 'a producer sees its jobs' alice \
    "select string_agg(job_seq || ' ' || state, ', ' order by job_seq) from proverq.jobs" '1 queued, 2 queued, 3 queued'
may 'and only those, in the table' alice 'select count(*), min(submitter), max(submitter) from proverq.job' \
    '3|alice|alice'
may 'and their partitions' alice 'select count(*), count(distinct job_seq) from proverq.partition' '6|3'
may 'no filter of its own sees more' alice "select count(*) from proverq.job where submitter = 'bob' or job_seq = 4" 0
may 'nor a function that tells what it is given' alice "create function pg_temp.tell(text)
    returns bool language plpgsql cost 0.0001 as \$\$ begin raise notice '%', \$1; return true; end \$\$;
    select count(*) from proverq.job where pg_temp.tell(submitter) and submitter <> 'alice'" 0
may 'why tells of its own' alice "select proverq.why(1) ~ 'job 1: '" t
may 'of another as of one that is not there' alice 'select proverq.why(4)' \
    'there is no job 4; list them with: select * from proverq.jobs;'
may_not 'another submitter'"'"'s job' 'there is no job 4' alice 'select proverq.wait(4)' 'select proverq.proof(4)' \
    'select proverq.proof_compressed(4)' 'select proverq.cancel(4)' 'select proverq.retry(4)' \
    'select proverq.set_priority(4, 9)' "select proverq.retry_with_witnesses(4, array['\\x01'::bytea])" \
    "select proverq.retry_with_inputs(4, array['{}'::jsonb])" \
    "insert into proverq.partition (job_seq, partition_idx, witness) values (4, 0, '\\x01')"
may_not 'what is not there says the same' 'there is no job 99' alice 'select proverq.wait(99)' \
    'select proverq.proof(99)' 'select proverq.cancel(99)' 'select proverq.set_priority(99, 1)' \
    "insert into proverq.partition (job_seq, partition_idx, witness) values (99, 0, '\\x01')"
may_not 'reading witnesses, inputs and the like, its own too' "$denied" alice 'select witness from proverq.partition' \
    'select inputs from proverq.partition' 'select token from proverq.partition' 'select * from proverq.partition' \
    'select request_sha256 from proverq.job' 'copy proverq.partition to stdout' \
    'select data from proverq_private.artefact_chunk' "select 1 from proverq.partition where witness = '\\x01'" \
    'select secret from proverq_private.webhook_secret' 'select * from proverq_private.webhook_secret' \
    'select p from proverq.partition p'
timing='insert into proverq.timing (prover_id, device, worker, step, started_at, duration)'
may_not 'changing rows' "$denied" alice "update proverq.partition set state = 'proved'" \
    "update proverq.job set state = 'finished'" "update proverq.job set priority = 9" 'delete from proverq.job' \
    'delete from proverq.partition' 'truncate proverq.job cascade' 'select 1 from proverq.job for update' \
    'begin; lock table proverq.partition in share mode' "update proverq_private.prover set idle = true" \
    "update proverq_private.webhook_delivery set state = 'pending'" \
    "update proverq_private.webhook_endpoint set url = 'https://x'" 'delete from proverq.timing' \
    "update proverq.retention set keep = '1 s'" "update proverq.alert_limit set muted = true" \
    "insert into proverq.schema_migration (version, name, breaking) values (99, 'x', true)" \
    "$timing values (1, 'cpu', 0, 10, now(), 1)"
may_not 'forging columns' "$denied" alice \
    "insert into proverq.job (circuit, partitions, submitter) values ('mul', 1, 'bob')" \
    "insert into proverq.job (circuit, partitions, state) values ('mul', 1, 'finished')" \
    "insert into proverq.job (circuit, partitions, circuit_id) values ('mul', 1, 1)" \
    "insert into proverq.partition (job_seq, partition_idx, witness, state) values (1, 0, '\\x01', 'proved')" \
    "insert into proverq.partition (job_seq, partition_idx, witness, proof) values (1, 0, '\\x01', '{}')"
complete="select proverq_private.complete('{1}', '{0}', array[gen_random_uuid()], '{\"{}\"}', '{\"[]\"}'"
complete+=", '{NULL}', '{1}', '{}', '{}', '{}', '{}')"
may_not 'doing the service'"'"'s work' "$denied" alice "select count(*) from proverq_private.claim(1, '{2}', 1000, 1)" \
    "select proverq_private.renew_leases(1, '{}', '{}', '{}', 1000)" \
    "select proverq_private.renew_leases(1, '{}', '{}', '{}', 1000)" 'select * from proverq_private.finalizable(1)' \
    'select * from proverq_private.finalize(1)' \
    "$complete" \
    "select proverq_private.fail(1, 0, gen_random_uuid(), 'x', 'x', false, true, '{}', '{}', '{}', '{}')" \
    "select proverq_private.release(1, 0, gen_random_uuid(), 'x', 0)" 'select proverq.rescue_expired()' \
    "select proverq_private.rescue_prover(gen_random_uuid())" 'select proverq_private.finalize(1)' \
    'select proverq.wake_due()' 'select proverq.make_timing_partitions(1)' \
    "select proverq_private.record_deliveries('[]')" \
    "select proverq_private.circuit_add('mul', '\\x', 'bn128', 1, 1, 1, '\\x', null, '{}', false)" \
    "select proverq_private.record_workers(1, '{}', '{}', '{}', '{}', '{}', '{}', '{}')" \
    "insert into proverq_private.prover (instance, host, pid, device) values (gen_random_uuid(), 'h', 1, 'cpu')"
may_not 'operating' "$denied" alice "select proverq.pause('mul')" "select proverq.resume('mul')" \
    'select * from proverq.prune()' "insert into proverq_private.paused (circuit) values ('mul')" \
    'select proverq.access()'
may_not 'calling what is internal' "$denied" alice "select proverq_private.begin_run(j) from proverq.job j" \
    "select proverq_private.end_job(4, 'cancelled', null, null)" 'select proverq_private.lock_job(4)' \
    'select proverq_private.disable_endpoint(1, null)' "select proverq_private.partition_failed(1, 0, 'x', 'x')" \
    "select proverq_private.partition_lost(1, 0, gen_random_uuid(), false)" \
    'select proverq_private.webhook_enqueue(4)' 'select proverq_private.webhook_body(4)' \
    "select proverq_private.enqueue_job('mul', 'path', 1, null, 0, null, null, false, null)" \
    'select proverq_private.notify_work()' 'select proverq.apply_grants()' 'select proverq.create_roles()' \
    'select proverq_private.require_finished(4)' 'select proverq_private.why_queued(4, 2)' \
    "select proverq_private.record_timing(1, 0, 1, 1, '{}', '{}', '{}', '{}')"
may_not 'looking at devices' "$denied" alice 'select * from proverq.device_gaps' \
    'select * from proverq.device_utilization' 'select * from proverq.gap_causes' \
    'select * from proverq_private.device_activity'
may_not 'making objects' "$denied" alice 'create table proverq.trap ()' \
    "create function proverq.trap() returns int language sql as 'select 1'" 'create view proverq.trap as select 1'
may_not 'owning' 'must be owner' alice 'drop view proverq.jobs' 'alter table proverq.job disable row level security' \
    "create policy p on proverq.job using (true)"
may_not 'getting past policies' 'affected by row-level security' alice \
    'set row_security = off; select 1 from proverq.job'
may_not 'becoming another' 'permission denied to set' alice 'set role proverq_operator' \
    'set session authorization bob' 'set role proverq'

# Objects of its own are not stepped on: every function has a fixed search_path.
may 'a table of the same name in pg_temp is not used' alice \
    "create temp table job (job_seq bigint, circuit text, submitter name, state text);
        create temp table circuit (name text);
        insert into circuit values ('trap'); select proverq.enqueue_path('mul', '{a}')" 5
as postgres 'create schema trap authorization alice'
as alice "create function trap.pg_notify(text, text) returns void language sql as 'select 1/0'" \
    "create function trap.may_read(name) returns bool language sql as 'select true'" \
    "create function trap.is_owner() returns bool language sql as 'select true'"
may 'nor functions of the same name elsewhere' alice "set search_path = trap, pg_catalog, proverq; select why(4)" \
    'there is no job 4; list them with: select * from proverq.jobs;'
it 'nor by others' \
    "$(as postgres 'set search_path = trap, pg_catalog, proverq' \
        "select proverq.enqueue_witness('mul', array['\\x01'::bytea])" | tail -n 1)" 6
as postgres 'drop schema trap cascade' 2>/dev/null >&2

# Webhook endpoints are their submitter's.
it 'a producer makes an endpoint, and is told the secret' \
    "$(as alice "select proverq.create_webhook_endpoint('mine', 'https://alice.example/x')" | cut -c1-6)" whsec_
may 'proverq listen makes one too' alice \
    "select proverq_private.listen_webhooks('dev', 'http://127.0.0.1:8000/') ~ '^whsec_'" t
may 'and moves it' alice "select proverq_private.listen_webhooks('dev', 'http://127.0.0.1:8001/') ~ '^whsec_'" t
may 'it sees its own, and what is shared' alice \
    "select string_agg(name, ' ' order by name) from proverq.webhook_endpoints" 'dev hook mine'
may 'another does not' bob "select string_agg(name, ' ' order by name) from proverq.webhook_endpoints" hook
may 'its jobs use it' alice "select proverq.enqueue_path('mul', '{a}', webhook => 'mine')" 7
may 'it cancels its own jobs' alice 'select proverq.cancel(7)' t
may 'and sees what is sent' alice 'select endpoint, job_seq, event from proverq.deliveries' \
    'mine|7|proverq.job.cancelled'
may 'another does not' bob 'select count(*) from proverq.deliveries' 0
may_not 'another submitter'"'"'s endpoint' 'there is no webhook endpoint|no webhook' bob \
    "select proverq.rotate_webhook_secret('mine')" "select proverq.rotate_webhook_secret('alice/mine')" \
    "select proverq.disable_webhook_endpoint('alice/mine')" \
    "select proverq.set_webhook_url('alice/mine', 'https://bob.example')" \
    "select proverq.ping_webhook_endpoint('alice/mine')" "select proverq.enable_webhook_endpoint('mine')" \
    "select proverq.enqueue_path('mul', '{a}', webhook => 'mine')" \
    "select proverq.enqueue_path('mul', '{a}', webhook => 'https://alice.example/x')" \
    "select proverq.redeliver_failed('alice/mine', '-infinity')" \
    "select proverq.redeliver('$(sql -c 'select webhook_id from proverq.deliveries')')"
it 'a shared one is for operators to make' \
    "$(as alice "select proverq.create_webhook_endpoint('all', 'https://x.example', shared => true)" |
        grep -c '^ERROR')" 1

# --- provers ---
may 'a prover says hello' paula "prepare s as $(grep -v '^--' sql/statements/prover_register.sql);
    execute s ('00000000-0000-0000-0000-0000000000aa', 'h', 1, 'cpu', 'd', 'v')" 5
may 'and good-bye' paula "prepare s as $(grep -v '^--' sql/statements/prover_stop.sql); execute s (5)" ''
may 'it claims' paula "select string_agg(job_seq || '/' || partition_idx, ' ')
    from proverq_private.claim(5, '{2}', 60000, 4)" '3/0 3/1 1/0 1/1'
may 'renews its leases' paula "select proverq_private.renew_leases(5, '{1,1}', '{0,1}',
    array['$(sql -c "select test.token(1, 0)")', '$(sql -c "select test.token(1, 1)")']::uuid[], 60000)" 2
for idx in 0 1; do
    may 'completes' paula \
        "select proverq_private.complete('{1}', '{$idx}', array['$(sql -c "select test.token(1, $idx)")']::uuid[],
            array['{}'::jsonb], array['[]'::jsonb], '{NULL}', '{1}', '{10}', '{0}', array[now()], '{7}')" 1
done
may_not 'a prover' "$denied" paula 'select * from proverq.jobs' 'select * from proverq.job' \
    'select * from proverq.partition' 'select secret from proverq_private.webhook_secret' \
    'select * from proverq.deliveries' 'select proverq_private.finalize(1)' "select proverq.pause('mul')" \
    'select proverq.cancel(4)' 'select * from proverq_private.claim_deliveries(1, 1, 1, 1)' \
    'select * from proverq.prune()' "select proverq.enqueue_path('mul', '{a}')" \
    "insert into proverq.job (circuit, partitions) values ('mul', 1)" 'select proverq.proof(1)' \
    "update proverq.partition set state = 'ready'" 'update proverq_private.prover set host = null' \
    "insert into proverq_private.artefact (sha256, kind, bytes, path) values (sha256('x'), 'zkey', 1, 'x')" \
    'update proverq.circuit set removed_at = now()' 'create table proverq.trap ()' 'delete from proverq_private.prover'

# --- finalizers ---
may 'a finalizer looks for jobs' fred 'select job_seq from proverq_private.finalizable(10)' 1
may 'and ends them' fred 'select event from proverq_private.finalize(1)' proverq.job.finished
may 'makes timing tables' fred 'select proverq.make_timing_partitions(0)' 1
may 'takes webhooks, with their secrets' fred \
    "select secrets ~ '^whsec_' from proverq_private.claim_deliveries(10, 1, 10, 1000)" t
may 'prunes' fred 'select count(*) from proverq.prune()' 0
may 'and sweeps' fred 'select proverq.rescue_expired() + proverq.wake_due()' 0
may_not 'a finalizer' "$denied" fred "select count(*) from proverq_private.claim(1, '{2}', 1000, 1)" \
    'select * from proverq.job' 'select * from proverq.jobs' 'select inputs from proverq.partition' \
    "select proverq.enqueue_path('mul', '{a}')" "update proverq.job set state = 'queued'" \
    "update proverq_private.webhook_endpoint set url = 'https://x'" 'select proverq.why(1)' \
    'update proverq.retention set keep = null' 'select secret from proverq_private.webhook_secret' \
    "select proverq.pause('mul')" 'select proverq.cancel(4)' \
    "$complete"

# --- what its submitter gets, and others do not ---
may 'the submitter gets its proof' alice 'select jsonb_array_length(proverq.proof(1))' 2
may_not 'another does not' 'there is no job 1' bob 'select proverq.proof(1)' 'select proverq.wait(1)'
may 'its timings' alice 'select count(*), min(job_seq), max(job_seq) from proverq.timings' '2|1|1'
may 'its timeline' alice "select count(*) > 0 from proverq.job_timeline where job_seq = 1" t
may 'and statistics' alice 'select step, count from proverq.step_stats' 'claim|2'
may 'another sees none of them' bob 'select (select count(*) from proverq.timings) + (select count(*)
    from proverq.job_timeline) + (select count(*) from proverq.step_stats) + (select count(*) from proverq.timing)' 0

# --- readers ---
may 'a reader sees the jobs of all' rita 'select count(distinct submitter) from proverq.jobs' 3
may 'timings' rita 'select count(*) from proverq.timings' 2
may 'devices' rita 'select count(*) from proverq.device_gaps' 0
may 'proofs' rita 'select jsonb_array_length(proverq.proof(1))' 2
may 'why' rita "select proverq.why(4) ~ 'job 4'" t
may 'and the list of rights' rita "select roles from proverq.access() where object = 'proverq_private.claim'" \
    '{proverq_prover}'
may_not 'a reader' "$denied" rita 'select witness from proverq.partition' 'select inputs from proverq.partition' \
    'select secret from proverq_private.webhook_secret' 'select request_sha256 from proverq.job' \
    'select data from proverq_private.artefact_chunk' "select proverq.enqueue_path('mul', '{a}')" \
    "insert into proverq.job (circuit, partitions) values ('mul', 1)" \
    "select count(*) from proverq_private.claim(1, '{2}', 1000, 1)" 'select proverq_private.finalize(1)' \
    "update proverq.job set priority = 1" "select proverq.create_webhook_endpoint('r', 'https://r')" \
    'select proverq.cancel(4)' 'select proverq.retry(4)' 'select proverq.set_priority(4, 1)' \
    "select proverq.pause('mul')" 'select secret from proverq_private.webhook_secret' 'select * from proverq.prune()' \
    'select proverq.rescue_expired()' 'select proverq.make_timing_partitions(1)' \
    'update proverq.retention set keep = null'

# --- operators ---
may 'an operator sees the jobs of all' oscar 'select count(distinct submitter) from proverq.jobs' 3
may 'pauses' oscar "select proverq.pause('mul', 'test')" t
may 'and resumes' oscar "select proverq.resume('mul')" t
may 'moves the jobs of others' oscar 'select proverq.set_priority(4, 7)' 1
may 'cancels them' oscar 'select proverq.cancel(4)' t
may_not 'and retries them, if the inputs are there' 'inputs of job 4 were deleted' oscar 'select proverq.retry(4)'
may 'sees every delivery' oscar 'select count(*) from proverq.deliveries' 2
may 'says how long things are kept' oscar \
    "update proverq.retention set keep = '60 days' where what = 'jobs' returning what" jobs
may 'and what is worth an alert' oscar \
    "update proverq.alert_limit set after = '1 h' where alert = 'ready_waits' returning alert" ready_waits
may 'takes circuits away' oscar "prepare s as $(grep -v '^--' sql/statements/circuit_remove.sql); execute s ('other')" 1
may 'adds them' oscar "select added
    from proverq_private.circuit_add('other', sha256('o2'), 'bn128', 4, 1, 3, sha256('mul'), null, '{}', true)" t
may 'with their files' oscar \
    "begin; insert into proverq_private.artefact (sha256, kind, bytes) values (sha256('f'), 'zkey', 1);
        insert into proverq_private.artefact_chunk (sha256, idx, data) values (sha256('f'), 0, 'x'); commit; select 1" 1
may_not 'an operator' "$denied" oscar 'select witness from proverq.partition' 'select inputs from proverq.partition' \
    'select secret from proverq_private.webhook_secret' "select proverq.enqueue_path('mul', '{a}')" \
    "select count(*) from proverq_private.claim(1, '{2}', 1000, 1)" "update proverq.job set state = 'finished'" \
    "update proverq.partition set state = 'proved'" 'delete from proverq.job' "update proverq.circuit set vkey = '{}'" \
    'create table proverq.trap ()' 'select proverq_private.finalize(1)' 'truncate proverq.timing'

# --- groups: who is a member of the submitter sees what it submits ---
as postgres 'create role team nologin in role proverq_producer' 'create role carol login in role team' \
    'create role dave login in role team'
may 'members submit under their own name' carol "select proverq.enqueue_path('mul', '{a}')" 10
may_not 'which other members do not see' 'there is no job 10' dave 'select proverq.wait(10)'
as postgres 'grant carol to dave'
may 'unless they are members of it' dave 'select count(*) from proverq.jobs' 1
as postgres 'drop role nobody_here' 'drop owned by carol' 'drop role carol'
may 'the jobs of a role that was dropped stay readable' rita "select proverq.why(10) ~ '^job 10: '" t
may 'and are nobody else'"'"'s' alice "select proverq.why(10)" \
    'there is no job 10; list them with: select * from proverq.jobs;'

# --- what an operator allows: URLs below a shared endpoint that ends in / ---
may 'an operator allows URLs below one' oscar \
    "select proverq.create_webhook_endpoint('allowed', 'https://hooks.example/in/', shared => true) ~ '^whsec_'" t
job=$(as bob "select proverq.enqueue_path('mul', '{a}', webhook => 'https://hooks.example/in/bob?x=1')")
may_not 'not those beside it' 'there is no webhook endpoint|not a URL' bob \
    "select proverq.enqueue_path('mul', '{a}', webhook => 'https://hooks.example/inside')" \
    "select proverq.enqueue_path('mul', '{a}', webhook => 'https://hooks.example/in/../out')" \
    "select proverq.enqueue_path('mul', '{a}', webhook => 'https://hooks.example.org/in/')"
may 'a job that names one' bob "select proverq.cancel($job)" t
may 'sends there' bob "select url from proverq.deliveries where job_seq = $job" 'https://hooks.example/in/bob?x=1'
id=$(sql -c "select webhook_id from proverq.deliveries where job_seq = $job")
may 'with the operator'"'"'s secret' fred "select secrets ~ '^whsec_[^ ]*$'
    from proverq_private.claim_deliveries(10, 10, 10, 60000) where url = 'https://hooks.example/in/bob?x=1'" t
fail() {
    local taken
    taken=$(sql -c "select delivery_id, token from proverq_private.webhook_delivery where job_seq = $job")
    as fred "select r.outcome from proverq_private.record_deliveries('[{\"delivery\": \"${taken%|*}\",
        \"token\": \"${taken#*|}\", \"status\": $1, \"error\": \"HTTP $1\"}]') r"
}
it 'what its URL answers' "$(fail 410)" failed
it 'does not count against what others use' \
    "$(sql -c "select state, failures from proverq.webhook_endpoints where name = 'allowed'")" 'open|0'
may 'its submitter sends it again' bob "select proverq.redeliver('$id')" ''
may_not 'nobody else' 'no webhook' alice "select proverq.redeliver('$id')"
may 'the endpoint itself is the operator'"'"'s' oscar \
    "select proverq.set_webhook_url('allowed', 'https://hooks.example/new/')" ''
may_not 'to change' 'no webhook endpoint' bob "select proverq.set_webhook_url('allowed', 'https://bob.example/')" \
    "select proverq.rotate_webhook_secret('oscar/allowed')"

# --- granting again changes nothing, and takes back what is not on the list ---
acl() {
    sql -c "select c.relname, c.relacl from pg_class c
        where c.relnamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace) order by 1" \
        -c "select p.proname, p.proacl from pg_proc p
            where p.pronamespace in ('proverq'::regnamespace, 'proverq_private'::regnamespace)
            order by p.oid::regprocedure::text" \
        -c "select attrelid::regclass, attname, attacl from pg_attribute
            where attacl is not null and attrelid::regclass::text ~ '^proverq' order by 1, 2"
}
sql -f sql/grants.sql >/dev/null # the day's tables, too, which were made meanwhile
acl >"$work/acl"
sql -c 'grant update on proverq.job to proverq_reader' \
    -c 'grant select (secret) on proverq_private.webhook_secret to proverq_reader' \
    -c 'grant execute on function proverq_private.claim to public' -f sql/grants.sql >/dev/null
it 'granting again gives the same' "$(acl | diff "$work/acl" -)" ''
as postgres 'drop role alice, bob, oscar, rita, paula, fred, dave, team' >/dev/null
