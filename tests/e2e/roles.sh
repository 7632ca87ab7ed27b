#!/usr/bin/env bash
# The whole service under the roles: nobody but the migration is the owner. Circuits are added by an operator, jobs come from a
# producer, a prover and a finalizer have no more than their roles, and a supervisor both.
source "$(dirname "$0")/service_lib.sh"

own=$root/tests/circuits
owner=$PROVERQ_DATABASE
home=$work/pg
[ ! -L "$home/home" ] || home=$home/home
admin() { psql -X -q -A -t -v ON_ERROR_STOP=1 -h "$(cat "$home/socket-folder" 2>/dev/null || echo "$home/socket")" -p "$(cat "$home/port")" -U postgres -d proverq "$@"; }
# url_of USER: the owner's connection string with another user.
url_of() { sed -E "s|//[^@]*@|//$1:secret-$1@|" <<<"$owner"; }
# as USER COMMAND ...: the service's program or psql with that user's connection.
as() {
    local user=$1
    shift
    PROVERQ_DATABASE=$(url_of "$user") "$@"
}
as_user() { as "$1" psql -X -q -A -t -v ON_ERROR_STOP=1 "$(url_of "$1")" "${@:2}"; }
begin_as() { # USER NAME COMMAND ...
    local PROVERQ_DATABASE
    PROVERQ_DATABASE=$(url_of "$1")
    begin "${@:2}"
}

ok 'the owner migrates' "$proverq" migrate up
refused 'the owner may not make roles, and says what an administrator runs' 'create role proverq_operator nologin;.*select proverq.apply_grants\(\);' \
    psql -X "$owner" -c 'select proverq.create_roles()'
ok 'an administrator makes them' admin -c 'select proverq.create_roles()'
for user in operator producer prover finalizer reader; do
    admin -c "create role the_$user login password 'secret-the_$user' in role proverq_$user"
done
admin -c "create role the_host login password 'secret-the_host' in role proverq_prover, proverq_finalizer"

echo '-- circuits'
ok 'an operator adds a circuit' as the_operator "$proverq" circuit add factor "$own/factor/factor.zkey" --wasm "$own/factor/factor.wasm" --r1cs "$own/factor/factor.r1cs"
ok 'and another' as the_operator "$proverq" circuit add merkle "$own/merkle/merkle.zkey"
ok 'and shows it' as the_operator "$proverq" circuit show factor
ok 'takes it away' as the_operator "$proverq" circuit rm merkle
ok 'and brings it back' as the_operator "$proverq" circuit add merkle "$own/merkle/merkle.zkey"
ok 'a reader lists them' as the_reader "$proverq" circuit list
refused 'a producer adds none' 'permission denied' as the_producer "$proverq" circuit add other "$own/merkle/merkle.zkey"
refused 'a prover takes none away' 'permission denied' as the_prover "$proverq" circuit rm factor
refused 'an operator does not migrate down' 'must own the schema|permission denied|must be owner' as the_operator "$proverq" migrate down 0
ok 'an operator sees the version' as the_operator "$proverq" migrate status
refused 'a producer is no prover' 'permission denied' as the_producer timeout 20 "$proverq" prover --device cpu
refused 'a prover is no finalizer' 'permission denied' as the_prover timeout 20 "$proverq" finalizer

