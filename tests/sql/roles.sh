# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# Other roles than the owner. Needs the superuser of a private PostgreSQL.
if [ -n "${PROVERQ_TEST_DSN-}" ]; then
    echo '-- left out: the roles that it makes need a superuser; unset PROVERQ_TEST_DSN'
    return 0
fi
fresh
admin() {
    local home=$work/postgres
    [ ! -L "$home/home" ] || home=$home/home
    psql -X -q -A -t -v ON_ERROR_STOP=1 -h "$(cat "$home/socket-folder" 2>/dev/null || echo "$home/socket")" -p "$(cat "$home/port")" \
        -U postgres -d proverq "$@"
}
# as ROLE "SQL": in a session of that role, not by SET ROLE: session_user is what counts.
as() { admin -c "set session authorization $1" -c "$2" 2>&1 | sed 's/^psql:[^ ]* //' | head -n 1; }

admin -c 'create role test_alice login' -c 'create role test_bob login'
it 'a stranger may do nothing' "$(as test_alice 'select * from proverq.jobs')" 'ERROR:  permission denied for schema proverq'
sql -c 'grant usage on schema proverq to test_alice, test_bob' -c 'grant select, insert on proverq.job, proverq.partition to test_alice, test_bob' \
    -c 'grant select on proverq.jobs, proverq.circuit to test_alice'
it 'INSERT on job and partition is all that a producer needs' "$(as test_alice "select proverq.enqueue_witness('mul', array['\\x01'::bytea, '\\x02'])")" 1
it 'its job is queued' "$(sql -c 'select test.state(1), test.states(1), submitter from proverq.job')" 'queued|ready ready|test_alice'
it 'plain INSERTs too' "$(as test_alice "insert into proverq.job (circuit, partitions, submitter) values ('mul', 2, 'postgres')")" ''
it 'under its own name' "$(sql -c 'select submitter from proverq.job where job_seq = 2')" test_alice
it 'another cannot add partitions to it' "$(as test_bob "insert into proverq.partition (job_seq, partition_idx, witness) values (2, 0, '\\x01')")" 'ERROR:  job 2 belongs to test_alice'
it 'it can' "$(as test_alice "insert into proverq.partition (job_seq, partition_idx, witness) values (2, 0, '\\x01'), (2, 1, '\\x01')")" ''
it 'to the end' "$(sql -c 'select test.state(2)')" queued
it 'a producer cannot record proofs' "$(as test_alice "update proverq.partition set state = 'proved'")" 'ERROR:  permission denied for table partition'
it 'nor through the functions' "$(as test_alice "select count(*) from proverq.claim(1, '{2}', 1000, 1)" | cut -d' ' -f1-4)" 'ERROR:  permission denied'
it 'it reads the view with its own rights' "$(as test_alice 'select job_seq, state from proverq.jobs order by 1 limit 1')" '1|queued'
it 'the same request_id of two submitters' "$(as test_alice "select proverq.enqueue_witness('mul', array['\\x01'::bytea], request_id => 'r')")" 3
it 'is two jobs' "$(as test_bob "select proverq.enqueue_witness('mul', array['\\x02'::bytea], request_id => 'r')")" 4
# A trap set in a schema of one's own is not stepped into: every function has a fixed search_path.
admin -c 'create schema test_trap authorization test_alice'
as test_alice "create function test_trap.pg_notify(text, text) returns void language sql as 'select 1/0'"
it 'a function of the same name elsewhere is not called' "$(admin -c 'set search_path = test_trap, pg_catalog, proverq' -c "select proverq.enqueue_witness('mul', array['\\x01'::bytea])" 2>&1 | tail -n 1)" 5
admin -c 'drop schema test_trap cascade' 2>/dev/null
