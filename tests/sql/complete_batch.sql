-- Several results in one transaction: each by its token, the jobs counted once.
create function test.complete_many(wanted text, stale text default '') returns text language plpgsql as $$
declare
    n int;
    jobs bigint[];
    partitions int[];
    tokens uuid[];
    proofs jsonb[];
    compressed bytea[];
    numbers int[];
begin
    select count(*), array_agg(split_part(k, '/', 1)::bigint order by i),
        array_agg(split_part(k, '/', 2)::int order by i),
           array_agg(case when k <> stale then test.token(split_part(k, '/', 1)::bigint, split_part(k, '/', 2)::int)
               else gen_random_uuid() end order by i),
           array_agg(jsonb_build_object('pi_a', split_part(k, '/', 2)::int) order by i),
           array_agg(case when k like '%/1' then '\xab'::bytea end order by i), array_agg((2 * i - 1)::int order by i)
    into n, jobs, partitions, tokens, proofs, compressed, numbers
    from unnest(string_to_array(wanted, ' ')) with ordinality a (k, i);
    return (select string_agg(m.result::text, ' ' order by m.result)
            from proverq_private.complete(jobs, partitions, tokens, proofs, array_fill('["1"]'::jsonb, array[n]),
                compressed, numbers,
                (select array_agg((case when g % 2 = 1 then 10 else 80 end)::smallint order by g)
                    from generate_series(1, 2 * n) g),
                (select array_agg(g::smallint order by g) from generate_series(1, 2 * n) g),
                array_fill(now(), array[2 * n]),
                    (select array_agg(g::bigint order by g) from generate_series(1, 2 * n) g)) m);
end
$$;

select test.job(3), test.job(2), test.job(1) \g /dev/null
select test.is(test.claim(10), '1/0 1/1 1/2 2/0 2/1 3/0', 'six leases');
select test.is(test.complete_many('2/0 1/1 1/0'), '1 2 3', 'three results of two jobs, in any order');
select test.is(test.states(1), 'proved proved leased', 'are recorded'),
       test.is(test.states(2), 'proved leased', 'each in its place');
select test.is(format('%s %s', remaining, state), '1 queued', 'two of one job are counted once')
from proverq.job where job_seq = 1;
select test.is(format('%s %s', remaining, state), '1 queued', 'one of the other') from proverq.job where job_seq = 2;
select test.is(format('%s %s %s %s', proof, publics, proof_compressed, token),
    '{"pi_a": 1} ["1"] \xab ', 'each has its own proof')
from proverq.partition where job_seq = 1 and partition_idx = 1;
select test.is(proof_compressed is null, true, 'compressed bytes only where there are some')
from proverq.partition where job_seq = 1 and partition_idx = 0;
select test.is(
    string_agg(format('%s/%s %s %s %s %s %s', job_seq, partition_idx, attempt, device, worker, step, duration),
        ', ' order by worker),
    '2/0 1 cpu 1 10 1, 2/0 1 cpu 2 80 2, 1/1 1 cpu 3 10 3, 1/1 1 cpu 4 80 4, 1/0 1 cpu 5 10 5, 1/0 1 cpu 6 80 6',
    'and its own steps')
from proverq.timing;

select test.is(test.complete_many('1/2 2/1', '2/1'), '1', 'a stale token is refused, the other result is not');
select test.is(test.states(2), 'proved leased', 'the lease of who has it stays'),
       test.is(test.state(1), 'completing', 'the last proof completes its job');
select test.is(count(*), '8', 'what is refused leaves no timing') from proverq.timing;
select test.is(test.complete_many('1/2 9/9'), null, 'what is proved or unknown is refused');
select test.is(format('%s %s', remaining, state), '0 completing', 'and counts nothing')
from proverq.job where job_seq = 1;
select test.is(test.complete_many('3/0 2/1'), '1 2', 'two jobs at once');
select test.is(string_agg(state::text, ' '), 'completing completing completing', 'are complete') from proverq.job;
select test.is(test.complete_many('2/1'), null, 'a second time it is refused');

select test.job(2) \g /dev/null
select test.is(test.claim(2), '4/0 4/1', 'two leases');
select test.is((select count(*) from proverq_private.complete('{4}', '{0}', array[test.token(4, 0)], '{"{}"}', '{"[]"}',
        '{NULL}', '{1}', '{}', '{}', '{}', '{}')),
    '1', 'no timing is no error');
select test.is((select count(*)
        from proverq_private.complete('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')),
    '0', 'no results neither');
select test.throws($$select proverq_private.complete('{4}', '{1,1}', array[test.token(4, 1)], '{"{}"}', '{"[]"}',
    '{NULL}', '{1}', '{}', '{}', '{}', '{}')$$,
    '22023', 'differ in length', 'arrays of different lengths');
select test.throws($$select proverq_private.complete('{4}', '{1}', array[test.token(4, 1)], '{"{}"}', '{"[]"}',
    '{NULL}', '{1}', '{10}', '{}', '{}', '{}')$$,
    '22023', 'differ in length', 'timing arrays of different lengths');
select test.throws($$select proverq_private.complete('{4}', null, array[test.token(4, 1)], '{"{}"}', '{"[]"}', '{NULL}',
    '{1}', '{}', '{}', '{}', '{}')$$,
    '22023', 'differ in length', 'an array that is NULL');
select test.throws($$select proverq_private.complete('{4}', '{1}', array[test.token(4, 1)], '{NULL}', '{"[]"}',
    '{NULL}', '{1}', '{}', '{}', '{}', '{}')$$,
    '23514', 'partition_proof_whole', 'a result without a proof');
select test.is(test.states(4), 'proved leased', 'undo the whole call');