echo '-- a job of each kind'
echo "/hook 204" >"$work/endpoints"
begin receiver "$root/tests/receiver.py" "$work/endpoints" "$work/webhooks"
until_true 10 test -s "$work/receiver.log"
as_user the_producer -c "select proverq.create_webhook_endpoint('mine', 'http://127.0.0.1:$(cat "$work/receiver.log")/hook')" >"$work/secret"
is 'a producer makes a webhook endpoint' whsec_ "$(head -c 6 "$work/secret")"
sql -c "insert into proverq.job (circuit, partitions) values ('merkle', 1)" -c "select proverq.cancel(1)" -c "update proverq.job set created_at = '2020-01-01', finished_at = '2020-01-01'" >/dev/null
begin_as the_prover prover nice "$proverq" prover --device cpu --threads 1 --poll 200ms
begin_as the_finalizer finalizer "$proverq" finalizer --poll 200ms --webhook-http --webhook-allow 127.0.0.0/8
inputs=$(as_user the_producer -c "select proverq.enqueue('factor', array['{\"p\": 65521, \"q\": 49999}'::jsonb, '{\"p\": 49999, \"q\": 65521}'], webhook => 'mine')")
printf '\\set w `base64 -w0 %q`\n%s\n' "$own/merkle/witness.wtns" "select proverq.enqueue_witness('merkle', array[decode(:'w', 'base64')]);" >"$work/witness.sql"
witness=$(as_user the_producer -f "$work/witness.sql")
bad=$(as_user the_producer -c "select proverq.enqueue_witness('merkle', array['\\x00'::bytea])")
is 'its jobs are proved' 'finished finished' "$(as_user the_producer -c "select proverq.wait($inputs, '2 min')" -c "select proverq.wait($witness, '2 min')" | paste -sd' ')"
is 'or fail' failed "$(as_user the_producer -c "select proverq.wait($bad, '2 min')")"
as_user the_producer -c "select proverq.proof($witness) -> 0 -> 'proof'" >"$work/proof.json"
as_user the_producer -c "select proverq.proof($witness) -> 0 -> 'publics'" >"$work/public.json"
ok 'the proof that its producer reads is valid' "$proverq" verify "$own/merkle/vkey.json" "$work/public.json" "$work/proof.json"
is 'it sees when each step ran' t "$(as_user the_producer -c "select count(distinct step) > 8 from proverq.job_timeline where job_seq = $inputs")"
is 'and why its job failed' t "$(as_user the_producer -c "select count(*) > 0 from proverq.failures where job_seq = $bad")"
eventually 'the webhook is delivered' 30 "select count(*) = 1 from proverq.deliveries where state = 'delivered'"
is 'and its attempt logged, for the producer as well' 204 "$(as_user the_producer -c 'select status from proverq.delivery_attempts')"
is 'the finalizer has made the timing tables' t "$(sql -c "select count(*) > 7 from pg_inherits where inhparent = 'proverq.timing'::regclass")"
eventually 'and deleted what was too old' 30 "select count(*) = 0 from proverq.job where job_seq = 1"
is 'a reader sees all jobs' 3 "$(as_user the_reader -c 'select count(*) from proverq.jobs')"
is 'and that nothing is wrong' '' "$(as_user the_reader -c 'select * from proverq.alerts' -c 'select * from proverq.check_invariants()')"
is 'an operator pauses a circuit' t "$(as_user the_operator -c "select proverq.pause('merkle')")"
held=$(as_user the_producer -f "$work/witness.sql")
is 'of which nothing is proved then' queued "$(as_user the_producer -c "select proverq.wait($held, '1 s')")"
is 'an operator cancels what others have enqueued' t "$(as_user the_operator -c "select proverq.cancel($held)")"
as_user the_operator -c "select proverq.resume('merkle')" >/dev/null
ends_well 'a prover' prover
ends_well 'a finalizer' finalizer
is 'nothing was denied to them' '' "$(grep -h 'permission denied' "$work/prover.log" "$work/finalizer.log" | head -n 3)"

echo '-- a supervisor'
begin_as the_host serve "$proverq" serve --device cpu --threads 1 --lease 10m --poll 200ms --webhook-http --webhook-allow 127.0.0.0/8
job=$(as_user the_producer -f "$work/witness.sql")
is 'a member of both roles serves' finished "$(as_user the_producer -c "select proverq.wait($job, '2 min')")"
until_true 30 sql -c "select count(*) = 1 from proverq_private.prover where state = 'running'"
victim=$(sql -c "select pid from proverq_private.prover where state = 'running'")
as_user the_operator -c "select proverq.set_priority($(as_user the_producer -c "select proverq.enqueue('factor', array_fill('{\"p\": 65521, \"q\": 49999}'::jsonb, array[200]))"), 5)" >/dev/null
until_true 30 sql -c "select count(*) > 0 from proverq.partition where state = 'leased'"
kill -9 "$victim"
eventually 'a prover that is killed gives its leases back at once' 30 "select state = 'lost' from proverq_private.prover where pid = $victim"
eventually 'and another goes on' 120 "select count(*) = 0 from proverq.job where finished_at is null"
ends_well 'the supervisor' serve
is 'nothing was denied to it' '' "$(grep -h 'permission denied' "$work/serve.log" | head -n 3)"
finish
