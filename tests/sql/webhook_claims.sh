# shellcheck shell=bash disable=SC2154 # run.sh sources this; it has the variables and functions
# What a claim of webhooks costs when an endpoint that hangs has a backlog, and how endpoints share the slots.
fresh
sql -c "select count(proverq.create_webhook_endpoint('e' || i, 'https://example.com/' || i))
    from generate_series(1, 50) i" >/dev/null
# deliveries ENDPOINT COUNT
deliveries() {
    sql -c "insert into proverq_private.webhook_delivery (endpoint_id, event, body)
        select endpoint_id, 'proverq.ping', repeat('x', 1000)
        from proverq_private.webhook_endpoint, generate_series(1, $2) where name = '$1'"
}
# The median of 41 claims of one, in microseconds; they are rolled back.
claim_us() {
    sql -c "create or replace function test.claim_us() returns numeric language plpgsql as \$\$
            declare
                t timestamptz;
                us numeric[] := '{}';
            begin
                for i in 1..41 loop
                    t := clock_timestamp();
                    perform count(*) from proverq_private.claim_deliveries(1, 1, 8, 60000);
                    us := us || extract(epoch from clock_timestamp() - t) * 1e6;
                end loop;
                return (select round(percentile_disc(0.5) within group (order by u)) from unnest(us) u);
            end \$\$" -c begin -c 'select test.claim_us()' -c rollback
}
for ((i = 1; i <= 20; i++)); do deliveries "e$i" 10; done
sql -c 'analyze proverq_private.webhook_delivery, proverq_private.webhook_endpoint'
small=$(claim_us)
deliveries e50 10000
large=$(claim_us)
echo "-- a claim takes $small us, $large us with 10,000 more deliveries that wait for one endpoint"
it 'a backlog of one endpoint makes no claim slow' \
    "$([ "$large" -lt $((small * 3 + 1000)) ] && echo yes || echo "$small us, then $large us")" yes
sql -c "update proverq_private.webhook_delivery set next_attempt_at = clock_timestamp() + interval '5 minutes'
    where endpoint_id = (select endpoint_id from proverq_private.webhook_endpoint where name = 'e50')"
large=$(claim_us)
it 'nor one that waits for its next attempt' \
    "$([ "$large" -lt $((small * 3 + 1000)) ] && echo yes || echo "$small us, then $large us")" yes
deliveries e49 10000
sql -c "update proverq_private.webhook_endpoint set failures = 5, rests_until = clock_timestamp() + interval '1 minute'
    where name = 'e49'"
large=$(claim_us)
it 'nor one whose endpoint rests' \
    "$([ "$large" -lt $((small * 3 + 1000)) ] && echo yes || echo "$small us, then $large us")" yes

# Shares: 8 of each, of the one that fails 1.
sql -c "update proverq_private.webhook_endpoint set rests_until = null where name = 'e49'" \
    -c "update proverq_private.webhook_delivery set next_attempt_at = clock_timestamp() where next_attempt_at > now()"
it 'each endpoint gets its share, one that keeps failing one' "$(sql -c 'select n, count(*) from (
        select endpoint_id, count(*) as n from proverq_private.claim_deliveries(1000, 500, 8, 60000)
        join proverq_private.webhook_delivery using (delivery_id)
        group by 1) t
    group by 1 order by 1')" $'1|1\n8|21'
it 'and no more while that is under way' \
    "$(sql -c 'select count(*) from proverq_private.claim_deliveries(1000, 500, 8, 60000)')" 0

# Two finalizers at once take different ones.
open a
open b
sql -c 'update proverq_private.webhook_delivery set token = null, next_attempt_at = clock_timestamp()
    where token is not null'
ask a 'begin' >/dev/null
it 'one finalizer claims' "$(ask a 'select count(*) from proverq_private.claim_deliveries(100, 50, 4, 60000)')" 85
ask b 'begin' >/dev/null
it 'another does not wait for it, and takes others' \
    "$(ask b 'select count(*) from proverq_private.claim_deliveries(100, 50, 4, 60000)')" 85
ask a 'commit' >/dev/null
ask b 'commit' >/dev/null
it 'none was taken twice' "$(sql -c 'select count(*) from proverq_private.webhook_delivery where token is not null')" \
    170
close a
close b
